"""Engines: sizes in bytes as users and DuckDB write them."""

_UNITS = {"": 1, "b": 1, "byte": 1, "bytes": 1}
_UNITS |= {f"{prefix}b": 1000**power for power, prefix in enumerate("kmgt", 1)}
_UNITS |= {f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgt", 1)}


def parse_bytes(text: str | float) -> int:
    """Return the bytes that a number or a text such as '4GB' or '512 MiB' stands for.

    >>> parse_bytes("1.5 KiB")
    1536

    Raises:
        ValueError: `text` is neither.
    """
    if not isinstance(text, str):
        return int(text)
    digits = text.strip().rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ").strip()
    unit = text.strip()[len(digits) :].strip().lower()
    try:
        return int(float(digits) * _UNITS[unit])
    except (KeyError, ValueError):
        raise ValueError(f"{text!r} is no size; write it as in 4GB, 512MiB or a number of bytes") from None


def restorable_size(shown: str) -> str:
    """Return a size that DuckDB shows as `shown` again once it is set.

    DuckDB cuts off further decimals, so that it could show `shown` itself as the next smaller size.
    """
    digits, _, unit = shown.partition(" ")
    return f"{digits}5 {unit}" if "." in digits else shown

"""Plans: counts, sizes and times as text."""


def write_count(number: float) -> str:
    """A number of tuples or entries, rounded, as in `1,234`."""
    return f"{round(number):,}"


def write_rows(number: float) -> str:
    """A number of rows, as in `1 row` or `1,234 rows`."""
    return f"{write_count(number)} row{'' if round(number) == 1 else 's'}"


def write_bytes(size: float) -> str:
    """A number of bytes with three digits, in the unit that leaves at most three before the point, as in `1.5 MB`."""
    for unit in ("B", "KB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.3g} TB"


def write_seconds(seconds: float) -> str:
    """A duration with three digits, in s or ms."""
    if seconds == 0:
        return "0"
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"

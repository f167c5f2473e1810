"""Storage: fills as text that represents them exactly."""

from sparseeinsum.errors import CatalogueError
from sparseeinsum.operators.dtypes import Number, is_complex

_TRUTHS = {"true": True, "false": False}


def fill_text(fill: Number) -> str:
    """Return a fill as text that represents it exactly, such as 0.5, -inf, 3, true or (1+2j)."""
    return repr(fill).lower()


def fill_from_text(text: str, dtype: str) -> Number:
    """Return the fill that `fill_text` wrote.

    Raises:
        KeyError, ValueError: The text is no number of the dtype.
    """
    if dtype == "bool":
        return _TRUTHS[text]
    if dtype == "int64":
        return int(text)
    return complex(text) if is_complex(dtype) else float(text)


def fill_of(tensor: str, text: str, dtype: str) -> Number:
    """Return the fill of a tensor from its text in the database.

    Raises:
        CatalogueError: The text is no number of the dtype.
    """
    try:
        return fill_from_text(text, dtype)
    except (KeyError, ValueError):
        raise CatalogueError(
            f"it is recorded that tensor {tensor} has dtype {dtype} and fill {text}, which is no such number; define "
            "the tensor again"
        ) from None

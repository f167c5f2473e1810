"""SQL texts: what SQL functions are given and give as text, whichever engine has them."""

from contextlib import suppress

from sparseeinsum.errors import DataError, PlanError
from sparseeinsum.language.syntax import Declaration, write_statement
from sparseeinsum.language.tensors import Tensor
from sparseeinsum.operators.dtypes import Number


def parse_tiles(text: str | None) -> list[int] | str:
    """Tiles as given, `auto` or whole numbers with or without brackets around them.

    >>> parse_tiles("64, 512"), parse_tiles("[64]"), parse_tiles(None)
    ([64, 512], [64], [])

    Raises:
        PlanError: They are neither.
    """
    if text is None or text == "auto":
        return text or []
    try:
        return [int(tile) for tile in text.strip("[]").split(",")]
    except ValueError:
        raise PlanError(f"tiles {text} are neither 'auto' nor whole numbers, as in [64, 512]") from None


def parse_number(text: str) -> Number:
    """A number as SQL writes it.

    >>> parse_number("3"), parse_number("-Infinity"), parse_number("true")
    (3, -inf, True)

    Raises:
        DataError: It is none.
    """
    for kind in (int, float, complex):
        with suppress(ValueError):
            return kind(text)
    if text in ("true", "false"):
        return text == "true"
    raise DataError(f"the fill {text} is no number")


def parse_bool(name: str, text: str) -> bool:
    """Whether an argument of a name is true.

    >>> parse_bool("rewrite", "false")
    False

    Raises:
        PlanError: It is neither true nor false.
    """
    if text not in ("true", "false"):
        raise PlanError(f"{name} {text} is neither true nor false")
    return text == "true"


def write_declaration(tensor: Tensor) -> str:
    """A tensor as programs declare it.

    >>> write_declaration(Tensor("A", (), "int64", 0))
    'tensor A[] fill 0 dtype int64'
    """
    axes = tuple((axis.name, axis.bound) for axis in tensor.axes)
    return write_statement(Declaration(tensor.name, axes, tensor.fill, tensor.dtype))

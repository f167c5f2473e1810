"""Language: parses the text arguments of the SQL functions of all engines, and writes declarations as text."""

from contextlib import suppress

from sparseeinsum.errors import DataError, PlanError
from sparseeinsum.language.syntax import Declaration
from sparseeinsum.language.syntax_text import write_statement
from sparseeinsum.language.tensors import Tensor
from sparseeinsum.operators.dtypes import Number


def parse_tiles(text: str | None) -> list[int] | str:
    """Parse tiles: `auto`, or whole numbers with or without brackets; NULL gives no tiles.

    >>> parse_tiles("64, 512"), parse_tiles("[64]"), parse_tiles(None)
    ([64, 512], [64], [])

    Raises:
        PlanError: The text is neither.
    """
    if text is None or text == "auto":
        return text or []
    try:
        return [int(tile) for tile in text.strip("[]").split(",")]
    except ValueError:
        raise PlanError(f"tiles {text} are neither 'auto' nor whole numbers, as in [64, 512]") from None


def parse_number(text: str) -> Number:
    """Parse a number as SQL writes it.

    >>> parse_number("3"), parse_number("-Infinity"), parse_number("true")
    (3, -inf, True)

    Raises:
        DataError: The text is not a number.
    """
    for kind in (int, float, complex):
        with suppress(ValueError):
            return kind(text)
    if text in ("true", "false"):
        return text == "true"
    raise DataError(f"the fill {text} is not a number")


def parse_bool(name: str, text: str) -> bool:
    """Parse the truth value `text` of the argument `name`.

    >>> parse_bool("rewrite", "false")
    False

    Raises:
        PlanError: The text is neither true nor false.
    """
    if text not in ("true", "false"):
        raise PlanError(f"{name} {text} is neither true nor false")
    return text == "true"


def write_declaration(tensor: Tensor) -> str:
    """The statement that declares a tensor in a program.

    >>> write_declaration(Tensor("A", (), "int64", 0))
    'tensor A[] fill 0 dtype int64'
    """
    axes = tuple((axis.name, axis.bound) for axis in tensor.axes)
    return write_statement(Declaration(tensor.name, axes, tensor.fill, tensor.dtype))

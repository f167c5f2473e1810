"""The command line: parses the values of options, such as lists and numbers."""

import argparse
from typing import TYPE_CHECKING

from sparseeinsum.environment.extras import late
from sparseeinsum.errors import SparseEinsumError

if TYPE_CHECKING:
    from sparseeinsum.operators.dtypes import Number


def names(text: str) -> list[str]:
    """Parse a list of names, such as i,j."""
    return [name.strip() for name in text.split(",")]


def dictionaries(text: str) -> dict[str, str]:
    """Parse dictionaries by axis, such as src=person,dst=person."""
    return _pairs(text, "AXIS=DICTIONARY,..., as in src=person,dst=person")


def new_names(text: str) -> dict[str, str]:
    """Parse the names of tensors by those of weights, such as 0.weight=W,0.bias=b."""
    return _pairs(text, "NAME=TENSOR,..., as in 0.weight=W,0.bias=b")


def sizes(text: str) -> dict[str, int]:
    """Parse sizes of axes, such as batch=1,length=8."""
    form = "AXIS=SIZE,... with whole numbers, as in batch=1"
    try:
        return {axis: int(size) for axis, size in _pairs(text, form).items()}
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not {form}") from None


def _pairs(text: str, form: str) -> dict[str, str]:
    """Parse a list of names with a value each; `form` is for the error."""
    pairs = [pair.partition("=") for pair in names(text)]
    if not all(key and value for key, _, value in pairs):
        raise argparse.ArgumentTypeError(f"{text} is not {form}")
    return {key: value for key, _, value in pairs}


def bounds(text: str) -> list[int]:
    """Parse the bounds of axes, such as 100,100."""
    try:
        return [int(bound) for bound in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not a list of whole numbers, as in 100,100") from None


def number(text: str) -> "Number":
    """Parse a number of any dtype, such as 0, -inf or true."""
    try:
        value: Number = late("sparseeinsum.language.sql_texts").parse_number(text)
        return value
    except SparseEinsumError:
        raise argparse.ArgumentTypeError(f"{text} is not a number, as in 0, -inf or true") from None


def tiles(text: str) -> str | list[int]:
    """Parse sizes of tiles, such as 64,512, or auto."""
    try:
        return text if text == "auto" else [int(tile) for tile in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is neither auto nor whole numbers, as in 64,512") from None

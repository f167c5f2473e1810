"""The command line: the values of options, from the text that stands there."""

import argparse

from sparseeinsum.errors import SparseEinsumError
from sparseeinsum.language.sql_texts import parse_number
from sparseeinsum.operators.dtypes import Number


def words(text: str) -> list[str]:
    """Words, as in i,j."""
    return [word.strip() for word in text.split(",")]


def dictionaries(text: str) -> dict[str, str]:
    """Dictionaries of axes, as in src=person,dst=person."""
    pairs = [word.partition("=") for word in words(text)]
    if not all(axis and dictionary for axis, _, dictionary in pairs):
        raise argparse.ArgumentTypeError(f"{text} is not AXIS=DICTIONARY,..., as in src=person,dst=person")
    return {axis: dictionary for axis, _, dictionary in pairs}


def bounds(text: str) -> list[int]:
    """Bounds of axes, as in 100,100."""
    try:
        return [int(bound) for bound in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} are no whole numbers, as in 100,100") from None


def number(text: str) -> Number:
    """A number of any dtype."""
    try:
        return parse_number(text)
    except SparseEinsumError:
        raise argparse.ArgumentTypeError(f"{text} is no number, as in 0, -inf or true") from None


def tiles(text: str) -> str | list[int]:
    """Tiles, or auto."""
    try:
        return text if text == "auto" else [int(tile) for tile in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is neither auto nor whole numbers, as in 64,512") from None

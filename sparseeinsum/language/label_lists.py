"""Language: numpy's other notation for einsum, in which a list of labels follows every operand, as subscripts."""

from collections.abc import Sequence
from functools import cache
from itertools import chain
from numbers import Integral
from types import EllipsisType
from typing import Any, TypeAlias

from sparseeinsum.errors import ArgumentError, ParseError

_EXAMPLE = "as in einsum(A, [0, 1], [1, 0])"

_Label: TypeAlias = Any  # whatever has a hash


def read_arguments(arguments: Sequence[object]) -> tuple[str, tuple[object, ...]]:
    """The arguments of einsum as subscripts and operands.

    Lists of labels become subscripts whose letters sort as the labels do. Numbers, single letters and other values that
    can be sorted are labels. Values that cannot be sorted are, too, if the last list has the result's labels.

    Raises:
        ArgumentError: The first argument is no text and no list follows it, or a list has something that is no label.
        ParseError: There are more labels than letters.
    """
    first = arguments[0] if arguments else ""
    if isinstance(first, str):
        return first, tuple(arguments[1:])
    if len(arguments) < 2:
        raise ArgumentError(
            f"the subscripts are of type {type(first).__name__}, not a text; write them as in 'ij,jk->ik'"
        )
    operands, lists = arguments[: len(arguments) // 2 * 2 : 2], [_labels(list_) for list_ in arguments[1::2]]
    result = [_labels(arguments[-1])] if len(arguments) % 2 else []
    symbols = _symbols(list(chain(*lists, *result)), bool(result))
    inputs, output = (
        ["".join("..." if isinstance(label, EllipsisType) else symbols[label] for label in labels) for labels in part]
        for part in (lists, result)
    )
    return "->".join([",".join(inputs), *output]), tuple(operands)


def _labels(labels: object) -> list[_Label]:
    """The labels of a list; whole numbers of numpy become those of Python."""
    if getattr(getattr(labels, "dtype", None), "kind", "i") in "bfc":
        raise ArgumentError(f"an array of numbers is given in place of the list of labels of an operand, {_EXAMPLE}")
    try:
        listed = list(labels)  # type: ignore[call-overload]  # anything iterable
    except TypeError:
        raise ArgumentError(f"the labels of an operand are a list, {_EXAMPLE}, not {labels!r}") from None
    for label in listed:
        if isinstance(label, bool):
            raise ArgumentError(
                f"{label} is no label; labels are whole numbers, letters, texts or Ellipsis, {_EXAMPLE}"
            )
        try:
            hash(label)
        except TypeError:
            raise ArgumentError(f"{label!r} is no label, because it has no hash; write a number or a text") from None
    return [int(label) if isinstance(label, Integral) else label for label in listed]


def _symbols(labels: list[_Label], has_result: bool) -> dict[_Label, str]:
    """A letter for every label; letters sort as the labels do."""
    distinct = [label for label in dict.fromkeys(labels) if not isinstance(label, EllipsisType)]
    letters = _letters()
    if all(isinstance(label, int) and 0 <= label < len(letters) for label in distinct):
        return {label: letters[label] for label in distinct}
    if all(isinstance(label, str) and len(label) == 1 and label.isalpha() for label in distinct):
        return {label: str(label) for label in distinct}
    try:
        distinct.sort()  # values that have no order raise TypeError
    except TypeError:
        if not has_result:
            shown = ", ".join(map(repr, distinct))
            raise ArgumentError(
                f"the labels {shown} cannot be sorted, so the result has no order of axes; add the list of its labels, "
                f"{_EXAMPLE}"
            ) from None
    if len(distinct) > len(letters):
        raise ParseError(f"there are more than {len(letters)} labels", "", 1, 1)
    return dict(zip(distinct, letters, strict=False))


@cache
def _letters() -> tuple[str, ...]:
    return tuple(character for character in map(chr, range(0x10000)) if character.isalpha())

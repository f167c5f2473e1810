"""Language: what stands in the brackets of Python expressions: labels, and the indices that tensors are read at."""

import operator
from typing import SupportsIndex, TypeAlias

from sparseeinsum.errors import ArgumentError, SemanticsError
from sparseeinsum.language.affine_indices import AffineIndex
from sparseeinsum.language.parsing import parse_index
from sparseeinsum.language.syntax import RULE_OF_NAMES, IndexedReference, TensorReference, is_name

Labels: TypeAlias = str | tuple[str, ...]
IndexArguments: TypeAlias = str | SupportsIndex | tuple[str | SupportsIndex, ...]


def check_labels(labels: Labels) -> tuple[str, ...]:
    """The labels as a tuple, after a check of their names.

    Raises:
        ArgumentError: A label is not a text.
        SemanticsError: A label is not a name.
    """
    labels = labels if isinstance(labels, tuple) else (labels,)
    for label in labels:
        if not isinstance(label, str):
            raise ArgumentError(f"{label!r} is not a label; labels are text, as in A['i', 'j']")
        if not is_name(label):
            raise SemanticsError(f"{label!r} is not a name; {RULE_OF_NAMES}")
    return labels


def read_reference(tensor: str, indices: IndexArguments) -> TensorReference | IndexedReference:
    """The reference A["i", "j + 1", 0]: each index is a label, a whole number, or a text such as "2*j + 1" or "'ann'".

    Raises:
        ArgumentError: An index is something else.
        ParseError: A text is no index.
    """
    written = tuple(map(_index, indices if isinstance(indices, tuple) else (indices,)))
    labels = tuple(index for index in written if isinstance(index, str))
    return TensorReference(tensor, labels) if labels == written else IndexedReference(tensor, written)


def _index(index: object) -> str | AffineIndex:
    if isinstance(index, str):
        is_key = len(index) > 1 and index[0] in "'\"" and index.find(index[0], 1) == len(index) - 1
        if is_key:
            return AffineIndex((), 0, index[1:-1])
        return index if is_name(index) else parse_index(index)
    if isinstance(index, slice):
        start = index.start if isinstance(index.start, int) else 0
        problem = f"{index!r} is a slice, which needs a label"
        raise ArgumentError(
            f"{problem}; write A['j + {start}'], and declare the bound of j, as in se.tensor('Y', {{'j': 3}})"
        )
    if isinstance(index, bool) or not hasattr(index, "__index__"):
        raise ArgumentError(f"{index!r} is no index; write a label, a number or a text, as in A['i', 0, 'j + 1']")
    return AffineIndex((), operator.index(index))

"""Statistics: the order of the rows of a stored tensor, guessed from the first rows or checked in all of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.statistics.columns import coordinate
from sparseeinsum.statistics.executor import Executor
from sparseeinsum.statistics.sql_templates import union_all
from sparseeinsum.statistics.tensor_rows import relation_of

_ROWS = 2_048  # the number of rows that are read for a guess
_LARGEST_SIZE = 1 << 62  # coordinates of larger tensors have no number that fits into 64 bits


def ascending_axes(stored: Mapping[str, StoredTensor], executor: Executor) -> dict[str, frozenset[int]]:
    """For every stored tensor, the positions of promoted axes whose keys never decrease from one row to the next.

    Only the first rows are read: this order decides what is fast, not what is correct.
    """
    if not stored:
        return {}
    selects = [_descents(number, source, executor.dialect_name) for number, source in enumerate(stored.values())]
    rows = executor.rows(union_all(selects))
    counts = {int(str(number)): descents for number, descents in rows}
    return {
        name: _axes_without_descents(source, counts[number]) for number, (name, source) in enumerate(stored.items())
    }


def ascending_indices(coordinates: Sequence[NDArray[Any]]) -> frozenset[int]:
    """What `ascending_axes` finds for a table of entries whose rows have these indices, an array for every axis."""
    first = [indices[:_ROWS] for indices in coordinates]
    return frozenset(axis for axis, indices in enumerate(first) if np.all(indices[:-1] <= indices[1:]))


def _axes_without_descents(stored: StoredTensor, counts: object) -> frozenset[int]:
    assert isinstance(counts, Sequence)
    return frozenset(axis for axis, count in zip(stored.decomposition.promoted, counts, strict=True) if count == 0)


def _descents(number: int, stored: StoredTensor, dialect: str) -> exp.Select:
    """A query of one row: the tensor's number, and for every key how often it is less than in the row before."""
    keys = [exp.column(key, quoted=True) for key in stored.keys]
    first = exp.select(*keys).from_(relation_of(stored, dialect)).limit(_ROWS).subquery("first")
    falls = [key.copy() < exp.Window(this=exp.Lag(this=key.copy())) for key in keys]
    pairs = exp.select(*[fall.as_(f"falls_{place}") for place, fall in enumerate(falls)]).from_(first)
    counts = exp.array(*[exp.CountIf(this=exp.column(f"falls_{place}")) for place in range(len(keys))])
    return exp.select(exp.Literal.number(number).as_("number"), counts.as_("falls")).from_(pairs.subquery("pairs"))


def is_ascending(stored: StoredTensor, executor: Executor) -> bool:
    """Whether every row of a table of entries has a greater coordinate than the row that is read before it.

    Then no coordinate is repeated, and this check takes far less time than a search for duplicates. The opposite proves
    nothing, as the database may read rows in another order than they were written.
    """
    tensor = stored.tensor
    if not (tensor.axes and stored.decomposition.is_scalar and tensor.size < _LARGEST_SIZE):
        return False
    number = coordinate([exp.column(key, quoted=True) for key in stored.keys], tensor.shape)
    previous = exp.Window(this=exp.func("LAG", number.copy()))
    numbers = exp.select(number.as_("number"), previous.as_("before")).from_(relation_of(stored, executor.dialect_name))
    is_earlier = exp.LTE(this=exp.column("number"), expression=exp.column("before"))
    query = exp.select(exp.Literal.number(1).as_("one")).from_(numbers.subquery("numbers")).where(is_earlier).limit(1)
    return not executor.rows(query)

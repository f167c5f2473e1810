"""Statistics: the order of the rows of a stored tensor, guessed from the first rows."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.statistics.executor import Executor
from sparseeinsum.statistics.sql_templates import union_all
from sparseeinsum.statistics.tensor_rows import relation_of

_ROWS = 2_048  # the number of rows that are read for a guess


def ascending_axes(stored: Mapping[str, StoredTensor], executor: Executor) -> dict[str, frozenset[int]]:
    """For every stored tensor, the positions of promoted axes whose keys never decrease from one row to the next.

    Only the first rows are read: this order decides what is fast, not what is correct.
    """
    if not stored:
        return {}
    rows = executor.rows(_query_of_descents(tuple(stored.values()), executor.dialect_name))
    counts = {int(str(number)): descents for number, descents in rows}
    return {
        name: _axes_without_descents(source, counts[number]) for number, (name, source) in enumerate(stored.items())
    }


@lru_cache(maxsize=512)  # the same is asked for after every change of the tensors
def _query_of_descents(stored: tuple[StoredTensor, ...], dialect: str) -> str:
    return union_all([_descents(number, source, dialect) for number, source in enumerate(stored)]).sql(dialect)


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

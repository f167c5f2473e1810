"""Statistics: in which order the rows of a stored tensor lie, from a look at the first of them.

It says what is fast and never what is right, so that a look is enough.
"""

from collections.abc import Mapping, Sequence

from sqlglot import exp

from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.statistics.columns import relation_of
from sparseeinsum.statistics.measure import Executor
from sparseeinsum.statistics.templates import union_all

_ROWS = 2_048  # that are looked at


def ascending_axes(stored: Mapping[str, StoredTensor], executor: Executor) -> dict[str, frozenset[int]]:
    """For every stored tensor the positions of promoted axes whose keys never descend from one row to the next."""
    if not stored:
        return {}
    selects = [_descents(number, each, executor.dialect_name) for number, each in enumerate(stored.values())]
    rows = executor.rows(union_all(selects))
    counts = {int(str(number)): found for number, found in rows}
    return {name: _never_descending(each, counts[number]) for number, (name, each) in enumerate(stored.items())}


def _never_descending(stored: StoredTensor, counts: object) -> frozenset[int]:
    assert isinstance(counts, Sequence)
    return frozenset(axis for axis, count in zip(stored.decomposition.promoted, counts, strict=True) if count == 0)


def _descents(number: int, stored: StoredTensor, dialect: str) -> exp.Select:
    """How often every key is less than in the row before, as an array."""
    keys = [exp.column(key, quoted=True) for key in stored.keys]
    first = exp.select(*keys).from_(relation_of(stored, dialect)).limit(_ROWS).subquery("first")
    falls = [key.copy() < exp.Window(this=exp.Lag(this=key.copy())) for key in keys]
    pairs = exp.select(*[fall.as_(f"falls_{place}") for place, fall in enumerate(falls)]).from_(first)
    counts = exp.array(*[exp.CountIf(this=exp.column(f"falls_{place}")) for place in range(len(keys))])
    return exp.select(exp.Literal.number(number).as_("number"), counts.as_("falls")).from_(pairs.subquery("pairs"))

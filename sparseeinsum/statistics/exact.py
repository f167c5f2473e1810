"""Statistics: results counted instead of estimated: a query computes which indices have entries, and no values.

Values that cancel out, or that happen to be the fill, count as entries.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from sqlglot import exp

from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference
from sparseeinsum.language.tensors import DEMOTED, StoredTensor
from sparseeinsum.semantics.exactness import Evaluation, JoinKind
from sparseeinsum.statistics.columns import coordinate
from sparseeinsum.statistics.counts import Counts
from sparseeinsum.statistics.estimate import Statistics
from sparseeinsum.statistics.indices import entry_indices, index_column
from sparseeinsum.statistics.measure import Executor
from sparseeinsum.statistics.sketch_estimates import SketchEstimator
from sparseeinsum.statistics.templates import union_all

_MOST_AXES = 4  # of a relation of whose every set of axes the tuples are counted
_MOST_COUNTED = 8  # axes of a tensor for whose every set of axes counts are kept

_Positions = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Structure:
    """Which indices of a tensor have entries: those in a relation, with every index of the axes that it lacks.

    Attributes:
        relation: Its name; None where every index has an entry.
        axes: Positions of the axes that the relation has columns for.
    """

    relation: str | None
    axes: _Positions


_EVERYWHERE = _Structure(None, ())


@dataclass(frozen=True, slots=True)
class ExactEstimator:
    """Counts the entries of all results by one query, which may take as long as to run the relational plan.

    Attributes:
        stored: The inputs.
        executor: Runs the query.
    """

    name: ClassVar[str] = "exact"

    stored: Mapping[str, StoredTensor]
    executor: Executor

    def knowing(self, stored: Mapping[str, StoredTensor], counts: Mapping[str, tuple[Counts, ...]]) -> "ExactEstimator":
        """The estimator that counts from further stored tensors, too."""
        return ExactEstimator({**self.stored, **stored}, self.executor)

    def __call__(
        self, graph: EinGraph, measured: Mapping[str, Statistics], evaluations: Mapping[str, Evaluation]
    ) -> dict[str, Statistics]:
        """Statistics of every tensor of a graph.

        Raises:
            EngineError: The database refused the query, as where memory does not suffice.
        """
        read = {name: self.stored[name] for name in measured}  # the rest of a plan reads no longer all that it read
        known = SketchEstimator.measuring(read, measured, self.executor)(graph, measured, evaluations)
        structures = _Structures(graph, self.executor.dialect_name)
        for name in measured:
            is_everywhere = measured[name].entries >= self.stored[name].tensor.size
            structures.add_input(self.stored[name], is_everywhere)
        for einsum in graph.einsums:
            structures.add_result(einsum, evaluations[einsum.output.tensor])
        counted = [name for name in known if known[name].entries > 0 and structures.found[name].relation is not None]
        if not counted:
            return known
        sets = {name: _counted_sets(structures.found[name].axes) for name in counted}
        rows = self.executor.rows(structures.counting(sets))
        for number, counts in rows:
            name = counted[int(str(number))]
            sizes = dict(zip(sets[name], map(float, counts), strict=True))  # type: ignore[call-overload]  # a list
            known[name] = _with_counts(known[name], structures.found[name], sizes)
        return known


def _counted_sets(axes: _Positions) -> list[_Positions]:
    """Sets of axes whose tuples are counted; all of them where there are few axes."""
    sizes = range(1, len(axes)) if len(axes) <= _MOST_AXES else range(1, 2)
    fewer = [positions for size in sizes for positions in itertools.combinations(axes, size)]
    return [positions for positions in fewer if positions != axes] + [axes]


def _with_counts(statistics: Statistics, structure: _Structure, counts: Mapping[_Positions, float]) -> Statistics:
    """Statistics with counts in place of estimates."""
    shape, rank = statistics.shape, len(statistics.shape)
    if counts[structure.axes] == 0:
        return Statistics(0.0, (0.0,) * rank, shape)
    counts = {(): 1.0, **counts}

    def tuples(promoted: Iterable[int]) -> float | None:
        """As counted, times all indices of the axes that the relation lacks."""
        positions = tuple(promoted)
        found = counts.get(tuple(each for each in positions if each in structure.axes))
        return found and found * math.prod(shape[each] for each in positions if each not in structure.axes)

    measured = {}
    for tiles in itertools.product((DEMOTED, 1), repeat=rank) if rank <= _MOST_COUNTED else ():
        found = tuples(position for position, tile in enumerate(tiles) if tile != DEMOTED)
        if found is not None:
            measured[tiles] = found
    distinct = tuple(tuples([position]) or 0.0 for position in range(rank))
    return replace(statistics, entries=tuples(range(rank)) or 0.0, distinct=distinct, measured=measured)


class _Structures:
    """Builds the query: a common table expression for every tensor that has no entry somewhere."""

    def __init__(self, graph: EinGraph, dialect: str) -> None:
        self.found: dict[str, _Structure] = {}
        self._graph = graph
        self._dialect = dialect
        self._queries: dict[str, exp.Query] = {}

    def add_input(self, stored: StoredTensor, is_everywhere: bool) -> None:
        """An input, read from its relation."""
        name = stored.tensor.name
        axes = tuple(range(len(stored.tensor.axes)))
        self.found[name] = _EVERYWHERE if is_everywhere else self._add(axes, entry_indices(stored, self._dialect))

    def add_result(self, einsum: EinSum, evaluation: Evaluation) -> None:
        """A result, computed from the structures of its operands."""
        everything = tuple(frozenset(operand.labels) for operand in einsum.operands)
        absence = evaluation.absence_options(everything)[0]
        operands = [
            _Operand.of(operand, _EVERYWHERE if dense else self.found[operand.tensor], table)
            for operand, dense, table in zip(einsum.operands, absence.dense, "uv", strict=False)
        ]
        kept = {JoinKind.LEFT: operands[:1], JoinKind.RIGHT: operands[1:]}.get(absence.join, operands)
        labels = einsum.output.labels
        if absence.join == JoinKind.FULL:
            self.found[einsum.output.tensor] = self._united(einsum, operands)
        elif all(operand.relation is None for operand in kept):
            self.found[einsum.output.tensor] = _EVERYWHERE
        else:
            columns = {label: each for label, each in _columns(kept).items() if label != einsum.along}
            axes = tuple(position for position, label in enumerate(labels) if label in columns)
            selected = _selected([(position, columns[labels[position]]) for position in axes])
            self.found[einsum.output.tensor] = self._add(axes, _joined(selected, kept))

    def _united(self, einsum: EinSum, operands: Sequence["_Operand"]) -> _Structure:
        """Indices that either operand has."""
        if any(operand.relation is None for operand in operands):
            return _EVERYWHERE
        labels = einsum.output.labels
        wanted = [label for label in labels if any(label in operand.columns for operand in operands)]
        axes = tuple(position for position, label in enumerate(labels) if label in wanted)
        halves = []
        for operand in operands:
            missing = [label for label in wanted if label not in operand.columns]
            ranges = {label: self._range(einsum, label, f"r{number}") for number, label in enumerate(missing)}
            columns = {**operand.columns} | {
                label: exp.column("place", table=each.alias) for label, each in ranges.items()
            }
            selected = _selected([(position, columns[labels[position]]) for position in axes])
            query = _joined(selected, [operand])
            for each in ranges.values():
                query = query.join(each, join_type="cross")
            halves.append(query)
        return self._add(axes, exp.union(*halves, distinct=True))

    def _range(self, einsum: EinSum, label: str, alias: str) -> exp.Subquery:
        """All indices of a label."""
        bound = exp.Literal.number(self._graph.bound_of(einsum, label))
        places = exp.Table(this=exp.Anonymous(this="RANGE", expressions=[bound]))
        return exp.select(exp.column("range").as_("place")).from_(places).subquery(alias)

    def _add(self, axes: _Positions, query: exp.Query) -> _Structure:
        relation = f"structure_{len(self._queries)}"
        self._queries[relation] = query
        return _Structure(relation, axes)

    def counting(self, sets: Mapping[str, Sequence[_Positions]]) -> exp.Query:
        """A row for every tensor: its number, and a list of the counts of these sets of axes."""
        selects = []
        for number, (name, positions) in enumerate(sets.items()):
            structure = self.found[name]
            counts = exp.array(*(self._count(name, each, structure.axes) for each in positions))
            columns = (exp.Literal.number(number).as_("number"), counts.as_("counts"))
            selects.append(exp.select(*columns).from_(str(structure.relation)))
        counting = union_all(selects)
        for relation, query in self._queries.items():
            counting = counting.with_(relation, as_=query, materialized=True, copy=False)
        return counting

    def _count(self, name: str, positions: _Positions, axes: _Positions) -> exp.Expr:
        if positions == axes:
            return exp.Count(this=exp.Star())
        shape = self._graph.tensors[name].shape
        key = coordinate([index_column(each) for each in positions], [shape[each] for each in positions])
        return exp.Count(this=exp.Distinct(expressions=[key]))


@dataclass(frozen=True, slots=True)
class _Operand:
    """The structure of an operand in a FROM clause.

    Attributes:
        relation: Its relation under an alias; None where it has every index.
        columns: By label, for those that the relation has.
        conditions: That the columns of a repeated label are equal.
    """

    relation: exp.Table | None
    columns: Mapping[str, exp.Column]
    conditions: tuple[exp.Expr, ...]

    @classmethod
    def of(cls, reference: Reference, structure: _Structure, table: str) -> "_Operand":
        """A structure under the labels of a reference."""
        columns: dict[str, exp.Column] = {}
        conditions: list[exp.Expr] = []
        for position in structure.axes:
            column = index_column(position, table)
            first = columns.setdefault(reference.labels[position], column)
            if first is not column:
                conditions.append(exp.EQ(this=first.copy(), expression=column))
        relation = None if structure.relation is None else exp.to_table(structure.relation, alias=table)
        return cls(relation, columns, tuple(conditions))


def _columns(operands: Sequence[_Operand]) -> dict[str, exp.Column]:
    return {label: column for operand in operands for label, column in operand.columns.items()}


def _selected(columns: Sequence[tuple[int, exp.Expr]]) -> exp.Select:
    """Distinct indices; a row where there is any, if no axis has a column."""
    projections = [column.copy().as_(f"index_{position}") for position, column in columns]
    return exp.select(*(projections or [exp.Literal.number(1).as_("present")])).distinct()


def _joined(selected: exp.Select, operands: Sequence[_Operand]) -> exp.Select:
    """The selected columns from the join of operands on all labels that both have columns for."""
    (table, first), *others = [(each.relation, each) for each in operands if each.relation is not None]
    query = selected.from_(table)
    for table, other in others:
        shared = [
            exp.EQ(this=first.columns[label].copy(), expression=column.copy())
            for label, column in other.columns.items()
            if label in first.columns
        ]
        query = query.join(table, on=exp.and_(*shared)) if shared else query.join(table, join_type="cross")
    conditions = [condition.copy() for operand in operands for condition in operand.conditions]
    return query.where(*conditions) if conditions else query

"""Statistics: exact counts of results: a query computes which indices have entries, but no values.

A value that equals the fill by chance, such as a sum that cancels out, counts as an entry.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from sqlglot import exp

from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference
from sparseeinsum.language.tensors import DEMOTED, StoredTensor
from sparseeinsum.semantics.exactness import Evaluation, JoinKind
from sparseeinsum.statistics.axis_counts import AxisCounts, count_entries
from sparseeinsum.statistics.columns import coordinate
from sparseeinsum.statistics.estimate import Statistics
from sparseeinsum.statistics.executor import Executor
from sparseeinsum.statistics.indices import entry_indices, index_column
from sparseeinsum.statistics.sketch_estimates import SketchEstimator
from sparseeinsum.statistics.sql_templates import union_all

_MOST_AXES = 4  # the most axes of a relation for which the tuples of every set of axes are counted
_MOST_COUNTED = 8  # the most axes of a tensor for which counts of every set of axes are kept

_Positions = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Structure:
    """The indices of a tensor that have entries: those in a relation, with all indices of the axes that it lacks.

    Attributes:
        relation: The name of the relation; None if the tensor is dense.
        axes: Positions of the axes for which the relation has columns.
    """

    relation: str | None
    axes: _Positions


_DENSE = _Structure(None, ())


@dataclass(frozen=True, slots=True)
class ExactEstimator:
    """Counts the entries of all results by one query, which may take as long as running the relational plan.

    Attributes:
        stored: The inputs.
        executor: Runs the query.
    """

    name: ClassVar[str] = "exact"
    fingerprint: ClassVar[None] = None  # it reads rows

    stored: Mapping[str, StoredTensor]
    executor: Executor

    def with_tensors(
        self, stored: Mapping[str, StoredTensor], counts: Mapping[str, tuple[AxisCounts, ...]]
    ) -> "ExactEstimator":
        """An estimator that reads further stored tensors, too."""
        return ExactEstimator({**self.stored, **stored}, self.executor)

    def __call__(
        self, graph: EinGraph, measured: Mapping[str, Statistics], evaluations: Mapping[str, Evaluation]
    ) -> dict[str, Statistics]:
        """Statistics of every tensor of a graph.

        Raises:
            EngineError: The database refused the query, for example for lack of memory.
        """
        read = {name: self.stored[name] for name in measured}  # after a checkpoint, the rest reads fewer tensors
        count = partial(count_entries, executor=self.executor)
        estimates = SketchEstimator.from_tensors(read, measured, count)(graph, measured, evaluations)
        structures = _Structures(graph, self.executor.dialect_name)
        for name in measured:
            is_dense = measured[name].entries >= self.stored[name].tensor.size
            structures.add_input(self.stored[name], is_dense)
        for einsum in graph.einsums:
            structures.add_result(einsum, evaluations[einsum.output.tensor])
        sparse = [
            name
            for name in estimates
            if estimates[name].entries > 0 and structures.by_tensor[name].relation is not None
        ]
        if not sparse:
            return estimates
        sets = {name: _counted_sets(structures.by_tensor[name].axes) for name in sparse}
        rows = self.executor.rows(structures.counting_query(sets))
        for number, counts in rows:
            name = sparse[int(str(number))]
            sizes = dict(zip(sets[name], map(float, counts), strict=True))  # type: ignore[call-overload]  # a list
            estimates[name] = _with_counts(estimates[name], structures.by_tensor[name], sizes)
        return estimates


def _counted_sets(axes: _Positions) -> list[_Positions]:
    """The sets of axes whose tuples are counted: all sets if there are few axes, else single axes and all together."""
    sizes = range(1, len(axes)) if len(axes) <= _MOST_AXES else range(1, 2)
    fewer = [positions for size in sizes for positions in itertools.combinations(axes, size)]
    return [positions for positions in fewer if positions != axes] + [axes]


def _with_counts(statistics: Statistics, structure: _Structure, counts: Mapping[_Positions, float]) -> Statistics:
    """Statistics with counts instead of estimates.

    Args:
        statistics: The estimates.
        structure: Where the tensor has entries.
        counts: The tuples of the structure's relation, by sets of axes.
    """
    shape, rank = statistics.shape, len(statistics.shape)
    if counts[structure.axes] == 0:
        return Statistics(0.0, (0.0,) * rank, shape)
    counts = {(): 1.0, **counts}

    def tuples(promoted: Iterable[int]) -> float | None:
        """The counted tuples times all indices of the axes that the relation lacks; None if they were not counted."""
        positions = tuple(promoted)
        count = counts.get(tuple(position for position in positions if position in structure.axes))
        return count and count * math.prod(shape[position] for position in positions if position not in structure.axes)

    counted_tuples = {}
    for tiles in itertools.product((DEMOTED, 1), repeat=rank) if rank <= _MOST_COUNTED else ():
        count = tuples(position for position, tile in enumerate(tiles) if tile != DEMOTED)
        if count is not None:
            counted_tuples[tiles] = count
    distinct = tuple(tuples([position]) or 0.0 for position in range(rank))
    return replace(statistics, entries=tuples(range(rank)) or 0.0, distinct=distinct, counted_tuples=counted_tuples)


class _Structures:
    """Builds the query, with a common table expression for every sparse tensor."""

    def __init__(self, graph: EinGraph, dialect: str) -> None:
        self.by_tensor: dict[str, _Structure] = {}
        self._graph = graph
        self._dialect = dialect
        self._queries: dict[str, exp.Query] = {}

    def add_input(self, stored: StoredTensor, is_dense: bool) -> None:
        """Add an input, which is read from its relation unless it is dense."""
        name = stored.tensor.name
        axes = tuple(range(len(stored.tensor.axes)))
        self.by_tensor[name] = _DENSE if is_dense else self._add(axes, entry_indices(stored, self._dialect))

    def add_result(self, einsum: EinSum, evaluation: Evaluation) -> None:
        """Add a result, which is computed from the structures of its operands."""
        all_labels = tuple(frozenset(operand.labels) for operand in einsum.operands)
        absence = evaluation.absence_options(all_labels)[0]
        operands = [
            _OperandStructure.from_reference(operand, _DENSE if dense else self.by_tensor[operand.tensor], table)
            for operand, dense, table in zip(einsum.operands, absence.dense, "uv", strict=False)
        ]
        joined = {JoinKind.LEFT: operands[:1], JoinKind.RIGHT: operands[1:]}.get(absence.join, operands)
        labels = einsum.output.labels
        if absence.join == JoinKind.FULL:
            self.by_tensor[einsum.output.tensor] = self._united(einsum, operands)
        elif all(operand.relation is None for operand in joined):
            self.by_tensor[einsum.output.tensor] = _DENSE
        else:
            columns = {label: column for label, column in _columns(joined).items() if label != einsum.along}
            axes = tuple(position for position, label in enumerate(labels) if label in columns)
            selected = _selected([(position, columns[labels[position]]) for position in axes])
            self.by_tensor[einsum.output.tensor] = self._add(axes, _joined(selected, joined))

    def _united(self, einsum: EinSum, operands: Sequence["_OperandStructure"]) -> _Structure:
        """The union of the indices of both operands, for a full join."""
        if any(operand.relation is None for operand in operands):
            return _DENSE
        labels = einsum.output.labels
        counted = [label for label in labels if any(label in operand.columns for operand in operands)]
        axes = tuple(position for position, label in enumerate(labels) if label in counted)
        halves = []
        for operand in operands:
            missing = [label for label in counted if label not in operand.columns]
            ranges = {label: self._range(einsum, label, f"r{number}") for number, label in enumerate(missing)}
            columns = {**operand.columns} | {
                label: exp.column("place", table=index_range.alias) for label, index_range in ranges.items()
            }
            selected = _selected([(position, columns[labels[position]]) for position in axes])
            query = _joined(selected, [operand])
            for index_range in ranges.values():
                query = query.join(index_range, join_type="cross")
            halves.append(query)
        return self._add(axes, exp.union(*halves, distinct=True))

    def _range(self, einsum: EinSum, label: str, alias: str) -> exp.Subquery:
        """A subquery of all indices of a label."""
        bound = exp.Literal.number(self._graph.bound_of(einsum, label))
        places = exp.Table(this=exp.Anonymous(this="RANGE", expressions=[bound]))
        return exp.select(exp.column("range").as_("place")).from_(places).subquery(alias)

    def _add(self, axes: _Positions, query: exp.Query) -> _Structure:
        relation = f"structure_{len(self._queries)}"
        self._queries[relation] = query
        return _Structure(relation, axes)

    def counting_query(self, sets: Mapping[str, Sequence[_Positions]]) -> exp.Query:
        """The query, with a row for every tensor: its number, and a list of the counts of these sets of axes."""
        selects = []
        for number, (name, positions) in enumerate(sets.items()):
            structure = self.by_tensor[name]
            counts = exp.array(*(self._count(name, axes, structure.axes) for axes in positions))
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
        key = coordinate([index_column(axis) for axis in positions], [shape[axis] for axis in positions])
        return exp.Count(this=exp.Distinct(expressions=[key]))


@dataclass(frozen=True, slots=True)
class _OperandStructure:
    """The structure of an operand in a FROM clause.

    Attributes:
        relation: Its relation under an alias; None if the operand is dense.
        columns: The columns of the relation, by label.
        conditions: Equality of the columns of repeated labels.
    """

    relation: exp.Table | None
    columns: Mapping[str, exp.Column]
    conditions: tuple[exp.Expr, ...]

    @classmethod
    def from_reference(cls, reference: Reference, structure: _Structure, table: str) -> "_OperandStructure":
        """The structure of an operand under the labels of its reference."""
        columns: dict[str, exp.Column] = {}
        conditions: list[exp.Expr] = []
        for position in structure.axes:
            column = index_column(position, table)
            first = columns.setdefault(reference.labels[position], column)
            if first is not column:
                conditions.append(exp.EQ(this=first.copy(), expression=column))
        relation = None if structure.relation is None else exp.to_table(structure.relation, alias=table)
        return cls(relation, columns, tuple(conditions))


def _columns(operands: Sequence[_OperandStructure]) -> dict[str, exp.Column]:
    return {label: column for operand in operands for label, column in operand.columns.items()}


def _selected(columns: Sequence[tuple[int, exp.Expr]]) -> exp.Select:
    """A SELECT of distinct indices; without columns, it returns one row if there is any entry."""
    projections = [column.copy().as_(f"index_{position}") for position, column in columns]
    return exp.select(*(projections or [exp.Literal.number(1).as_("present")])).distinct()


def _joined(selected: exp.Select, operands: Sequence[_OperandStructure]) -> exp.Select:
    """The selected columns from the join of the operands on all labels for which both have columns."""
    (table, first), *others = [(operand.relation, operand) for operand in operands if operand.relation is not None]
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

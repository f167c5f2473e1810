"""Render: an EinSum over relations as one SELECT: join, kernel and aggregation.

Source: SparseEinSum, section 5: SELECT keys, AGG(kernel(u.val, v.val)) FROM u JOIN v GROUP BY keys.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from sqlglot import exp

from sparseeinsum.algebra.operators import FILLED_IN, Contract
from sparseeinsum.language.tensors import DEMOTED, VALUE_COLUMN
from sparseeinsum.operators.ranges import ANY_VALUE
from sparseeinsum.render.array_positions import fill_value
from sparseeinsum.render.copied_arrays import CopiedArrays
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.render.layouts import HANDLE_COLUMN, resident_row
from sparseeinsum.render.matched_rows import MatchedRows
from sparseeinsum.render.sources import (
    SelectSource,
    aliased,
    keys_and_value,
    named,
    plain_source,
    with_inline_arrays,
    with_join,
    with_value_column,
)
from sparseeinsum.render.values import OperandValue, ResultValue
from sparseeinsum.semantics.exactness import JoinKind
from sparseeinsum.statistics.extents import Extent, extent

ALIASES = ("u", "v")
_MIN_PROBE_ARRAY = 16  # shorter arrays are copied as fast as they are referred to


def contract_select(
    relation: Contract, sources: Sequence[SelectSource], dialect: Dialect, copied: CopiedArrays | None = None
) -> exp.Select:
    """The SELECT of one EinSum.

    Args:
        relation: The EinSum and the relations of its operands.
        sources: Where its operands are read.
        dialect: The dialect of the engine.
        copied: The arrays that it copies, of which the first of the sources may have positions; None if it computes
            values.
    """
    relation = replace(relation, join=relation.needed_join)
    filtered = [
        _diagonal(operand.labels, source) for operand, source in zip(relation.einsum.operands, sources, strict=True)
    ]
    filtered = [
        with_value_column(source) if may_lack_rows else source
        for source, may_lack_rows in zip(filtered, FILLED_IN[relation.join], strict=False)
    ]
    if dialect.largest_inline is not None and len(filtered) == 2:
        filtered = [with_inline_arrays(source, dialect.largest_inline) for source in filtered]
    if dialect.probe_hint is not None:
        probing = _probing_operand(relation, filtered)
        filtered = [
            _probing(source, dialect.probe_hint) if index == probing else source
            for index, source in enumerate(filtered)
        ]
    return _SelectBuilder(relation, tuple(filtered), dialect, copied).select()


def row_value(relation: Contract, sources: Sequence[SelectSource], alias: str, dialect: Dialect) -> exp.Expr:
    """The value of an EinSum in rows that have its keys, and the values of its operands.

    Args:
        relation: The EinSum, which groups no tuples.
        sources: The columns of its operands in these rows.
        alias: The alias of the rows.
        dialect: The dialect of the engine.
    """
    in_rows = replace(relation, join=JoinKind.INNER, compensation=None)
    return _SelectBuilder(in_rows, tuple(sources), dialect, None, (alias, alias)).value(has_groups=False)


def promoted_labels(relation: Contract, index: int) -> list[str]:
    """The labels of an operand that are key columns, in axis order; a label that occurs twice is listed twice."""
    labels = relation.einsum.operands[index].labels
    return [labels[position] for position in relation.inputs[index].schema.decomposition.promoted]


def is_grouped(relation: Contract) -> bool:
    """Whether the SELECT groups tuples: not if the keys of the result determine all other keys."""
    if relation.has_single_pairs:
        return False
    result_keys = {relation.labels[position] for position in relation.output.decomposition.promoted}
    return any(
        label not in result_keys for index in range(len(relation.inputs)) for label in promoted_labels(relation, index)
    )


def is_cross_join(relation: Contract) -> bool:
    """Whether the EinSum has two operands that share no key."""
    return len(relation.inputs) == 2 and not set(promoted_labels(relation, 0)) & set(promoted_labels(relation, 1))


def matched_select(relation: Contract, sources: Sequence[SelectSource], dialect: Dialect) -> exp.Select:
    """The SELECT of an EinSum whose operands are compressed in one order, and matched row by row."""
    first, second = sources
    matched = MatchedRows.of(relation, first, second, dialect)
    return _SelectBuilder(relation, (first, second), dialect, copied=None, matched=matched).select()


@dataclass(frozen=True)
class _SelectBuilder:
    """Builds the SELECT of an EinSum from the sources of its operands."""

    relation: Contract
    sources: tuple[SelectSource, ...]
    dialect: Dialect
    copied: CopiedArrays | None
    aliases: tuple[str, str] = ALIASES
    matched: MatchedRows | None = None

    @cached_property
    def keys(self) -> list[dict[str, exp.Expr]]:
        """For every operand, the key column of each promoted label; one for both if they are matched."""
        if self.matched is not None:
            return [self.matched.keys]
        columns = []
        for index, (source, alias) in enumerate(zip(self.sources, self.aliases, strict=False)):
            keys: dict[str, exp.Expr] = {}
            if index == self.relation.indexed:  # a resident operand is read at the keys of the other one
                columns.append(keys)
                continue
            for label, axis in zip(promoted_labels(self.relation, index), source.schema.keys, strict=True):
                keys.setdefault(label, source.key(axis, alias))
            columns.append(keys)
        return columns

    @property
    def shared(self) -> list[str]:
        """The promoted labels that both operands have."""
        return [label for label in self.keys[0] if len(self.keys) == 2 and label in self.keys[1]]

    def select(self) -> exp.Select:
        """The SELECT: keys, value, FROM and GROUP BY."""
        if not is_grouped(self.relation):
            keys = [named(self._label_key(label), name) for label, name in self._promoted.items()]
            value = self.value(has_groups=False)
            return self._from(exp.select(*keys, exp.alias_(value, VALUE_COLUMN)))
        keys = [self._label_key(label) for label in self._promoted]
        value = self.value(has_groups=True)
        if not keys:  # there is one tuple, also without rows
            value = exp.func("coalesce", value, fill_value(self.relation.output, self._label_key))
        columns = [named(key, name) for key, name in zip(keys, self._promoted.values(), strict=True)]
        select = self._from(exp.select(*columns, exp.alias_(value, VALUE_COLUMN)))
        select = select.group_by(*[key.copy() for key in keys], copy=False)
        is_computed = any(not isinstance(key, exp.Column) for key in keys)
        return _with_keys_in_subquery(select) if is_computed and self.dialect.distributes else select

    @property
    def _promoted(self) -> dict[str, str]:
        """The names of the key columns of the result, by label."""
        schema = self.relation.output
        labels = (self.relation.labels[position] for position in schema.decomposition.promoted)
        return dict(zip(labels, schema.keys, strict=True))

    def _label_key(self, label: str) -> exp.Expr:
        """The key of a label: from the operand that is never missing, else from whichever is present."""
        columns = [keys[label] for keys in self.keys if label in keys]
        if len(columns) == 1 or self.relation.join == JoinKind.LEFT:
            return columns[0].copy()
        if self.relation.join == JoinKind.INNER:
            return columns[self.relation.keys_from].copy()
        if self.relation.join == JoinKind.RIGHT:
            return columns[1].copy()
        return exp.func("coalesce", *[column.copy() for column in columns])

    def value(self, has_groups: bool) -> exp.Expr:
        """The value column of the result."""
        einsum, output = self.relation.einsum, self.relation.output
        terms = []
        extents: dict[str, Extent] = {}
        for index, (operand, source) in enumerate(zip(einsum.operands, self.sources, strict=True)):
            extents |= self._extents(index)
            inside = tuple(operand.labels[position] for position in source.schema.decomposition.array_axes)
            terms.append(OperandValue(self._operand_value(index), inside, source.schema.tensor.dtype))
        output_labels = tuple(self.relation.labels[position] for position in output.decomposition.array_axes)
        relation = self.relation
        ranges = relation.ranges or (ANY_VALUE,) * len(terms)
        times = math.prod(self._bounds[label] for label in einsum.aggregated)
        if self.copied is not None:
            start, read = terms
            terms = [self.copied.read_from(read, start.value, extents)]
            einsum, ranges = self.copied.einsum, ranges[1:]
        return ResultValue(
            einsum,
            terms,
            output_labels,
            extents,
            has_groups,
            bool(self._promoted),
            output.tensor,
            relation.computed_in,
            relation.compensation,
            relation.detects_nonfinite,
            ranges,
            times,
            self.dialect,
        ).write()

    @property
    def _bounds(self) -> dict[str, int]:
        """The bounds of all labels."""
        return {
            label: axis.bound
            for operand, source in zip(self.relation.einsum.operands, self.sources, strict=True)
            for label, axis in zip(operand.labels, source.schema.tensor.axes, strict=True)
        }

    def _extents(self, index: int) -> dict[str, Extent]:
        """The extents of the labels inside the arrays of an operand."""
        schema, labels = self.sources[index].schema, self.relation.einsum.operands[index].labels
        extents: dict[str, Extent] = {}
        for position in schema.decomposition.array_axes:
            tile, label = schema.decomposition.tiles[position], labels[position]
            key = None if tile == DEMOTED else self._label_key(label)
            extents[label] = extent(tile, schema.tensor.axes[position].bound, key)
        return extents

    def _operand_value(self, index: int) -> exp.Expr:
        """The value of an operand; the fill where an outer join found no partner."""
        if self.matched is not None:
            return self.matched.numbers[index].copy()
        source, labels = self.sources[index], self._labels_of_axes(index)
        if index == self.relation.indexed:
            handle = exp.column(HANDLE_COLUMN, table=self.aliases[index])
            return resident_row(source.schema, handle, lambda axis: self._label_key(labels[axis]))
        value = source.value(self.aliases[index])
        if not FILLED_IN[self.relation.join][index]:
            return value
        return exp.func("coalesce", value, fill_value(source.schema, lambda axis: self._label_key(labels[axis])))

    def _labels_of_axes(self, index: int) -> dict[str, str]:
        """The label of every axis of an operand, by the name of the axis."""
        names = [axis.name for axis in self.sources[index].schema.tensor.axes]
        return dict(zip(names, self.relation.einsum.operands[index].labels, strict=True))

    def _from(self, select: exp.Select) -> exp.Select:
        if self.matched is not None:
            return select.from_(self.matched.rows, copy=False)
        tables = [aliased(source.table, alias) for source, alias in zip(self.sources, self.aliases, strict=False)]
        second_probes = self.dialect.probes_first and _probing_operand(self.relation, self.sources) == 1
        if self.relation.indexed == 0 or second_probes:
            tables.reverse()
        select = select.from_(tables[0], copy=False)
        if len(tables) == 1:
            return select
        conditions: list[exp.Expr] = [
            exp.EQ(this=self.keys[0][label].copy(), expression=self.keys[1][label].copy()) for label in self.shared
        ]
        if self.relation.join != JoinKind.INNER:
            matching = exp.and_(*conditions, copy=False) if conditions else exp.true()
            return with_join(select, tables[1], matching, side=self.relation.join.value.upper())
        if not conditions and self.dialect.has_workers and self._joins_single_tuple():
            conditions = [self._always_true_equality()]
        if conditions:
            return with_join(select, tables[1], exp.and_(*conditions, copy=False))
        return with_join(select, tables[1], kind="CROSS")

    def _joins_single_tuple(self) -> bool:
        """Whether tuples with keys are joined with the single tuple of a relation without keys, which is an array."""
        with_keys = [bool(keys) for keys in self.keys]
        return sum(with_keys) == 1 and not self.sources[with_keys.index(False)].schema.is_scalar

    def _always_true_equality(self) -> exp.Expr:
        """A condition that is always true, but looks like an equality of both sides, for which there are hash joins.

        With a hash join, each worker hashes the single tuple, and scans its part of the others. In a nested loop,
        PostgreSQL would compute the single tuple again for each of the others, or use no workers. It expects two values
        of a boolean, so that its estimate of the size is hardly wrong.
        """
        are_null = [
            exp.paren(next(iter(keys.values()), exp.column(VALUE_COLUMN, table=alias)).copy().is_(exp.null()))
            for keys, alias in zip(self.keys, self.aliases, strict=True)
        ]
        return exp.EQ(this=are_null[0], expression=are_null[1])


def _with_keys_in_subquery(select: exp.Select) -> exp.Select:
    """The SELECT with its keys computed in a subquery, so that it groups by columns.

    If a key is an expression, Citus takes other expressions of its columns for columns that are not grouped by.
    """
    keys = {projection.unalias(): projection.alias_or_name for projection in select.selects[:-1]}
    inner: dict[exp.Expr, str] = {key.copy(): name for key, name in keys.items()}

    def replaced(node: exp.Expr) -> exp.Expr:
        if node not in inner:
            if not isinstance(node, exp.Column):
                return node
            names = itertools.accumulate(itertools.repeat("_"), initial=f"{node.table}_{node.name}")
            inner[node.copy()] = next(name for name in names if name not in inner.values())
        return exp.column(inner[node], table="t")

    value = select.selects[-1].transform(replaced)
    rows = exp.select(*(exp.alias_(node, name) for node, name in inner.items()))
    for part in ("from_", "joins"):
        rows.set(part, select.args[part])
    columns = [exp.column(name, table="t") for name in keys.values()]
    return exp.select(*columns, value).from_(rows.subquery("t")).group_by(*(column.copy() for column in columns))


def _diagonal(labels: Sequence[str], source: SelectSource) -> SelectSource:
    """Only the tuples in which all key columns of one label are equal."""
    columns: dict[str, str] = {}
    equalities: list[exp.Expr] = []
    for position in source.schema.decomposition.promoted:
        column = source.columns[source.schema.tensor.axes[position].name]
        first_column = columns.setdefault(labels[position], column)
        if first_column != column:
            equalities.append(exp.EQ(this=exp.column(first_column), expression=exp.column(column)))
    if not equalities:
        return source
    rows = exp.select("*").from_(aliased(source.table, "t")).where(exp.and_(*equalities))
    return replace(source, table=rows)


def _probing_operand(relation: Contract, sources: Sequence[SelectSource]) -> int | None:
    """The side of an equality join with the larger arrays, which must probe: its arrays are referred to, not copied."""
    is_equality_join = relation.indexed is None and relation.join == JoinKind.INNER and len(sources) == 2
    if not is_equality_join or is_cross_join(relation):
        return None
    sizes = [0 if source.schema.is_scalar else source.schema.array_size for source in sources]
    return None if max(sizes) < _MIN_PROBE_ARRAY else sizes.index(max(sizes))


def _probing(source: SelectSource, hint: str) -> SelectSource:
    """The relation in a UNION ALL with a table function of no rows, which the engine believes to be large."""
    rows = keys_and_value(source)
    no_rows = exp.select(*[exp.null() for _ in rows.selects]).from_(exp.Table(this=exp.Anonymous(this=hint)))
    return plain_source(exp.union(rows, no_rows, distinct=False, copy=False), source.schema)

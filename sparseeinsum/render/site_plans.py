"""Render: plans of the implementation algebra as statements for a cluster, each of which fills a table.

A shuffle is a table with a distribution column. A broadcast is a table of the coordinator, which sends it with the
statement that reads it, or a reference table if it would be sent more than once. Local operators become SELECTs of
colocated tables: rows that belong together are on one machine, because their distribution columns are equal. If tuples
are distributed by several parts of their keys, the distribution column is an additional part that is computed of these.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from sparseeinsum.algebra.implementation.site_operators import (
    Broadcast,
    LocalAggregation,
    LocalFilter,
    LocalJoin,
    LocalMap,
    PlacedInput,
    Shuffle,
    SitePlan,
)
from sparseeinsum.algebra.relational.compositions import SplitAxis
from sparseeinsum.algebra.relational.folds import ConcatFold
from sparseeinsum.algebra.relational.kernels import IDENTITY, einsum_kernel
from sparseeinsum.algebra.relational.keys import (
    CopyNumber,
    Integer,
    KeyExpression,
    KeyMap,
    KeyPart,
    KeyPredicate,
    Operation,
    identity_map,
    projection,
    substitute,
)
from sparseeinsum.algebra.relational.relational_expressions import (
    Aggregation,
    Concat,
    Expression,
    Filter,
    Input,
    Join,
    Rekey,
    Tile,
    Transform,
)
from sparseeinsum.algebra.relational.traversal import topological_order
from sparseeinsum.algebra.relational.types import RelationType
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.decompose.places.distribution import Hashed, Replicated
from sparseeinsum.errors import AlgebraError
from sparseeinsum.language.tensors import VALUE_COLUMN, StoredTensor
from sparseeinsum.render.broadcasts import is_everywhere, with_broadcasts_sent
from sparseeinsum.render.calls import call, integer
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.render.expression_queries import ExpressionQuery, expression_query
from sparseeinsum.render.packing import materialized_type
from sparseeinsum.render.relation_operators import schema_of
from sparseeinsum.render.sources import SelectSource, materialized_select, materialized_source, plain_source
from sparseeinsum.render.sql_statement import SqlStatement
from sparseeinsum.render.table_distribution import TableDistribution
from sparseeinsum.statistics.columns import computed_type, table_by_name

# A distribution column of several parts of a key is below the product of these, which a BIGINT holds.
_MODULUS, _FACTOR = 1 << 40, 1_000_003


@dataclass(frozen=True, slots=True)
class SiteResult:
    """The result of a plan as SQL.

    Attributes:
        select: The SELECT of its tuples: keys, then values.
        schema: The schema of these tuples.
        distribution: The distribution of a table that takes the tuples on the machines where they are; None if no key
            column says where.
    """

    select: exp.Select
    schema: Schema
    distribution: TableDistribution | None = None


@dataclass(frozen=True, slots=True)
class SitePlanQuery:
    """Plans as SQL.

    Attributes:
        stages: The statements that fill tables, in order.
        results: The results of the plans.
        repeated: SELECTs of keys that a rekey makes of several, each with the number of stages to run before it.
    """

    stages: tuple[SqlStatement, ...]
    results: tuple[SiteResult, ...]
    repeated: tuple[tuple[int, exp.Select], ...]

    @property
    def has_reference_tables(self) -> bool:
        """Whether some stages fill tables that every machine has."""
        return any(map(is_everywhere, self.stages))


def site_plan_query(
    plans: Sequence[SitePlan],
    stored: Mapping[str, StoredTensor],
    dialect: Dialect,
    table_of: Callable[[str], exp.Table],
    shards: int,
) -> SitePlanQuery:
    """Plans as statements; what several plans have in common is computed once.

    Args:
        plans: Plans of the implementation algebra, whose inputs have the distributions that these say.
        stored: The tensors that are their inputs, by name.
        dialect: The dialect of an engine whose tables are distributed over machines.
        table_of: Returns the table for the name of a stage.
        shards: The number of shards of a table.

    Raises:
        AlgebraError: SQL cannot compute the plans.
    """
    nodes = {id(node): node for plan in plans for node in topological_order(plan)}
    writer = _SitePlanWriter(list(nodes.values()), stored, dialect, table_of, shards)
    for node in writer.nodes:
        writer.write(node)
    results = tuple(map(writer.result, plans))
    others = [*(result.select for result in results), *(select for _, select in writer.repeated)]
    distributed = [
        table_by_name(stored[node.input.name], dialect.name)
        for node in writer.nodes
        if isinstance(node, PlacedInput) and isinstance(node.distribution, Hashed)
    ]
    stages = with_broadcasts_sent(writer.stages, writer.broadcasts, others, distributed)
    return SitePlanQuery(stages, results, tuple(writer.repeated))


@dataclass(frozen=True, slots=True)
class _OperatorResult:
    """How the result of an operator is computed.

    Attributes:
        expression: The expression that computes it, from stored tensors and tables of stages. Its keys may have
            additional parts.
        positions: For every part of the result's keys, its position in the keys of the expression.
        site_part: The position in the keys of the expression of the part by which tuples are distributed, or None.
    """

    expression: Expression
    positions: tuple[int, ...]
    site_part: int | None = None

    def at(self, positions: Sequence[int]) -> tuple[int, ...]:
        """The positions in the keys of the expression of some parts of the result's keys."""
        return tuple(self.positions[position] for position in positions)


@dataclass
class _SitePlanWriter:
    """Makes stages, one operator after the other.

    Attributes:
        nodes: All operators, in order.
        stored: The tensors that are inputs, by name.
        dialect: The dialect of the engine.
        table_of: Returns the table for the name of a stage.
        shards: The number of shards of a table.
        tables: The tables of the stages so far, by the name of the input that reads them.
        stages: The stages so far.
        broadcasts: The names of stages whose rows are sent to every machine, and not computed there.
        repeated: SELECTs of keys that a rekey makes of several, each with the number of stages to run before it.
        results: The results of the operators so far, by the operator's id.
    """

    nodes: list[SitePlan]
    stored: Mapping[str, StoredTensor]
    dialect: Dialect
    table_of: Callable[[str], exp.Table]
    shards: int
    tables: dict[str, SelectSource] = field(default_factory=dict)
    stages: list[SqlStatement] = field(default_factory=list)
    broadcasts: set[str] = field(default_factory=set)
    repeated: list[tuple[int, exp.Select]] = field(default_factory=list)
    results: dict[int, _OperatorResult] = field(default_factory=dict)

    def write(self, node: SitePlan) -> None:
        """Add the result of an operator, after those of its inputs, and its stage if it has a table."""
        inputs = [self.results[id(operand)] for operand in node.inputs]
        result = self._computed(node, inputs)
        is_everywhere = node.distribution == Replicated()
        has_place = is_everywhere or result.site_part is not None
        if isinstance(node, Broadcast | Shuffle) or (has_place and self._has_table(node)):
            result = self._staged(result, None if is_everywhere else result.site_part)
            if isinstance(node, Broadcast) and node.input.distribution != Replicated():
                self.broadcasts.add(self.stages[-1].name)
        self.results[id(node)] = result

    def result(self, plan: SitePlan) -> SiteResult:
        """The tuples of a plan."""
        result = self.results[id(plan)]
        query = self._query(result.expression)
        schema = schema_of("result", plan.type, query.schema.tensor.dtype)
        columns = [
            exp.column(f"k{at}", table="t").as_(name) for at, name in zip(result.positions, schema.keys, strict=True)
        ]
        select = query.select
        if result.positions != tuple(range(result.expression.type.arity)):
            select = exp.select(*columns, exp.column(VALUE_COLUMN, table="t")).from_(select.subquery("t"))
        site_columns = [name for at, name in zip(result.positions, schema.keys, strict=True) if at == result.site_part]
        distribution = TableDistribution(site_columns[0]) if site_columns else None
        return SiteResult(select, schema, distribution)

    def _has_table(self, node: SitePlan) -> bool:
        """Whether an operator that transfers nothing fills a table, so that its readers read nothing but tables."""
        readers = [reader for reader in self.nodes if any(operand is node for operand in reader.inputs)]
        if isinstance(node, PlacedInput) or not readers or node.pending is not None:
            return False
        (reader, *others) = readers
        is_fused = isinstance(node, LocalJoin) and isinstance(reader, LocalAggregation)
        return bool(others) or not (is_fused or isinstance(reader, Broadcast | Shuffle))

    def _query(self, expression: Expression) -> ExpressionQuery:
        """The SQL of an expression; keys that it may repeat are recorded, to be checked before the next stage."""
        query = expression_query(expression, self.stored, self.dialect, self.tables)
        self.repeated += [(len(self.stages), select) for select in query.repeated]
        return query

    def _staged(self, result: _OperatorResult, site: int | None) -> _OperatorResult:
        """The result, read from the table of a new stage: replicated, or distributed by the part at `site`."""
        query = self._query(result.expression)
        name = f"stage{len(self.stages)}"
        table = self.table_of(name)
        schema = query.schema
        distribution = TableDistribution(None if site is None else schema.keys[site], is_replicated=site is None)
        select = materialized_select(query.select, schema, self.dialect)
        value_type = materialized_type(schema, self.dialect)
        self.stages.append(
            SqlStatement(name, select, (), table, self.dialect, distribution=distribution, value_type=value_type)
        )
        self.tables[name] = materialized_source(table, schema, self.dialect)
        return _OperatorResult(Input(name, result.expression.type), result.positions, site)

    def _computed(self, node: SitePlan, inputs: Sequence[_OperatorResult]) -> _OperatorResult:
        match node:
            case PlacedInput(relation, distribution):
                site = distribution.axis if isinstance(distribution, Hashed) else None
                return _OperatorResult(relation, tuple(range(node.type.arity)), site)
            case Broadcast():
                return replace(inputs[0], site_part=None)
            case Shuffle(_, dims):
                return _shuffled(inputs[0], dims)
            case LocalJoin():
                return self._joined(node, *inputs)
            case LocalAggregation():
                return self._aggregated(node, inputs[0])
            case LocalFilter(_, predicate):
                (operand,) = inputs
                arity = operand.expression.type.arity
                on_parts = predicate.substituted(arity, _positions(operand.positions))
                return replace(operand, expression=Filter(operand.expression, on_parts))
            case LocalMap():
                return self._mapped(node, inputs[0])
            case _:
                raise AlgebraError(f"{type(node).__name__} is no operator that is written by hand")

    def _joined(self, node: LocalJoin, left: _OperatorResult, right: _OperatorResult) -> _OperatorResult:
        """Pairs of tuples of one machine: if both sides are distributed, the parts by which they are must be equal."""
        pairs = list(zip(left.at(node.left_keys), right.at(node.right_keys), strict=True))
        if left.site_part is not None and right.site_part is not None:
            are_joined = any(left.site_part == first or right.site_part == second for first, second in pairs)
            pairs += [] if are_joined else [(left.site_part, right.site_part)]
        left_keys, right_keys = tuple(first for first, _ in pairs), tuple(second for _, second in pairs)
        join = Join(left.expression, right.expression, left_keys, right_keys, node.kernel)
        to_pair = join.pairing.right_position
        joined: Expression = join
        if left.site_part is not None and right.site_part is not None and to_pair(right.site_part) != left.site_part:
            # Other parts are joined, to which these are equal; only a condition tells the database so.
            are_equal = Operation("==", KeyPart(left.site_part), KeyPart(to_pair(right.site_part)))
            joined = Filter(join, KeyPredicate(join.type.arity, are_equal))
        positions = [*left.positions] + [
            to_pair(right.positions[at]) for at in range(node.right.type.arity) if at not in node.right_keys
        ]
        site = left.site_part if right.site_part is None or left.site_part is not None else to_pair(right.site_part)
        result = _OperatorResult(joined, tuple(positions), site)
        return result if node.keys is None else self._rekeyed(result, node.keys, keeps_site=True)

    def _aggregated(self, node: LocalAggregation, result: _OperatorResult) -> _OperatorResult:
        """Groups that are whole on a machine; else partial groups, for every value of the distribution column.

        If there would be more partial groups than the table has shards, the engine aggregates whole groups instead.
        """
        group_positions = result.at(node.group_by)
        relation_type = result.expression.type
        is_pending = node.pending is not None
        extra: tuple[int, ...] = ()
        if result.site_part is not None and result.site_part not in group_positions:
            is_within = isinstance(node.distribution, Hashed) and not is_pending
            if is_within or (is_pending and relation_type.frontier[result.site_part] <= self.shards):
                extra = (result.site_part,)
        group_by = (*group_positions, *extra)
        if isinstance(node.fold, ConcatFold):
            return _concatenated(result, node.fold, group_positions, extra, lacks_none=node.input.type.is_continuous)
        site = group_by.index(result.site_part) if result.site_part in group_by else None
        return _OperatorResult(
            Aggregation(result.expression, group_by, node.fold), tuple(range(len(group_positions))), site
        )

    def _mapped(self, node: LocalMap, result: _OperatorResult) -> _OperatorResult:
        """Tuples with other keys or other arrays, one or several for each tuple."""
        arity = result.expression.type.arity
        if node.keys.is_identity:
            return replace(result, expression=Transform(result.expression, node.kernel))
        if isinstance(node.kernel, SplitAxis):
            tiled = Tile(result.expression, node.kernel.axis, node.kernel.size)
            return _OperatorResult(tiled, (*result.positions, arity), result.site_part)
        if node.keys.copies == 1:
            if node.kernel != IDENTITY:
                result = replace(result, expression=Transform(result.expression, node.kernel))
            return self._rekeyed(result, node.keys, keeps_site=isinstance(node.distribution, Hashed))
        return self._rekeyed(self._copied(result, node.keys.copies), node.keys, keeps_site=False)

    def _rekeyed(self, result: _OperatorResult, keys: KeyMap, keeps_site: bool) -> _OperatorResult:
        """Tuples with other keys; if the distribution column stays, it is one of their parts, or an additional one."""
        arity = result.expression.type.arity
        sources = [*_positions(result.positions), *([] if keys.copies == 1 else [KeyPart(arity - 1)])]
        parts = [_without_copies(part, len(result.positions)) for part in keys.parts]
        new_parts = [substitute(part, sources) for part in parts]
        site = None
        if keeps_site and result.site_part is not None:
            column = KeyPart(result.site_part)
            site = new_parts.index(column) if column in new_parts else len(new_parts)
            new_parts += [] if column in new_parts else [column]
        expression = Rekey(result.expression, KeyMap(arity, tuple(new_parts)))
        return _OperatorResult(expression, tuple(range(len(keys.parts))), site)

    def _copied(self, result: _OperatorResult, copies: int) -> _OperatorResult:
        """Copies of every tuple, by a join with numbers; the number of the copy is the last part of the keys."""
        name = f"copies{copies}"
        numbers_type = RelationType((copies,), ())
        if name not in self.tables:
            numbers = exp.Table(this=call("RANGE", integer(copies)))
            one = exp.cast(exp.Literal.number(1), computed_type("float64", is_scalar=True)).as_(VALUE_COLUMN)
            rows = exp.select(exp.column("range").as_("k0"), one).from_(numbers)
            self.tables[name] = plain_source(rows, schema_of(name, numbers_type))
        rank = len(result.expression.type.bound)
        letters = "".join(chr(ord("a") + at) for at in range(rank))
        joined = Join(result.expression, Input(name, numbers_type), (), (), einsum_kernel(f"{letters},->{letters}"))
        return _OperatorResult(joined, result.positions)


def _concatenated(
    result: _OperatorResult, fold: ConcatFold, group_positions: Sequence[int], extra: Sequence[int], lacks_none: bool
) -> _OperatorResult:
    """Arrays concatenated in the order of the part of the keys that groups lack; other additional parts are dropped.

    If no tuple is absent, the fill is 0, which is never used: because of additional parts of the keys, the type does
    not show that no tuple is absent.
    """
    before = sorted((*result.positions, *extra))
    (key,) = (at for at, position in enumerate(before) if position not in (*group_positions, *extra))
    keys = projection(result.expression.type.arity, before)
    rekeyed = result.expression if keys.is_identity else Rekey(result.expression, keys)
    after = [position for position in before if position != before[key]]
    site = after.index(result.site_part) if result.site_part in after else None
    fill = 0 if fold.fill is None and lacks_none else fold.fill
    return _OperatorResult(
        Concat(rekeyed, key, fold.axis, fold.extent, fill), tuple(map(after.index, group_positions)), site
    )


def _shuffled(result: _OperatorResult, dims: Sequence[int]) -> _OperatorResult:
    """The result with a part by which it is distributed: one of the keys, or an additional one, computed of several."""
    if len(dims) == 1:
        return replace(result, site_part=result.positions[dims[0]])
    arity = result.expression.type.arity
    site: KeyExpression = Integer(0)
    for number, position in enumerate(result.at(dims)):
        before = Operation("*", Operation("%", site, Integer(_MODULUS)), Integer(_FACTOR))
        site = Operation("+", before, KeyPart(position)) if number else KeyPart(position)
    keys = KeyMap(arity, (*identity_map(arity).parts, site))
    return _OperatorResult(Rekey(result.expression, keys), result.positions, arity)


def _positions(positions: Sequence[int]) -> list[KeyExpression]:
    return [KeyPart(position) for position in positions]


def _without_copies(part: KeyExpression, last: int) -> KeyExpression:
    """The expression of keys with the number of the copy as the part of the key at position `last`."""
    match part:
        case CopyNumber():
            return KeyPart(last)
        case Operation(symbol, left, right):
            return Operation(symbol, _without_copies(left, last), _without_copies(right, last))
        case _:
            return part

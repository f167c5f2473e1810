"""Render: plans of the implementation algebra as statements for a cluster, each of which fills a table in its place.

A shuffle is a table with a distribution column; a broadcast one of the coordinator, which sends it with the statement
that reads it, or a reference table where it would be sent more than once. Local operators become SELECTs of tables
whose rows that belong together are on one machine, because their distribution columns are equal. Where tuples go by
several parts of their keys, the distribution column is one more part, made of those.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from sparseeinsum.algebra.implementation.placements import PlacementKind
from sparseeinsum.algebra.implementation.site_operators import (
    Broadcast,
    LocalAggregation,
    LocalFilter,
    LocalJoin,
    LocalMap,
    Placed,
    Shuffle,
    SitePlan,
)
from sparseeinsum.algebra.operators import Schema
from sparseeinsum.algebra.relational.compositions import SplitAxis
from sparseeinsum.algebra.relational.expressions import (
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
from sparseeinsum.algebra.relational.folds import ConcatFold
from sparseeinsum.algebra.relational.kernels import IDENTITY, einsum_kernel
from sparseeinsum.algebra.relational.keys import (
    CopyNumber,
    Integer,
    KeyExpression,
    KeyMap,
    KeyPart,
    Operation,
    identity_map,
    projection,
    substitute,
)
from sparseeinsum.algebra.relational.traversal import topological_order
from sparseeinsum.algebra.relational.types import RelationType
from sparseeinsum.errors import AlgebraError
from sparseeinsum.language.tensors import VALUE_COLUMN, StoredTensor
from sparseeinsum.render.broadcasts import is_everywhere, with_broadcasts_sent
from sparseeinsum.render.calls import call, integer
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.render.expressions import ExpressionQuery, expression_query, schema_of
from sparseeinsum.render.packing import materialized_type
from sparseeinsum.render.sources import Source, materialized_select, materialized_source, plain_source
from sparseeinsum.render.statements import Statement
from sparseeinsum.render.table_distribution import TableDistribution
from sparseeinsum.statistics.columns import computed_type, table_by_name

# A distribution column that is made of several parts of a key is below their product, which a BIGINT holds.
_MODULUS, _FACTOR = 1 << 40, 1_000_003


@dataclass(frozen=True, slots=True)
class SiteResult:
    """The result of a plan as SQL.

    Attributes:
        select: Its tuples: keys, then values.
        schema: Of those.
        distribution: How a table is spread that takes the tuples where they are; None where no rule says where.
    """

    select: exp.Select
    schema: Schema
    distribution: TableDistribution | None = None


@dataclass(frozen=True, slots=True)
class SitePlanQuery:
    """Plans as SQL.

    Attributes:
        stages: What fills tables, in order.
        results: Of the plans.
        repeated: SELECTs of keys that a rekey makes of several, each after so many of the stages.
    """

    stages: tuple[Statement, ...]
    results: tuple[SiteResult, ...]
    repeated: tuple[tuple[int, exp.Select], ...]

    @property
    def has_reference_tables(self) -> bool:
        """Whether stages fill tables that every machine has."""
        return any(map(is_everywhere, self.stages))


def site_plan_query(
    plans: Sequence[SitePlan],
    stored: Mapping[str, StoredTensor],
    dialect: Dialect,
    table_of: Callable[[str], exp.Table],
    parts: int,
) -> SitePlanQuery:
    """Plans as statements; what several of them have in common is computed once.

    Args:
        plans: Of the implementation algebra, with inputs that lie as it says.
        stored: The tensors that are their inputs, by name.
        dialect: Of an engine whose tables are spread over machines.
        table_of: Names the table of a stage.
        parts: How many parts a table is cut into.

    Raises:
        AlgebraError: They have what SQL does not compute.
    """
    nodes = {id(each): each for plan in plans for each in topological_order(plan)}
    writer = _Writer(list(nodes.values()), stored, dialect, table_of, parts)
    for each in writer.nodes:
        writer.write(each)
    results = tuple(map(writer.result, plans))
    others = [*(each.select for each in results), *(select for _, select in writer.repeated)]
    spread = [
        table_by_name(stored[each.input.name], dialect.name)
        for each in writer.nodes
        if isinstance(each, Placed) and each.placement.kind == PlacementKind.PARTITIONED
    ]
    stages = with_broadcasts_sent(writer.stages, writer.broadcasts, others, spread)
    return SitePlanQuery(stages, results, tuple(writer.repeated))


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of an operator's result.

    Attributes:
        expression: Computes it, from stored tensors and tables of stages. Its keys may have parts that the result's
            have not.
        positions: Where the parts of the result's keys stand in those of the expression.
        site: Position of the part by which tuples are distributed; None where they are by none.
    """

    expression: Expression
    positions: tuple[int, ...]
    site: int | None = None

    def at(self, positions: Sequence[int]) -> tuple[int, ...]:
        """Where some parts of the result's keys stand."""
        return tuple(self.positions[position] for position in positions)


@dataclass
class _Writer:
    """Makes stages, one operator after the other.

    Attributes:
        nodes: All operators, in order.
        stored: Tensors that are inputs, by name.
        dialect: Of the engine.
        table_of: Names the table of a stage.
        parts: How many parts a table is cut into.
        tables: Of the stages so far, by the name of the input that reads them.
        stages: Those.
        broadcasts: Names of stages whose rows are brought to every machine, not computed there.
        repeated: SELECTs of keys that are made twice, each after so many stages.
        known: Of operators, by id.
    """

    nodes: list[SitePlan]
    stored: Mapping[str, StoredTensor]
    dialect: Dialect
    table_of: Callable[[str], exp.Table]
    parts: int
    tables: dict[str, Source] = field(default_factory=dict)
    stages: list[Statement] = field(default_factory=list)
    broadcasts: set[str] = field(default_factory=set)
    repeated: list[tuple[int, exp.Select]] = field(default_factory=list)
    known: dict[int, _Known] = field(default_factory=dict)

    def write(self, node: SitePlan) -> None:
        """Make what computes an operator, whose inputs are there, and its table if it gets one."""
        inputs = [self.known[id(operand)] for operand in node.inputs]
        found = self._computed(node, inputs)
        is_everywhere = node.placement.is_everywhere
        has_place = is_everywhere or found.site is not None
        if isinstance(node, Broadcast | Shuffle) or (has_place and self._has_table(node)):
            found = self._staged(found, None if is_everywhere else found.site)
            if isinstance(node, Broadcast) and not node.input.placement.is_everywhere:
                self.broadcasts.add(self.stages[-1].name)
        self.known[id(node)] = found

    def result(self, plan: SitePlan) -> SiteResult:
        """The tuples of a plan."""
        known = self.known[id(plan)]
        query = self._query(known.expression)
        schema = schema_of("result", plan.type, query.schema.tensor.dtype)
        columns = [
            exp.column(f"k{at}", table="t").as_(name) for at, name in zip(known.positions, schema.keys, strict=True)
        ]
        whole = query.select
        if known.positions != tuple(range(known.expression.type.arity)):
            whole = exp.select(*columns, exp.column(VALUE_COLUMN, table="t")).from_(whole.subquery("t"))
        named = [name for at, name in zip(known.positions, schema.keys, strict=True) if at == known.site]
        distribution = TableDistribution(named[0]) if named else None
        return SiteResult(whole, schema, distribution)

    def _has_table(self, node: SitePlan) -> bool:
        """Whether an operator that moves nothing fills a table, for what reads it to be of tables alone."""
        readers = [each for each in self.nodes if any(operand is node for operand in each.inputs)]
        if isinstance(node, Placed) or not readers or node.placement.pending is not None:
            return False
        (reader, *others) = readers
        is_fused = isinstance(node, LocalJoin) and isinstance(reader, LocalAggregation)
        return bool(others) or not (is_fused or isinstance(reader, Broadcast | Shuffle))

    def _query(self, expression: Expression) -> ExpressionQuery:
        """An expression as SQL; what it may make twice is looked at before the next stage."""
        query = expression_query(expression, self.stored, self.dialect, self.tables)
        self.repeated += [(len(self.stages), each) for each in query.repeated]
        return query

    def _staged(self, known: _Known, site: int | None) -> _Known:
        """The same out of a table, which every machine has, or whose rows go where a part of their keys says."""
        query = self._query(known.expression)
        name = f"stage{len(self.stages)}"
        table = self.table_of(name)
        schema = query.schema
        distribution = TableDistribution(None if site is None else schema.keys[site], is_replicated=site is None)
        kept, values = materialized_select(query.select, schema, self.dialect), materialized_type(schema, self.dialect)
        self.stages.append(Statement(name, kept, (), table, self.dialect, distribution=distribution, value_type=values))
        self.tables[name] = materialized_source(table, schema, self.dialect)
        return _Known(Input(name, known.expression.type), known.positions, site)

    def _computed(self, node: SitePlan, inputs: Sequence[_Known]) -> _Known:
        match node:
            case Placed(given, placement):
                site = placement.dims[0] if placement.kind == PlacementKind.PARTITIONED else None
                return _Known(given, tuple(range(node.type.arity)), site)
            case Broadcast():
                return replace(inputs[0], site=None)
            case Shuffle(_, dims):
                return _shuffled(inputs[0], dims)
            case LocalJoin():
                return self._joined(node, *inputs)
            case LocalAggregation():
                return self._aggregated(node, inputs[0])
            case LocalFilter(_, predicate):
                (known,) = inputs
                holds = predicate.substituted(known.expression.type.arity, _positions(known.positions))
                return replace(known, expression=Filter(known.expression, holds))
            case LocalMap():
                return self._mapped(node, inputs[0])
            case _:
                raise AlgebraError(f"{type(node).__name__} is no operator that is written by hand")

    def _joined(self, node: LocalJoin, left: _Known, right: _Known) -> _Known:
        """Pairs of tuples of one machine: if both sides are distributed, they agree in the part that says where."""
        pairs = list(zip(left.at(node.left_keys), right.at(node.right_keys), strict=True))
        are_distributed = left.site is not None and right.site is not None
        if are_distributed and (left.site, right.site) not in pairs:
            assert left.site is not None
            assert right.site is not None
            pairs.append((left.site, right.site))
        mine, other = tuple(first for first, _ in pairs), tuple(second for _, second in pairs)
        joined = Join(left.expression, right.expression, mine, other, node.kernel)
        to_pair = joined.pairing.right_position
        found = [*left.positions] + [
            to_pair(right.positions[at]) for at in range(node.right.type.arity) if at not in node.right_keys
        ]
        site = left.site if right.site is None or left.site is not None else to_pair(right.site)
        known = _Known(joined, tuple(found), site)
        return known if node.keys is None else self._rekeyed(known, node.keys, is_kept=True)

    def _aggregated(self, node: LocalAggregation, given: _Known) -> _Known:
        """Groups that are whole on a machine; of others, what every value of the distribution column has of them.

        Where that would be more than every part of the table has, it is left to the engine, which puts these together.
        """
        kept = given.at(node.group_by)
        of = given.expression.type
        is_pending = node.placement.pending is not None
        extra: tuple[int, ...] = ()
        if given.site is not None and given.site not in kept:
            is_within = node.placement.kind == PlacementKind.PARTITIONED and not is_pending
            if is_within or (is_pending and of.frontier[given.site] <= self.parts):
                extra = (given.site,)
        group_by = (*kept, *extra)
        if isinstance(node.fold, ConcatFold):
            return _concatenated(given, node.fold, kept, extra, lacks_none=node.input.type.is_continuous)
        site = group_by.index(given.site) if given.site in group_by else None
        return _Known(Aggregation(given.expression, group_by, node.fold), tuple(range(len(kept))), site)

    def _mapped(self, node: LocalMap, given: _Known) -> _Known:
        """Other keys, other arrays, or several tuples of one."""
        arity = given.expression.type.arity
        if node.keys.is_identity:
            return replace(given, expression=Transform(given.expression, node.kernel))
        if isinstance(node.kernel, SplitAxis):
            tiled = Tile(given.expression, node.kernel.axis, node.kernel.size)
            return _Known(tiled, (*given.positions, arity), given.site)
        if node.keys.copies == 1:
            if node.kernel != IDENTITY:
                given = replace(given, expression=Transform(given.expression, node.kernel))
            return self._rekeyed(given, node.keys, is_kept=node.placement.kind == PlacementKind.PARTITIONED)
        return self._rekeyed(self._copied(given, node.keys.copies), node.keys, is_kept=False)

    def _rekeyed(self, given: _Known, keys: KeyMap, is_kept: bool) -> _Known:
        """Other keys; if the distribution column stays, it is one of them, or one more part."""
        arity = given.expression.type.arity
        sources = [*_positions(given.positions), *([] if keys.copies == 1 else [KeyPart(arity - 1)])]
        parts = [_without_copies(part, len(given.positions)) for part in keys.parts]
        made = [substitute(part, sources) for part in parts]
        site = None
        if is_kept and given.site is not None:
            column = KeyPart(given.site)
            site = made.index(column) if column in made else len(made)
            made += [] if column in made else [column]
        expression = Rekey(given.expression, KeyMap(arity, tuple(made)))
        return _Known(expression, tuple(range(len(keys.parts))), site)

    def _copied(self, given: _Known, copies: int) -> _Known:
        """Every tuple so many times, numbered by a last part of the keys that are taken from it."""
        name = f"copies{copies}"
        of = RelationType((copies,), ())
        if name not in self.tables:
            numbers = exp.Table(this=call("RANGE", integer(copies)))
            one = exp.cast(exp.Literal.number(1), computed_type("float64", is_scalar=True)).as_(VALUE_COLUMN)
            rows = exp.select(exp.column("range").as_("k0"), one).from_(numbers)
            self.tables[name] = plain_source(rows, schema_of(name, of))
        rank = len(given.expression.type.bound)
        letters = "".join(chr(ord("a") + at) for at in range(rank))
        joined = Join(given.expression, Input(name, of), (), (), einsum_kernel(f"{letters},->{letters}"))
        return _Known(joined, given.positions)


def _concatenated(
    given: _Known, fold: ConcatFold, kept: Sequence[int], extra: Sequence[int], lacks_none: bool
) -> _Known:
    """Arrays put together in the order of the part of the keys that groups do not keep; of other parts nothing stays.

    Where no tuple is absent, the fill is that of none: a part more of the keys, and types do not tell.
    """
    before = sorted((*given.positions, *extra))
    (key,) = (at for at, position in enumerate(before) if position not in (*kept, *extra))
    keys = projection(given.expression.type.arity, before)
    parts = given.expression if keys.is_identity else Rekey(given.expression, keys)
    after = [position for position in before if position != before[key]]
    site = after.index(given.site) if given.site in after else None
    fill = 0 if fold.fill is None and lacks_none else fold.fill
    return _Known(Concat(parts, key, fold.axis, fold.extent, fill), tuple(map(after.index, kept)), site)


def _shuffled(given: _Known, dims: Sequence[int]) -> _Known:
    """With a part by which to distribute: of the keys, or one more that is made of several."""
    if len(dims) == 1:
        return replace(given, site=given.positions[dims[0]])
    arity = given.expression.type.arity
    site: KeyExpression = Integer(0)
    for number, position in enumerate(given.at(dims)):
        before = Operation("*", Operation("%", site, Integer(_MODULUS)), Integer(_FACTOR))
        site = Operation("+", before, KeyPart(position)) if number else KeyPart(position)
    keys = KeyMap(arity, (*identity_map(arity).parts, site))
    return _Known(Rekey(given.expression, keys), given.positions, arity)


def _positions(positions: Sequence[int]) -> list[KeyExpression]:
    return [KeyPart(position) for position in positions]


def _without_copies(part: KeyExpression, last: int) -> KeyExpression:
    """A function of keys in which the number of the copy is one more part of the key."""
    match part:
        case CopyNumber():
            return KeyPart(last)
        case Operation(symbol, left, right):
            return Operation(symbol, _without_copies(left, last), _without_copies(right, last))
        case _:
            return part

"""Render: expressions of the tensor relational algebra that users write, as SQL.

Joins, aggregations, transforms, tiles and concats become operators of plans. Each is a tensor whose first axes are
keys, k0, k1, ..., and whose other axes are inside arrays, a0, a1, ... A rekey or a filter becomes a SELECT.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from sqlglot import exp

from sparseeinsum.algebra.operators import Computed, Slice, Stack, Stored
from sparseeinsum.algebra.relational.array_kernels import ArrayKernel
from sparseeinsum.algebra.relational.folds import EXTREMES, AggregateFold, Fold, PositionFold
from sparseeinsum.algebra.relational.kernels import IDENTITY, EinSumKernel, Elementwise, Kernel
from sparseeinsum.algebra.relational.key_map_bounds import lower_bound
from sparseeinsum.algebra.relational.keys import CopyNumber, Integer, KeyExpression, KeyPart, Operation, write_key
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
from sparseeinsum.algebra.relational.types import RelationType, keeps_keys_unique
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.errors import AlgebraError
from sparseeinsum.language.tensors import VALUE_COLUMN, Axis, Decomposition, StoredTensor
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.render.calls import call, first_element, integer
from sparseeinsum.render.common_table_expressions import with_blocks
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.render.relation_operators import (
    call_array_function,
    define_einsum,
    define_positions,
    of_dtype,
    schema_of,
)
from sparseeinsum.render.relations import Renderer
from sparseeinsum.render.sources import SelectSource, aliased, named

_FOLDS = tuple(name for name, record in AGGREGATES.items() if not record.returns_bool and not record.returns_float)
_DTYPES = ("float64", "float32")
_DTYPE = "float64"
_OPERATIONS: dict[str, type[exp.Binary]] = {
    "+": exp.Add,
    "-": exp.Sub,
    "*": exp.Mul,
    "//": exp.IntDiv,
    "%": exp.Mod,
    "==": exp.EQ,
    "!=": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
    "&": exp.And,
    "|": exp.Or,
}


@dataclass(frozen=True, slots=True)
class ExpressionQuery:
    """An expression as SQL.

    Attributes:
        select: The SELECT of its tuples: keys, then values.
        schema: The schema of these tuples.
        repeated: For every rekey that may make a key of several, a SELECT of the keys that occur several times.
    """

    select: exp.Select
    schema: Schema
    repeated: tuple[exp.Select, ...]


def expression_query(
    expression: Expression,
    stored: Mapping[str, StoredTensor],
    dialect: Dialect,
    tables: Mapping[str, SelectSource] = MappingProxyType({}),
) -> ExpressionQuery:
    """An expression as a SELECT.

    Args:
        expression: The expression.
        stored: The tensors that are its inputs, by name.
        dialect: The dialect of the engine.
        tables: Inputs that are not tensors, by name; their key columns are named k0, k1, ...

    Raises:
        AlgebraError: SQL cannot compute it: a kernel in Python, arrays of several sizes, or another dtype.
    """
    nodes = topological_order(expression)
    writer = _ExpressionWriter(stored, tables, Renderer(dialect, {}), _fused_joins(nodes))
    for node in nodes:
        writer.write(node)
    return ExpressionQuery(writer.select(expression), writer.schemas[id(expression)], tuple(writer.repeated))


def _fused_joins(nodes: Sequence[Expression]) -> set[int]:
    """The ids of joins that only an aggregation reads, so that both are computed together."""
    readers = Counter(id(operand) for node in nodes for operand in node.inputs)
    return {id(node.inputs[0]) for node in nodes if _is_fusable(node) and readers[id(node.inputs[0])] == 1}


def _is_fusable(node: Expression) -> bool:
    match node:
        case Aggregation(Join(kernel=EinSumKernel(einsum)), _, AggregateFold(name)):
            return einsum.aggregate in (None, name)
        case Aggregation(Join(kernel=Elementwise()), _, AggregateFold()):
            return True
        case _:
            return False


@dataclass
class _ExpressionWriter:
    """Adds operators to a renderer, one after the other.

    Attributes:
        stored: The tensors that are inputs, by name.
        tables: Other inputs, by name.
        renderer: The renderer, which knows the relations so far.
        fused: The ids of joins that are computed together with the aggregation that reads them.
        schemas: The schemas of the relations so far, by the operator's id.
        repeated: For every rekey that may make a key of several, a SELECT of the keys that occur several times.
    """

    stored: Mapping[str, StoredTensor]
    tables: Mapping[str, SelectSource]
    renderer: Renderer
    fused: set[int]
    schemas: dict[int, Schema] = field(default_factory=dict)
    repeated: list[exp.Select] = field(default_factory=list)

    def write(self, node: Expression) -> None:
        """Add the relation of an operator, after those of its inputs."""
        if node.type.is_ragged:
            raise AlgebraError(f"{type(node).__name__.lower()} makes arrays of several sizes; in SQL all have one size")
        if id(node) in self.fused:
            return
        schema = schema_of(f"r{len(self.schemas)}", node.type)
        match node:
            case Input(name):
                schema = self._input(name, node.type)
            case Aggregation(operand, group_by, fold):
                self._aggregated(schema, operand, group_by, fold)
            case Join(_, _, _, _, kernel):
                self._contract(schema, node.inputs, kernel, _labels_of_sides(node, _key_labels(node.type)), None)
            case Transform(operand, kernel):
                schema = self._transformed(schema, operand, kernel)
            case Rekey() | Filter():
                schema = self._selected(schema, node)
            case Tile(operand):
                schema = self._tiled(schema, node)
            case Concat():
                schema = self._concatenated(schema, node)
            case _:
                raise AlgebraError(f"{type(node).__name__} is no operator that is written by hand")
        self.schemas[id(node)] = schema

    def select(self, node: Expression) -> exp.Select:
        """The SELECT of all tuples of an operator."""
        schema = self.schemas[id(node)]
        source = self.renderer.source(Computed(schema))
        columns = [named(source.key(key, "t"), key) for key in schema.keys]
        query = exp.select(*columns, named(source.value("t"), VALUE_COLUMN)).from_(aliased(source.table, "t"))
        return self._with_blocks(query)

    def _with_blocks(self, query: exp.Select) -> exp.Select:
        blocks = [
            replace(block, select=block.select.copy()) for block in self.renderer.blocks
        ]  # other queries read them
        return with_blocks(query, blocks, self.renderer.dialect)

    def _input(self, name: str, relation_type: RelationType) -> Schema:
        if name in self.tables:
            source = self.tables[name]
            schema = schema_of(name, relation_type, source.schema.tensor.dtype)
            self.renderer.provide(schema, replace(source, schema=schema))
            return schema
        stored = self.stored[name]
        if stored.tensor.dtype not in _DTYPES:
            raise AlgebraError(
                f"{name} is {stored.tensor.dtype}; expressions written by hand compute with {' and '.join(_DTYPES)}"
            )
        schema = schema_of(name, relation_type, stored.tensor.dtype)
        source = self.renderer.source(Stored(stored))
        keys = (stored.tensor.axes[position].name for position in stored.decomposition.promoted)
        columns = {f"k{at}": source.columns[key] for at, key in enumerate(keys)}
        self.renderer.provide(schema, replace(source, schema=schema, columns=columns))
        return schema

    def _source(self, node: Expression) -> SelectSource:
        return self.renderer.source(Computed(self.schemas[id(node)]))

    def _aggregated(self, schema: Schema, operand: Expression, group_by: tuple[int, ...], fold: Fold) -> None:
        labels = _grouped_key_labels(operand.type, group_by)
        if isinstance(fold, PositionFold):
            define_positions(self.renderer, schema, self.schemas[id(operand)], labels, fold)
            return
        if not isinstance(fold, AggregateFold) or fold.name not in _FOLDS:
            raise AlgebraError(f"groups are folded by {', '.join((*_FOLDS, *EXTREMES))} in SQL, not by {fold}")
        if isinstance(operand, Join) and id(operand) in self.fused:
            self._contract(schema, operand.inputs, operand.kernel, _labels_of_sides(operand, labels), fold.name)
        else:
            self._contract(schema, (operand,), IDENTITY, (labels,), fold.name)

    def _transformed(self, schema: Schema, operand: Expression, kernel: Kernel) -> Schema:
        """Add the kernel of every array."""
        if isinstance(kernel, ArrayKernel):
            return call_array_function(self.renderer, schema, self.schemas[id(operand)], kernel)
        self._contract(schema, (operand,), kernel, (_key_labels(operand.type),), None)
        return schema

    def _contract(
        self,
        schema: Schema,
        inputs: Sequence[Expression],
        kernel: Kernel,
        keys: Sequence[Sequence[str]],
        aggregate: str | None,
    ) -> None:
        """Add the EinSum of a join or an aggregation, and of a kernel inside arrays."""
        define_einsum(self.renderer, schema, [self.schemas[id(operand)] for operand in inputs], kernel, keys, aggregate)

    def _selected(self, schema: Schema, node: Rekey | Filter) -> Schema:
        """Add the SELECT of a rekey or a filter."""
        source = self._source(node.input)
        schema = of_dtype(schema, source.schema)
        keys_before = [source.key(key, "t") for key in source.schema.keys]
        columns = [_key_sql(part, keys_before) for part in node.keys.parts] if isinstance(node, Rekey) else keys_before
        copies = node.keys.copies if isinstance(node, Rekey) else 1
        value = named(source.value("t"), VALUE_COLUMN)
        keys = [named(column.copy(), key) for column, key in zip(columns, schema.keys, strict=True)]
        select = exp.select(*keys, value).from_(aliased(source.table, "t"))
        if copies > 1:
            select = select.join(
                exp.alias_(exp.Table(this=call("RANGE", integer(copies))), "copies"), join_type="CROSS"
            )
        if isinstance(node, Filter):
            select = select.where(_key_sql(node.predicate.condition, keys_before))
        comment = str(node.keys) if isinstance(node, Rekey) else str(node.predicate)
        self.renderer.add(schema, select, comment, source.is_joined or copies > 1)
        if isinstance(node, Rekey) and not keeps_keys_unique(node.input.type, node.keys):
            self.repeated.append(self._repeated(schema))
        return schema

    def _repeated(self, schema: Schema) -> exp.Select:
        """The SELECT of a key that several tuples have, if there is one."""
        source = self.renderer.source(Computed(schema))
        keys = [source.key(key, "t") for key in schema.keys]
        query = exp.select(*(keys or [exp.Literal.number(0)])).from_(aliased(source.table, "t")).limit(1)
        query = query.group_by(*[key.copy() for key in keys]) if keys else query
        is_repeated = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(1))
        return self._with_blocks(query.having(is_repeated))

    def _tiled(self, schema: Schema, node: Tile) -> Schema:
        """Add the slice of an axis of arrays; the number of the tile is the last key."""
        input_schema = self.schemas[id(node.input)]
        schema = of_dtype(schema, input_schema)
        arity = node.input.type.arity
        tiles = (*input_schema.decomposition.tiles[: arity + node.axis], node.size)
        tiles += input_schema.decomposition.tiles[arity + node.axis + 1 :]
        source = self.renderer.source(Slice(Computed(input_schema), Decomposition(tiles), keeps_fill=True))
        columns = {**source.columns, f"k{arity}": source.columns[f"a{node.axis}"]}
        del columns[f"a{node.axis}"]
        if source.schema.is_scalar:  # a slice returns numbers; here, values are arrays of one element
            keys = [named(exp.column(column, table="t"), key) for key, column in columns.items()]
            arrays = exp.array(exp.column(VALUE_COLUMN, table="t")).as_(VALUE_COLUMN)
            self.renderer.add(schema, exp.select(*keys, arrays).from_(aliased(source.table, "t")), "as arrays", False)
        else:
            self.renderer.provide(schema, replace(source, schema=schema, columns=columns))
        return schema

    def _concatenated(self, schema: Schema, node: Concat) -> Schema:
        """Add the stack of tiles of an axis, which a key numbers."""
        relation_type = node.input.type
        if node.fill is None and not relation_type.is_continuous:
            raise AlgebraError(
                "a relation with holes is concatenated in SQL with a fill for what is absent; give it one"
            )
        source = self._source(node.input)
        schema = of_dtype(schema, source.schema)
        tile, name = relation_type.bound[node.axis], f"a{node.axis}"
        kept_keys = [f"k{at}" for at in range(relation_type.arity) if at != node.key]
        axes = [Axis(key, bound) for key, bound in zip(kept_keys, schema.tensor.shape, strict=False)]
        axes += schema.tensor.axes[len(kept_keys) :]
        tensor = replace(schema.tensor, name=f"{schema.tensor.name}_parts", axes=tuple(axes), fill=node.fill or 0)
        after = schema.decomposition
        parts = Schema(
            tensor,
            Decomposition(
                (*(1 for _ in kept_keys), *(tile if axis.name == name else 0 for axis in axes[len(kept_keys) :]))
            ),
        )
        columns = {**{key: source.columns[key] for key in kept_keys}, name: source.columns[f"k{node.key}"]}
        if parts.is_scalar:
            keys = [named(exp.column(column, table="t"), key) for key, column in columns.items()]
            numbers = named(first_element(source.value("t")), VALUE_COLUMN)
            self.renderer.add(parts, exp.select(*keys, numbers).from_(aliased(source.table, "t")), "as numbers", False)
        else:
            self.renderer.provide(parts, replace(source, schema=parts, columns=columns))
        stacked = self.renderer.source(Stack(Computed(parts), after))
        key_columns = {f"k{at}": stacked.columns[key] for at, key in enumerate(kept_keys)}
        self.renderer.provide(schema, replace(stacked, schema=schema, columns=key_columns))
        return schema


def _key_labels(relation_type: RelationType) -> list[str]:
    """The labels of keys that stay as they are."""
    return [f"k{at}" for at in range(relation_type.arity)]


def _grouped_key_labels(relation_type: RelationType, group_by: Sequence[int]) -> list[str]:
    """The labels of keys: those by which an aggregation groups are named as the keys of its result."""
    return [f"k{group_by.index(at)}" if at in group_by else f"g{at}" for at in range(relation_type.arity)]


def _labels_of_sides(join: Join, labels: Sequence[str]) -> tuple[list[str], list[str]]:
    """The labels of the keys of both sides of a join, from those of its pairs."""
    left, right = join.left.type.arity, join.right.type.arity
    return list(labels[:left]), [labels[join.pairing.right_position(at)] for at in range(right)]


def _key_sql(expression: KeyExpression, keys: Sequence[exp.Expr]) -> exp.Expr:
    """The SQL of an expression of keys.

    Divisions round as in Python only where nothing is below 0.

    Raises:
        AlgebraError: A dividend may be below 0.
    """
    match expression:
        case KeyPart(index):
            return keys[index].copy()
        case Integer(value):
            return exp.Literal.number(value) if value >= 0 else exp.Neg(this=exp.Literal.number(-value))
        case Operation(symbol, left, right):
            if symbol in ("//", "%") and lower_bound(left) < 0:
                raise AlgebraError(f"{write_key(left)} may be below 0, where SQL divides in another way")
            sides = [
                exp.paren(_key_sql(side, keys), copy=False) if isinstance(side, Operation) else _key_sql(side, keys)
                for side in (left, right)
            ]
            return _OPERATIONS[symbol](this=sides[0], expression=sides[1])
        case CopyNumber():
            return exp.column("range", table="copies")

"""Render: expressions of the tensor relational algebra, written by hand, as SQL.

Joins, aggregations, transforms, tiles and concats become operators of plans, each of a tensor whose first axes are
keys, k0, k1, ..., and whose others lie inside arrays, a0, a1, ...; new keys and filters are SELECTs.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from sqlglot import exp

from sparseeinsum.algebra.operators import Computed, Contract, Relation, Schema, Slice, Stack, Stored
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
from sparseeinsum.algebra.relational.folds import AggregateFold, Fold
from sparseeinsum.algebra.relational.kernels import IDENTITY, EinSumKernel, Elementwise, Kernel
from sparseeinsum.algebra.relational.keys import CopyNumber, Integer, KeyExpression, KeyPart, Operation, write_key
from sparseeinsum.algebra.relational.traversal import topological_order
from sparseeinsum.algebra.relational.types import RelationType, keeps_keys_unique, lower_bound
from sparseeinsum.errors import AlgebraError
from sparseeinsum.language.eingraph import EinSum, Reference, write_einsum
from sparseeinsum.language.tensors import DEMOTED, VALUE_COLUMN, Axis, Decomposition, StoredTensor, Tensor
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.expressions import Scalar
from sparseeinsum.render.calls import first_element
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.render.relations import Renderer
from sparseeinsum.render.sources import Source, aliased, named
from sparseeinsum.render.statements import with_blocks
from sparseeinsum.semantics.exactness import JoinKind

_FOLDS = tuple(name for name, each in AGGREGATES.items() if not each.returns_bool and not each.returns_float)
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
        select: Its tuples: keys, then values.
        schema: Of those.
        repeated: For every rekey that may make keys twice, a SELECT of those that it does.
    """

    select: exp.Select
    schema: Schema
    repeated: tuple[exp.Select, ...]


def expression_query(
    expression: Expression,
    stored: Mapping[str, StoredTensor],
    dialect: Dialect,
    tables: Mapping[str, Source] = MappingProxyType({}),
) -> ExpressionQuery:
    """An expression as a SELECT.

    Args:
        expression: Written by hand.
        stored: The tensors that are its inputs, by name.
        dialect: Of the engine.
        tables: Inputs that are no tensors, by name, with keys named as those of relations.

    Raises:
        AlgebraError: It has what SQL does not compute: kernels in Python, arrays of several sizes, other dtypes.
    """
    nodes = topological_order(expression)
    writer = _Writer(stored, tables, Renderer(dialect, {}), _fused_joins(nodes))
    for each in nodes:
        writer.write(each)
    return ExpressionQuery(writer.select(expression), writer.schemas[id(expression)], tuple(writer.repeated))


def schema_of(name: str, of: RelationType, dtype: str = _DTYPE) -> Schema:
    """A relation as one of a tensor, whose keys are its first axes."""
    axes = [Axis(f"k{at}", bound) for at, bound in enumerate(of.frontier)]
    axes += [Axis(f"a{at}", bound) for at, bound in enumerate(of.bound)]
    return Schema(Tensor(name, tuple(axes), dtype), Decomposition((1,) * of.arity + (DEMOTED,) * of.rank))


def _fused_joins(nodes: Sequence[Expression]) -> set[int]:
    """Joins that nothing but an aggregation reads, which can be computed with it."""
    readers = Counter(id(operand) for each in nodes for operand in each.inputs)
    return {id(each.inputs[0]) for each in nodes if _is_fusable(each) and readers[id(each.inputs[0])] == 1}


def _is_fusable(node: Expression) -> bool:
    match node:
        case Aggregation(Join(kernel=EinSumKernel(einsum)), _, AggregateFold(name)):
            return einsum.aggregate in (None, name)
        case Aggregation(Join(kernel=Elementwise()), _, AggregateFold()):
            return True
        case _:
            return False


@dataclass
class _Writer:
    """Adds operators to a renderer, one after the other.

    Attributes:
        stored: Tensors that are inputs, by name.
        tables: Other inputs, by name.
        renderer: Knows what there is.
        fused: Joins that are computed with the aggregation that reads them.
        schemas: Of what is there, by the operator's id.
        repeated: For every rekey that may make keys twice, a SELECT of those that it does.
    """

    stored: Mapping[str, StoredTensor]
    tables: Mapping[str, Source]
    renderer: Renderer
    fused: set[int]
    schemas: dict[int, Schema] = field(default_factory=dict)
    repeated: list[exp.Select] = field(default_factory=list)

    def write(self, node: Expression) -> None:
        """Add what computes an operator, whose inputs are there."""
        if node.type.is_ragged:
            raise AlgebraError(f"{type(node).__name__.lower()} makes arrays of several sizes; in SQL all have one size")
        if id(node) in self.fused:
            return
        schema = schema_of(f"r{len(self.schemas)}", node.type)
        match node:
            case Input(name):
                schema = self._input(name, node.type)
            case Aggregation(given, group_by, fold):
                self._aggregated(schema, given, group_by, fold)
            case Join(_, _, _, _, kernel):
                self._contract(schema, node.inputs, kernel, _labels_of_sides(node, _natural(node.type)), None)
            case Transform(given, kernel):
                self._contract(schema, (given,), kernel, (_natural(given.type),), None)
            case Rekey() | Filter():
                schema = self._selected(schema, node)
            case Tile(given):
                schema = self._tiled(schema, node)
            case Concat():
                schema = self._concatenated(schema, node)
            case _:
                raise AlgebraError(f"{type(node).__name__} is no operator that is written by hand")
        self.schemas[id(node)] = schema

    def select(self, node: Expression) -> exp.Select:
        """All tuples of an operator."""
        schema = self.schemas[id(node)]
        source = self.renderer.source(Computed(schema))
        columns = [named(source.key(key, "t"), key) for key in schema.keys]
        query = exp.select(*columns, named(source.value("t"), VALUE_COLUMN)).from_(aliased(source.table, "t"))
        return with_blocks(query, self.renderer.blocks, self.renderer.dialect)

    def _input(self, name: str, of: RelationType) -> Schema:
        if name in self.tables:
            source = self.tables[name]
            schema = schema_of(name, of, source.schema.tensor.dtype)
            self.renderer.provide(schema, replace(source, schema=schema))
            return schema
        stored = self.stored[name]
        if stored.tensor.dtype not in _DTYPES:
            raise AlgebraError(
                f"{name} is {stored.tensor.dtype}; expressions written by hand compute with {' and '.join(_DTYPES)}"
            )
        schema = schema_of(name, of, stored.tensor.dtype)
        source = self.renderer.source(Stored(stored))
        keys = (stored.tensor.axes[position].name for position in stored.decomposition.promoted)
        columns = {f"k{at}": source.columns[key] for at, key in enumerate(keys)}
        self.renderer.provide(schema, replace(source, schema=schema, columns=columns))
        return schema

    def _source(self, node: Expression) -> Source:
        return self.renderer.source(Computed(self.schemas[id(node)]))

    def _aggregated(self, schema: Schema, given: Expression, group_by: tuple[int, ...], fold: Fold) -> None:
        if not isinstance(fold, AggregateFold) or fold.name not in _FOLDS:
            raise AlgebraError(f"groups are folded by {', '.join(_FOLDS)} in SQL, not by {fold}")
        labels = _grouped(given.type, group_by)
        if isinstance(given, Join) and id(given) in self.fused:
            self._contract(schema, given.inputs, given.kernel, _labels_of_sides(given, labels), fold.name)
        else:
            self._contract(schema, (given,), IDENTITY, (labels,), fold.name)

    def _contract(
        self,
        schema: Schema,
        inputs: Sequence[Expression],
        kernel: Kernel,
        keys: Sequence[Sequence[str]],
        aggregate: str | None,
    ) -> None:
        """An EinSum of keys and of what the kernel does inside arrays."""
        join, inside, own, along = _einsum_of(kernel, schema)
        operands = tuple(
            Reference(self.schemas[id(each)].tensor.name, (*labels, *arrays))
            for each, labels, arrays in zip(inputs, keys, inside, strict=True)
        )
        output = Reference(schema.tensor.name, tuple(axis.name for axis in schema.tensor.axes))
        is_aggregated = any(label not in output.labels for operand in operands for label in operand.labels)
        folded = (aggregate or own) if is_aggregated or along is not None else None
        einsum = EinSum(output, operands, join, folded, along=along)
        relations: tuple[Relation, ...] = tuple(Computed(self.schemas[id(each)]) for each in inputs)
        contract = Contract(einsum, relations, JoinKind.INNER, schema, _DTYPE, None, detects_nonfinite=False)
        self.renderer.define(schema.tensor.name, contract, write_einsum(einsum, dict.fromkeys(schema.keys, 1)))

    def _selected(self, schema: Schema, node: Rekey | Filter) -> Schema:
        """Other keys, or only some tuples."""
        source = self._source(node.input)
        schema = _of_dtype(schema, source.schema)
        given = [source.key(key, "t") for key in source.schema.keys]
        columns = [_key_sql(part, given) for part in node.keys.parts] if isinstance(node, Rekey) else given
        value = named(source.value("t"), VALUE_COLUMN)
        keys = [named(column.copy(), key) for column, key in zip(columns, schema.keys, strict=True)]
        select = exp.select(*keys, value).from_(aliased(source.table, "t"))
        if isinstance(node, Filter):
            select = select.where(_key_sql(node.predicate.condition, given))
        comment = str(node.keys) if isinstance(node, Rekey) else str(node.predicate)
        self.renderer.add(schema, select, comment, source.is_joined)
        if isinstance(node, Rekey) and not keeps_keys_unique(node.input.type, node.keys):
            self.repeated.append(self._repeated(schema))
        return schema

    def _repeated(self, schema: Schema) -> exp.Select:
        """Keys that several tuples have."""
        source = self.renderer.source(Computed(schema))
        keys = [source.key(key, "t") for key in schema.keys]
        query = exp.select(*(keys or [exp.Literal.number(0)])).from_(aliased(source.table, "t")).limit(1)
        query = query.group_by(*[key.copy() for key in keys]) if keys else query
        several = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(1))
        return with_blocks(query.having(several), self.renderer.blocks, self.renderer.dialect)

    def _tiled(self, schema: Schema, node: Tile) -> Schema:
        """A slice of an axis of arrays, whose tiles are the last key."""
        given = self.schemas[id(node.input)]
        schema = _of_dtype(schema, given)
        arity = node.input.type.arity
        tiles = (*given.decomposition.tiles[: arity + node.axis], node.size)
        tiles += given.decomposition.tiles[arity + node.axis + 1 :]
        source = self.renderer.source(Slice(Computed(given), Decomposition(tiles), keeps_fill=True))
        columns = {**source.columns, f"k{arity}": source.columns[f"a{node.axis}"]}
        del columns[f"a{node.axis}"]
        if source.schema.is_scalar:  # of one element each, which here are arrays
            keys = [named(exp.column(column, table="t"), key) for key, column in columns.items()]
            arrays = exp.array(exp.column(VALUE_COLUMN, table="t")).as_(VALUE_COLUMN)
            self.renderer.add(schema, exp.select(*keys, arrays).from_(aliased(source.table, "t")), "as arrays", False)
        else:
            self.renderer.provide(schema, replace(source, schema=schema, columns=columns))
        return schema

    def _concatenated(self, schema: Schema, node: Concat) -> Schema:
        """A stack of tiles of an axis, which a key counts."""
        of = node.input.type
        if node.fill is None and not of.is_continuous:
            raise AlgebraError(
                "a relation with holes is concatenated in SQL with a fill for what is absent; give it one"
            )
        source = self._source(node.input)
        schema = _of_dtype(schema, source.schema)
        tile, name = of.bound[node.axis], f"a{node.axis}"
        rest = [f"k{at}" for at in range(of.arity) if at != node.key]
        axes = [Axis(key, bound) for key, bound in zip(rest, schema.tensor.shape, strict=False)]
        axes += schema.tensor.axes[len(rest) :]
        tensor = replace(schema.tensor, name=f"{schema.tensor.name}_parts", axes=tuple(axes), fill=node.fill or 0)
        after = schema.decomposition
        parts = Schema(
            tensor,
            Decomposition((*(1 for _ in rest), *(tile if axis.name == name else 0 for axis in axes[len(rest) :]))),
        )
        columns = {**{key: source.columns[key] for key in rest}, name: source.columns[f"k{node.key}"]}
        if parts.is_scalar:
            keys = [named(exp.column(column, table="t"), key) for key, column in columns.items()]
            numbers = named(first_element(source.value("t")), VALUE_COLUMN)
            self.renderer.add(parts, exp.select(*keys, numbers).from_(aliased(source.table, "t")), "as numbers", False)
        else:
            self.renderer.provide(parts, replace(source, schema=parts, columns=columns))
        stacked = self.renderer.source(Stack(Computed(parts), after))
        found = {f"k{at}": stacked.columns[key] for at, key in enumerate(rest)}
        self.renderer.provide(schema, replace(stacked, schema=schema, columns=found))
        return schema


def _of_dtype(schema: Schema, given: Schema) -> Schema:
    return replace(schema, tensor=replace(schema.tensor, dtype=given.tensor.dtype))


def _natural(of: RelationType) -> list[str]:
    """Labels of keys that stay as they are."""
    return [f"k{at}" for at in range(of.arity)]


def _grouped(of: RelationType, group_by: Sequence[int]) -> list[str]:
    """Labels of keys of which groups have some."""
    return [f"k{group_by.index(at)}" if at in group_by else f"g{at}" for at in range(of.arity)]


def _labels_of_sides(join: Join, labels: Sequence[str]) -> tuple[list[str], list[str]]:
    """Labels of the keys of both sides, from those of pairs."""
    left, right = join.left.type.arity, join.right.type.arity
    return list(labels[:left]), [labels[join.pairing.right_position(at)] for at in range(right)]


def _einsum_of(kernel: Kernel, schema: Schema) -> tuple[Scalar, list[list[str]], str | None, str | None]:
    """Expression, labels inside the arrays of the operands, aggregate, and the label of the scan of a kernel."""
    made = [schema.tensor.axes[at].name for at in schema.decomposition.array_axes]
    match kernel:
        case Elementwise(expression):
            return expression, [made] * kernel.operands, None, None
        case EinSumKernel(einsum):
            names = dict(zip(einsum.output.labels, made, strict=True))
            inside = [[names.setdefault(each, f"b{len(names)}") for each in one.labels] for one in einsum.operands]
            return einsum.join, inside, einsum.aggregate, einsum.along and names[einsum.along]
        case _:
            raise AlgebraError(f"the kernel {kernel} is no EinSum; SQL computes no other")


def _key_sql(expression: KeyExpression, keys: Sequence[exp.Expr]) -> exp.Expr:
    """A function of keys as SQL, whose divisions round like Python's where nothing is below 0."""
    match expression:
        case KeyPart(index):
            return keys[index].copy()
        case Integer(value):
            return exp.Literal.number(value) if value >= 0 else exp.Neg(this=exp.Literal.number(-value))
        case Operation(symbol, left, right):
            if symbol in ("//", "%") and lower_bound(left) < 0:
                raise AlgebraError(f"{write_key(left)} may be below 0, where SQL divides in another way")
            sides = [
                exp.paren(_key_sql(each, keys), copy=False) if isinstance(each, Operation) else _key_sql(each, keys)
                for each in (left, right)
            ]
            return _OPERATIONS[symbol](this=sides[0], expression=sides[1])
        case CopyNumber():
            raise AlgebraError("a rekey makes one key of one, and no copies")

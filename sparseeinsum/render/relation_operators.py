"""Render: operators of relations, whose keys are the first axes of a tensor, as EinSums and calls of functions."""

import math
from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from sparseeinsum.algebra.operators import Computed, Contract, Relation
from sparseeinsum.algebra.relational.array_kernels import ArrayKernel
from sparseeinsum.algebra.relational.folds import PositionFold
from sparseeinsum.algebra.relational.kernels import IDENTITY, EinSumKernel, Elementwise, Kernel
from sparseeinsum.algebra.relational.types import RelationType
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.errors import AlgebraError
from sparseeinsum.language.eingraph import EinSum, Reference, write_einsum
from sparseeinsum.language.tensors import DEMOTED, VALUE_COLUMN, Axis, Decomposition, Tensor
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar
from sparseeinsum.render.calls import call, integer, integers
from sparseeinsum.render.relations import Renderer
from sparseeinsum.render.sources import aliased, named
from sparseeinsum.semantics.exactness import JoinKind

_DTYPE = "float64"
# Of an element and the extreme one of its group: whether it equals that; NaN is the extreme one if there is one.
_IS_EXTREME = Elementwise(
    Call(
        "where",
        (
            Call("or", (Call("eq", (Operand(0), Operand(1))), Call("ne", (Operand(0), Operand(0))))),
            Literal(1.0),
            Literal(0.0),
        ),
    )
)
_NUMBER_OF_EXTREME = Call("where", (Call("ne", (Operand(0), Literal(0.0))), Operand(1), Literal(math.inf)))


def schema_of(name: str, relation_type: RelationType, dtype: str = _DTYPE) -> Schema:
    """The schema of a relation as that of a tensor, whose keys are its first axes.

    Args:
        name: The name of the tensor.
        relation_type: The type of the relation.
        dtype: The dtype of the tensor.
    """
    axes = [Axis(f"k{at}", bound) for at, bound in enumerate(relation_type.frontier)]
    axes += [Axis(f"a{at}", bound) for at, bound in enumerate(relation_type.bound)]
    return Schema(
        Tensor(name, tuple(axes), dtype), Decomposition((1,) * relation_type.arity + (DEMOTED,) * relation_type.rank)
    )


def of_dtype(schema: Schema, other: Schema) -> Schema:
    """The schema of a tensor with the dtype of another one."""
    return replace(schema, tensor=replace(schema.tensor, dtype=other.tensor.dtype))


def define_einsum(
    renderer: Renderer,
    schema: Schema,
    inputs: Sequence[Schema],
    kernel: Kernel,
    keys: Sequence[Sequence[str]],
    aggregate: str | None,
) -> None:
    """Add an EinSum of relations.

    Args:
        renderer: Knows the relations that it reads.
        schema: The schema of the result.
        inputs: The schemas of the relations that it reads.
        kernel: The kernel of their arrays.
        keys: For every input, the labels of its keys.
        aggregate: The aggregate over keys that the result lacks; None if the kernel says which.
    """
    join, inside, kernel_aggregate, along = _einsum_of(kernel, schema)
    operands = tuple(
        Reference(operand.tensor.name, (*labels, *arrays))
        for operand, labels, arrays in zip(inputs, keys, inside, strict=True)
    )
    output = Reference(schema.tensor.name, tuple(axis.name for axis in schema.tensor.axes))
    is_aggregated = any(label not in output.labels for operand in operands for label in operand.labels)
    applied_aggregate = (aggregate or kernel_aggregate) if is_aggregated or along is not None else None
    einsum = EinSum(output, operands, join, applied_aggregate, along=along)
    relations: tuple[Relation, ...] = tuple(map(Computed, inputs))
    contract = Contract(einsum, relations, JoinKind.INNER, schema, _DTYPE, None, detects_nonfinite=False)
    renderer.define(schema.tensor.name, contract, write_einsum(einsum, dict.fromkeys(schema.keys, 1)))


def define_positions(
    renderer: Renderer, schema: Schema, operand: Schema, labels: Sequence[str], fold: PositionFold
) -> None:
    """Add where elements are extreme in their groups: the least number of those that equal the extreme one."""
    name = schema.tensor.name
    extreme = _renamed(schema, f"{name}_{fold.aggregate}")
    define_einsum(renderer, extreme, (operand,), IDENTITY, (labels,), fold.aggregate)
    is_extreme = _renamed(operand, f"{name}_is_{fold.aggregate}")
    kept = [operand.keys[labels.index(key)] for key in schema.keys]
    define_einsum(renderer, is_extreme, (operand, extreme), _IS_EXTREME, (operand.keys, kept), None)
    (number_key,) = set(operand.keys) - set(kept)
    number_label = labels[operand.keys.index(number_key)]
    bound = operand.tensor.axes[operand.keys.index(number_key)].bound
    numbers = schema_of(f"{name}_numbers", RelationType((bound,), ()))
    source = renderer.source(Computed(operand))
    key = source.key(number_key, "t")
    columns = named(key, "k0"), named(exp.cast(key.copy(), exp.DataType.Type.DOUBLE), VALUE_COLUMN)
    select = exp.select(*columns).from_(aliased(source.table, "t")).group_by(key.copy())
    renderer.add(numbers, select, f"numbers of {number_key}", is_joined=False)
    arrays = tuple(f"a{at}" for at in range(len(schema.decomposition.array_axes)))
    operands = (Reference("u", arrays), Reference("v", ()))
    number = EinSumKernel(EinSum(Reference("w", arrays), operands, _NUMBER_OF_EXTREME, None))
    define_einsum(renderer, schema, (is_extreme, numbers), number, (labels, [number_label]), "min")


def call_array_function(renderer: Renderer, schema: Schema, operand: Schema, kernel: ArrayKernel) -> Schema:
    """Add the SELECT that calls a function of whole arrays."""
    source = renderer.source(Computed(operand))
    schema = of_dtype(schema, source.schema)
    keys = [named(source.key(key, "t"), key) for key in schema.keys]
    sizes = kernel.sql_arguments(_bound_of(operand))
    arguments = [integer(size) if isinstance(size, int) else integers(size) for size in sizes]
    value = call(f"tensor_{kernel.name}", source.value("t"), *arguments)
    select = exp.select(*keys, named(value, VALUE_COLUMN)).from_(aliased(source.table, "t"))
    renderer.add(schema, select, str(kernel), source.is_joined)
    return schema


def _renamed(schema: Schema, name: str) -> Schema:
    return replace(schema, tensor=replace(schema.tensor, name=name))


def _einsum_of(kernel: Kernel, schema: Schema) -> tuple[Scalar, list[list[str]], str | None, str | None]:
    """The EinSum of a kernel: expression, labels inside the operands' arrays, aggregate, and the label of a scan."""
    output_labels = [schema.tensor.axes[at].name for at in schema.decomposition.array_axes]
    match kernel:
        case Elementwise(expression):
            return expression, [output_labels] * kernel.operands, None, None
        case EinSumKernel(einsum):
            names = dict(zip(einsum.output.labels, output_labels, strict=True))
            inside = [
                [names.setdefault(label, f"b{len(names)}") for label in operand.labels] for operand in einsum.operands
            ]
            return einsum.join, inside, einsum.aggregate, einsum.along and names[einsum.along]
        case _:
            raise AlgebraError(f"the kernel {kernel} is no EinSum; SQL computes no other")


def _bound_of(schema: Schema) -> tuple[int, ...]:
    """The bound of the arrays of a relation."""
    return tuple(schema.tensor.axes[at].bound for at in schema.decomposition.array_axes)

"""Programs of EinSums as expressions of the tensor relational algebra, in which every entry is a tuple."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import sparseeinsum as se
from sparseeinsum.algebra.expression_programs import check_absent
from sparseeinsum.algebra.relational.absence import AbsentArray
from sparseeinsum.algebra.relational.folds import AggregateFold
from sparseeinsum.algebra.relational.kernels import Elementwise, Kernel
from sparseeinsum.algebra.relational.keys import projection
from sparseeinsum.algebra.relational.relational_expressions import (
    Aggregation,
    Complete,
    Expression,
    Input,
    Join,
    Rekey,
    Transform,
)
from sparseeinsum.algebra.relational.types import RelationType
from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.operators.expressions import Operand
from sparseeinsum.semantics.exactness import JoinKind

_ZERO = AbsentArray(0.0, ())


def expressions_of(graph: EinGraph, entries: Mapping[str, int]) -> dict[str, Expression]:
    """The outputs of EinSums of one or two operands; inputs in `entries` have so many tuples, others all."""
    relations: dict[str, Expression] = {}
    for name, tensor in graph.inputs.items():
        count = entries.get(name)
        distinct = () if count is None else tuple(float(min(bound, count)) for bound in tensor.shape)
        tuples = None if count is None else float(count)
        relations[name] = Input(name, RelationType(tensor.shape, (), is_continuous=count is None), tuples, distinct)
    for einsum in graph.einsums:
        relations[einsum.output.tensor] = _expression_of(einsum, relations)
    return {name: relations[name] for name in graph.outputs}


def _expression_of(einsum: EinSum, relations: Mapping[str, Expression]) -> Expression:
    first, *others = einsum.operands
    labels, expression = first.labels, relations[first.tensor]
    if others:
        (second,) = others
        shared = [label for label in labels if label in second.labels]
        keys = ([side.labels.index(label) for label in shared] for side in einsum.operands)
        expression = _joined(expression, relations[second.tensor], Elementwise(einsum.join), *map(tuple, keys))
        labels = (*labels, *(label for label in second.labels if label not in shared))
    elif einsum.join != Operand(0):
        expression = _filled_transform(expression, Elementwise(einsum.join))
    return _grouped(expression, [labels.index(label) for label in einsum.output.labels], einsum.aggregate)


def _joined(
    left: Expression, right: Expression, kernel: Kernel, left_keys: tuple[int, ...], right_keys: tuple[int, ...]
) -> Join:
    """A join that keeps the tuples of a side without holes, if a kernel makes something of them alone."""
    join = Join(left, right, left_keys, right_keys, kernel)
    try:
        check_absent(join)
    except se.AlgebraError:
        kind = JoinKind.LEFT if left.type.is_continuous else JoinKind.RIGHT
        return replace(join, kind=kind, absent=(_ZERO, _ZERO))
    return join


def _filled_transform(expression: Expression, kernel: Kernel) -> Transform:
    """A kernel of all tuples, absent ones included, if it makes something of these."""
    transform = Transform(expression, kernel)
    try:
        check_absent(transform)
    except se.AlgebraError:
        return Transform(Complete(expression, _ZERO, expression.type.frontier), kernel)
    return transform


def _grouped(expression: Expression, positions: Sequence[int], aggregate: str | None) -> Expression:
    if aggregate is not None:
        return Aggregation(expression, tuple(positions), AggregateFold(aggregate))
    keys = projection(expression.type.arity, positions)
    return expression if keys.is_identity else Rekey(expression, keys)

"""Algebra: products of three operands that one kernel computes."""

from collections.abc import Mapping
from dataclasses import replace

from sparseeinsum.algebra.operators import Contract, Relation, Resident
from sparseeinsum.algebra.reading import Readable, compressed, repartitioned
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.decompose.choice import reference_tiles
from sparseeinsum.decompose.decomposed_graph import DecomposedGraph, Step
from sparseeinsum.decompose.fused_products import FusedProduct
from sparseeinsum.language.eingraph import EinSum
from sparseeinsum.language.tensors import Axis, Decomposition
from sparseeinsum.operators.expressions import Operand
from sparseeinsum.semantics.exactness import Evaluation, JoinKind


def fused_relation(
    step: Step,
    product: FusedProduct,
    schema: Schema,
    readables: Mapping[str, Readable],
    plan: DecomposedGraph,
    evaluation: Evaluation,
) -> Contract:
    """The result of a step that computes a product of three operands.

    Args:
        step: The step.
        product: The product, whose values the step aggregates over labels that its result lacks.
        schema: The schema of the result.
        readables: What the step can read, by name.
        plan: The plan of the step.
        evaluation: Of the EinSum.
    """
    einsum = product.einsum
    inputs = [
        _input(readables[operand.tensor], product, index, plan, evaluation.computed_in)
        for index, operand in enumerate(einsum.operands)
    ]
    is_whole = set(einsum.output.labels) == set(step.einsum.output.labels)
    computed = Contract(
        einsum,
        tuple(inputs),
        JoinKind.INNER,
        schema if is_whole else _schema_of_product(einsum, schema, plan),
        evaluation.computed_in,
        compensation=None,
        detects_nonfinite=evaluation.detects_nonfinite and is_whole,
        compressed=tuple(product.orders),
        is_brief=step.is_brief,
    )
    if is_whole:
        return computed
    aggregated = EinSum(step.einsum.output, (einsum.output,), Operand(0), einsum.aggregate)
    return replace(
        computed,
        einsum=aggregated,
        inputs=(computed,),
        output=schema,
        detects_nonfinite=evaluation.detects_nonfinite,
        compressed=(),
    )


def _schema_of_product(einsum: EinSum, schema: Schema, plan: DecomposedGraph) -> Schema:
    """The schema of a product that has more labels than the result: those of the mask."""
    axes = tuple([Axis(label, plan.graph.bound_of(einsum, label)) for label in einsum.output.labels])
    tensor = replace(schema.tensor, name=f"{schema.tensor.name}_masked", axes=axes)
    return Schema(tensor, Decomposition((1,) * len(axes)))


def _input(readable: Readable, product: FusedProduct, index: int, plan: DecomposedGraph, computed_in: str) -> Relation:
    """Operand `index` of a product, ordered by row or in one array, if the kernel needs that."""
    operand = product.einsum.operands[index]
    target = Decomposition(reference_tiles(product.einsum, operand, product.choice))
    planned = plan.repartitions[operand.tensor, target]
    relation = repartitioned(readable, target, needs_all=False, planned=planned).relation
    if index in product.resident:
        return Resident(relation)
    order = product.orders.get(index)
    return relation if order is None else compressed(relation, operand, order, computed_in)

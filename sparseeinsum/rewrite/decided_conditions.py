"""Rewriting: conditions that hold, or do not hold, for all finite operands.

log_softmax and the gradients of maxima ask whether a value is infinite. Where it is known to be finite, or a run ends
if it is not, where(u == -inf, v, w) is w: an EinSum reads one operand less, and w may be sparse where v is not.
"""

from collections.abc import Collection
from dataclasses import replace

from sparseeinsum.language.eingraph import EinSum, needed_einsums
from sparseeinsum.language.scalar import evaluated_dtype, functions_of, operands_in_order
from sparseeinsum.operators.expressions import Call, Operand, Scalar
from sparseeinsum.operators.ranges import ANY_VALUE, Range, finite_range
from sparseeinsum.rewrite.annotated_graphs import AnnotatedGraph, GraphAnnotator
from sparseeinsum.rewrite.chains import substitute
from sparseeinsum.semantics.expression_ranges import range_of


def decide_conditions(annotated: AnnotatedGraph, pinned: Collection[str]) -> AnnotatedGraph:
    """Replace every `where` whose condition all finite operands decide by the one value that it takes.

    Args:
        annotated: EinSums of one or two operands; a run detects values that turn NaN or infinite.
        pinned: Results whose promoted labels the user chose; these stay as they are.
    """
    graph = annotated.graph
    annotator = annotated.annotator()
    einsums = []
    for einsum in graph.einsums:
        current = einsum if einsum.output.tensor in pinned else _decided(einsum, annotator)
        annotator.add(current)
        einsums.append(current)
    if einsums == list(graph.einsums):
        return annotated
    return annotator.graph_of(needed_einsums(einsums, graph.outputs), graph.outputs)


def _decided(einsum: EinSum, annotator: GraphAnnotator) -> EinSum:
    """The EinSum without conditions that are decided; as it is if its result would have other labels or values."""
    if not einsum.is_rewritable or einsum.promoted or "where" not in functions_of(einsum.join):
        return einsum
    operands = [annotator.tensors[operand.tensor] for operand in einsum.operands]
    dtypes = [operand.tensor.dtype for operand in operands]
    ranges = [finite_range(operand.tensor.dtype) if operand.is_all_finite else ANY_VALUE for operand in operands]
    join = _without_decided(einsum.join, ranges, evaluated_dtype(einsum.join, dtypes))
    if join == einsum.join:
        return einsum
    numbers = operands_in_order(join)
    remaining = tuple(einsum.operands[number] for number in numbers)
    labels = {label for operand in remaining for label in operand.labels}
    if labels != set(einsum.labels) or evaluated_dtype(join, dtypes) != evaluated_dtype(einsum.join, dtypes):
        return einsum
    renumbered = substitute(join, {number: Operand(place) for place, number in enumerate(numbers)})
    return replace(einsum, operands=remaining, join=renumbered)


def _without_decided(expression: Scalar, ranges: list[Range], dtype: str) -> Scalar:
    if not isinstance(expression, Call):
        return expression
    arguments = tuple(_without_decided(argument, ranges, dtype) for argument in expression.arguments)
    if expression.function == "where":
        condition = range_of(arguments[0], ranges, dtype).exact
        if condition is not None:
            return arguments[1] if condition else arguments[2]
    return Call(expression.function, arguments)

"""Rewriting: an EinSum that computes elementwise also computes an operand that only it reads.

Y = T + B with T = 2 * A becomes Y = 2 * A + B: one pass over the values, and T is neither written nor joined. That is
done only where Y still is no EinSum of more than two operands, and where Y turns NaN or infinite if T does, so that
what ends a run does so still.
"""

import math
from collections.abc import Collection, Sequence

from sparseeinsum.language.eingraph import EinSum, Reference
from sparseeinsum.language.scalar import count_operations, gives_infinity
from sparseeinsum.operators.expressions import Call, Operand, Scalar
from sparseeinsum.operators.ranges import finite_range
from sparseeinsum.rewrite.annotated_graphs import AnnotatedGraph, GraphAnnotator
from sparseeinsum.rewrite.inlining import with_operand_computed
from sparseeinsum.rewrite.long_expressions import ExpressionSize
from sparseeinsum.semantics.expression_ranges import range_of
from sparseeinsum.semantics.nonfinite_values import stays_nonfinite

_DTYPES = ("float64", "float32")  # of operands; the dtype of whole numbers depends on all of an expression
_MOST_OPERANDS = 2
_MOST_OPERATIONS = 40  # of an expression; more gain little, and planning looks at each part of it
_DEEPEST = 12  # a level for every unfinished function of which kernels keep 16


def merge_elementwise(annotated: AnnotatedGraph, pinned: Collection[str]) -> AnnotatedGraph:
    """Merge EinSums that compute elementwise with those that read them.

    Args:
        annotated: EinSums of one or two operands; a run detects values that turn NaN or infinite.
        pinned: Results whose promoted labels the user chose; these stay as they are.
    """
    graph = annotated.graph
    readers = graph.count_readers()
    fixed = {*pinned, *graph.outputs}
    annotator = annotated.annotator()
    waiting: dict[str, EinSum] = {}  # results that a later EinSum may compute
    einsums: list[EinSum] = []
    for einsum in graph.einsums:
        current = einsum
        if _is_elementwise(current) and current.output.tensor not in pinned:
            for operand in einsum.operands:
                producer = waiting.get(operand.tensor)
                merged = None if producer is None else _merged(current, operand, producer, annotator)
                if merged is not None:
                    del waiting[operand.tensor]
                    current = merged
        annotator.add(current)
        name = current.output.tensor
        if readers[name] == 1 and name not in fixed and _is_elementwise(current):
            waiting[name] = current
        einsums.append(current)
    computed = {name for einsum in einsums for name in (operand.tensor for operand in einsum.operands)} | {*fixed}
    if all(einsum.output.tensor in computed for einsum in einsums):
        return annotated
    remaining = [einsum for einsum in einsums if einsum.output.tensor in computed]
    return annotator.graph_of(remaining, graph.outputs)


def _is_elementwise(einsum: EinSum) -> bool:
    """Whether an EinSum aggregates nothing, has no label promoted by hand, and reads no diagonal."""
    repeats = any(len(set(operand.labels)) < len(operand.labels) for operand in einsum.operands)
    return einsum.is_rewritable and einsum.aggregate is None and not (einsum.promoted or repeats)


def _merged(einsum: EinSum, operand: Reference, producer: EinSum, annotator: GraphAnnotator) -> EinSum | None:
    """The EinSum with `operand` computed as `producer` does; None where that may not be done, or does not pay.

    A result of a function that is used twice would be computed twice, and so would one that lacks a label.
    """
    position = einsum.operands.index(operand)
    if set(operand.labels) != set(einsum.labels) or _uses(einsum.join, position) > 1:
        return None
    merged = with_operand_computed(einsum, operand, producer)
    is_small = count_operations(merged.join) <= _MOST_OPERATIONS and ExpressionSize.of(merged.join).depth <= _DEEPEST
    if len(merged.operands) > _MOST_OPERANDS or not is_small:
        return None
    reads_whole_numbers = any(_dtype(read, annotator) not in _DTYPES for read in merged.operands)
    if reads_whole_numbers or not _computes_alike((einsum, producer, merged), annotator):
        return None
    return merged if _ends_alike(einsum, position, producer, merged, annotator) else None


def _uses(expression: Scalar, position: int) -> int:
    match expression:
        case Operand(index):
            return int(index == position)
        case Call(_, arguments):
            return sum(_uses(argument, position) for argument in arguments)
        case _:
            return 0


def _computes_alike(einsums: Sequence[EinSum], annotator: GraphAnnotator) -> bool:
    """Whether all EinSums compute in the dtype of their results, the same for all."""
    annotations = [annotator.annotation_of(einsum) for einsum in einsums]
    dtypes = {annotation.evaluation.computed_in for annotation in annotations}
    dtypes |= {annotation.result.tensor.dtype for annotation in annotations}
    return len(dtypes) == 1


def _dtype(operand: Reference, annotator: GraphAnnotator) -> str:
    return annotator.tensors[operand.tensor].tensor.dtype


def _ends_alike(einsum: EinSum, position: int, producer: EinSum, merged: EinSum, annotator: GraphAnnotator) -> bool:
    """Whether the merged result is NaN or infinite, and a run detects that, wherever the operand is."""
    before, after = annotator.annotation_of(producer), annotator.annotation_of(merged)
    if after.result.tensor.fill != annotator.annotation_of(einsum).result.tensor.fill:
        return False
    operands = [annotator.tensors[operand.tensor] for operand in producer.operands]
    ranges = [finite_range(operand.tensor.dtype) for operand in operands]
    values = range_of(producer.join, ranges, before.evaluation.computed_in)
    if values.is_finite:  # whatever finite values the operands have
        return True
    others = (operand for operand in einsum.operands if operand.tensor != producer.output.tensor)
    operands += [annotator.tensors[operand.tensor] for operand in others]
    reads_infinity = any(map(gives_infinity, (einsum.join, producer.join)))
    if reads_infinity or not all(operand.is_all_finite for operand in operands):
        return False
    if before.evaluation.detects_nonfinite and not after.evaluation.detects_nonfinite:
        return False
    infinities = [infinity for infinity in (math.inf, -math.inf) if infinity in values]
    return stays_nonfinite(einsum.join, position, [*infinities, *([math.nan] if values.may_be_nan else [])])

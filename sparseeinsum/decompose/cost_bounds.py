"""Decompose: lower bounds for the costs of EinSums, for rewrites that choose between graphs."""

import math
from collections.abc import Mapping, Sequence
from functools import partial

from sparseeinsum.decompose.choice import Choice, reference_tiles
from sparseeinsum.decompose.choices import MOST_LABELS, all_choices
from sparseeinsum.decompose.cost import START_OPERATIONS, CostConstants, Work
from sparseeinsum.decompose.decomposed_einsum import KernelFacts
from sparseeinsum.decompose.joining import joined_pairs
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.language.tensors import mean_extent
from sparseeinsum.operators.dtypes import ITEM_BYTES
from sparseeinsum.rewrite.annotated_graphs import AnnotatedEinSum
from sparseeinsum.rewrite.predicted_costs import LEAST_SECONDS, CostPredictor
from sparseeinsum.semantics.exactness import Evaluation, JoinKind
from sparseeinsum.statistics.estimate import Statistics

# An EinSum that takes so little more than starting an operator has no choice that is much cheaper.
_NEGLIGIBLE_SECONDS = 1e-4
# One that takes so little more has no choice that is cheaper at all; thousands of them do not add up to a millisecond.
NO_SECONDS = 1e-6
_ROUNDING = 1e-9  # relative difference of sums and products of the same numbers in other orders


def least_seconds(
    graph: EinGraph,
    statistics: Mapping[str, Statistics],
    evaluations: Mapping[str, Evaluation],
    einsums: Sequence[EinSum],
    *,
    constants: CostConstants,
) -> list[float]:
    """Expected seconds of some EinSums of a graph, each with its cheapest choice, without repartitions.

    Args:
        graph: The graph.
        statistics: Statistics of all its tensors, by name.
        evaluations: How each EinSum is evaluated, by the name of its result.
        einsums: The EinSums to price.
        constants: The cost constants of the engine.
    """
    model = CostModel(graph, statistics, evaluations, constants)
    return [_least_seconds(model, einsum) for einsum in einsums]


def _least_seconds(model: CostModel, einsum: EinSum) -> float:
    choices = list(all_choices(einsum, {label: model.graph.bound_of(einsum, label) for label in einsum.labels}))
    least = model.vertex_cost(einsum, choices[0]).seconds  # without keys
    if least < model.constants.fixed_seconds_per_operator + NO_SECONDS:
        return least
    least = min(least, model.vertex_cost(einsum, choices[-1]).seconds)  # with all labels as keys
    is_at_bound = least < model.constants.fixed_seconds_per_operator + _NEGLIGIBLE_SECONDS
    if is_at_bound or len(einsum.labels) > MOST_LABELS:
        return least
    bounds = [(_join_seconds(model, einsum, choice), choice) for choice in choices[1:-1]]
    for bound, choice in sorted(bounds):
        if bound * (1 - _ROUNDING) > least:
            break
        least = min(least, model.vertex_cost(einsum, choice).seconds)
    return least


def _join_seconds(model: CostModel, einsum: EinSum, choice: Choice) -> float:
    """No more than an EinSum takes under a choice: only to join tuples and to compute their pairs; 0 if unknown."""
    name, constants, kernel = einsum.output.tensor, model.constants, model.footprints.kernel(einsum)
    if any(model.evaluations[name].matters) or model.statistics[name].skew:
        return 0.0
    operands = [
        model.sizes.operand(operand, reference_tiles(einsum, operand, choice), dense=False)
        for operand in einsum.operands
    ]
    seconds = constants.kernel_seconds_per_operation
    if kernel.matrix_labels is not None:
        seconds = min(seconds, constants.matrix_seconds_per_operation)
    if not kernel.is_multilinear:
        seconds = min(seconds, constants.expression_seconds_per_operation)
    operations = kernel.operations * math.prod(map(mean_extent, choice, kernel.bounds))
    return joined_pairs(operands, JoinKind.INNER) * (constants.fixed_seconds_per_tuple + operations * seconds)


def most_seconds(annotated: AnnotatedEinSum, *, constants: CostConstants) -> float:
    """At least what `least_seconds` are of an EinSum whose result is read or returned once: seconds in single arrays.

    Infinite where absent entries count.
    """
    einsum, result = annotated.einsum, annotated.result.tensor
    is_fixed = bool(einsum.promoted) or any(annotated.evaluation.matters)
    if is_fixed or any(operand.statistics.entries <= 0 for operand in annotated.operands):
        return math.inf
    bounds = {
        label: axis.bound
        for reference, operand in zip(einsum.operands, annotated.operands, strict=True)
        for label, axis in zip(reference.labels, operand.tensor.axes, strict=True)
    }
    work = Work(
        tuples=1,
        bytes_moved=result.size * ITEM_BYTES[result.dtype],
        operators=1,
        expression_operations=START_OPERATIONS,
    )
    rates = constants.kernel_seconds_per_operation, constants.matrix_seconds_per_operation
    operations = KernelFacts.operations_of(einsum) * math.prod(bounds.values())
    return work.seconds(constants) + operations * max(*rates, constants.expression_seconds_per_operation)


def seconds_predictor(constants: CostConstants, least: float = LEAST_SECONDS) -> CostPredictor:
    """Predicts seconds on one machine; nothing is looked for in place of EinSums that take less than `least`."""
    return CostPredictor(
        partial(least_seconds, constants=constants),
        least,
        constants.fixed_seconds_per_operator,
        most_seconds=partial(most_seconds, constants=constants),
    )

"""Algebra: which results hold every tuple that there can be, or can be made to at little cost.

Where an absent tuple matters to a reader (a sigmoid, say), a relation must be complete. A sum over groups becomes
complete by adding a row of zeros for every group, which costs little; elsewhere the result of complete operands is
complete, so that the demand moves down to those. A sum without keys always has its one tuple.
"""

from collections.abc import Set

from sparseeinsum.decompose.plan import DecomposedGraph, Step


def completed_results(plan: DecomposedGraph, complete_inputs: Set[str]) -> frozenset[str]:
    """Results to make complete as they are computed, because a reader needs that and it can be done.

    Args:
        plan: Choices for all EinSums.
        complete_inputs: Inputs whose relations hold every tuple that there can be.
    """
    possible = set(complete_inputs)
    for step in plan.steps:
        if is_aggregating(step) or all(operand.tensor in possible for operand in step.einsum.operands):
            possible.add(step.einsum.output.tensor)
    demanded: set[str] = set()
    for step in reversed(plan.steps):
        passes_on = step.einsum.output.tensor in demanded and not is_aggregating(step)
        for index, operand in enumerate(step.einsum.operands):
            if (passes_on or step.absence.dense[index]) and operand.tensor in possible:
                demanded.add(operand.tensor)
    return frozenset(demanded - complete_inputs)


def is_aggregating(step: Step) -> bool:
    """Whether a step aggregates tuples: it promotes a label that its result lacks."""
    return not step.promoted <= frozenset(step.einsum.output.labels)

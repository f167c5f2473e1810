"""Validity: a plan and values of its inputs, maybe others than it was made for; whether it is exact for them."""

from collections.abc import Mapping

from sparseeinsum.plans.plan import Plan
from sparseeinsum.rewrite.assumptions import broken_assumption
from sparseeinsum.semantics.exactness import Evaluation, Values, evaluate_exactly


def evaluations_for(plan: Plan, now: Mapping[str, Values]) -> Mapping[str, Evaluation]:
    """What is exact for every EinSum of a plan.

    Args:
        plan: A plan.
        now: What is known of the values of all its inputs, besides what was known when it was made.

    Raises:
        SemanticsError: Nothing is.
    """
    values = {name: measured.values.united(now[name]) for name, measured in plan.measured.items()}
    return evaluate_exactly(plan.decomposed.graph, values, plan.nonfinite == "allow").evaluations


def broken_rewriting(plan: Plan, now: Mapping[str, Values]) -> str | None:
    """Why the way in which the plan rewrites its program may not be right; None where it is. See `evaluations_for`."""
    then = {name: measured.values for name, measured in plan.measured.items()}
    rewritten = plan.rewriting.rewritten
    return broken_assumption(plan.decomposed.graph, rewritten, then, now, plan.nonfinite == "allow")

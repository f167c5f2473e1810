"""Plans: whether a plan is exact for inputs whose values may have changed since it was made."""

from collections.abc import Mapping
from dataclasses import replace

from sparseeinsum.algebra.dependencies import has_single_pairs
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.plans.plan_statements import without_group_by_elimination
from sparseeinsum.rewrite.assumption_checks import broken_assumption
from sparseeinsum.semantics.exactness import Evaluation, ValueFacts, decide_evaluations
from sparseeinsum.statistics.measured_tensors import MeasuredTensor, values_of


def evaluations_for(plan: ProgramPlan, values: Mapping[str, ValueFacts]) -> Mapping[str, Evaluation]:
    """How every EinSum of a plan is evaluated exactly, by the name of its result.

    Args:
        plan: A plan.
        values: What is known of the values of all inputs now; what was known during planning is added.

    Raises:
        SemanticsError: No sparse evaluation is exact.
    """
    united = {name: tensor.values.union(values[name]) for name, tensor in plan.inputs.items()}
    return decide_evaluations(plan.decomposed.graph, united, plan.options.allows_nonfinite).evaluations


def broken_rewriting(plan: ProgramPlan, values: Mapping[str, ValueFacts], detects_same: bool = False) -> str | None:
    """Why the rewriting of a plan may change a result for `values`; None if it cannot.

    Args:
        plan: A plan.
        values: As for `evaluations_for`.
        detects_same: Whether `evaluations_for` these values decides as the plan does.
    """
    before, rewritten, allows = values_of(plan.inputs), plan.rewriting.rewritten, plan.options.allows_nonfinite
    return broken_assumption(plan.decomposed.graph, rewritten, before, values, allows, detects_same)


def with_valid_grouping(plan: ProgramPlan, inputs: Mapping[str, MeasuredTensor]) -> ProgramPlan:
    """The plan, with a GROUP BY everywhere unless all groups that it leaves out still have one tuple each.

    Args:
        plan: A plan.
        inputs: Its inputs as they are now.
    """
    identifying = {name: tensor.identifying_axes for name, tensor in inputs.items()}
    eliminated = [definition for definition in plan.definitions if definition.relation.has_single_pairs]
    if all(has_single_pairs(definition.step, definition.relation.inputs, identifying) for definition in eliminated):
        return plan
    return replace(plan, definitions=without_group_by_elimination(plan.definitions))

"""Loops: the layouts in which a step computes the next values of the state, which tables of its own may have."""

from collections.abc import Mapping

from sparseeinsum.language.tensors import Decomposition
from sparseeinsum.plans.plan import ProgramPlan


def computed_layouts(
    plan: ProgramPlan, state: Mapping[str, str], present: Mapping[str, Decomposition]
) -> dict[str, Decomposition]:
    """The layouts of the state in which neither a step nor the next one cuts arrays or puts them together.

    Args:
        plan: The plan of a step.
        state: The names of the tensors of the state, each with that of its next value.
        present: The layouts of the state that the plan reads.

    Returns:
        By the names of the tensors, the layout in which the next value is computed if that has fewer tuples; else the
        present one.
    """
    computed = {step.einsum.output.tensor: step.result for step in plan.decomposed.steps}
    layouts = {}
    for name, following in state.items():
        shape = plan.decomposed.graph.tensors[following].shape
        layout = computed.get(following, present[name])
        is_larger = layout.max_tuples(shape) < present[name].max_tuples(shape)
        layouts[name] = layout if is_larger else present[name]
    return layouts

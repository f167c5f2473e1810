"""Loops: the layouts in which a step computes the next values of the state, which tables of its own may have."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sparseeinsum.language.tensors import DEMOTED, MOST_ARRAY_AXES, Decomposition, StoredTensor
from sparseeinsum.plans.plan import ProgramPlan

DRIFT = 4  # times more or fewer tuples than a plan was made for: another plan may be better
_MOST_ELEMENTS = 1 << 20  # of a state that may be one tuple, however many tuples it is stored in
_FEW_ELEMENTS = 4096  # of which all operators take about the time to start, so that one tuple needs the fewest


@dataclass(frozen=True, slots=True)
class StateLayout:
    """How tables of a loop hold a state.

    Attributes:
        decomposition: The layout.
        is_complete: Whether the first step finds a tuple for every possible key, also where the state holds the fill.
    """

    decomposition: Decomposition
    is_complete: bool = False


def array_layouts(present: Mapping[str, StoredTensor], rows: Mapping[str, int]) -> dict[str, StateLayout]:
    """The layouts of a state in one tuple each.

    Args:
        present: The state, by name.
        rows: The numbers of its rows.

    Returns:
        By the names of the tensors, their layouts; nothing if the state has these already, if a tensor of it has some
        of its rows alone, or is too large for one tuple.
    """
    arrays = {name: Decomposition((DEMOTED,) * len(source.tensor.axes)) for name, source in present.items()}
    if all(arrays[name] == source.decomposition for name, source in present.items()):
        return {}
    for name, source in present.items():
        shape = source.tensor.shape
        is_large = math.prod(shape) > _MOST_ELEMENTS or len(shape) > MOST_ARRAY_AXES
        if is_large or rows[name] not in (0, source.decomposition.max_tuples(shape)):
            return {}
    return {name: StateLayout(layout, is_complete=rows[name] == 0) for name, layout in arrays.items()}


def computes_arrays(plan: ProgramPlan, state: Mapping[str, str], present: Mapping[str, StoredTensor]) -> bool:
    """Whether a step computes the next values of a state as one array each, of which most elements are entries.

    Args:
        plan: The plan of a step.
        state: The names of the tensors of the state, each with that of its next value.
        present: The state, by name; next values must have the same fills.
    """
    results = {step.einsum.output.tensor: step.result for step in plan.decomposed.steps}
    tensors = plan.decomposed.graph.tensors
    return all(
        following in results
        and not results[following].promoted
        and 2 * plan.statistics[following].entries >= tensors[following].size
        and tensors[following].fill == present[name].tensor.fill
        for name, following in state.items()
    )


def computed_layouts(
    plan: ProgramPlan, state: Mapping[str, str], present: Mapping[str, Decomposition]
) -> dict[str, StateLayout]:
    """The layouts of the state in which a step and the next one least cut arrays or put them together.

    If some are others than the present ones, so that another plan must be made, a state of few elements is one tuple.
    A state of few tuples whose next value is expected to have most of all tuples, as the moments of Adam that begin
    with zeros, has all of them at once: the plan for few tuples would have to be replaced after a step.

    Args:
        plan: The plan of a step.
        state: The names of the tensors of the state, each with that of its next value.
        present: The layouts of the state that the plan reads.

    Returns:
        By the names of the tensors, the layout of the fewest tuples among the present one, that in which the next value
        is computed, and those in which steps read the value.
    """
    computed = {step.einsum.output.tensor: step.result for step in plan.decomposed.steps}
    shapes = {name: plan.decomposed.graph.tensors[following].shape for name, following in state.items()}
    chosen_layouts: dict[str, Decomposition] = {}
    for name, following in state.items():
        layouts = [present[name], computed.get(following, present[name]), *_read_layouts(plan, name)]
        chosen_layouts[name] = min(layouts, key=lambda layout: layout.max_tuples(shapes[name]))
    if chosen_layouts != present:
        for name, shape in shapes.items():
            if 0 < math.prod(shape) <= _FEW_ELEMENTS and len(shape) <= MOST_ARRAY_AXES:
                chosen_layouts[name] = Decomposition((DEMOTED,) * len(shape))
    state_layouts = {}
    for name, following in state.items():
        shape, chosen = shapes[name], chosen_layouts[name]
        expected = plan.statistics[following].tuples(chosen.tiles)
        grows = name in plan.inputs and DRIFT * plan.inputs[name].statistics.tuples(chosen.tiles) < expected
        state_layouts[name] = StateLayout(chosen, grows and 2 * expected > chosen.max_tuples(shape))
    return state_layouts


def _read_layouts(plan: ProgramPlan, name: str) -> list[Decomposition]:
    """The layouts in which a step reads a tensor."""
    return [
        step.operand(index)
        for step in plan.decomposed.steps
        for index, operand in enumerate(step.einsum.operands)
        if operand.tensor == name and not step.computed_in and step.fused is None
    ]

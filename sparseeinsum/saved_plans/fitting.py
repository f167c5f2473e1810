"""Saved plans: a saved plan and other data in; its graph and choices for them out, or what does not fit."""

from collections.abc import Mapping
from types import MappingProxyType

from sparseeinsum.decompose.alternatives import Alternatives
from sparseeinsum.decompose.choices import allowed_choices
from sparseeinsum.decompose.plan import DecomposedGraph, price_choices
from sparseeinsum.errors import PlanError
from sparseeinsum.language.eingraph import EinGraph, EinSum, by_hand, write_einsum
from sparseeinsum.language.inference import result_tensor
from sparseeinsum.language.tensors import DEMOTED
from sparseeinsum.saved_plans.files import SavedPlan
from sparseeinsum.semantics.exactness import ExactGraph, Values, evaluate_exactly
from sparseeinsum.semantics.ranges import NOTHING

_MOST_OPERANDS = 2
_PLAN_AGAIN = "plan the program again"


def rebuilt(saved: SavedPlan, bound: EinGraph) -> EinGraph:
    """The EinSums of a saved plan over the tensors of a program that is bound to a database.

    Raises:
        PlanError: A tensor is another one than the plan was made for, or the EinSums do not compute the program.
    """
    computed = {einsum.output.tensor for einsum in bound.einsums}
    tensors = {name: tensor for name, tensor in bound.tensors.items() if name not in computed}
    for name in saved.program.inputs:
        if name not in saved.inputs:
            raise PlanError(f"the plan says nothing of tensor {name}, which its program reads; save it again")
        difference = saved.inputs[name].difference(tensors[name])
        if difference is not None:
            raise PlanError(f"{difference}; {_PLAN_AGAIN}")
    for einsum in saved.einsums:
        _check_operands(einsum, tensors)
        tensors[einsum.output.tensor] = result_tensor(einsum, tensors)
    for name in bound.outputs:
        wanted, found = bound.tensors[name], tensors.get(name)
        if found is None or (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
            raise PlanError(f"the EinSums of the plan do not compute {name} as its program does; save it again")
    return EinGraph(MappingProxyType(tensors), saved.einsums, bound.outputs)


def _check_operands(einsum: EinSum, tensors: Mapping[str, object]) -> None:
    unknown = next((operand.tensor for operand in einsum.operands if operand.tensor not in tensors), None)
    if unknown is not None:
        raise PlanError(f"{write_einsum(einsum, by_hand(einsum))} reads {unknown}, which nothing in the plan computes")
    if len(einsum.operands) > _MOST_OPERANDS:
        raise PlanError(f"{write_einsum(einsum, by_hand(einsum))} has more than {_MOST_OPERANDS} operands")


def check_exact(saved: SavedPlan, bound: EinGraph, exact: ExactGraph, values: Mapping[str, Values]) -> None:
    """Refuse data for which rewriting may have changed a result.

    What is absent is dealt with anew for all data. But to contract in another order, or to take a sum apart, is the
    same for finite values only; so values must lie where they lay, or be as surely finite as they were.

    Raises:
        PlanError: It names the tensor, and why.
    """
    written = {write_einsum(einsum, by_hand(einsum)) for einsum in bound.einsums}
    changed = [einsum for einsum in saved.einsums if write_einsum(einsum, by_hand(einsum)) not in written]
    beyond = [name for name in saved.inputs if not _is_within(values[name], saved.inputs[name].values)]
    if not (changed and beyond):
        return
    names = ", ".join(dict.fromkeys(einsum.output.tensor for einsum in changed))
    for name in beyond:
        if saved.nonfinite == "allow":
            raise PlanError(
                f"tensor {name} has values beyond those that the plan was made for, and where NaN and infinity are "
                f"allowed the way in which it computes {names} is exact for those alone; {_PLAN_AGAIN}"
            )
        if _is_finite(name, saved.inputs[name].values, bound) and not _is_finite(name, values[name], bound):
            raise PlanError(
                f"tensor {name} has NaN or infinity now, and the way in which the plan computes {names} is exact for "
                f"finite values alone; {_PLAN_AGAIN}"
            )
    _check_overflow(saved, changed, exact, values)


def _check_overflow(saved: SavedPlan, changed: list[EinSum], exact: ExactGraph, values: Mapping[str, Values]) -> None:
    """Refuse values with which an invented result may turn infinite, which it could not with those of before."""
    before = {**values, **{name: known.values for name, known in saved.inputs.items()}}
    then = evaluate_exactly(exact.graph, before).evaluations
    for einsum in changed:
        name = einsum.output.tensor
        if exact.evaluations[name].detects_nonfinite and not then[name].detects_nonfinite:
            raise PlanError(
                f"with the values that the inputs have now {name} may turn infinite, which it could not with those "
                f"that the plan was made for; {_PLAN_AGAIN}"
            )


def _is_within(now: Values, then: Values) -> bool:
    if now.has_fill and not then.has_fill:
        return False
    if now.entries == NOTHING:
        return True
    may_be_nan = then.entries.may_be_nan or not now.entries.may_be_nan
    return may_be_nan and then.entries.low <= now.entries.low and now.entries.high <= then.entries.high


def _is_finite(name: str, values: Values, bound: EinGraph) -> bool:
    """Whether no value is NaN or infinite, the fill included where some index holds it."""
    fill = bound.tensors[name].fill
    return values.entries.is_finite and not (values.has_fill and abs(fill) == float("inf"))


def decomposed_as(saved: SavedPlan, alternatives: Alternatives) -> DecomposedGraph:
    """The choices of a saved plan, priced.

    Raises:
        PlanError: They need more memory than there is.
    """
    pinned = {name: _promoted(tiles) for name, tiles in saved.tiles.items()}
    try:
        allowed = allowed_choices(alternatives.model, alternatives.memory_limit, pinned)
    except PlanError as error:
        raise PlanError(f"{error}; or {_PLAN_AGAIN}") from None
    choices = {name: choice for name, (choice,) in allowed.items()}
    return price_choices(alternatives.model, choices, alternatives.stored, alternatives.layouts)


def _promoted(tiles: Mapping[str, int]) -> dict[str, int]:
    """Tiles of the labels that the plan promotes in an EinSum."""
    return {label: tile for label, tile in tiles.items() if tile != DEMOTED}

"""Plans: the graph and the choices of a saved plan for the data of a database."""

from collections.abc import Mapping
from types import MappingProxyType

from sparseeinsum.decompose.alternatives import Alternatives
from sparseeinsum.decompose.decomposed_graph import DecomposedGraph
from sparseeinsum.decompose.optimizers import check_possible
from sparseeinsum.decompose.search_space import SearchSpace
from sparseeinsum.errors import PlanError
from sparseeinsum.language.eingraph import EinGraph, EinSum, write_einsum
from sparseeinsum.language.inference import result_tensor
from sparseeinsum.language.tensors import DEMOTED
from sparseeinsum.plans.saved.plan_files import SavedPlan
from sparseeinsum.rewrite.assumption_checks import broken_assumption, rewritten_results
from sparseeinsum.rewrite.binarise import MOST_OPERANDS
from sparseeinsum.rewrite.common_subexpressions import merge_common_subexpressions
from sparseeinsum.semantics.exactness import ValueFacts

_PLAN_AGAIN = "plan the program again"


def rebuilt(saved: SavedPlan, bound: EinGraph) -> EinGraph:
    """The EinSums of a saved plan over the tensors of `bound`, its program with the tensors of a database.

    Raises:
        PlanError: A tensor differs from the one that the plan was made for, or the EinSums do not compute the program.
    """
    tensors = bound.inputs
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
        expected, actual = bound.tensors[name], tensors.get(name)
        if actual is None or (actual.shape, actual.dtype) != (expected.shape, expected.dtype):
            raise PlanError(f"the EinSums of the plan do not compute {name} as its program does; save it again")
    return EinGraph(MappingProxyType(tensors), saved.einsums, bound.outputs)


def _check_operands(einsum: EinSum, tensors: Mapping[str, object]) -> None:
    unknown = next((operand.tensor for operand in einsum.operands if operand.tensor not in tensors), None)
    if unknown is not None:
        raise PlanError(f"{write_einsum(einsum)} reads {unknown}, which nothing in the plan computes")
    if len(einsum.operands) > MOST_OPERANDS:
        raise PlanError(f"{write_einsum(einsum)} has more than {MOST_OPERANDS} operands")


def check_exact(saved: SavedPlan, bound: EinGraph, graph: EinGraph, values: Mapping[str, ValueFacts]) -> None:
    """Refuse values for which the rewriting of a saved plan may change a result.

    Args:
        saved: The plan.
        bound: Its program with the tensors of a database.
        graph: The rewritten program.
        values: The ranges of values of the inputs.

    Raises:
        PlanError: The rewriting may change a result; the message names the tensor and the reason.
    """
    then = {name: saved_input.values for name, saved_input in saved.inputs.items()}
    rewritten = rewritten_results(bound, merge_common_subexpressions(bound, {}), graph)
    reason = broken_assumption(graph, rewritten, then, values, saved.options.allows_nonfinite)
    if reason is not None:
        raise PlanError(f"{reason}; {_PLAN_AGAIN}")


def decomposed_as(saved: SavedPlan, alternatives: Alternatives) -> DecomposedGraph:
    """The choices of a saved plan with their costs on the data of this database.

    Raises:
        PlanError: The choices need more memory than the limit.
    """
    pinned = {name: _promoted(tiles) for name, tiles in saved.tiles.items()}
    try:
        allowed = SearchSpace(alternatives.model, pinned).allowed()
        choices = {name: choice for name, (choice,) in allowed.items()}
        decomposed = alternatives.priced(choices)
        check_possible(decomposed, alternatives.model)
    except PlanError as error:
        raise PlanError(f"{error}; or {_PLAN_AGAIN}") from None
    return decomposed


def _promoted(tiles: Mapping[str, int]) -> dict[str, int]:
    """The tiles of the promoted labels."""
    return {label: tile for label, tile in tiles.items() if tile != DEMOTED}

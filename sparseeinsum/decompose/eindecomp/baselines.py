"""EinDecomp: partitions that people make by a rule, which the search is measured against.

SQRT cuts all labels of an EinSum alike. A *scheme* cuts along some axes: every EinSum with a label that walks one of
them, or an axis that hangs together with it, is cut there into a piece for every worker. Of EinSums that have no such
label, and where its bound is too small for all workers, a scheme says nothing: they are cut as moves least beside the
others, so that no scheme is worse than it must be.

Source: EinDecomp, section 9.2: SQRT, data parallel, Megatron, sequence and attention.
"""

from collections.abc import Mapping, Sequence

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.connected_axes import ConnectedAxes
from sparseeinsum.decompose.eindecomp.vectors import even_choice, viable_choices
from sparseeinsum.errors import PlanError
from sparseeinsum.language.eingraph import EinGraph, EinSum

Scheme = Sequence[tuple[str, int]]  # tensors and positions of axes; of two that one EinSum walks the first is cut


def all_choices(graph: EinGraph, workers: int) -> dict[str, tuple[Choice, ...]]:
    """All vectors of every EinSum."""
    return {einsum.output.tensor: viable_choices(_bounds(graph, einsum), workers) for einsum in graph.einsums}


def even_choices(graph: EinGraph, workers: int) -> dict[str, tuple[Choice, ...]]:
    """SQRT: of every EinSum the one vector that cuts all labels alike; a matrix product becomes the 3D algorithm."""
    return {einsum.output.tensor: (even_choice(_bounds(graph, einsum), workers),) for einsum in graph.einsums}


def scheme_choices(graph: EinGraph, workers: int, scheme: Scheme) -> dict[str, tuple[Choice, ...]]:
    """Of every EinSum the vectors that keep to a scheme: of several labels along an axis the result's first is cut.

    Raises:
        PlanError: There is no such axis.
    """
    connected = ConnectedAxes(graph)
    cut = [connected.of(_checked(graph, axis)) for axis in scheme]
    return {einsum.output.tensor: _along(graph, einsum, workers, connected, cut) for einsum in graph.einsums}


def _along(
    graph: EinGraph, einsum: EinSum, workers: int, connected: ConnectedAxes, cut: Sequence[tuple[str, int]]
) -> tuple[Choice, ...]:
    walked = connected.representatives(einsum)
    for axis in cut:
        for position, label in enumerate(einsum.labels):
            if walked[label] == axis:
                return viable_choices(_bounds(graph, einsum), workers, {position: workers})
    return viable_choices(_bounds(graph, einsum), workers)


def named_scheme(graph: EinGraph, axes: Mapping[str, int | str]) -> Scheme:
    """The scheme that cuts along some axes, by tensor; each by its position or name.

    Raises:
        PlanError: There is no such axis.
    """
    return [_checked(graph, (tensor, axis)) for tensor, axis in axes.items()]


def _checked(graph: EinGraph, axis: tuple[str, int | str]) -> tuple[str, int]:
    tensor, place = axis
    if tensor not in graph.tensors:
        raise PlanError(f"a scheme cuts {tensor}, which the program does not have; it has {', '.join(graph.tensors)}")
    names = [each.name for each in graph.tensors[tensor].axes]
    if isinstance(place, str) and place in names:
        place = names.index(place)
    if not isinstance(place, int) or not 0 <= place < len(names):
        raise PlanError(
            f"a scheme cuts axis {place!r} of {tensor}; it has {', '.join(names) or 'none'}, by name, or by position "
            "from 0"
        )
    return tensor, place


def _bounds(graph: EinGraph, einsum: EinSum) -> list[int]:
    """Bounds of labels; 1 for those that must lie inside arrays, which are not cut."""
    return [1 if label in einsum.demoted_labels else graph.bound_of(einsum, label) for label in einsum.labels]

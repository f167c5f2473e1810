"""EinDecomp: partitions by common rules, as baselines for the search.

SQRT cuts all labels of an EinSum alike. A *scheme* cuts along some axes: every EinSum with a label of one of these
axes, or of an axis connected with them, is cut there into one piece for every worker. If an EinSum has no such label,
or if its bound is too small for all workers, the scheme leaves the cut open; then the search chooses the one of least
transfer, so that no scheme is worse than it must be.

Source: EinDecomp, section 9.2: SQRT, data parallel, Megatron, sequence and attention.
"""

from collections.abc import Mapping, Sequence

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.connected_axes import ConnectedAxes
from sparseeinsum.decompose.eindecomp.partition_vectors import even_choice, viable_choices
from sparseeinsum.errors import PlanError
from sparseeinsum.language.eingraph import EinGraph, EinSum

Scheme = Sequence[tuple[str, int]]  # tensors and positions of axes; if an EinSum has labels for two, the first is cut


def even_choices(graph: EinGraph, workers: int) -> dict[str, tuple[Choice, ...]]:
    """SQRT: for every EinSum, the vector that cuts all labels alike; a matrix product becomes the 3D algorithm."""
    return {einsum.output.tensor: (even_choice(_bounds(graph, einsum), workers),) for einsum in graph.einsums}


def scheme_choices(graph: EinGraph, workers: int, scheme: Scheme) -> dict[str, tuple[Choice, ...]]:
    """For every EinSum, the vectors that follow a scheme. If several labels belong to an axis, the result's is cut.

    Raises:
        PlanError: There is no such axis.
    """
    connected = ConnectedAxes(graph)
    cut = [connected.representative((axis[0], named_axis(graph, *axis))) for axis in scheme]
    return {einsum.output.tensor: _choices_along(graph, einsum, workers, connected, cut) for einsum in graph.einsums}


def _choices_along(
    graph: EinGraph, einsum: EinSum, workers: int, connected: ConnectedAxes, cut: Sequence[tuple[str, int]]
) -> tuple[Choice, ...]:
    axes = connected.representatives(einsum)
    for axis in cut:
        for position, label in enumerate(einsum.labels):
            if axes[label] == axis:
                return viable_choices(_bounds(graph, einsum), workers, {position: workers})
    return viable_choices(_bounds(graph, einsum), workers)


def named_scheme(graph: EinGraph, axes: Mapping[str, int | str]) -> Scheme:
    """The scheme that cuts one axis, given by position or name, of each of some tensors.

    Raises:
        PlanError: There is no such axis.
    """
    if not isinstance(axes, Mapping):
        raise PlanError(f"the axes to cut are {axes!r}; give one of each tensor by name, as in {{'X': 0}}")
    return [(tensor, named_axis(graph, tensor, axis)) for tensor, axis in axes.items()]


def named_axis(graph: EinGraph, tensor: str, axis: int | str) -> int:
    """The position of an axis of a tensor, which is given by position or name.

    Raises:
        PlanError: There is no such axis.
    """
    if tensor not in graph.tensors:
        raise PlanError(f"{tensor} is cut, which the program does not have; it has {', '.join(graph.tensors)}")
    names = [named.name for named in graph.tensors[tensor].axes]
    if isinstance(axis, str) and axis in names:
        axis = names.index(axis)
    if not isinstance(axis, int) or not 0 <= axis < len(names):
        raise PlanError(
            f"{tensor} is cut along axis {axis!r}; it has {', '.join(names) or 'none'}, by name, or by position from 0"
        )
    return axis


def _bounds(graph: EinGraph, einsum: EinSum) -> list[int]:
    """The bounds of the labels; 1 for labels that must be demoted, because they are not cut."""
    return [1 if label in einsum.demoted_labels else graph.bound_of(einsum, label) for label in einsum.labels]

"""Decompose: connected axes of a graph: axes that share a label in some EinSum, directly or through others."""

from sparseeinsum.language.eingraph import EinGraph, EinSum

TensorAxis = tuple[str, int]  # a tensor and the position of an axis


class ConnectedAxes:
    """Groups of connected axes, in a union-find structure; one axis represents each group."""

    def __init__(self, graph: EinGraph) -> None:
        self._parent: dict[TensorAxis, TensorAxis] = {}
        for einsum in graph.einsums:
            first: dict[str, TensorAxis] = {}
            for reference in (*einsum.operands, einsum.output):
                for position, label in enumerate(reference.labels):
                    axis = (reference.tensor, position)
                    self._unite(first.setdefault(label, axis), axis)

    def representative(self, axis: TensorAxis) -> TensorAxis:
        """The axis that represents the group of `axis`."""
        parent = self._parent.setdefault(axis, axis)
        while parent != self._parent[parent]:
            parent = self._parent[parent]
        self._parent[axis] = parent
        return parent

    def representatives(self, einsum: EinSum) -> dict[str, TensorAxis]:
        """For every label of an EinSum, the representative of its axes."""
        return {
            label: self.representative((reference.tensor, position))
            for reference in (*einsum.operands, einsum.output)
            for position, label in enumerate(reference.labels)
        }

    def _unite(self, first: TensorAxis, second: TensorAxis) -> None:
        self._parent[self.representative(second)] = self.representative(first)

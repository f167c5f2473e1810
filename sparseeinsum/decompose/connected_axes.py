"""Decompose: which axes of the tensors of a graph hang together, because one label walks them."""

from sparseeinsum.language.eingraph import EinGraph, EinSum

Axis = tuple[str, int]  # a tensor and the position of an axis


class ConnectedAxes:
    """Groups of axes that hang together; each has one axis that stands for it."""

    def __init__(self, graph: EinGraph) -> None:
        self._parent: dict[Axis, Axis] = {}
        for einsum in graph.einsums:
            first: dict[str, Axis] = {}
            for reference in (*einsum.operands, einsum.output):
                for position, label in enumerate(reference.labels):
                    axis = (reference.tensor, position)
                    self._join(first.setdefault(label, axis), axis)

    def of(self, axis: Axis) -> Axis:
        """The axis that stands for all that hang together with one."""
        parent = self._parent.setdefault(axis, axis)
        while parent != self._parent[parent]:
            parent = self._parent[parent]
        self._parent[axis] = parent
        return parent

    def representatives(self, einsum: EinSum) -> dict[str, Axis]:
        """For every label of an EinSum the axis that stands for those that it walks."""
        return {
            label: self.of((reference.tensor, position))
            for reference in (*einsum.operands, einsum.output)
            for position, label in enumerate(reference.labels)
        }

    def _join(self, first: Axis, second: Axis) -> None:
        self._parent[self.of(second)] = self.of(first)

"""Saturation: a few ways to compute every class of equal terms in, the cheapest together out: an integer program."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.extras import imported
from sparseeinsum.rewrite.saturation.choices import Choice, choice_of, node_cost
from sparseeinsum.rewrite.saturation.egraph import EXTRA, PURPOSE, Node
from sparseeinsum.rewrite.saturation.sizes import Sizes

_MOST_SECONDS = 0.3
_GAP = 0.01


@dataclass(frozen=True, slots=True)
class ExtractionProgram:
    """Which nodes to take, of a few for every class, so that all together cost the least (SPORES, figure 12).

    Its variables: whether each node is taken, whether each class is, and a level of each class above those that it is
    made of, without which classes might be made of one another. Levels matter only where that might be: within
    components of classes that each lead to all others.
    """

    ways: Mapping[str, Sequence[Node]]
    sizes: Sizes
    roots: Sequence[str]

    def solve(self, known: float) -> Choice | None:
        """The best choice; None where none is found in time that costs less than one that is known, but for a gap."""
        nodes = [(name, node) for name, found in self.ways.items() for node in found]
        wholes = len(nodes) + len(self.ways)
        place = {name: len(nodes) + number for number, name in enumerate(self.ways)}
        components = self._components(nodes)
        heights = np.bincount(components)[components].astype(float)  # of the component of every class
        least, most = np.zeros(wholes + len(self.ways)), np.ones(wholes + len(self.ways))
        most[wholes:] = heights - 1
        least[[place[root] for root in self.roots]] = 1
        costs = np.zeros(len(most))
        costs[: len(nodes)] = [node_cost(node, name, self.sizes) for name, node in nodes]
        scale = 1 / known if known else 1.0  # a solver takes what is far below 1 or above for rounding
        rows, limits = self._rows(nodes, components, heights)
        matrix = _matrix([*rows, {number: -cost * scale for number, cost in enumerate(costs) if cost}], len(most))
        optimize = imported("scipy.optimize", EXTRA, PURPOSE)
        found = optimize.milp(
            costs * scale,
            integrality=np.repeat((1, 0), (wholes, len(self.ways))),
            bounds=optimize.Bounds(least, most),
            constraints=optimize.LinearConstraint(matrix, np.array([*limits, _GAP - 1]), np.inf),
            options={"time_limit": _MOST_SECONDS, "mip_rel_gap": _GAP},
        )
        if found.x is None:
            return None
        taken = {name: node for number, (name, node) in enumerate(nodes) if found.x[number] > 0.5}
        return choice_of(taken.__getitem__, self.roots, self.sizes)

    def _components(self, nodes: Sequence[tuple[str, Node]]) -> NDArray[np.int32]:
        """For every class the number of its strongly connected component, by which classes nodes are of."""
        number = {name: at for at, name in enumerate(self.ways)}
        edges = [(number[name], number[child]) for name, node in nodes for child in node.children]
        sources, targets = zip(*edges, strict=True) if edges else ((), ())
        shape = len(number), len(number)
        graph = _sparse().coo_array((np.ones(len(edges)), (sources, targets)), shape=shape)
        graphs = imported("scipy.sparse.csgraph", EXTRA, PURPOSE)
        _, components = graphs.connected_components(graph, connection="strong")
        found: NDArray[np.int32] = components
        return found

    def _rows(
        self,
        nodes: Sequence[tuple[str, Node]],
        components: NDArray[np.int32],
        heights: NDArray[np.float64],
    ) -> tuple[list[dict[int, float]], list[float]]:
        """A class that is taken needs one node; a node that is taken needs its children, on lower levels.

        Of the nodes of a class that read the same child one is taken at most, so that all of them are told at once.
        """
        number = {name: at for at, name in enumerate(self.ways)}
        own_nodes = [{len(nodes) + at: -1.0} for at in number.values()]
        readers: dict[tuple[int, int], list[int]] = {}
        for at, (name, node) in enumerate(nodes):
            own_nodes[number[name]][at] = 1.0
            for child in dict.fromkeys(node.children):
                readers.setdefault((number[name], number[child]), []).append(at)
        rows, limits = own_nodes, [0.0] * len(own_nodes)
        for (own, below), reading in readers.items():
            rows.append({len(nodes) + below: 1.0, **dict.fromkeys(reading, -1.0)})
            limits.append(0.0)
            if components[below] == components[own]:
                rows.append(_lower(own, below, reading, heights[own], len(nodes) + len(number)))
                limits.append(1.0 - heights[own])
        return rows, limits


def _lower(own: int, child: int, reading: Sequence[int], height: float, levels: int) -> dict[int, float]:
    """The level of a class less that of a child is 1 or more where one of the nodes that read it is taken."""
    row = {levels + child: -1.0, **dict.fromkeys(reading, -height)}
    row[levels + own] = row.get(levels + own, 0.0) + 1.0
    return row


def _sparse() -> Any:  # noqa: ANN401  # a module
    return imported("scipy.sparse", EXTRA, PURPOSE)


def _matrix(rows: Sequence[Mapping[int, float]], width: int) -> Any:  # noqa: ANN401  # a csr_array of scipy
    values = [value for row in rows for value in row.values()]
    columns = [column for row in rows for column in row]
    starts = np.cumsum([0, *map(len, rows)])
    return _sparse().csr_array((values, columns, starts), shape=(len(rows), width))

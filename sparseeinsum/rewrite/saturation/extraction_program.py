"""Saturation: the integer program that extracts the cheapest terms if a shared class is computed once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.environment.extras import imported
from sparseeinsum.rewrite.saturation.eclass_sizes import EClassSizes
from sparseeinsum.rewrite.saturation.egraph import EXTRA, PURPOSE, ENode
from sparseeinsum.rewrite.saturation.extraction import Extraction, extraction_of, node_cost

_MOST_SECONDS = 0.3
_GAP = 0.01


@dataclass(frozen=True, slots=True)
class ExtractionProgram:
    """Chooses among a few e-nodes of every class so that all chosen nodes cost the least (SPORES, figure 12).

    Its variables are: for each e-node and for each class, whether it is chosen; and for each class a level above those
    of the classes that it is computed from. Without levels, classes could be computed from each other in a cycle. They
    are needed only within strongly connected components of classes.
    """

    candidates: Mapping[str, Sequence[ENode]]
    sizes: EClassSizes
    roots: Sequence[str]

    def solve(self, known_cost: float) -> Extraction | None:
        """The best extraction; None where none is found in time that is cheaper than `known_cost` by the gap."""
        nodes = [(name, node) for name, class_nodes in self.candidates.items() for node in class_nodes]
        binary_count = len(nodes) + len(self.candidates)
        class_column = {name: len(nodes) + number for number, name in enumerate(self.candidates)}
        components = self._components(nodes)
        component_sizes = np.bincount(components)[components].astype(float)  # of the component of every class
        variable_count = binary_count + len(self.candidates)
        lower_bounds, upper_bounds = np.zeros(variable_count), np.ones(variable_count)
        upper_bounds[binary_count:] = component_sizes - 1
        lower_bounds[[class_column[root] for root in self.roots]] = 1
        costs = np.zeros(len(upper_bounds))
        costs[: len(nodes)] = [node_cost(node, name, self.sizes) for name, node in nodes]
        scale = 1 / known_cost if known_cost else 1.0  # solvers treat numbers far from 1 as rounding errors
        rows, limits = self._rows(nodes, components, component_sizes)
        matrix = _matrix(
            [*rows, {number: -cost * scale for number, cost in enumerate(costs) if cost}], len(upper_bounds)
        )
        optimize = imported("scipy.optimize", EXTRA, PURPOSE)
        solution = optimize.milp(
            costs * scale,
            integrality=np.repeat((1, 0), (binary_count, len(self.candidates))),
            bounds=optimize.Bounds(lower_bounds, upper_bounds),
            constraints=optimize.LinearConstraint(matrix, np.array([*limits, _GAP - 1]), np.inf),
            options={"time_limit": _MOST_SECONDS, "mip_rel_gap": _GAP},
        )
        if solution.x is None:
            return None
        chosen = {name: node for number, (name, node) in enumerate(nodes) if solution.x[number] > 0.5}
        return extraction_of(chosen.__getitem__, self.roots, self.sizes)

    def _components(self, nodes: Sequence[tuple[str, ENode]]) -> NDArray[np.int32]:
        """The number of the strongly connected component of every class; an e-node links its class to its children."""
        number = {name: position for position, name in enumerate(self.candidates)}
        edges = [(number[name], number[child]) for name, node in nodes for child in node.children]
        sources, targets = zip(*edges, strict=True) if edges else ((), ())
        shape = len(number), len(number)
        graph = _sparse().coo_array((np.ones(len(edges)), (sources, targets)), shape=shape)
        graphs = imported("scipy.sparse.csgraph", EXTRA, PURPOSE)
        _, components = graphs.connected_components(graph, connection="strong")
        result: NDArray[np.int32] = components
        return result

    def _rows(
        self,
        nodes: Sequence[tuple[str, ENode]],
        components: NDArray[np.int32],
        component_sizes: NDArray[np.float64],
    ) -> tuple[list[dict[int, float]], list[float]]:
        """The constraints, as rows of coefficients by column, and their lower limits.

        A chosen class needs a chosen e-node; a chosen e-node needs its children to be chosen, on lower levels. At most
        one e-node of a class that reads the same child is chosen, so that one row covers all of them.

        Args:
            nodes: All e-nodes with their classes.
            components: The number of the strongly connected component of every class.
            component_sizes: The number of classes in that component.
        """
        number = {name: position for position, name in enumerate(self.candidates)}
        own_nodes = [{len(nodes) + position: -1.0} for position in number.values()]
        readers: dict[tuple[int, int], list[int]] = {}
        for position, (name, node) in enumerate(nodes):
            own_nodes[number[name]][position] = 1.0
            for child in dict.fromkeys(node.children):
                readers.setdefault((number[name], number[child]), []).append(position)
        rows, limits = own_nodes, [0.0] * len(own_nodes)
        for (own, below), nodes_reading in readers.items():
            rows.append({len(nodes) + below: 1.0, **dict.fromkeys(nodes_reading, -1.0)})
            limits.append(0.0)
            if components[below] == components[own]:
                rows.append(_level_row(own, below, nodes_reading, component_sizes[own], len(nodes) + len(number)))
                limits.append(1.0 - component_sizes[own])
        return rows, limits


def _level_row(
    parent: int, child: int, nodes_reading: Sequence[int], height: float, first_level_column: int
) -> dict[int, float]:
    """The level of a class exceeds that of a child by 1 or more where one of the nodes that read it is chosen."""
    row = {first_level_column + child: -1.0, **dict.fromkeys(nodes_reading, -height)}
    row[first_level_column + parent] = row.get(first_level_column + parent, 0.0) + 1.0
    return row


def _sparse() -> Any:  # noqa: ANN401  # a module
    return imported("scipy.sparse", EXTRA, PURPOSE)


def _matrix(rows: Sequence[Mapping[int, float]], width: int) -> Any:  # noqa: ANN401  # a csr_array of scipy
    values = [value for row in rows for value in row.values()]
    columns = [column for row in rows for column in row]
    starts = np.cumsum([0, *map(len, rows)])
    return _sparse().csr_array((values, columns, starts), shape=(len(rows), width))

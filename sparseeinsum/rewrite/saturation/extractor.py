"""Saturation: extracts cheap terms from e-classes, greedily or by integer programming."""

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparseeinsum.rewrite.saturation.eclass_sizes import EClassSizes
from sparseeinsum.rewrite.saturation.egraph import EClasses, ENode
from sparseeinsum.rewrite.saturation.extraction import LEAST_COST, Extraction, extraction_of, node_cost
from sparseeinsum.rewrite.saturation.extraction_program import ExtractionProgram

# Integer programming considers so many e-nodes of a class, and none that costs more than so many times the cheapest.
_MOST_NODES = 3
_MOST_COST_RATIO = 2.0


@dataclass(frozen=True, slots=True)
class Extractor:
    """Extracts terms from e-classes.

    Attributes:
        classes: The e-classes.
        sizes: Sizes of all classes.
        costs: Costs of all classes as trees, in which a class counts as often as it is used.
    """

    classes: EClasses
    sizes: EClassSizes
    costs: Mapping[str, float]

    @classmethod
    def with_tree_costs(cls, classes: EClasses, sizes: EClassSizes) -> "Extractor":
        """An extractor with the costs of all classes."""
        return cls(classes, sizes, _tree_costs(classes, sizes))

    def greedy(self, roots: Sequence[str]) -> Extraction:
        """The extraction that takes the cheapest e-node of every class, with costs as trees."""
        return extraction_of(lambda name: self._ranked(name)[0], roots, self.sizes)

    def with_sharing(self, roots: Sequence[str]) -> Extraction:
        """The cheapest extraction where a class that is used several times is computed once: an integer program.

        Only the few e-nodes of every class that are cheapest as trees are considered. The greedy extraction consists of
        such nodes, and is returned where the program finds nothing better by more than its gap, or runs out of time.
        """
        greedy = self.greedy(roots)
        candidates: dict[str, Sequence[ENode]] = {}
        waiting = list(roots)
        while waiting:
            name = waiting.pop()
            if name not in candidates:
                candidates[name] = self._ranked(name)[:_MOST_NODES]
                waiting.extend(child for node in candidates[name] for child in node.children)
        if all(len(nodes) == 1 for nodes in candidates.values()):
            return greedy
        solved = ExtractionProgram(candidates, self.sizes, roots).solve(greedy.cost)
        return solved if solved is not None and solved.cost < greedy.cost else greedy

    def _ranked(self, name: str) -> list[ENode]:
        """The e-nodes of a class that cost no more than a multiple of the cheapest, the cheapest first."""
        priced = sorted(
            (
                (_tree_cost(node, name, self.sizes, self.costs), position)
                for position, node in enumerate(self.classes.nodes[name])
            )
        )
        limit = _MOST_COST_RATIO * self.costs[name] + LEAST_COST
        return [self.classes.nodes[name][position] for cost, position in priced if cost <= limit]


def _tree_costs(classes: EClasses, sizes: EClassSizes) -> dict[str, float]:
    """The costs of all classes as trees, by Knuth's generalisation of Dijkstra's algorithm.

    It takes the cheapest class first, which is right because an e-node never costs less than its children.
    """
    costs: dict[str, float] = {}
    missing_children: dict[tuple[str, int], int] = {}
    readers: dict[str, list[tuple[str, int]]] = {}
    waiting: list[tuple[float, str]] = []
    for name, nodes in classes.nodes.items():
        for position, node in enumerate(nodes):
            children = dict.fromkeys(node.children)
            missing_children[name, position] = len(children)
            for child in children:
                readers.setdefault(child, []).append((name, position))
            if not children:
                waiting.append((node_cost(node, name, sizes), name))
    heapq.heapify(waiting)
    while waiting:
        cost, name = heapq.heappop(waiting)
        if name in costs:
            continue
        costs[name] = cost
        for reader, position in readers.get(name, ()):
            missing_children[reader, position] -= 1
            if not missing_children[reader, position] and reader not in costs:
                node = classes.nodes[reader][position]
                heapq.heappush(waiting, (_tree_cost(node, reader, sizes, costs), reader))
    return costs


def _tree_cost(node: ENode, name: str, sizes: EClassSizes, costs: Mapping[str, float]) -> float:
    return node_cost(node, name, sizes) + sum([costs.get(child, math.inf) for child in node.children])

"""Saturation: classes of equal terms in, a cheap node of each out, found greedily or by integer programming."""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sparseeinsum.rewrite.saturation.choices import LEAST, Choice, choice_of, node_cost
from sparseeinsum.rewrite.saturation.egraph import Classes, Node
from sparseeinsum.rewrite.saturation.extraction_program import ExtractionProgram
from sparseeinsum.rewrite.saturation.sizes import Sizes

# For integer programming, ways to compute a class that are looked at.
_MOST_WAYS = 3
_FAR = 2.0  # times the cheapest


@dataclass(frozen=True, slots=True)
class Extractor:
    """Chooses among classes of equal terms.

    Attributes:
        classes: Of equal terms.
        sizes: Of all classes.
        costs: Of all classes, as trees.
    """

    classes: Classes
    sizes: Sizes
    costs: Mapping[str, float]

    @classmethod
    def of(cls, classes: Classes, sizes: Sizes) -> "Extractor":
        """An extractor that has priced all classes."""
        return cls(classes, sizes, _tree_costs(classes, sizes))

    def greedy(self, roots: Sequence[str]) -> Choice:
        """For every class the node that is cheapest as a tree, its children as they are cheapest."""
        return choice_of(lambda name: self._ranked(name)[0], roots, self.sizes)

    def shared(self, roots: Sequence[str]) -> Choice:
        """The cheapest where what is used several times is computed once: an integer program.

        Of every class the few nodes are looked at that are cheapest as trees; the greedy choice is among them, and is
        the answer where nothing is better by more than the gap, or time runs out.
        """
        greedy = self.greedy(roots)
        ways: dict[str, Sequence[Node]] = {}
        waiting = list(roots)
        while waiting:
            name = waiting.pop()
            if name not in ways:
                ways[name] = self._ranked(name)[:_MOST_WAYS]
                waiting.extend(child for node in ways[name] for child in node.children)
        if all(len(found) == 1 for found in ways.values()):
            return greedy
        solved = ExtractionProgram(ways, self.sizes, roots).solve(greedy.cost)
        return solved if solved is not None and solved.cost < greedy.cost else greedy

    def _ranked(self, name: str) -> list[Node]:
        """Nodes of a class, the cheapest first, that are near enough to it to be worth a look."""
        priced = sorted(
            ((_tree_cost(node, name, self.sizes, self.costs), at) for at, node in enumerate(self.classes.nodes[name]))
        )
        most = _FAR * self.costs[name] + LEAST
        return [self.classes.nodes[name][at] for cost, at in priced if cost <= most]


def _tree_costs(classes: Classes, sizes: Sizes) -> dict[str, float]:
    """What every class costs as a tree: the cheapest first, as a node never costs less than what it is of."""
    costs: dict[str, float] = {}
    lacking: dict[tuple[str, int], int] = {}
    readers: dict[str, list[tuple[str, int]]] = {}
    waiting: list[tuple[float, str]] = []
    for name, nodes in classes.nodes.items():
        for at, node in enumerate(nodes):
            lacking[name, at] = len(set(node.children))
            for child in set(node.children):
                readers.setdefault(child, []).append((name, at))
            if not node.children:
                waiting.append((node_cost(node, name, sizes), name))
    heapq.heapify(waiting)
    while waiting:
        cost, name = heapq.heappop(waiting)
        if name in costs:
            continue
        costs[name] = cost
        for reader, at in readers.get(name, ()):
            lacking[reader, at] -= 1
            if not lacking[reader, at] and reader not in costs:
                node = classes.nodes[reader][at]
                heapq.heappush(waiting, (_tree_cost(node, reader, sizes, costs), reader))
    return costs


def _tree_cost(node: Node, name: str, sizes: Sizes, costs: Mapping[str, float]) -> float:
    return node_cost(node, name, sizes) + sum(costs.get(child, np.inf) for child in node.children)

"""Saturation: classes of equal terms in, a cheap term out, found greedily or by integer programming.

Costs count entries that are looked at (SPORES, section 3.3). A node whose class has no labels is a number by which an
expression is scaled, which costs next to nothing.
"""

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # loads scipy.optimize where it is first used

from sparseeinsum.rewrite.saturation.egraph import Classes, Node
from sparseeinsum.rewrite.saturation.sizes import Sizes
from sparseeinsum.rewrite.saturation.terms import Add, Apply, Fold, Leaf, Mul, Number, Sum, Term

# A sum is taken while the product that it is of is computed; that of what is stored already must read it.
_SUMMING = 0.1
_SCALING = 0.05
_LEAST = 1.0  # of any node, so that of two equal ones the smaller one is taken

# For integer programming, ways to compute a class that are looked at.
_MOST_WAYS = 3
_FAR = 2.0  # times the cheapest
_MOST_SECONDS = 0.3
_GAP = 0.01


@dataclass(frozen=True, slots=True)
class Choice:
    """A node for every class that a term is made of, and what they cost, shared ones once."""

    nodes: Mapping[str, Node]
    root: str
    cost: float


def node_cost(node: Node, name: str, sizes: Sizes) -> float:
    """What a node costs besides its children: entries looked at."""
    given = [sizes.entries(child) for child in node.children]
    match node.operator:
        case "Leaf" | "Number":
            return 0.0
        case "Mul":
            is_scaled = any(not sizes.of[child].labels for child in node.children)
            joined = frozenset[str]().union(*(sizes.of[child].labels for child in node.children))
            pairs = min(sizes.of[child].density for child in node.children) * sizes.indices(joined)
            return _LEAST + (_SCALING * max(given) if is_scaled else pairs)
        case "Sum":
            return _LEAST + _SUMMING * given[0]
        case "Add":
            return _LEAST + sum(given)
        case _:
            return _LEAST + max(sizes.entries(name), *given)


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

    def greedy(self, root: str) -> Choice:
        """For every class the node that is cheapest as a tree, its children as they are cheapest."""
        return _choice(lambda name: self._ranked(name)[0], root, self.sizes)

    def shared(self, root: str) -> Choice:
        """The cheapest where what is used several times is computed once: an integer program, acyclic by levels.

        Of every class the few nodes are looked at that are cheapest as trees; the greedy choice is among them, and is
        the answer where time runs out.
        """
        greedy = self.greedy(root)
        ways: dict[str, Sequence[Node]] = {}
        waiting = [root]
        while waiting:
            name = waiting.pop()
            if name not in ways:
                ways[name] = self._ranked(name)[:_MOST_WAYS]
                waiting.extend(child for node in ways[name] for child in node.children)
        solved = _Program(ways, self.sizes, root).solve()
        return solved if solved is not None and solved.cost < greedy.cost else greedy

    def _ranked(self, name: str) -> list[Node]:
        """Nodes of a class, the cheapest first, that are near enough to it to be worth a look."""
        priced = sorted(
            ((_tree_cost(node, name, self.sizes, self.costs), at) for at, node in enumerate(self.classes.nodes[name]))
        )
        most = _FAR * self.costs[name] + _LEAST
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


def _choice(best: Callable[[str], Node], root: str, sizes: Sizes) -> Choice:
    """The nodes that a root is made of, where the best one of every class is known."""
    nodes: dict[str, Node] = {}
    waiting = [root]
    while waiting:
        name = waiting.pop()
        if name not in nodes:
            nodes[name] = best(name)
            waiting.extend(nodes[name].children)
    return Choice(nodes, root, sum(node_cost(node, name, sizes) for name, node in nodes.items()))


@dataclass(frozen=True, slots=True)
class _Program:
    """An integer program: which nodes to take, of a few for every class.

    Its variables: whether each node is taken, whether each class is, and a level of each class above those that it is
    made of, without which classes might be made of one another.
    """

    ways: Mapping[str, Sequence[Node]]
    sizes: Sizes
    root: str

    def solve(self) -> Choice | None:
        """The best choice; None where none is found in time."""
        nodes = [(name, node) for name, found in self.ways.items() for node in found]
        wholes = len(nodes) + len(self.ways)
        height = float(len(self.ways))
        least, most = np.zeros(wholes + len(self.ways)), np.ones(wholes + len(self.ways))
        most[wholes:] = height
        least[len(nodes) + list(self.ways).index(self.root)] = 1
        objective = np.zeros(len(most))
        objective[: len(nodes)] = [node_cost(node, name, self.sizes) for name, node in nodes]
        found = scipy.optimize.milp(
            objective,
            integrality=np.repeat((1, 0), (wholes, len(self.ways))),
            bounds=scipy.optimize.Bounds(least, most),
            constraints=self._constraints(nodes, height),
            options={"time_limit": _MOST_SECONDS, "mip_rel_gap": _GAP},
        )
        if found.x is None:
            return None
        taken = {name: node for number, (name, node) in enumerate(nodes) if found.x[number] > 0.5}
        return _choice(taken.__getitem__, self.root, self.sizes)

    def _constraints(self, nodes: Sequence[tuple[str, Node]], height: float) -> scipy.optimize.LinearConstraint:
        """A class that is taken needs a node; a node that is taken needs its children, on lower levels."""
        place = {name: len(nodes) + number for number, name in enumerate(self.ways)}
        level = {name: len(nodes) + len(self.ways) + number for number, name in enumerate(self.ways)}
        rows = [{place[name]: -1.0} for name in self.ways]
        least = [0.0] * len(rows)
        for number, (name, node) in enumerate(nodes):
            rows[place[name] - len(nodes)][number] = 1.0
            for child in set(node.children):
                rows += [{place[child]: 1.0, number: -1.0}, {level[child]: -1.0, number: -height}]
                rows[-1][level[name]] = rows[-1].get(level[name], 0.0) + 1.0
                least += [0.0, 1.0 - height]
        lengths = [len(row) for row in rows]
        values = [value for row in rows for value in row.values()]
        columns = [column for row in rows for column in row]
        shape = len(rows), len(nodes) + 2 * len(self.ways)
        matrix = scipy.sparse.csr_array((values, columns, np.cumsum([0, *lengths])), shape=shape)
        return scipy.optimize.LinearConstraint(matrix, np.array(least), np.inf)


def term_of(choice: Choice, classes: Classes) -> Term:
    """The term that a choice makes; what is shared is one object."""
    made: dict[str, Term] = {}

    def make(name: str) -> Term:
        if name not in made:
            node = choice.nodes[name]
            made[name] = _term(node, [make(child) for child in node.children], classes)
        return made[name]

    return make(choice.root)


def _term(node: Node, parts: Sequence[Term], classes: Classes) -> Term:
    match node.operator:
        case "Leaf":
            return Leaf(classes.leaves[int(node.names[0])])
        case "Number":
            return Number(float(node.names[0]))
        case "Add":
            return Add(*parts)
        case "Mul":
            return Mul(*parts)
        case "Sum":
            return Sum(node.names[0], *parts)
        case "Fold":
            return Fold(node.names[0], node.names[1], *parts)
        case _:
            return Apply(node.names[0], tuple(parts))

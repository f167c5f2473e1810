"""Saturation: classes of equal terms in, a cheap term for the first root out: greedily, or by integer programming.

Costs count entries that are looked at (SPORES, section 3.3). A node whose class has no labels is a number by which an
expression is scaled, which costs next to nothing.
"""

from collections.abc import Mapping, Sequence
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
_MOST_WAYS = 4
_MOST_SECONDS = 0.5


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


def extract_greedily(classes: Classes, sizes: Sizes, root: str) -> Choice:
    """For every class the node that is cheapest as a tree, its children as they are cheapest."""
    costs = _tree_costs(classes, sizes)
    best = {
        name: min(nodes, key=lambda node: _tree_cost(node, name, sizes, costs)) for name, nodes in classes.nodes.items()
    }
    return _choice(best, root, sizes)


def extract_shared(classes: Classes, sizes: Sizes, root: str) -> Choice:
    """The cheapest where what is used several times is computed once: an integer program, acyclic by levels.

    Of every class the few nodes are looked at that are cheapest as trees; the greedy choice is among them, and is the
    answer where time runs out.
    """
    greedy = extract_greedily(classes, sizes, root)
    costs = _tree_costs(classes, sizes)
    ways = {}
    waiting = [root]
    while waiting:
        name = waiting.pop()
        if name in ways:
            continue
        ranked = sorted(classes.nodes[name], key=lambda node: _tree_cost(node, name, sizes, costs))
        ways[name] = [node for node in ranked if all(child in costs for child in node.children)][:_MOST_WAYS]
        waiting.extend(child for node in ways[name] for child in node.children)
    solved = _solved(ways, sizes, root)
    return solved if solved is not None and solved.cost < greedy.cost else greedy


def _tree_costs(classes: Classes, sizes: Sizes) -> dict[str, float]:
    """What every class costs as a tree."""
    costs: dict[str, float] = {}
    changed = True
    while changed:
        changed = False
        for name, nodes in classes.nodes.items():
            known = [node for node in nodes if all(child in costs for child in node.children)]
            if not known:
                continue
            cost = min(_tree_cost(node, name, sizes, costs) for node in known)
            if cost < costs.get(name, np.inf):
                costs[name] = cost
                changed = True
    return costs


def _tree_cost(node: Node, name: str, sizes: Sizes, costs: Mapping[str, float]) -> float:
    return node_cost(node, name, sizes) + sum(costs.get(child, np.inf) for child in node.children)


def _choice(best: Mapping[str, Node], root: str, sizes: Sizes) -> Choice:
    nodes: dict[str, Node] = {}
    waiting = [root]
    while waiting:
        name = waiting.pop()
        if name not in nodes:
            nodes[name] = best[name]
            waiting.extend(best[name].children)
    return Choice(nodes, root, sum(node_cost(node, name, sizes) for name, node in nodes.items()))


def _solved(ways: Mapping[str, Sequence[Node]], sizes: Sizes, root: str) -> Choice | None:
    """The best choice among some ways; None where none is found in time.

    Variables: whether each node is taken, whether each class is, and a level of each class, above those it is made of.
    """
    nodes = [(name, node) for name, found in ways.items() for node in found]
    places = {name: len(nodes) + number for number, name in enumerate(ways)}
    levels = {name: len(nodes) + len(ways) + number for number, name in enumerate(ways)}
    count = len(nodes) + 2 * len(ways)
    height = float(len(ways))
    rows: list[dict[int, float]] = []
    lower: list[float] = []
    for name in ways:  # a class that is taken needs a node
        row = {number: 1.0 for number, (owner, _) in enumerate(nodes) if owner == name}
        rows.append({**row, places[name]: -1.0})
        lower.append(0.0)
    for number, (name, node) in enumerate(nodes):  # a node that is taken needs its children, on lower levels
        for child in set(node.children):
            rows.append({places[child]: 1.0, number: -1.0})
            lower.append(0.0)
            if child == name:
                rows.append({number: -1.0})
                lower.append(0.0)
            else:
                rows.append({levels[name]: 1.0, levels[child]: -1.0, number: -height})
                lower.append(1.0 - height)
    matrix = scipy.sparse.lil_array((len(rows), count))
    for position, row in enumerate(rows):
        for column, value in row.items():
            matrix[position, column] = value
    least = np.zeros(count)
    least[places[root]] = 1
    most = np.ones(count)
    most[len(nodes) + len(ways) :] = height
    is_whole = np.ones(count)
    is_whole[len(nodes) + len(ways) :] = 0
    objective = np.zeros(count)
    objective[: len(nodes)] = [node_cost(node, name, sizes) for name, node in nodes]
    found = scipy.optimize.milp(
        objective,
        integrality=is_whole,
        bounds=scipy.optimize.Bounds(least, most),
        constraints=scipy.optimize.LinearConstraint(matrix.tocsr(), np.array(lower), np.inf),
        options={"time_limit": _MOST_SECONDS},
    )
    if found.x is None:
        return None
    taken = {name: node for number, (name, node) in reversed(list(enumerate(nodes))) if found.x[number] > 0.5}
    return _choice(taken, root, sizes)


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

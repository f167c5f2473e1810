"""Saturation: classes of equal terms and a node for each in, what they cost together out.

Costs count entries that are looked at (SPORES, section 3.3). A node whose class has no labels is a number by which an
expression is scaled, which costs next to nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sparseeinsum.rewrite.saturation.egraph import Classes, Node
from sparseeinsum.rewrite.saturation.sizes import Sizes
from sparseeinsum.rewrite.saturation.terms import Add, Apply, Fold, Leaf, Mul, Number, Sum, Term

# A sum is taken while the product that it is of is computed; that of what is stored already must read it.
_SUMMING = 0.1
_SCALING = 0.05
LEAST = 1.0
"""What any node costs, so that of two equal ones the smaller one is taken."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A node for every class that some terms are made of, and what they cost, shared ones once."""

    nodes: Mapping[str, Node]
    roots: Sequence[str]
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
            return LEAST + (_SCALING * max(given) if is_scaled else pairs)
        case "Sum":
            return LEAST + _SUMMING * given[0]
        case "Add":
            return LEAST + sum(given)
        case _:
            return LEAST + max(sizes.entries(name), *given)


def choice_of(best: Callable[[str], Node], roots: Sequence[str], sizes: Sizes) -> Choice:
    """The nodes that roots are made of, where the best one of every class is known."""
    nodes: dict[str, Node] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in nodes:
            nodes[name] = best(name)
            waiting.extend(nodes[name].children)
    return Choice(nodes, roots, sum(node_cost(node, name, sizes) for name, node in nodes.items()))


def terms_of(choice: Choice, classes: Classes) -> list[Term]:
    """The terms that a choice makes of its roots; what is shared is one object."""
    made: dict[str, Term] = {}

    def make(name: str) -> Term:
        if name not in made:
            node = choice.nodes[name]
            made[name] = _term(node, [make(child) for child in node.children], classes)
        return made[name]

    return list(map(make, choice.roots))


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

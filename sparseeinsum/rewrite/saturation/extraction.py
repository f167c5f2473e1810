"""Saturation: an extraction, which has one e-node for every e-class that it needs; its cost and its terms.

Costs count the entries that are read (SPORES, section 3.3). A class without labels is a number that scales an
expression, which costs next to nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sparseeinsum.rewrite.saturation.eclass_sizes import EClassSizes
from sparseeinsum.rewrite.saturation.egraph import EClasses, ENode
from sparseeinsum.rewrite.saturation.terms import Add, AggregateTerm, Apply, Leaf, Mul, NumberTerm, Sum, Term

# Costs per entry. A sum is usually taken while its product is computed; only sums of stored tensors have to read them.
_SUM_COST = 0.1
_SCALE_COST = 0.05
LEAST_COST = 1.0
"""The cost of any e-node, so that the smaller one of two terms of the same cost is chosen."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """An e-node for every e-class that the roots need, and their total cost; a class counts once."""

    nodes: Mapping[str, ENode]
    roots: Sequence[str]
    cost: float


def node_cost(node: ENode, name: str, sizes: EClassSizes) -> float:
    """The cost of an e-node of the class `name` without its children, in entries that are read."""
    child_entries = [sizes.entries(child) for child in node.children]
    match node.operator:
        case "Leaf" | "Number":
            return 0.0
        case "Mul":
            first, second = [sizes.by_class[child] for child in node.children]
            if not (first.labels and second.labels):
                return LEAST_COST + _SCALE_COST * max(child_entries)
            return LEAST_COST + min(first.density, second.density) * sizes.indices(first.labels | second.labels)
        case "Sum":
            return LEAST_COST + _SUM_COST * child_entries[0]
        case "Add":
            return LEAST_COST + sum(child_entries)
        case _:
            return LEAST_COST + max(sizes.entries(name), *child_entries)


def extraction_of(best: Callable[[str], ENode], roots: Sequence[str], sizes: EClassSizes) -> Extraction:
    """The extraction of `roots`, where `best` gives the e-node of every class."""
    nodes: dict[str, ENode] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in nodes:
            nodes[name] = best(name)
            waiting.extend(nodes[name].children)
    return Extraction(nodes, roots, sum(node_cost(node, name, sizes) for name, node in nodes.items()))


def terms_of(choice: Extraction, classes: EClasses) -> list[Term]:
    """The terms that an extraction gives for its roots; a shared class is one object."""
    terms: dict[str, Term] = {}

    def make(name: str) -> Term:
        if name not in terms:
            node = choice.nodes[name]
            terms[name] = _term(node, [make(child) for child in node.children], classes)
        return terms[name]

    return list(map(make, choice.roots))


def _term(node: ENode, children: Sequence[Term], classes: EClasses) -> Term:
    """The term of an e-node, for the terms of its children."""
    match node.operator:
        case "Leaf":
            return Leaf(classes.leaves[int(node.names[0])])
        case "Number":
            return NumberTerm(float(node.names[0]))
        case "Add":
            return Add(*children)
        case "Mul":
            return Mul(*children)
        case "Sum":
            return Sum(node.names[0], *children)
        case "Fold":
            return AggregateTerm(node.names[0], node.names[1], *children)
        case _:
            return Apply(node.names[0], tuple(children))

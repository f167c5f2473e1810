"""Saturation: classes of equal terms in, their labels and how many entries they have out: class invariants.

Every node of a class tells something of it; what holds is the tightest (SPORES, section 3.2).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sparseeinsum.language.eingraph import Reference
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.rewrite.saturation.egraph import Classes, Node


@dataclass(frozen=True, slots=True)
class Size:
    """Labels of a class, and the share of its entries that are not 0."""

    labels: frozenset[str]
    density: float


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of all classes, and bounds of labels."""

    of: Mapping[str, Size]
    bounds: Mapping[str, int]

    def entries(self, name: str) -> float:
        """Expected entries of a class that are not 0."""
        size = self.of[name]
        return size.density * self.indices(size.labels)

    def indices(self, labels: frozenset[str]) -> float:
        """All indices of labels."""
        return math.prod(self.bounds[label] for label in labels)


def sizes_of(classes: Classes, bounds: Mapping[str, int], densities: Mapping[Reference, float]) -> Sizes:
    """Sizes of all classes.

    Args:
        classes: Of equal terms.
        bounds: Of all labels.
        densities: Of leaves.
    """
    found: dict[str, Size] = {}
    waiting = dict.fromkeys(classes.nodes)  # in turn, each once
    readers: dict[str, set[str]] = {}
    for name, nodes in classes.nodes.items():
        for node in nodes:
            for child in node.children:
                readers.setdefault(child, set()).add(name)
    while waiting:
        name = next(iter(waiting))
        del waiting[name]
        told = [_size(node, found, classes, bounds, densities) for node in classes.nodes[name]]
        known = [size for size in (*told, found.get(name)) if size is not None]
        if not known:
            continue
        labels = frozenset.intersection(*(size.labels for size in known))
        tightest = Size(labels, min(size.density for size in known))
        if found.get(name) != tightest:
            found[name] = tightest
            waiting |= dict.fromkeys(readers.get(name, ()))
    return Sizes(found, bounds)


def _size(
    node: Node,
    found: Mapping[str, Size],
    classes: Classes,
    bounds: Mapping[str, int],
    densities: Mapping[Reference, float],
) -> Size | None:
    """What one node tells; None where its children are not known yet."""
    if node.operator == "Leaf":
        reference = classes.leaves[int(node.names[0])]
        return Size(frozenset(reference.labels), densities[reference])
    if node.operator == "Number":
        return Size(frozenset(), float(float(node.names[0]) != 0))
    if any(child not in found for child in node.children):
        return None
    children = [found[child] for child in node.children]
    labels = frozenset[str]().union(*(child.labels for child in children))
    given = [child.density for child in children]
    match node.operator:
        case "Mul":
            return Size(labels, min(given))
        case "Add":
            return Size(labels, min(1.0, sum(given)))
        case "Sum":
            (density,) = given
            return Size(labels - {node.names[0]}, min(1.0, bounds[node.names[0]] * density))
        case "Fold":
            return Size(labels - {node.names[1]}, 1.0)
        case _:
            function = FUNCTIONS.get(node.names[0])  # a reciprocal is none of programs
            return Size(labels, given[0] if function is not None and function.keeps_zero else 1.0)

"""Saturation: labels and expected numbers of entries of e-classes, which egraph literature calls class invariants.

Every e-node of a class gives an upper bound; the tightest one is kept (SPORES, section 3.2).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sparseeinsum.language.eingraph import Reference
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.rewrite.saturation.egraph import EClasses, ENode


@dataclass(frozen=True, slots=True)
class EClassSize:
    """The labels of an e-class, and the share of its entries that are not 0."""

    labels: frozenset[str]
    density: float


@dataclass(frozen=True, slots=True)
class EClassSizes:
    """The sizes of all e-classes by name, and the bounds of labels."""

    by_class: Mapping[str, EClassSize]
    bounds: Mapping[str, int]

    def entries(self, name: str) -> float:
        """The expected number of entries of a class that are not 0."""
        size = self.by_class[name]
        return size.density * self.indices(size.labels)

    def indices(self, labels: frozenset[str]) -> float:
        """The number of index tuples of `labels`."""
        return math.prod(self.bounds[label] for label in labels)


def sizes_of(classes: EClasses, bounds: Mapping[str, int], densities: Mapping[Reference, float]) -> EClassSizes:
    """The sizes of all e-classes.

    Args:
        classes: The e-classes.
        bounds: Bounds of all labels.
        densities: The share of entries that are not 0, for every leaf.
    """
    sizes: dict[str, EClassSize] = {}
    waiting = dict.fromkeys(classes.nodes)  # a queue without duplicates
    readers: dict[str, set[str]] = {}
    for name, nodes in classes.nodes.items():
        for node in nodes:
            for child in node.children:
                readers.setdefault(child, set()).add(name)
    while waiting:
        name = next(iter(waiting))
        del waiting[name]
        bounds_by_node = [_size_of_node(node, sizes, classes, bounds, densities) for node in classes.nodes[name]]
        estimates = [size for size in (*bounds_by_node, sizes.get(name)) if size is not None]
        if not estimates:
            continue
        labels = frozenset.intersection(*(size.labels for size in estimates))
        tightest = EClassSize(labels, min(size.density for size in estimates))
        if sizes.get(name) != tightest:
            sizes[name] = tightest
            waiting |= dict.fromkeys(readers.get(name, ()))
    return EClassSizes(sizes, bounds)


def _size_of_node(
    node: ENode,
    sizes: Mapping[str, EClassSize],
    classes: EClasses,
    bounds: Mapping[str, int],
    densities: Mapping[Reference, float],
) -> EClassSize | None:
    """The size that one e-node gives; None where the sizes of its children are not known yet.

    Args:
        node: The e-node.
        sizes: Sizes of e-classes so far.
        classes: All e-classes.
        bounds: Bounds of all labels.
        densities: The share of entries that are not 0, for every leaf.
    """
    if node.operator == "Leaf":
        reference = classes.leaves[int(node.names[0])]
        return EClassSize(frozenset(reference.labels), densities[reference])
    if node.operator == "Number":
        return EClassSize(frozenset(), float(float(node.names[0]) != 0))
    if any(child not in sizes for child in node.children):
        return None
    children = [sizes[child] for child in node.children]
    labels = frozenset[str]().union(*(child.labels for child in children))
    densities_of_children = [child.density for child in children]
    match node.operator:
        case "Mul":
            return EClassSize(labels, min(densities_of_children))
        case "Add":
            return EClassSize(labels, min(1.0, sum(densities_of_children)))
        case "Sum":
            (density,) = densities_of_children
            return EClassSize(labels - {node.names[0]}, min(1.0, bounds[node.names[0]] * density))
        case "Fold":
            return EClassSize(labels - {node.names[1]}, 1.0)
        case _:
            function = FUNCTIONS.get(node.names[0])  # None for reciprocal, which programs do not have
            return EClassSize(labels, densities_of_children[0] if function is not None and function.keeps_zero else 1.0)

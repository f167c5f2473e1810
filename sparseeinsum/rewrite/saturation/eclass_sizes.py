"""Saturation: labels and expected numbers of entries of e-classes, which egraph literature calls class invariants.

Every e-node of a class gives an upper bound; the tightest one is kept (SPORES, section 3.2).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from sparseeinsum.language.eingraph import Reference
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.rewrite.saturation.egraph import EClasses, ENode

_NO_LABELS: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class EClassSize:
    """The labels of an e-class, and the share of its entries that are not 0."""

    labels: frozenset[str]
    density: float

    def with_bound(self, other: "EClassSize") -> "EClassSize":
        """The tightest size of a class for which two e-nodes give these sizes."""
        labels = self.labels if self.labels == other.labels else self.labels & other.labels
        density = min(self.density, other.density)
        is_same = labels == self.labels and density == self.density
        return self if is_same else EClassSize(labels, density)


@dataclass(frozen=True, slots=True)
class EClassSizes:
    """The sizes of all e-classes by name, and the bounds of labels."""

    by_class: Mapping[str, EClassSize]
    bounds: Mapping[str, int]
    _indices: dict[frozenset[str], float] = field(default_factory=dict, init=False, repr=False)  # known so far

    def entries(self, name: str) -> float:
        """The expected number of entries of a class that are not 0."""
        size = self.by_class[name]
        return size.density * self.indices(size.labels)

    def indices(self, labels: frozenset[str]) -> float:
        """The number of index tuples of `labels`."""
        indices = self._indices.get(labels)
        if indices is None:
            indices = self._indices[labels] = math.prod([self.bounds[label] for label in labels])
        return indices


def sizes_of(classes: EClasses, bounds: Mapping[str, int], densities: Mapping[Reference, float]) -> EClassSizes:
    """The sizes of all e-classes.

    Args:
        classes: The e-classes.
        bounds: Bounds of all labels.
        densities: The share of entries that are not 0, for every leaf.
    """
    sizes: dict[str, EClassSize] = {}
    waiting: dict[str, None] = {}  # a queue of classes whose readers are to be sized, without duplicates
    readers: dict[str, list[tuple[str, ENode]]] = {}

    def size(name: str, node: ENode) -> None:
        bound = _size_of_node(node, sizes, classes, bounds, densities)
        if bound is not None:
            known = sizes.get(name)
            tightest = bound if known is None else known.with_bound(bound)
            if tightest != known:
                sizes[name] = tightest
                waiting[name] = None

    for name, nodes in classes.nodes.items():
        for node in nodes:
            for child in dict.fromkeys(node.children):
                readers.setdefault(child, []).append((name, node))
            if not node.children:
                size(name, node)
    while waiting:
        name = next(iter(waiting))
        del waiting[name]
        for reader, node in readers.get(name, ()):
            size(reader, node)
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
    children = [sizes[child] for child in node.children if child in sizes]
    if len(children) < len(node.children):
        return None
    labels = _NO_LABELS.union(*[child.labels for child in children])
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

"""EinDecomp's matrix chain on a cluster (figures 7 and 8), cut by its vectors, evenly, and by rows."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import sparseeinsum as se
from bench.cluster_plans import Laid, Layout
from bench.relational_plans import SUM
from sparseeinsum.algebra.implementation.site_operators import (
    LocalAggregation,
    LocalJoin,
    LocalMap,
    PlacedInput,
    Shuffle,
    SitePlan,
)
from sparseeinsum.algebra.relational.absence import TileExtent
from sparseeinsum.algebra.relational.compositions import Duplicate, SplitAxis
from sparseeinsum.algebra.relational.folds import ConcatFold
from sparseeinsum.algebra.relational.kernels import ADD, IDENTITY, MATRIX_PRODUCT
from sparseeinsum.algebra.relational.keys import (
    CopyNumber,
    Integer,
    KeyExpression,
    KeyMap,
    KeyPart,
    Operation,
    with_copy_number,
)
from sparseeinsum.decompose.eindecomp.partitioning import Partitioning

# (A B) + (C (D E)), every product under a name.
CHAIN = """
AB[i, k]  = sum(A[i, j] * B[j, k])
DE[l, k]  = sum(D[l, m] * E[m, k])
CDE[i, k] = sum(C[i, l] * DE[l, k])
Y[i, k]   = AB[i, k] + CDE[i, k]
"""
_CALLS = 16  # of every EinSum: as for 16 workers, on however many machines

Array = NDArray[np.float64]
Pins = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Cut:
    """A chain, cut in some way.

    Attributes:
        name: Whose way.
        layout: Tensors in the pieces in which they are read.
        plan: Of the implementation algebra: every call where the parts of its key say.
        pins: Labels that are cut, by result.
        floats: Moved at most between so many workers as there are calls.
    """

    name: str
    layout: Layout
    plan: SitePlan
    pins: Pins
    floats: float


def shapes_of(size: int, is_square: bool) -> dict[str, tuple[int, int]]:
    """Square matrices, or A: s x s/8, B: s/8 x s, C: s x s/8, D: s/8 x 8s, E: 8s x s, where the paper has tenths."""
    if is_square:
        return dict.fromkeys("ABCDE", (size, size))
    part, many = size // 8, 8 * size
    return {"A": (size, part), "B": (part, size), "C": (size, part), "D": (part, many), "E": (many, size)}


def cuts(shapes: Mapping[str, tuple[int, int]]) -> tuple[list[Cut], dict[str, Array]]:
    """The chain in every way, and its result."""
    rng = np.random.default_rng(0)
    inputs = {name: rng.normal(size=shape) / np.sqrt(shape[0]) for name, shape in shapes.items()}
    found = se.partition(CHAIN, _CALLS, shapes, rewrite=False)
    ways = {"EinDecomp": found.best, "SQRT": found.even(), "rows": found.along({"A": "i"})}
    made = [_cut(name, inputs, way) for name, way in ways.items()]
    return made, {"Y": inputs["A"] @ inputs["B"] + inputs["C"] @ (inputs["D"] @ inputs["E"])}


def _cut(name: str, inputs: Mapping[str, Array], way: Partitioning) -> Cut:
    """Tensors are distributed by the first axis that is cut."""
    layout: dict[str, Laid] = {}
    pins: dict[str, dict[str, int]] = {}
    for step in way.steps:
        pieces = dict(step.pieces)
        tiles = {label: way.graph.bound_of(step.einsum, label) // count for label, count in pieces.items() if count > 1}
        pins[step.einsum.output.tensor] = tiles
        for operand in step.einsum.operands:
            if operand.tensor in inputs:
                parts = tuple(pieces[label] for label in operand.labels)
                by = next((axis for axis, count in enumerate(parts) if count > 1), 0)
                layout[operand.tensor] = Laid(inputs[operand.tensor], parts, by)
    vectors = {step.einsum.output.tensor: dict(step.pieces) for step in way.steps}
    return Cut(name, layout, _by_calls(layout, vectors), pins, way.floats)


def _by_calls(layout: Layout, vectors: Mapping[str, Mapping[str, int]]) -> SitePlan:
    """The chain with every call of a product on the machine that its key says, as the vectors cut it."""
    a, b, c, d, e = (PlacedInput(laid.input(name), laid.distribution) for name, laid in sorted(layout.items()))
    labels = {"AB": ("i", "k"), "DE": ("l", "k"), "CDE": ("i", "k"), "Y": ("i", "k")}
    found = {name: (vectors[name][first], vectors[name][second]) for name, (first, second) in labels.items()}
    read = (vectors["CDE"]["l"], vectors["CDE"]["k"])
    product_of_last = _in_pieces(_called(d, e), found["DE"], read)
    sides = (_called(a, b), found["AB"]), (_called(c, product_of_last), found["CDE"])
    left, right = (Shuffle(_in_pieces(side, pieces, found["Y"]), (0, 1)) for side, pieces in sides)
    return LocalJoin(left, right, (0, 1), (0, 1), ADD)


def _called(left: SitePlan, right: SitePlan) -> SitePlan:
    """A product of matrices in pieces: copies of them meet in every call, whose results are added up."""
    rows, inner, columns = *left.type.frontier, right.type.frontier[1]
    every = (0, 1, 2) if inner > 1 else (0, 2)
    sides = (
        Shuffle(_copied(left, columns, 2), every),
        Shuffle(_copied(right, rows, 0), every),
    )
    sums = LocalAggregation(LocalJoin(*sides, (0, 1, 2), (0, 1, 2), MATRIX_PRODUCT), (0, 2), SUM)
    return LocalAggregation(Shuffle(sums, (0, 1)), (0, 1), SUM) if inner > 1 else sums


def _copied(side: SitePlan, copies: int, at: int) -> SitePlan:
    """So many copies, their number put into the key."""
    number: KeyExpression = CopyNumber() if copies > 1 else Integer(0)
    parts = (KeyPart(0), KeyPart(1))
    keys = KeyMap(2, (*parts[:at], number, *parts[at:]), copies)
    return LocalMap(side, keys, Duplicate(copies) if copies > 1 else IDENTITY)


def _in_pieces(plan: SitePlan, before: tuple[int, int], after: tuple[int, int]) -> SitePlan:
    """A matrix in other pieces: cut where they are, then put together where all of them are."""
    for axis in (0, 1):
        if after[axis] > before[axis]:
            times = after[axis] // before[axis]
            cut = SplitAxis(axis, plan.type.bound[axis] // times, times)
            number = Operation("+", Operation("*", KeyPart(axis), Integer(times)), KeyPart(2))
            parts = [number if at == axis else KeyPart(at) for at in (0, 1)]
            plan = LocalMap(LocalMap(plan, with_copy_number(2, times), cut), KeyMap(3, tuple(parts)), IDENTITY)
    for axis in (0, 1):
        if after[axis] < before[axis]:
            times = before[axis] // after[axis]
            whole, rest = (Operation(symbol, KeyPart(axis), Integer(times)) for symbol in ("//", "%"))
            parts = [whole if at == axis else KeyPart(at) for at in (0, 1)]
            apart = Shuffle(LocalMap(plan, KeyMap(2, (*parts, rest)), IDENTITY), (0, 1))
            tile = plan.type.bound[axis]
            together = ConcatFold(axis, tile, TileExtent(tile * times, tile * times, None), None)
            plan = LocalAggregation(apart, (0, 1), together)
    return plan

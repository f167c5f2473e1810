"""EinDecomp's matrix chain on a cluster: cut by its vectors, evenly, and by rows; figures 7 and 8."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import sparseeinsum as se
from bench.cluster_plans import Laid, Layout
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
        pins: Labels that are cut, by result.
        floats: Moved at most between so many workers as there are calls.
        replayed: Moved indeed between them.
    """

    name: str
    layout: Layout
    pins: Pins
    floats: float
    replayed: float


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
    found = se.partition(CHAIN, _CALLS, shapes)
    ways = {"EinDecomp": found.best, "SQRT": found.even(), "rows": found.along({"A": "i"})}
    made = [_cut(name, inputs, way, found.replay(way).total.floats) for name, way in ways.items()]
    return made, {"Y": inputs["A"] @ inputs["B"] + inputs["C"] @ (inputs["D"] @ inputs["E"])}


def _cut(name: str, inputs: Mapping[str, Array], way: Partitioning, replayed: float) -> Cut:
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
    return Cut(name, layout, pins, way.floats, replayed)

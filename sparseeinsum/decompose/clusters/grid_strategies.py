"""Decompose: local strategies on grids: operands are copied to the cells where their tuples meet.

Source: tensor relational algebra, section 5.3: replication-based matrix multiplication (RMM), of which a cut of two
labels is the case without partial results; EinDecomp, section 6: every label is cut into a number of pieces.
"""

import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sparseeinsum.decompose.clusters.cells import cell_keys
from sparseeinsum.decompose.clusters.local_strategies import LocalStrategy
from sparseeinsum.decompose.clusters.transfers import Cluster
from sparseeinsum.decompose.places.distribution import Grid, Gridded, Hashed
from sparseeinsum.language.eingraph import EinSum
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.semantics.exactness import JoinKind

CELL = "cell"  # the name of the key column of the cell, if no other has it


def cell_label(einsum: EinSum) -> str:
    """The label of the cells of a grid, which no label of an EinSum equals."""
    label = CELL
    while label in einsum.labels:
        label += "_"
    return label


def grid_strategies(
    einsum: EinSum, keys: Mapping[str, int], join: JoinKind, has_parts: bool, cluster: Cluster
) -> Iterator[LocalStrategy]:
    """Strategies to compute an EinSum of one operand or two on grids with a cell for each machine.

    Each cell aggregates its pairs. Groups that are in one cell may stay there; otherwise their parts are aggregated
    where the result is.

    Args:
        einsum: The EinSum.
        keys: The number of keys of every promoted label; labels that are cut keep their order.
        join: Which unmatched tuples the join keeps: there are strategies only if it keeps none.
        has_parts: Whether groups may be combined from partial results.
        cluster: The machines.
    """
    is_aggregated = einsum.aggregate in AGGREGATES
    is_possible = len(einsum.operands) <= 2 and einsum.along is None and (is_aggregated or einsum.aggregate is None)
    if not is_possible or join != JoinKind.INNER or not has_parts:
        return
    output = einsum.output.labels
    axes = [axis for axis, label in enumerate(output) if label in keys]
    for cut in _useful_cuts(einsum, keys, cluster.cells):
        grid = Grid(tuple(cut.pieces.values()), cell_keys(cluster))
        operands = tuple(Gridded(grid, cut.axes(operand.labels)) for operand in einsum.operands)
        if cut.without(output) == 1:
            yield LocalStrategy(operands, Gridded(grid, cut.axes(output)))
        if is_aggregated:
            yield from (LocalStrategy(operands, Hashed(axis), parts_by=cell_label(einsum)) for axis in axes)


@dataclass(frozen=True, slots=True)
class _Cut:
    """The number of pieces of each label that is cut."""

    pieces: Mapping[str, int]

    def axes(self, labels: Sequence[str]) -> tuple[int | None, ...]:
        """For each label that is cut, its first position among those of an operand."""
        return tuple(labels.index(label) if label in labels else None for label in self.pieces)

    def without(self, labels: Sequence[str]) -> int:
        """The number of pieces of the other labels together."""
        return math.prod(count for label, count in self.pieces.items() if label not in labels)


def _useful_cuts(einsum: EinSum, keys: Mapping[str, int], cells: int) -> Iterator[_Cut]:
    """The cuts into so many cells without copies, and the best ones with copies.

    No other cut has fewer copies, parts and work of the busiest cell.
    """
    measured: dict[tuple[float, ...], _Cut] = {}
    for pieces in _cuts(dict(keys), cells):
        cut = _Cut(pieces)
        copies = [cut.without(operand.labels) for operand in einsum.operands]
        if max(copies) == 1:
            yield cut
        else:
            share = math.prod(math.ceil(keys[label] / count) / keys[label] for label, count in pieces.items())
            measured.setdefault((*copies, cut.without(einsum.output.labels), share), cut)
    for measures, cut in measured.items():
        if not any(other != measures and all(map(operator.le, other, measures)) for other in measured):
            yield cut


def _cuts(keys: Mapping[str, int], cells: int) -> Iterator[dict[str, int]]:
    """All ways to cut labels into so many cells, in no more pieces than there are keys."""
    if cells == 1:
        yield {}
        return
    for number, (label, count) in enumerate(keys.items()):
        others = dict(list(keys.items())[number + 1 :])
        for pieces in range(2, min(cells, count) + 1):
            if cells % pieces == 0:
                yield from ({label: pieces} | cut for cut in _cuts(others, cells // pieces))

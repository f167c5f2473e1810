"""Decompose: local strategies: how an operator is computed on each machine from suitably distributed operands.

Source: tensor relational algebra, section 4: local join and local aggregation, and when they equal the join and the
aggregation of the whole relations.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sparseeinsum.decompose.choice import Choice, promoted_labels, reference_tiles, result_tiles
from sparseeinsum.decompose.places.distribution import (
    Central,
    Distribution,
    Grid,
    Gridded,
    Hashed,
    Replicated,
    Scattered,
)
from sparseeinsum.language.eingraph import EinSum
from sparseeinsum.language.tensors import Decomposition
from sparseeinsum.semantics.exactness import JoinKind

# Which operand of a join may be replicated while the other one is distributed: not one whose unmatched tuples the join
# keeps, because every machine would return them.
_MAY_BE_REPLICATED = {
    JoinKind.INNER: (True, True),
    JoinKind.LEFT: (False, True),
    JoinKind.RIGHT: (True, False),
    JoinKind.FULL: (False, False),
}


@dataclass(frozen=True, slots=True)
class LocalStrategy:
    """How an operator is computed without transfers between machines.

    Attributes:
        operands: The distributions that the operands must have.
        result: The distribution of the result.
        gathers: Whether the coordinator combines partial results that it gets from every shard.
        parts_by: The label whose keys divide groups into partial results, which are shuffled and combined where
            `result` says; the label of cells if operands are on a grid; None if there are none.
    """

    operands: tuple[Distribution, ...]
    result: Distribution
    gathers: bool = False
    parts_by: str | None = None

    @property
    def grid(self) -> Grid | None:
        """The grid on which operands are joined; None if there is none."""
        return next((operand.grid for operand in self.operands if isinstance(operand, Gridded)), None)

    @property
    def makes_copies(self) -> bool:
        """Whether tuples of an operand are in several cells of a grid."""
        return any(isinstance(operand, Gridded) and operand.copies > 1 for operand in self.operands)

    def pieces(self, einsum: EinSum) -> dict[str, int]:
        """The labels of the EinSum that the grid cuts, and their numbers of pieces."""
        pieces: dict[str, int] = {}
        for reference, operand in zip(einsum.operands, self.operands, strict=True):
            if isinstance(operand, Gridded):
                pieces |= {reference.labels[axis]: count for axis, count in operand.cut_axes}
        return pieces

    @property
    def runs_on_one_site(self) -> bool:
        """Whether one machine does all the work."""
        return all(distribution in _ON_ONE_SITE for distribution in self.operands)


# Distributions in which one machine has the whole operand. If all machines have all operands, only one computes: sums
# on the others might differ in the last digits.
_ON_ONE_SITE: tuple[Distribution, ...] = (Replicated(), Central())


def slice_strategies(before: Decomposition, after: Decomposition) -> Iterator[LocalStrategy]:
    """Strategies to cut arrays into smaller ones, which works in any distribution."""
    yield from _strategies_on_one_site(1)
    for distribution in _distributions(before):
        is_same = _keeps_keys(distribution, before, after)
        yield LocalStrategy((distribution,), distribution if is_same else Scattered())


def stack_strategies(before: Decomposition, after: Decomposition) -> Iterator[LocalStrategy]:
    """Strategies to put arrays together into larger ones.

    All tuples of a group must be on one machine: partial results would be as large as the whole array.
    """
    yield from _strategies_on_one_site(1)
    for distribution in _distributions(before):
        if _keeps_keys(distribution, before, after):
            yield LocalStrategy((distribution,), distribution)


def completion_strategies(decomposition: Decomposition) -> Iterator[LocalStrategy]:
    """Strategies to add the absent tuples, where a key tells which machine should have each."""
    yield from _strategies_on_one_site(1)
    for axis in decomposition.promoted:
        yield LocalStrategy((Hashed(axis),), Hashed(axis))


def repartition_strategies(before: Decomposition, after: Decomposition) -> Iterator[LocalStrategy]:
    """Strategies for one step between decompositions: to slice, to stack, or to add absent tuples if both are equal."""
    if before == after:
        return completion_strategies(after)
    return (
        slice_strategies(before, after) if after == before.common_refinement(after) else stack_strategies(before, after)
    )


def contraction_strategies(
    einsum: EinSum, choice: Choice, join: JoinKind, has_parts: bool = True
) -> Iterator[LocalStrategy]:
    """Strategies to compute an EinSum.

    Args:
        einsum: The EinSum.
        choice: Tiles of its labels.
        join: Which unmatched tuples the join keeps.
        has_parts: Whether groups may be combined from partial results that are tuples of their own; not if the
            aggregate needs to know more of a group than those.
    """
    operands = [Decomposition(reference_tiles(einsum, operand, choice)) for operand in einsum.operands]
    yield from _strategies_on_one_site(len(operands))
    for distributions in _joinable(einsum, operands, join):
        yield from _aggregated(einsum, choice, distributions, join, has_parts)


def _strategies_on_one_site(operands: int) -> Iterator[LocalStrategy]:
    yield from (LocalStrategy((distribution,) * operands, Central()) for distribution in _ON_ONE_SITE)


def _distributions(decomposition: Decomposition) -> list[Distribution]:
    """The distributions over several machines that a relation can have."""
    return [*map(Hashed, decomposition.promoted), Scattered()]


def _keeps_keys(distribution: Distribution, before: Decomposition, after: Decomposition) -> bool:
    """Whether the hashed key is the same in both decompositions."""
    return isinstance(distribution, Hashed) and before.tiles[distribution.axis] == after.tiles[distribution.axis]


def _joinable(einsum: EinSum, operands: Sequence[Decomposition], join: JoinKind) -> Iterator[tuple[Distribution, ...]]:
    """Distributions of the operands in which all matching tuples are on the same machine."""
    distributions = list(map(_distributions, operands))
    if len(operands) == 1:
        yield from ((distribution,) for distribution in distributions[0])
        return
    may_replicate_left, may_replicate_right = _MAY_BE_REPLICATED[join]
    if may_replicate_right:
        yield from ((left, Replicated()) for left in distributions[0])
    if may_replicate_left:
        yield from ((Replicated(), right) for right in distributions[1])
    for left in distributions[0]:
        for right in distributions[1]:
            label = _hashed_label(einsum, 0, left)
            if label is not None and label == _hashed_label(einsum, 1, right):
                yield left, right


def _hashed_label(einsum: EinSum, operand: int, distribution: Distribution) -> str | None:
    """The label whose key distributes an operand; None if there is none.

    If the label stands for two axes, only the first counts: statements read the first key, and Citus does not know that
    the second is equal.
    """
    if not isinstance(distribution, Hashed):
        return None
    labels = einsum.operands[operand].labels
    label = labels[distribution.axis]
    return label if labels.index(label) == distribution.axis else None


def _aggregated(
    einsum: EinSum, choice: Choice, operands: tuple[Distribution, ...], join: JoinKind, has_parts: bool
) -> Iterator[LocalStrategy]:
    """Strategies that join operands in these distributions and aggregate the pairs, locally or in two phases."""
    label = next(
        (
            _hashed_label(einsum, index, distribution)
            for index, distribution in enumerate(operands)
            if isinstance(distribution, Hashed)
        ),
        None,
    )
    output, promoted = einsum.output.labels, Decomposition(result_tiles(einsum, choice)).promoted
    hashed_axes = [axis for axis in promoted if output[axis] == label]
    if hashed_axes:
        yield LocalStrategy(operands, Hashed(hashed_axes[0]))
    elif promoted_labels(einsum, choice) <= frozenset(output):
        yield LocalStrategy(operands, Scattered())
    else:
        yield LocalStrategy(operands, Central(), gathers=True)
        if has_parts and label is not None and join != JoinKind.FULL:  # a full join takes the key from either side
            yield from (LocalStrategy(operands, Hashed(axis), parts_by=label) for axis in promoted)

"""Decompose: how an operator can be computed on every machine by itself, from operands that are distributed to fit.

Source: tensor relational algebra, section 4: local join and local aggregation, and where they are what a join and an
aggregation of the whole relations would be.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sparseeinsum.decompose.choice import Choice, promoted_labels, reference_tiles, result_tiles
from sparseeinsum.decompose.clusters.distribution import Central, Distribution, Hashed, Replicated, Scattered
from sparseeinsum.language.eingraph import EinSum
from sparseeinsum.language.tensors import Decomposition
from sparseeinsum.semantics.exactness import JoinKind

# Which operand of a join of two may be whole on every machine while the other one is not: each of its tuples that finds
# no partner would come out of every machine, so it must not be one that a join keeps all of.
_MAY_BE_REPLICATED = {
    JoinKind.INNER: (True, True),
    JoinKind.LEFT: (False, True),
    JoinKind.RIGHT: (True, False),
    JoinKind.FULL: (False, False),
}


@dataclass(frozen=True, slots=True)
class LocalStrategy:
    """A way to compute an operator where its operands are.

    Attributes:
        operands: How they are distributed.
        result: How what comes out is.
        gathers: Whether groups are put together on the coordinator, from what every shard has of them.
        parts_by: The label by whose keys machines have parts of groups, which are shuffled and put together where the
            result says; None where there are none.
    """

    operands: tuple[Distribution, ...]
    result: Distribution
    gathers: bool = False
    parts_by: str | None = None

    @property
    def is_of_one_machine(self) -> bool:
        """Whether one machine does all of the work."""
        return all(each in _WHOLE for each in self.operands)


# Operands that one machine has whole. What every machine could compute, one does: sums of others might differ in their
# last digits.
_WHOLE: tuple[Distribution, ...] = (Replicated(), Central())


def ways_to_slice(before: Decomposition, after: Decomposition) -> Iterator[LocalStrategy]:
    """Arrays cut into smaller ones: wherever they are."""
    yield from _ways_of_one_machine(1)
    for distribution in _spread(before):
        is_kept = _keeps_keys(distribution, before, after)
        yield LocalStrategy((distribution,), distribution if is_kept else Scattered())


def ways_to_stack(before: Decomposition, after: Decomposition) -> Iterator[LocalStrategy]:
    """Arrays put together into larger ones: where all of a group are, since parts would be as large as the whole."""
    yield from _ways_of_one_machine(1)
    for distribution in _spread(before):
        if _keeps_keys(distribution, before, after):
            yield LocalStrategy((distribution,), distribution)


def ways_to_complete(decomposition: Decomposition) -> Iterator[LocalStrategy]:
    """Absent tuples put in: where it is known which there are."""
    yield from _ways_of_one_machine(1)
    for axis in decomposition.promoted:
        yield LocalStrategy((Hashed(axis),), Hashed(axis))


def ways_between(before: Decomposition, after: Decomposition) -> Iterator[LocalStrategy]:
    """From one decomposition into another, of which one consists of the other, or all tuples made present."""
    if before == after:
        return ways_to_complete(after)
    return ways_to_slice(before, after) if after == before.common_refinement(after) else ways_to_stack(before, after)


def ways_to_contract(einsum: EinSum, choice: Choice, join: JoinKind, has_parts: bool = True) -> Iterator[LocalStrategy]:
    """An EinSum in the decompositions of a choice.

    Args:
        einsum: What is computed.
        choice: Tiles of its labels.
        join: Which tuples the join keeps that find no partner.
        has_parts: Whether groups may be put together from parts that are tuples of their own: nothing has to be known
            of a group but its parts.
    """
    operands = [Decomposition(reference_tiles(einsum, each, choice)) for each in einsum.operands]
    yield from _ways_of_one_machine(len(operands))
    for distributions in _joinable(einsum, operands, join):
        yield from _contracted(einsum, choice, distributions, join, has_parts)


def _ways_of_one_machine(operands: int) -> Iterator[LocalStrategy]:
    yield from (LocalStrategy((place,) * operands, Central()) for place in _WHOLE)


def _spread(decomposition: Decomposition) -> list[Distribution]:
    """Distributions over several machines."""
    return [*map(Hashed, decomposition.promoted), Scattered()]


def _keeps_keys(distribution: Distribution, before: Decomposition, after: Decomposition) -> bool:
    """Whether the key by which tuples are distributed stays."""
    return isinstance(distribution, Hashed) and before.tiles[distribution.axis] == after.tiles[distribution.axis]


def _joinable(einsum: EinSum, operands: Sequence[Decomposition], join: JoinKind) -> Iterator[tuple[Distribution, ...]]:
    """Distributions of operands in which all tuples that belong together meet."""
    spread = list(map(_spread, operands))
    if len(operands) == 1:
        yield from ((each,) for each in spread[0])
        return
    left_may, right_may = _MAY_BE_REPLICATED[join]
    if right_may:
        yield from ((each, Replicated()) for each in spread[0])
    if left_may:
        yield from ((Replicated(), each) for each in spread[1])
    for left in spread[0]:
        for right in spread[1]:
            label = _label(einsum, 0, left)
            if label is not None and label == _label(einsum, 1, right):
                yield left, right


def _label(einsum: EinSum, operand: int, distribution: Distribution) -> str | None:
    """The label by whose key an operand is distributed; None where it is by none.

    Of a label that stands twice, statements read the first key, and Citus does not know that the other one is equal.
    """
    if not isinstance(distribution, Hashed):
        return None
    labels = einsum.operands[operand].labels
    label = labels[distribution.axis]
    return label if labels.index(label) == distribution.axis else None


def _contracted(
    einsum: EinSum, choice: Choice, operands: tuple[Distribution, ...], join: JoinKind, has_parts: bool
) -> Iterator[LocalStrategy]:
    """What comes out of a local join, and of the aggregation of its groups: whole, or put together from parts."""
    label = next((_label(einsum, index, each) for index, each in enumerate(operands) if isinstance(each, Hashed)), None)
    output, promoted = einsum.output.labels, Decomposition(result_tiles(einsum, choice)).promoted
    kept = [axis for axis in promoted if output[axis] == label]
    if kept:
        yield LocalStrategy(operands, Hashed(kept[0]))
    elif promoted_labels(einsum, choice) <= frozenset(output):
        yield LocalStrategy(operands, Scattered())
    else:
        yield LocalStrategy(operands, Central(), gathers=True)
        if has_parts and label is not None and join != JoinKind.FULL:  # after which the key is that of either side
            yield from (LocalStrategy(operands, Hashed(axis), parts_by=label) for axis in promoted)

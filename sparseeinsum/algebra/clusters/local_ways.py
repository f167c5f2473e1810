"""Algebra: how an operator can be computed on every machine by itself, from operands that are distributed to fit.

Source: tensor relational algebra, section 4: local join and local aggregation, and where they are what a join and an
aggregation of the whole relations would be.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sparseeinsum.algebra.clusters.distribution import Central, Distribution, Hashed, Replicated, Scattered
from sparseeinsum.algebra.operators import Contract, Densify, Relation, Slice, Stack
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
class Way:
    """A way to compute an operator where its operands are.

    Attributes:
        operands: How they are distributed.
        result: How what comes out is.
        gathers: Whether groups are put together on the coordinator, from what every part has of them.
    """

    operands: tuple[Distribution, ...]
    result: Distribution
    gathers: bool = False


# What every machine could compute, one does: sums of others might differ in their last digits.
_ON_ONE_MACHINE = Way((Replicated(),), Central())


def local_ways(relation: Relation, is_grouped: bool) -> Iterator[Way]:
    """All ways to compute an operator whose operands are in tables: on the machines, where they share its work.

    Args:
        relation: A Slice, Stack, Densify or Contract.
        is_grouped: Of a Contract, whether it aggregates tuples.
    """
    match relation:
        case Slice() | Stack():
            yield from _ways_of_repartition(relation)
        case Densify():
            yield _ON_ONE_MACHINE
            for distribution in _hashed(relation.schema.decomposition.promoted):
                yield Way((distribution,), distribution)
        case Contract():
            yield from (_contracted(relation, operands, is_grouped) for operands in _joinable(relation))
        case _:
            raise TypeError(f"no way to compute {type(relation).__name__} on several machines")


def _hashed(axes: tuple[int, ...]) -> list[Hashed]:
    return [Hashed(axis) for axis in axes]


def _ways_of_repartition(relation: Slice | Stack) -> Iterator[Way]:
    before, after = relation.input.schema.decomposition, relation.schema.decomposition
    yield _ON_ONE_MACHINE
    if isinstance(relation, Stack) and not relation.schema.keys:  # one array is put together in one place
        yield Way((Central(),), Central())
    spread: list[Distribution] = [*_hashed(before.promoted), Scattered()]
    for distribution in spread:
        has_key = isinstance(distribution, Hashed) and before.tiles[distribution.axis] == after.tiles[distribution.axis]
        if has_key:
            yield Way((distribution,), distribution)
        elif isinstance(relation, Slice):
            yield Way((distribution,), Scattered())
        else:
            yield Way((distribution,), Central(), gathers=True)


def _joinable(relation: Contract) -> Iterator[tuple[Distribution, ...]]:
    """Distributions of operands in which all tuples that belong together meet."""
    spread: list[list[Distribution]] = [
        [*_hashed(each.schema.decomposition.promoted), Scattered()] for each in relation.inputs
    ]
    yield (Replicated(),) * len(relation.inputs)
    if len(relation.inputs) == 1:
        yield from ((each,) for each in spread[0])
        return
    left_may, right_may = _MAY_BE_REPLICATED[relation.join]
    if right_may:
        yield from ((each, Replicated()) for each in spread[0])
    if left_may:
        yield from ((Replicated(), each) for each in spread[1])
    for left in spread[0]:
        for right in spread[1]:
            if _label(relation, 0, left) is not None and _label(relation, 0, left) == _label(relation, 1, right):
                yield left, right


def _label(relation: Contract, operand: int, distribution: Distribution) -> str | None:
    """The label by whose key an operand is distributed; None where it is by none."""
    if not isinstance(distribution, Hashed):
        return None
    return relation.einsum.operands[operand].labels[distribution.axis]


def _contracted(relation: Contract, operands: tuple[Distribution, ...], is_grouped: bool) -> Way:
    """What comes out of a local join, and of the aggregation of its groups."""
    if all(each == Replicated() for each in operands):
        return Way(operands, Central())
    labels = {_label(relation, index, each) for index, each in enumerate(operands)} - {None}
    output = relation.einsum.output.labels
    for axis in relation.schema.decomposition.promoted:
        if output[axis] in labels:
            return Way(operands, Hashed(axis))
    return Way(operands, Central(), gathers=True) if is_grouped else Way(operands, Scattered())

"""Algebra: which tuples results have that are computed row by row, by the relations that they read."""

from collections.abc import Mapping
from typing import Any

from sparseeinsum.algebra.operators import Computed, Contract, Relation
from sparseeinsum.semantics.exactness import JoinKind

# Relations, each with what equals its keys, in axis order: a tuple is present where all of them have one. For a result
# these are the positions of its axes, for its readers labels, and in a chain names of keys.
Presence = frozenset[tuple[Relation, tuple[int | str, ...]]]


def keys_of_operand(contract: Contract, number: int) -> tuple[str, ...]:
    """The labels that are keys of an operand, in axis order."""
    labels = contract.einsum.operands[number].labels
    return tuple(labels[position] for position in contract.inputs[number].schema.decomposition.promoted)


def keys_of_result(contract: Contract) -> tuple[str, ...]:
    """The labels that are keys of the result, in axis order."""
    labels = contract.einsum.output.labels
    return tuple(labels[position] for position in contract.output.decomposition.promoted)


def renamed(presence: Presence, names: Mapping[Any, int | str]) -> Presence:
    """The presence with other names of keys."""
    return frozenset((relation, tuple(names[key] for key in keys)) for relation, keys in presence)


def operand_presence(contract: Contract, number: int, results: Mapping[str, Presence]) -> Presence:
    """Which tuples an operand has, by labels of its reader.

    Args:
        contract: The reader.
        number: The number of the operand.
        results: Which tuples results have that the reader may read, by positions of their axes.
    """
    relation = contract.inputs[number]
    if contract.complete[number]:
        return frozenset()
    name = relation.schema.tensor.name
    if isinstance(relation, Computed) and name in results:
        return renamed(results[name], dict(enumerate(contract.einsum.operands[number].labels)))
    return frozenset({(relation, keys_of_operand(contract, number))})


def result_presence(contract: Contract, results: Mapping[str, Presence]) -> Presence | None:
    """Which tuples a result has, by positions of its axes; None if that is not known. Arguments as above."""
    operands = [operand_presence(contract, number, results) for number in range(len(contract.inputs))]
    present = _joined(contract.join, operands)
    return None if present is None else renamed(present, _axes(contract))


def _axes(contract: Contract) -> dict[str, int]:
    return {label: position for position, label in enumerate(contract.einsum.output.labels)}


def _joined(kind: JoinKind, operands: list[Presence]) -> Presence | None:
    """Which tuples a join keeps."""
    first, *others = operands
    if not others:
        return first
    (second,) = others
    match kind:
        case JoinKind.INNER:
            return first | second
        case JoinKind.LEFT:
            return first
        case JoinKind.RIGHT:
            return second
        case JoinKind.FULL if first <= second:
            return first
        case JoinKind.FULL if second <= first:
            return second
        case _:
            return None

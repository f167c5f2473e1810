"""Rewriting: an EinSum over some of the references that another one is being taken apart into."""

from collections.abc import Sequence

from sparseeinsum.language.eingraph import EinSum, Reference
from sparseeinsum.language.scalar import Operand, Scalar, operands_in_order
from sparseeinsum.rewrite.chains import substituted


def labels_among(expression: Scalar, references: Sequence[Reference]) -> frozenset[str]:
    """Labels of the references that an expression is of, by their positions."""
    return frozenset().union(*(references[position].labels for position in operands_in_order(expression)))


def part_of(
    einsum: EinSum, references: Sequence[Reference], output: Reference, join: Scalar, aggregate: str | None
) -> EinSum:
    """An EinSum over the references that `join` is of, which aggregates if its output lacks one of their labels.

    Args:
        einsum: What is taken apart; what it promotes by hand its parts do.
        references: Its operands, and results of parts.
        output: Of the part.
        join: Of references, by their positions.
        aggregate: Over the labels that the output lacks.
    """
    used = operands_in_order(join)
    operands = tuple(references[position] for position in used)
    labels = labels_among(join, references)
    renumbered = substituted(join, {position: Operand(number) for number, position in enumerate(used)})
    fold = aggregate if labels - frozenset(output.labels) else None
    return EinSum(output, operands, renumbered, fold, einsum.promoted_among(labels))

"""Rewriting: an EinSum over some of the references that another one is taken apart into; and which parts it has."""

from collections.abc import Sequence, Set

from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference
from sparseeinsum.language.scalar import operands_in_order
from sparseeinsum.operators.expressions import Operand, Scalar
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


def parts_of(written: Set[str], graph: EinGraph) -> dict[str, tuple[EinSum, ...]]:
    """The EinSums that compute every result as written that is still there, those of its parts first.

    Args:
        written: Results of the EinSums as they were written.
        graph: As they were rewritten.
    """
    found: dict[str, tuple[EinSum, ...]] = {}
    parts: list[EinSum] = []
    for einsum in graph.einsums:
        parts.append(einsum)
        if einsum.output.tensor in written:
            found[einsum.output.tensor] = tuple(parts)
            parts = []
    return found


def part_names(written: Set[str], graph: EinGraph) -> dict[str, tuple[str, ...]]:
    """For every result as written, the results of parts that serve to compute it alone; see `parts_of`."""
    return {name: tuple(part.output.tensor for part in parts[:-1]) for name, parts in parts_of(written, graph).items()}

"""Rewriting: the parts of an EinSum: the EinSums that it is split into, of which the last computes its result."""

from collections.abc import Sequence, Set

from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference
from sparseeinsum.language.scalar import operands_in_order
from sparseeinsum.operators.expressions import Operand, Scalar
from sparseeinsum.rewrite.chains import substitute


def labels_among(expression: Scalar, references: Sequence[Reference]) -> frozenset[str]:
    """The labels of the operands of an expression, which are positions in `references`."""
    return frozenset().union(*(references[position].labels for position in operands_in_order(expression)))


def part_of(
    einsum: EinSum, references: Sequence[Reference], output: Reference, join: Scalar, aggregate: str | None
) -> EinSum:
    """An EinSum over the references that `join` reads; it aggregates if its output lacks one of their labels.

    Args:
        einsum: The EinSum that is split; a part promotes by hand the labels that it does.
        references: The operands of `einsum`, and results of other parts.
        output: The result of the part.
        join: Its operands are positions in `references`.
        aggregate: The aggregate over the labels that the output lacks.
    """
    used = operands_in_order(join)
    operands = tuple(references[position] for position in used)
    labels = labels_among(join, references)
    renumbered = substitute(join, {position: Operand(number) for number, position in enumerate(used)})
    part_aggregate = aggregate if labels - frozenset(output.labels) else None
    return EinSum(output, operands, renumbered, part_aggregate, einsum.promoted_among(labels))


def parts_of(written: Set[str], graph: EinGraph) -> dict[str, tuple[EinSum, ...]]:
    """For every result as written that is still computed, the EinSums that compute it, itself last.

    Args:
        written: Results of the EinSums as they were written.
        graph: The EinSums after rewriting.
    """
    parts_by_result: dict[str, tuple[EinSum, ...]] = {}
    parts: list[EinSum] = []
    for einsum in graph.einsums:
        parts.append(einsum)
        if einsum.output.tensor in written:
            parts_by_result[einsum.output.tensor] = tuple(parts)
            parts = []
    return parts_by_result


def part_names(written: Set[str], graph: EinGraph) -> dict[str, tuple[str, ...]]:
    """For every result as written, the names of the intermediate results that only it needs; see `parts_of`."""
    return {name: tuple(part.output.tensor for part in parts[:-1]) for name, parts in parts_of(written, graph).items()}

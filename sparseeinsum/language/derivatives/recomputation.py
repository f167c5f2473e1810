"""Derivatives: forward values that a gradient computes again, so that they need not be kept for it.

Chen and others: Training deep nets with sublinear memory cost; arXiv 1604.06174 (2016).
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace

from sparseeinsum.errors import SemanticsError
from sparseeinsum.language.eingraph import EinSum, Reference
from sparseeinsum.language.names import ProgramNames
from sparseeinsum.presentation.spelling import did_you_mean


def with_recomputation(
    einsums: Sequence[EinSum], derivatives: Sequence[EinSum], kept: Set[str], names: ProgramNames
) -> tuple[tuple[EinSum, ...], tuple[str, ...]]:
    """The EinSums of derivatives, which read of the forward values only some; all others are computed again.

    Args:
        einsums: The EinSums that compute forward values, in topological order.
        derivatives: The EinSums that compute derivatives from them, in topological order.
        kept: The names of the forward values that are read.
        names: The names of the program; those of results that are computed again are added.

    Returns:
        The EinSums, each forward value just before it is read first; and the names of the values computed again.
    """
    producers = {einsum.output.tensor: einsum for einsum in einsums if einsum.output.tensor not in kept}
    places = {name: place for place, name in enumerate(producers)}
    again: dict[str, str] = {}
    ordered: list[EinSum] = []
    for einsum in derivatives:
        for name in sorted(_missing(einsum, producers, again), key=places.__getitem__):
            again[name] = names.invent(f"{name}_again")
            ordered.append(_renamed(producers[name], again))
        ordered.append(_reading(einsum, again))
    return tuple(ordered), tuple(again.values())


def _missing(einsum: EinSum, producers: Mapping[str, EinSum], again: Mapping[str, str]) -> set[str]:
    """The forward values that an EinSum needs and that are not computed again yet."""
    missing: set[str] = set()
    waiting = [einsum]
    while waiting:
        for operand in waiting.pop().operands:
            if operand.tensor in producers and operand.tensor not in again and operand.tensor not in missing:
                missing.add(operand.tensor)
                waiting.append(producers[operand.tensor])
    return missing


def _renamed(einsum: EinSum, names: Mapping[str, str]) -> EinSum:
    return replace(_reading(einsum, names), output=_with_name(einsum.output, names))


def _reading(einsum: EinSum, names: Mapping[str, str]) -> EinSum:
    return replace(einsum, operands=tuple(_with_name(operand, names) for operand in einsum.operands))


def _with_name(reference: Reference, names: Mapping[str, str]) -> Reference:
    return replace(reference, tensor=names.get(reference.tensor, reference.tensor))


def check_checkpoints(names: Iterable[str], einsums: Sequence[EinSum]) -> None:
    """Refuse names of what is no result.

    Raises:
        SemanticsError: Names an input, or something unknown.
    """
    results = [einsum.output.tensor for einsum in einsums]
    inputs = {operand.tensor for einsum in einsums for operand in einsum.operands}.difference(results)
    for name in names:
        if name in inputs:
            raise SemanticsError(f"{name} is an input, which gradients read in any case; checkpoints are results")
        if name not in results:
            hint = did_you_mean(name, results, otherwise="it computes")
            raise SemanticsError(f"there is no {name} to keep as a checkpoint in the program; {hint}")

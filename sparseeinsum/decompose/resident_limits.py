"""Decompose: how much memory operands may take, so that those of a whole program fit into memory together."""

from collections.abc import Mapping

from sparseeinsum.decompose.compressed_access import ENTRY_BYTES
from sparseeinsum.language.eingraph import EinGraph
from sparseeinsum.operators.dtypes import ITEM_BYTES
from sparseeinsum.statistics.estimate import Statistics

_SHARE = 0.25  # of the memory limit, for the operands of one EinSum
_SHARE_OF_ALL = 0.6  # for all operands together, which stay in memory until their statement ends


def resident_limit(graph: EinGraph, statistics: Mapping[str, Statistics], limit_bytes: float) -> float:
    """The most bytes of operands that an EinSum may have in memory.

    If too many operands would take so much, it is less than each of those that are too large beside the smaller ones.

    Args:
        graph: The EinSums.
        statistics: Statistics of all tensors.
        limit_bytes: The memory limit.
    """
    most, total = limit_bytes * _SHARE, 0.0
    names = {operand.tensor for einsum in graph.einsums for operand in einsum.operands}
    for size_bytes in sorted(_least_bytes(graph, statistics, name) for name in names):
        if size_bytes > most:
            break
        total += size_bytes
        if total > limit_bytes * _SHARE_OF_ALL:
            return size_bytes - 1
    return most


def _least_bytes(graph: EinGraph, statistics: Mapping[str, Statistics], name: str) -> float:
    """Bytes of a tensor in memory, as entries or as an array, whichever takes less."""
    tensor = graph.tensors[name]
    return min(statistics[name].entries * ENTRY_BYTES, float(tensor.size * ITEM_BYTES[tensor.dtype]))

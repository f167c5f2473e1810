"""Kernels: the one calling convention of all kernels, so that a host needs no code for each.

A kernel gets addresses (int64) of a *row* (see descriptors.py), of the result and of scratch memory:

    compute(row, out, size, scratch) -> 0 or a negative code; aggregates fold the row into the state `out`
    batch(row, steps, rows, out, size, scratch) -> 1 if it computed `rows` rows, 0 if they go one by one, or a code
    initialise(row, out, size), combine(out, other, size, background, shape) -> 0 or a code: aggregates only
    part_size(row, part, parts, scratch) -> elements of one of the result's parts: functions that return TENSORS only

`steps` gives, for every argument, the distance in elements between one row's array and the next one's; in a batch
of an aggregate all rows belong to one state. `background` is what an aggregate's state held before any row,
`shape` what its rows share: how many words, then they; 0 and 0 where a host keeps neither.
Parts lie one after the other in the result.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

Access = Callable[[int, int], NDArray[Any]]  # (row, index of an argument) -> the argument as an array


@dataclass(frozen=True, slots=True)
class RowKernel:
    """The parts of one kernel for one dtype, as Python functions that numba compiles; None where there is none."""

    compute: Callable[..., int]
    batch: Callable[..., int] | None = None
    initialise: Callable[..., int] | None = None
    combine: Callable[..., int] | None = None
    part_size: Callable[..., int] | None = None

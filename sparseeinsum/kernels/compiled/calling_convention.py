"""Kernels: defines the calling convention of all kernels, so that hosts call them all with the same code.

A kernel consists of functions of addresses (int64): of a *row* (see descriptors.py), the result and scratch memory:

    compute(row, out, size, scratch) -> 0 or a negative error code; an aggregate folds the row into the state `out`
    compute_slice(row, out, size, index, slices, scratch) -> the same for one of so many slices of the result; in place
        of `compute` in kernels whose slices threads may compute at the same time, each with scratch memory of its own
    batch(row, steps, rows, out, size, scratch) -> 1 if it computed `rows` rows, 0 to be called row by row, or a code
    initialise(row, out, size), combine(out, other, size, background, shape) -> 0 or a code; aggregates only
    finish(out, size, rows) -> 0; turns a copy of the state of an aggregate of `rows` rows into the result
    part_size(row, part, parts, scratch) -> elements of one part of the result; functions that return TENSORS only

`size` is the number of elements of the result, `part` one of `parts` parts of it, which follow each other in memory.
`steps` has the distance in elements from one row's array to the next, for every argument but texts and extents, which
all rows share; all rows of a batch of an aggregate belong to one state. `background` is the address of an element of
the state before the first row, `shape` that of the shape of its rows (see descriptors.py); both are 0 in hosts that
store neither.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

ArgumentAccess = Callable[[int, int], NDArray[Any]]  # (row, index of an argument) -> the argument as an array


@dataclass(frozen=True, slots=True)
class RowKernel:
    """The functions of one kernel for one dtype, in Python for numba; None for those that the kernel does not have."""

    compute: Callable[..., int] | None = None
    batch: Callable[..., int] | None = None
    initialise: Callable[..., int] | None = None
    combine: Callable[..., int] | None = None
    finish: Callable[..., int] | None = None
    part_size: Callable[..., int] | None = None
    compute_slice: Callable[..., int] | None = None

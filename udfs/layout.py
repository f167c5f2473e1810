"""Slices, splits and stacks along the axes of flat arrays in C order.

Self-contained: numba and numpy only, no allocation, the same source for every host.
"""

import numpy as np
from numba import njit

MAX_AXES = 16

BAD_AXIS = -31
BAD_POSITION = -32
BAD_EXTENT = -33
TOO_LARGE = -34

MAX_ELEMENTS = 1 << 40


@njit
def product_of(extents):
    """Return the number of elements of an array; BAD_EXTENT if an extent is negative, TOO_LARGE beyond 2^40.

    An empty array is TOO_LARGE, too, if its other extents multiply to more, so that no partial product overflows.
    """
    size, is_empty = 1, False
    for axis in range(extents.size):
        if extents[axis] < 0:
            return BAD_EXTENT
        is_empty = is_empty or extents[axis] == 0
        extent = max(extents[axis], 1)
        if size > MAX_ELEMENTS // extent:
            return TOO_LARGE
        size *= extent
    return 0 if is_empty else size


@njit
def slice_size(axis, position, extents):
    """Return the number of elements of the slice at `position` along `axis` (counted from 0), or a negative code."""
    if axis < 0 or axis >= extents.size:
        return BAD_AXIS
    if position < 0 or position >= extents[axis]:
        return BAD_POSITION
    return product_of(extents) // extents[axis]


@njit
def line_of(axis, extents):
    """Return the number of elements in a line along an axis, and the distance between neighbours."""
    return extents[axis], product_of(extents[axis + 1 :])


@njit
def take_slice(u, axis, position, extents, out):
    """Copy the slice at one position along one axis; u: flat with `extents`, out: flat without the axis."""
    inner = product_of(extents[axis + 1 :])
    outer = product_of(extents[:axis])
    step = extents[axis] * inner
    for block in range(outer):
        source = block * step + position * inner
        for i in range(inner):
            out[block * inner + i] = u[source + i]


@njit
def find_bad_axis(axes, extents):
    """Return the index of the first of `axes` that is out of range or repeated; -1 if there is none."""
    chosen = 0
    for i in range(axes.size):
        axis = axes[i]
        if axis < 0 or axis >= extents.size or (chosen >> axis) & 1 == 1:
            return i
        chosen |= np.int64(1) << axis
    return -1


@njit
def split_count(axes, extents):
    """Return the number of parts of a split along `axes`, which must be distinct and in range."""
    parts = 1
    for i in range(axes.size):
        parts *= extents[axes[i]]
    return parts


@njit
def split(u, axes, extents, out):
    """Copy u to out with the axes permuted: `axes` come first, in that order, and the others follow in theirs."""
    chosen = 0
    for i in range(axes.size):
        chosen |= np.int64(1) << axes[i]
    rest = 1
    for axis in range(extents.size):
        if (chosen >> axis) & 1 == 0:
            rest *= extents[axis]
    if rest == 0 or u.size == 0:
        return
    for part in range(u.size // rest):
        source = _offset_of_part(part, axes, extents)
        _copy_rest(u, source, chosen, extents, out[part * rest : (part + 1) * rest])


@njit
def _stride_of(axis, extents):
    return product_of(extents[axis + 1 :])


@njit
def _offset_of_part(part, axes, extents):
    offset = 0
    for backwards in range(axes.size):
        axis = axes[axes.size - 1 - backwards]
        offset += part % extents[axis] * _stride_of(axis, extents)
        part //= extents[axis]
    return offset


@njit
def _copy_rest(u, source, chosen, extents, out):
    """Copy the elements from `source` on along the axes that are not chosen, in C order."""
    # The axes after the last chosen one are contiguous: copy them as one run.
    run, last = 1, extents.size - 1
    while last >= 0 and (chosen >> last) & 1 == 0:
        run *= extents[last]
        last -= 1
    for block in range(out.size // run):
        offset, step = source, block
        for backwards in range(last + 1):
            axis = last - backwards
            if (chosen >> axis) & 1 == 0:
                offset += step % extents[axis] * _stride_of(axis, extents)
                step //= extents[axis]
        for i in range(run):
            out[block * run + i] = u[offset + i]


@njit
def place(w, u, position, size, inner):
    """Write u to `position` of a new axis of extent `size` in w; `inner` elements of u follow that axis in C order."""
    for block in range(u.size // inner if inner > 0 else 0):
        target = (block * size + position) * inner
        for i in range(inner):
            w[target + i] = u[block * inner + i]


@njit
def overlay(w, u, background):
    """Copy the elements of u that differ from the background to w, comparing bits, so that NaN equals itself.

    Args:
        w: (n * words,), the target, as integers.
        u: (n * words,), the source, as integers.
        background: (words,), one element as integers.
    """
    words = background.size
    for i in range(0, w.size, words):
        differs = False
        for word in range(words):
            differs |= u[i + word] != background[word]
        for word in range(words if differs else 0):
            w[i + word] = u[i + word]


@njit
def count_in_each(u, fill, counts):
    """Add 1 to counts[i] if u[i] is not the fill; u, counts: (n,)."""
    for i in range(counts.size):
        counts[i] += u[i] != fill


@njit
def count_along(u, axis, extents, fill, counts):
    """Add to counts[p] the number of elements at position p of `axis` in u that are not the fill."""
    inner = product_of(extents[axis + 1 :])
    extent = extents[axis]
    for block in range(u.size // inner if inner > 0 else 0):
        position = block % extent
        for i in range(inner):
            if u[block * inner + i] != fill:
                counts[position] += 1

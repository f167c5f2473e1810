"""Tiles: cutting an array into tiles, and copying blocks out of a larger array and into it.

Self-contained: numba and numpy only, no allocation, the same source for every host. Arrays are flat, in C order. A
block is given by where it starts along every axis, `starts`, and its extents, `lengths`.
"""

import numpy as np
from numba import njit

BAD_TILE = -35
TILES_MISSING = -36
STARTS_MISSING = -37
OUTSIDE = -38


@njit
def _tiles_along(extent, tile):
    """Return the number of tiles along an axis, including a shorter last one; 1 if `tile` is 0, the whole axis."""
    if tile == 0:
        return 1
    return (extent - 1) // tile + 1 if extent > 0 else 0


@njit
def count_tiles(tiles, extents):
    """Return the number of tiles of an array; tiles, extents: (axes,), not negative; at most 2^40 elements."""
    count = 1
    for axis in range(extents.size):
        count *= _tiles_along(extents[axis], tiles[axis])
    return count


@njit
def locate_tile(block, tiles, extents, starts, lengths):
    """Write the position of tile number `block`, in C order, to `starts` and `lengths`; returns its elements."""
    elements = 1
    for axis in range(extents.size - 1, -1, -1):
        along = _tiles_along(extents[axis], tiles[axis])
        starts[axis] = block % along * tiles[axis]
        block //= along
        rest = extents[axis] - starts[axis]
        lengths[axis] = min(tiles[axis], rest) if tiles[axis] > 0 else rest
        elements *= lengths[axis]
    return elements


@njit
def split_tiles(u, tiles, extents, starts, lengths, out):
    """Write all tiles of u one after the other to out, which is as long as u; starts, lengths: (axes,), scratch."""
    at = 0
    for block in range(count_tiles(tiles, extents)):
        elements = locate_tile(block, tiles, extents, starts, lengths)
        _copy_block(u, extents, starts, lengths, out[at : at + elements], False)
        at += elements


@njit
def axis_outside(starts, lengths, extents):
    """Return the first axis along which a block is not inside an array with `extents`; -1 if it is inside."""
    for axis in range(extents.size):
        if starts[axis] < 0 or lengths[axis] > extents[axis] - starts[axis]:
            return axis
    return -1


@njit
def place_block(w, extents, starts, lengths, block):
    """Copy a block into w, an array with `extents`; the block must be inside."""
    _copy_block(w, extents, starts, lengths, block, True)


@njit
def _copy_block(array, extents, starts, lengths, block, into_array):
    """Copy a block run by run, into `array` if `into_array`, else out of it.

    A run covers the last axes, those that the block has completely and the one before them. The runs along the next
    axis have constant distances; the offsets along the others are computed.
    """
    if block.size == 0:
        return
    axis, run = extents.size - 1, 1
    while axis >= 0 and lengths[axis] == extents[axis]:
        run *= lengths[axis]
        axis -= 1
    first, stride, rows, row_stride = 0, run, 1, 0
    if axis >= 0:
        first, stride, run = starts[axis] * run, stride * extents[axis], run * lengths[axis]
        axis -= 1
    if axis >= 0:
        rows, row_stride = lengths[axis], stride
        first, stride = first + starts[axis] * stride, stride * extents[axis]
        axis -= 1
    at = 0
    for plane in range(block.size // (rows * run)):
        start = first + _offset_of(plane, axis, stride, extents, starts, lengths)
        for row in range(rows):
            source = start + row * row_stride
            if into_array:
                for i in range(run):
                    array[source + i] = block[at + i]
            else:
                for i in range(run):
                    block[at + i] = array[source + i]
            at += run


@njit
def _offset_of(plane, last, stride, extents, starts, lengths):
    """Return the offset of combination `plane` of the positions along the axes up to `last`, the last fastest."""
    offset = np.int64(0)
    for axis in range(last, -1, -1):
        offset += (starts[axis] + plane % lengths[axis]) * stride
        plane //= lengths[axis]
        stride *= extents[axis]
    return offset

"""Kernels: adapts the functions of udfs/ that move parts of arrays to the calling convention, for each dtype."""

import numpy as np
from numba import types

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels.compiled.arithmetic import DtypeArithmetic
from sparseeinsum.kernels.compiled.calling_convention import ArgumentAccess, RowKernel
from sparseeinsum.kernels.compiled.raw_memory import array_at
from sparseeinsum.kernels.compiled.scratch import argument, integer, integers, tile_memory, word

aggregation = load_kernels("aggregation")
elementwise = load_kernels("elementwise")
layout = load_kernels("layout")
tiles = load_kernels("tiles")


def layout_kernels(arithmetic: DtypeArithmetic, array: ArgumentAccess) -> dict[str, RowKernel]:
    """Return the kernels for slices, splits, stacks, tiles and counts, by their names."""
    return {**_part_kernels(arithmetic.dtype, array), **_stacks(arithmetic, array), **_counts(arithmetic.dtype, array)}


def _part_kernels(dtype: types.Type, array: ArgumentAccess) -> dict[str, RowKernel]:
    def take_slice(row, out, size, scratch):
        w = array_at(out, size, dtype)
        layout.take_slice(array(row, 0), integer(row, 1), integer(row, 2), integers(row, 3), w)
        return 0

    def split(row, out, size, scratch):
        layout.split(array(row, 0), integers(row, 1), integers(row, 2), array_at(out, size, dtype))
        return 0

    def equal_size(row, part, part_count, scratch):
        return argument(row, 0)[1] // part_count

    def split_tiles(row, out, size, scratch):
        starts, lengths = tile_memory(scratch)
        w = array_at(out, size, dtype)
        tiles.split_tiles(array(row, 0), integers(row, 1), integers(row, 2), starts, lengths, w)
        return 0

    def tile_size(row, part, part_count, scratch):
        starts, lengths = tile_memory(scratch)
        return tiles.locate_tile(part, integers(row, 1), integers(row, 2), starts, lengths)

    return {
        "slice": RowKernel(take_slice),
        "split": RowKernel(split, part_size=equal_size),
        "split_tiles": RowKernel(split_tiles, part_size=tile_size),
    }


def _stacks(arithmetic: DtypeArithmetic, array: ArgumentAccess) -> dict[str, RowKernel]:
    dtype, bits, words = arithmetic.dtype, arithmetic.bits, arithmetic.words

    def stack(row, out, size, scratch):
        w = array_at(out, size, dtype)
        layout.place(w, array(row, 0), integer(row, 1), integer(row, 2), integer(row, 3))
        return 0

    def start_stack(row, out, size):
        elementwise.fill(array(row, 4)[0], array_at(out, size, dtype))
        return 0

    def stack_number(row, out, size, scratch):
        array_at(out, size, dtype)[integer(row, 1)] = array(row, 0)[0]
        return 0

    def start_numbers(row, out, size):
        elementwise.fill(array(row, 3)[0], array_at(out, size, dtype))
        return 0

    def resident(row, out, size, scratch):
        u = array(row, 0)
        layout.place(array_at(out, size, dtype), u, integer(row, 1), integer(row, 2), u.size)
        return 0

    def place(row, out, size, scratch):
        w = array_at(out, size, dtype)
        tiles.place_block(w, integers(row, 3), integers(row, 1), integers(row, 2), array(row, 0))
        return 0

    def overlay(out, other, size, background, shape):
        w, u = array_at(out, words * size, bits), array_at(other, words * size, bits)
        layout.overlay(w, u, array_at(background, words, bits))
        return 0

    return {
        "stack": RowKernel(stack, None, start_stack, overlay),
        "resident": RowKernel(resident, None, start_numbers, overlay),
        "stack_numbers": RowKernel(stack_number, None, start_numbers, overlay),
        "place": RowKernel(place, None, start_stack, overlay),
    }


def _counts(dtype: types.Type, array: ArgumentAccess) -> dict[str, RowKernel]:
    def count(row, out, size, scratch):
        layout.count_in_each(array(row, 0), dtype(0), array_at(out, size, word))
        return 0

    def count_along(row, out, size, scratch):
        fill, counts = array(row, 3)[0], array_at(out, size, word)
        layout.count_along(array(row, 0), integer(row, 1), integers(row, 2), fill, counts)
        return 0

    def start_count(row, out, size):
        elementwise.fill(np.int64(0), array_at(out, size, word))
        return 0

    def add_counts(out, other, size, background, shape):
        aggregation.add_scaled(array_at(out, size, word), word(1), array_at(other, size, word))
        return 0

    return {
        "count": RowKernel(count, None, start_count, add_counts),
        "nnz_along": RowKernel(count_along, None, start_count, add_counts),
    }

"""Kernels: checks a row's arguments, and returns the number of elements of its result; nothing is computed here.

Every function takes the addresses (int64) of a *row* (see descriptors.py) and of scratch memory. It returns a number of
elements, or a negative error code, with the numbers that its message shows in the scratch memory.
"""

from numba import njit

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.parsed_arguments import (
    aggregate_code,
    numbers_of_state,
    read_contraction,
    read_expression,
    smallest,
    user_aggregate,
)
from sparseeinsum.kernels.compiled.plan_memory import plan_of
from sparseeinsum.kernels.compiled.raw_memory import array_at, copy_elements
from sparseeinsum.kernels.compiled.scratch import MOST_ROWS, argument, half_word, integer, integers, report, shape_of

aggregation = load_kernels("aggregation")
contraction_plan = load_kernels("contraction_plan")
inverse = load_kernels("inverse")
layout = load_kernels("layout")
ordering = load_kernels("ordering")
tiles = load_kernels("tiles")


@njit
def measure_one(row, scratch):
    return 1


@njit
def measure_first(row, scratch):
    return argument(row, 0)[1]


@njit
def measure_second(row, scratch):
    return argument(row, 1)[1]


@njit
def measure_same(row, scratch):
    first, second = argument(row, 0)[1], argument(row, 1)[1]
    if first != second:
        return report(scratch, d.LENGTHS_DIFFER, first, second, 0)
    return first


@njit
def measure_dot(row, scratch):
    code = measure_same(row, scratch)
    return code if code < 0 else 1


@njit
def measure_outer(row, scratch):
    return argument(row, 0)[1] * argument(row, 1)[1]


@njit
def measure_fill(row, scratch):
    size = integer(row, 0)
    return size if 0 <= size <= layout.MAX_ELEMENTS else report(scratch, d.BAD_SIZE, size, 0, 0)


@njit
def measure_gather_rows(row, scratch):
    address, count = argument(row, 1)
    numbers, size = argument(row, 0)[1], integer(row, 3)
    if numbers != count:
        return report(scratch, d.POSITIONS_MISSING, numbers, count, 0)
    if not 0 <= size <= layout.MAX_ELEMENTS:
        return report(scratch, d.BAD_SIZE, size, 0, 0)
    if size == 0:
        return 0
    positions, rows = array_at(address, count, half_word), argument(row, 2)[1] // size
    for entry in range(count):
        if not 0 <= positions[entry] < rows:
            return report(scratch, d.NO_SUCH_ROW, positions[entry], rows, size)
    return size


@njit
def check_extents(row, scratch, operand, index):
    """Return 0 if the length of argument `operand` is the product of the extents at argument `index`, else a code."""
    extents = integers(row, index)
    if extents.size > layout.MAX_AXES:
        return report(scratch, d.TOO_MANY_EXTENTS, extents.size, 0, 0)
    expected = layout.product_of(extents)
    if expected < 0:
        return report(scratch, expected, smallest(extents), 0, 0)
    size = argument(row, operand)[1]
    return 0 if size == expected else report(scratch, d.WRONG_LENGTH, operand + 1, size, expected)


@njit
def measure_slice(row, scratch):
    code = check_extents(row, scratch, 0, 3)
    if code < 0:
        return code
    extents = integers(row, 3)
    axis, position = integer(row, 1), integer(row, 2)
    size = layout.slice_size(axis, position, extents)
    if size == layout.BAD_AXIS:
        return report(scratch, size, axis, extents.size, 0)
    if size == layout.BAD_POSITION:
        return report(scratch, size, position, extents[axis], 0)
    return size


@njit
def measure_split(row, scratch):
    code = check_extents(row, scratch, 0, 2)
    if code < 0:
        return code
    axes, extents = integers(row, 1), integers(row, 2)
    bad = layout.find_bad_axis(axes, extents)
    if bad >= 0:
        return report(scratch, layout.BAD_AXIS, axes[bad], extents.size, 0)
    return layout.split_count(axes, extents)


@njit
def measure_split_tiles(row, scratch):
    sizes, extents = integers(row, 1), integers(row, 2)
    if sizes.size != extents.size:
        return report(scratch, tiles.TILES_MISSING, sizes.size, extents.size, 0)
    code = check_extents(row, scratch, 0, 2)
    if code < 0:
        return code
    if sizes.size > 0 and smallest(sizes) < 0:
        return report(scratch, tiles.BAD_TILE, smallest(sizes), 0, 0)
    return tiles.count_tiles(sizes, extents)


@njit
def measure_place(row, scratch):
    starts, lengths, extents = integers(row, 1), integers(row, 2), integers(row, 3)
    if starts.size != lengths.size or extents.size != lengths.size:
        return report(scratch, tiles.STARTS_MISSING, starts.size, lengths.size, extents.size)
    code = check_extents(row, scratch, 0, 2)
    if code < 0:
        return code
    size = layout.product_of(extents)
    if size < 0:
        return report(scratch, size, smallest(extents), 0, 0)
    axis = tiles.axis_outside(starts, lengths, extents)
    if axis >= 0:
        return report(scratch, tiles.OUTSIDE, lengths[axis], starts[axis], extents[axis], axis)
    shape = shape_of(scratch)
    shape[0] = extents.size
    copy_elements(shape[1 : 1 + extents.size], extents)
    return size


@njit
def measure_matmul(row, scratch):
    extents = integers(row, 2)
    if extents.size != 3:
        return report(scratch, contraction_plan.WRONG_EXTENTS, extents.size, 3, 0)
    m, k, n = extents[0], extents[1], extents[2]
    code = contraction_plan.plan_matrix_product(m, k, n, plan_of(scratch))
    if code < 0:
        return report(scratch, code, smallest(extents), 0, 0)
    if argument(row, 0)[1] != m * k:
        return report(scratch, d.WRONG_LENGTH, 1, argument(row, 0)[1], m * k)
    if argument(row, 1)[1] != k * n:
        return report(scratch, d.WRONG_LENGTH, 2, argument(row, 1)[1], k * n)
    return m * n


@njit
def measure_stack(row, scratch):
    size, inner = integer(row, 2), integer(row, 3)
    length = argument(row, 0)[1]
    if inner < 0 or (inner == 0 and length != 0) or (inner > 0 and length % inner != 0):
        return report(scratch, d.BAD_INNER, length, inner, 0)
    shape = shape_of(scratch)
    shape[0], shape[1], shape[2] = 2, size, inner
    return _stack_size(row, scratch, length, integer(row, 1), size)


@njit
def measure_stack_numbers(row, scratch):
    return _stack_size(row, scratch, 1, integer(row, 1), integer(row, 2))


@njit
def measure_resident(row, scratch):
    size = integer(row, 2)
    shape = shape_of(scratch)
    shape[0], shape[1] = 1, size
    return _stack_size(row, scratch, argument(row, 0)[1], integer(row, 1), size)


@njit
def _stack_size(row, scratch, length, position, size):
    if position < 0 or position >= size:
        return report(scratch, layout.BAD_POSITION, position, size, 0)
    if length > 0 and size > layout.MAX_ELEMENTS // length:
        return report(scratch, d.STACK_TOO_LARGE, size, length, 0)
    return size * length


@njit
def _check_axis(row, scratch, operand):
    """Check an operand, and the axis and the extents that follow it; returns the axis or an error code."""
    code = check_extents(row, scratch, operand, operand + 2)
    if code < 0:
        return code
    axis, axes = integer(row, operand + 1), integers(row, operand + 2).size
    return axis if 0 <= axis < axes else report(scratch, layout.BAD_AXIS, axis, axes, 0)


@njit
def measure_nnz_along(row, scratch):
    axis = _check_axis(row, scratch, 0)
    return axis if axis < 0 else integers(row, 2)[axis]


@njit
def measure_sort(row, scratch):
    axis = _check_axis(row, scratch, 0)
    return axis if axis < 0 else argument(row, 0)[1]


@njit
def measure_largest(row, scratch):
    axis = _check_axis(row, scratch, 0)
    if axis < 0:
        return axis
    count, extent = integer(row, 3), integers(row, 2)[axis]
    if not 0 <= count <= extent:
        return report(scratch, ordering.BAD_COUNT, count, extent, 0)
    return argument(row, 0)[1] // extent * count if extent > 0 else 0


@njit
def measure_inverse(row, scratch):
    code = check_extents(row, scratch, 0, 1)
    if code < 0:
        return code
    extents = integers(row, 1)
    if extents.size < 2 or extents[-1] != extents[-2]:
        return report(scratch, inverse.NOT_SQUARE, extents.size, 0, 0)
    if extents[-1] > MOST_ROWS:
        return report(scratch, inverse.TOO_MANY_ROWS, extents[-1], MOST_ROWS, 0)
    return argument(row, 0)[1]


@njit
def measure_scan(row, scratch):
    code = aggregate_code(row)
    if code >= 0:
        code = _check_axis(row, scratch, 1)
    return code if code < 0 else argument(row, 1)[1]


@njit
def measure_map(row, scratch):
    code = read_expression(row, scratch, 0, 1)
    return code if code < 0 else argument(row, 1)[1]


@njit
def _measure_reduce(row, scratch, operands):
    code = aggregate_code(row)
    if code >= 0:
        code = read_expression(row, scratch, 1, operands)
    return code if code < 0 else read_contraction(row, scratch, 2, operands)


@njit
def measure_reduce(row, scratch):
    return _measure_reduce(row, scratch, 2)


@njit
def measure_reduce_one(row, scratch):
    return _measure_reduce(row, scratch, 1)


@njit
def _measure_fold(row, scratch, operands):
    aggregate = user_aggregate(row)
    if aggregate < 0:
        return aggregate
    arguments = 1 + ((aggregate >> 2) & 1)
    if operands != arguments:
        return report(scratch, aggregation.WRONG_ARGUMENTS, arguments, operands, 0)
    size = read_contraction(row, scratch, 1, operands)
    return size if size < 0 else size * numbers_of_state(aggregate)


@njit
def measure_fold(row, scratch):
    return _measure_fold(row, scratch, 2)


@njit
def measure_fold_one(row, scratch):
    return _measure_fold(row, scratch, 1)


@njit
def measure_merge(row, scratch):
    aggregate = user_aggregate(row)
    if aggregate < 0:
        return aggregate
    size = argument(row, 1)[1]
    if size % numbers_of_state(aggregate) != 0:
        return report(scratch, d.BAD_INNER, size, numbers_of_state(aggregate), 0)
    shape = shape_of(scratch)
    shape[0], shape[1] = 1, aggregate
    return size


@njit
def measure_einsum(row, scratch):
    return read_contraction(row, scratch, 0, 2)


@njit
def measure_einsum_of_one(row, scratch):
    return read_contraction(row, scratch, 0, 1)

"""Kernels: cuts the rows of a chunk into runs that share all arguments but one, so that one call computes a run."""

from numba import njit

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.duckdb.vectors import (
    argument_is_valid,
    half_word,
    has_no_nulls,
    value_address,
    word,
)
from sparseeinsum.kernels.compiled.raw_memory import array_at

_TEXT_WORDS = 2  # a duckdb_string_t, of which equal texts may have different ones


@njit
def end_of_run(descriptor, work, first, rows, arguments, varying):
    """Return where the rows end that have the arguments of the first one, none of them a list, but for one of them.

    That one, number `varying`, is NULL either in all rows or in none. Only the first `arguments` are compared.
    """
    end, has_nulls = rows, not has_no_nulls(work, arguments)
    for index in range(arguments):
        is_valid, row = argument_is_valid(work, index, first), first + 1
        while has_nulls and row < end and argument_is_valid(work, index, row) == is_valid:
            row += 1
        end = row if has_nulls else end
        if index != varying and is_valid:
            end = first + _count_equal(descriptor, work, index, first, end)
    return end


@njit
def _count_equal(descriptor, work, index, first, end):
    """Return how many rows, from the first one on, have its argument `index`."""
    if descriptor[d.HEADER + 2 * index] == d.TEXT:
        return _count_equal_values(
            array_at(value_address(work, index, first, 16), _TEXT_WORDS * (end - first), word), 2
        )
    item_bytes = descriptor[d.HEADER + 2 * index + 1]
    address = value_address(work, index, first, item_bytes)
    if item_bytes == 8:
        return _count_equal_values(array_at(address, end - first, word), 1)
    return _count_equal_values(array_at(address, end - first, half_word), 1)


@njit
def _count_equal_values(values, together):
    """Return how many values, each of as many words as there are `together`, are equal to the first one, in turn."""
    differ = False
    for index in range(together, values.size):
        differ |= values[index] != values[index - together]
    if not differ:  # nearly always; that loop, without an exit, compares many at a time
        return values.size // together
    index = together
    while values[index] == values[index - together]:
        index += 1
    return index // together


@njit
def find_outside(numbers, rows):
    """Return the place of a number that is not 0 to `rows` - 1, or -1 if there is none."""
    are_outside = False
    for index in range(numbers.size):
        are_outside |= (numbers[index] < 0) | (numbers[index] >= rows)
    if are_outside:
        for index in range(numbers.size):
            if numbers[index] < 0 or numbers[index] >= rows:
                return index
    return -1

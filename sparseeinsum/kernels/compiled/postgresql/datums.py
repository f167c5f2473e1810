"""Kernels: reads rows from PostgreSQL's datums, and creates arrays for results, for scalar functions and aggregates.

All parameters are int64, as pointers, Datum and Size are in the C ABI. The layouts are those of `fmgr.h`, `varatt.h`
and `array.h`, which are the same from PostgreSQL 15 to 18. PostgreSQL's own errors leave the callback by a long jump,
so that all memory here belongs to PostgreSQL's memory contexts.
"""

from collections.abc import Callable

from numba import njit, types

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.kernel_calls import (
    HOST_WORDS,
    NULL_ROW,
    ROW,
    THREADS,
    copy_bytes,
    is_complex,
    message_of,
    pair_elements,
    report,
    word,
)
from sparseeinsum.kernels.compiled.raw_memory import LARGE_PAGE, array_at, use_large_pages
from sparseeinsum.kernels.postgresql.descriptors import (
    DECLARED_TYPES,
    DESCRIPTOR_WORDS,
    FLOAT4,
    FLOAT8,
    INT4,
    INT8,
    KERNEL_TYPES,
    NUMERIC,
    RESULT_TYPE,
    SQLSTATES,
)

_half = types.int32

# PostgreSQL's functions; those named sparseeinsum_* are wrappers in building/postgresql_functions.py.
_detoast = types.ExternalFunction("pg_detoast_datum", word(word))
allocate = types.ExternalFunction("palloc", word(word))
_allocate_with = types.ExternalFunction("palloc_extended", word(word, word))
allocate_huge_in = types.ExternalFunction("MemoryContextAllocHuge", word(word, word))
allocate_zeros_in = types.ExternalFunction("MemoryContextAllocZero", word(word, word))
_count_items = types.ExternalFunction("ArrayGetNItems", _half(word, word))
_contains_nulls = types.ExternalFunction("array_contains_nulls", types.uint8(word))
_deconstruct = types.ExternalFunction("deconstruct_array", types.void(*[word] * 8))
_numeric_to_float = types.ExternalFunction("sparseeinsum_numeric_to_float8", word(word))
_statement_threads = types.ExternalFunction("sparseeinsum_statement_threads", word())
_raise_error = types.ExternalFunction("sparseeinsum_raise", types.void(word, word))

# Offsets of fmgr.h: FunctionCallInfoBaseData, whose arguments are pairs of a datum and a null flag; and FmgrInfo.
_NULL_FLAG, _COUNT, _ARGUMENTS = 28, 30, 32
FN_EXTRA, FN_CONTEXT = 24, 32

# Offsets of array.h: the header of an array. Dimensions, lower bounds, the NULL bitmap and elements follow.
_DIMENSIONS, _DATA_OFFSET, _ELEMENT_TYPE, _ARRAY_HEADER = 4, 8, 12, 16
_MOST_DIMENSIONS = 6
FLAT_HEADER = 24  # bytes of the header of an array of one dimension
BYTES_HEADER = 4  # bytes of the header of any other value of variable length, which contains the length
_ALLOW_HUGE = 1  # MCXT_ALLOC_HUGE
_ALIGNED_AS_INT = 105  # the letter i

# The words of PostgreSQL's callbacks in the work memory: converted numbers, a result that is a number, and the results
# of deconstruct_array.
_CONVERTED = HOST_WORDS
_NUMBER_RESULT = _CONVERTED + d.MAX_ARGUMENTS
_PARTS = _NUMBER_RESULT + 1
KEPT = _PARTS + 3  # words that a callback keeps from row to row
KEPT_WORDS = 24
WORK_BYTES = 8 * (KEPT + KEPT_WORDS)


@njit
def word_at(address):
    return array_at(address, 1, word)[0]


@njit
def half_at(address):
    return word(array_at(address, 1, _half)[0])


@njit
def descriptor_at(address):
    return array_at(address, DESCRIPTOR_WORDS, word)


@njit
def datum_of(call_info, index):
    return word_at(call_info + _ARGUMENTS + 16 * index)


@njit
def is_null(call_info, index):
    return array_at(call_info + _ARGUMENTS + 16 * index + 8, 1, types.uint8)[0] != 0


@njit
def null_result(call_info):
    array_at(call_info + _NULL_FLAG, 1, types.uint8)[0] = 1
    return 0


@njit
def unchanged_state(call_info):
    """Return the state of an aggregate, its first argument, after a row that adds nothing; NULL without a state."""
    return null_result(call_info) if is_null(call_info, 0) else datum_of(call_info, 0)


@njit
def work_of(call_info):
    """Return the work memory that all evaluations of a call in a query share, with its parsed texts and extents."""
    info = word_at(call_info)
    work = array_at(info + FN_EXTRA, 1, word)
    if work[0] == 0:
        work[0] = allocate_zeros_in(word_at(info + FN_CONTEXT), WORK_BYTES)
        array_at(work[0] + 8 * THREADS, 1, word)[0] = _statement_threads()
    return work[0]


@njit
def raise_error(descriptor, work, code):
    """Raise an error in PostgreSQL, which leaves the callback by a long jump."""
    _raise_error(word_at(descriptor[SQLSTATES] - 8 * code), message_of(descriptor, code, work))
    return 0


@njit
def detoast(datum):
    """Return a datum uncompressed, with a long header, at an address that is a multiple of 8."""
    plain = _detoast(datum)
    if plain & 7 == 0:
        return plain
    aligned = allocate(bytes_of(plain))
    copy_bytes(aligned, plain, bytes_of(plain))
    return aligned


@njit
def bytes_of(datum):
    return (half_at(datum) >> 2) & 0x3FFFFFFF


@njit
def read_row(call_info, first, descriptor, work):
    """Write the addresses and sizes of a call's arguments from number `first` on to the row; 0, NULL_ROW or a code.

    Raises an error if SQL declares the function with another number of arguments than the library.
    """
    _check_count(call_info, descriptor, work, first + descriptor[d.ARGUMENTS])
    for index in range(descriptor[d.ARGUMENTS]):
        if is_null(call_info, first + index):
            return NULL_ROW
    for index in range(descriptor[d.ARGUMENTS]):
        code = _read_argument(call_info, first, descriptor, work, index)
        if code < 0:
            return code
    return 0


@njit
def read_present(call_info, descriptor, work):
    """Write the addresses and sizes of a call's arguments to the row, 0 for those that are NULL; 0 or a code.

    Raises an error as `read_row` does.
    """
    _check_count(call_info, descriptor, work, descriptor[d.ARGUMENTS])
    for index in range(descriptor[d.ARGUMENTS]):
        if is_null(call_info, index):
            target = array_at(work + 8 * ROW + 16 * index, 2, word)
            target[0], target[1] = 0, 0
            continue
        code = _read_argument(call_info, 0, descriptor, work, index)
        if code < 0:
            return code
    return 0


@njit
def _read_argument(call_info, first, descriptor, work, index):
    """Write the address and size of an argument, those from number `first` on, to the row; returns 0 or a code."""
    target, kind = array_at(work + 8 * ROW + 16 * index, 2, word), descriptor[d.HEADER + 2 * index]
    datum = datum_of(call_info, first + index)
    if kind == d.TEXT:
        text = _detoast(datum)
        target[0], target[1] = text + BYTES_HEADER, bytes_of(text) - BYTES_HEADER
        return 0
    if kind != d.VALUE:
        return _read_array(datum, descriptor, work, index, target)
    target[0], target[1] = call_info + _ARGUMENTS + 16 * (first + index), 1
    declared_type, kernel_type = descriptor[DECLARED_TYPES + index], descriptor[KERNEL_TYPES + index]
    if declared_type != kernel_type:
        target[0] = work + 8 * (_CONVERTED + index)
        _convert_number(declared_type, kernel_type, datum, target[0])
    return 0


@njit
def _check_count(call_info, descriptor, work, count):
    declared_type = word(array_at(call_info + _COUNT, 1, types.int16)[0])
    if declared_type != count:
        report(work, declared_type, count)
        raise_error(descriptor, work, d.WRONG_ARGUMENTS)


@njit
def _read_array(datum, descriptor, work, index, target):
    """Write the address and size of an argument that is an array to `target`; returns 0 or an error code."""
    array = detoast(datum)
    kind, declared_type, kernel_type = (
        descriptor[d.HEADER + 2 * index],
        descriptor[DECLARED_TYPES + index],
        descriptor[KERNEL_TYPES + index],
    )
    code = check_array(array, declared_type, work, index)
    if code < 0:
        return code
    data, size = elements_of(array)
    if declared_type != kernel_type:
        converted = allocate_huge(8 * size + 8)
        _convert_elements(declared_type, kernel_type, array, data, size, work, converted)
        data = converted
    target[0], target[1] = data, size
    return pair_elements(kind, work, index, target, data) if is_complex(kind) else 0


@njit
def check_array(array, element_type, work, index):
    """Return 0 if an array is valid, has elements of `element_type`, and contains no NULL; else an error code."""
    actual_type = half_at(array + _ELEMENT_TYPE)
    if actual_type != element_type:
        report(work, index + 1, actual_type, element_type)
        return d.WRONG_ELEMENTS
    dimensions, offset, end = half_at(array + _DIMENSIONS), half_at(array + _DATA_OFFSET), array + bytes_of(array)
    if not 0 <= dimensions <= _MOST_DIMENSIONS:
        report(work, index + 1, dimensions)
        return d.DAMAGED_ARRAY
    data, size = elements_of(array)
    report(work, index + 1, size)
    if offset != 0:
        if array + _ARRAY_HEADER + 8 * dimensions + (size + 7) // 8 > min(data, end):
            return d.DAMAGED_ARRAY
        if _contains_nulls(array) != 0:
            return d.HOLDS_NULL
    item_bytes = 0 if element_type == NUMERIC else _bytes_of_number(element_type)
    return d.DAMAGED_ARRAY if data + size * item_bytes > end else 0


@njit
def _bytes_of_number(number_type):
    return 4 if number_type in (FLOAT4, INT4) else 8


@njit
def elements_of(array):
    """Return the address and the number of an array's elements, whatever its dimensions and lower bounds."""
    dimensions, offset = half_at(array + _DIMENSIONS), half_at(array + _DATA_OFFSET)
    if offset == 0:
        offset = _ARRAY_HEADER + 8 * dimensions
    return array + offset, word(_count_items(dimensions, array + _ARRAY_HEADER))


@njit
def _convert_number(declared_type, kernel_type, datum, target):
    """Convert an int4, int8 or numeric to float64, or an int4 to int64, and write it to `target`."""
    if declared_type == NUMERIC:
        array_at(target, 1, word)[0] = _numeric_to_float(datum)  # the datum of a float8 is its bits
    elif kernel_type == FLOAT8:
        array_at(target, 1, types.float64)[0] = types.float64(_integer_of(declared_type, datum))
    else:
        array_at(target, 1, word)[0] = _integer_of(declared_type, datum)


@njit
def _integer_of(declared_type, datum):
    return word(types.int32(datum)) if declared_type == INT4 else datum


@njit
def _convert_elements(declared_type, kernel_type, array, data, size, work, target):
    if declared_type == NUMERIC:
        elements_words = array_at(work + 8 * _PARTS, 3, word)
        start = work + 8 * _PARTS
        _deconstruct(array, NUMERIC, -1, 0, _ALIGNED_AS_INT, start, start + 8, start + 16)
        data = elements_words[0]
    for index in range(size):
        datum = half_at(data + 4 * index) if declared_type == INT4 else word_at(data + 8 * index)
        _convert_number(declared_type, kernel_type, datum, target + 8 * index)


@njit
def new_array(descriptor, work, size):
    """Allocate an array for `size` elements of a result, of one or two numbers each; its address, or an error code."""
    numbers = size * descriptor[d.RESULT_LANES]
    item_bytes = descriptor[d.RESULT_BYTES]
    if size > descriptor[d.LIMIT_BYTES] // item_bytes:
        report(work, size * item_bytes, descriptor[d.LIMIT_BYTES])
        return d.RESULT_TOO_LARGE
    total = FLAT_HEADER + size * item_bytes
    array = _allocate_large(total)
    header = array_at(array, FLAT_HEADER // 4, _half)
    if size == 0:
        total = _ARRAY_HEADER  # an array of no dimensions
    header[0] = total << 2
    header[1] = 0 if size == 0 else 1
    header[2] = 0
    header[3] = descriptor[RESULT_TYPE]
    header[4] = numbers
    header[5] = 1
    return array


@njit
def new_words(descriptor, work, size):
    """Allocate a bigint[] of `size` words, at least one; returns its address, or an error code."""
    if size > descriptor[d.LIMIT_BYTES] // 8:
        report(work, 8 * size, descriptor[d.LIMIT_BYTES])
        return d.RESULT_TOO_LARGE
    array = allocate(FLAT_HEADER + 8 * size)
    header = array_at(array, FLAT_HEADER // 4, _half)
    header[0], header[1], header[2] = FLAT_HEADER + 8 * size << 2, 1, 0
    header[3], header[4], header[5] = INT8, size, 1
    return array


@njit
def new_bytes(descriptor, work, size):
    """Allocate a bytea of `size` bytes; returns its address, or an error code."""
    if size > descriptor[d.LIMIT_BYTES]:
        report(work, size, descriptor[d.LIMIT_BYTES])
        return d.RESULT_TOO_LARGE
    value = _allocate_large(BYTES_HEADER + size)
    array_at(value, 1, _half)[0] = BYTES_HEADER + size << 2
    return value


@njit
def _allocate_large(size):
    """Allocate memory as `allocate` does, in large pages if it takes several."""
    address = allocate(size)
    if size >= 2 * LARGE_PAGE:
        use_large_pages(address, size)
    return address


@njit
def allocate_huge(size):
    """Allocate memory until the function returns, also more than a value can have; returns its address."""
    return _allocate_with(size, _ALLOW_HUGE)


@njit
def number_result(work):
    """Return the address of a zeroed word for a result that is a number."""
    array_at(work + 8 * _NUMBER_RESULT, 1, word)[0] = 0
    return work + 8 * _NUMBER_RESULT


def value_callback(name: str, compute_value: Callable[..., int]) -> Callable[..., int]:
    """Make the callback that returns a value.

    Args:
        name: The name of the callback in object files.
        compute_value: (descriptor, work) returns the value, 0 for NULL, or an error code.
    """

    def callback(call_info, description):
        descriptor, work = descriptor_at(description), work_of(call_info)
        code = read_row(call_info, 0, descriptor, work)
        value = word(0)
        if code != NULL_ROW:
            value = compute_value(descriptor, work) if code == 0 else word(code)
        if value == 0:
            return null_result(call_info)
        return raise_error(descriptor, work, value) if value < 0 else value

    callback.__name__ = name
    compiled: Callable[..., int] = njit(callback)
    return compiled

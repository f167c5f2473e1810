"""Kernels: PostgreSQL's datums in, rows for the kernels out, and arrays for its results; of scalars and aggregates.

All parameters are int64, which is what pointers, Datum and Size are to the C ABI. The layouts are those of `fmgr.h`,
`varatt.h` and `array.h`, the same from PostgreSQL 15 to 18. Whatever may end in PostgreSQL's own error leaves the
callback at once, so that nothing here holds memory that PostgreSQL's contexts do not free.
"""

from numba import njit, types

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.kernel_calls import (
    HOSTS_OWN,
    NULL_ROW,
    ROW,
    copy_bytes,
    is_complex,
    message_of,
    pair_elements,
    report,
    word,
)
from sparseeinsum.kernels.compiled.memory import array_at
from sparseeinsum.kernels.postgresql.descriptors import (
    DECLARED,
    DESCRIPTOR_WORDS,
    FLOAT4,
    FLOAT8,
    INT4,
    NUMERIC,
    RESULT_TYPE,
    SQLSTATES,
    WANTED,
)

_half = types.int32

# PostgreSQL's functions; those named sparseeinsum_* are a few lines of postgres_library.py around others of its.
_detoast = types.ExternalFunction("pg_detoast_datum", word(word))
allocate = types.ExternalFunction("palloc", word(word))
_allocate_with = types.ExternalFunction("palloc_extended", word(word, word))
allocate_zeros_in = types.ExternalFunction("MemoryContextAllocZero", word(word, word))
_count_items = types.ExternalFunction("ArrayGetNItems", _half(word, word))
_contains_nulls = types.ExternalFunction("array_contains_nulls", types.uint8(word))
_deconstruct = types.ExternalFunction("deconstruct_array", types.void(*[word] * 8))
_numeric_to_float = types.ExternalFunction("sparseeinsum_numeric_to_float8", word(word))
_raise_error = types.ExternalFunction("sparseeinsum_raise", types.void(word, word))

# fmgr.h: FunctionCallInfoBaseData, of which the arguments are pairs of a datum and a null flag; and FmgrInfo.
_NULL_FLAG, _COUNT, _ARGUMENTS = 28, 30, 32
FN_EXTRA, _FN_CONTEXT = 24, 32

# array.h: the header of an array, whose dimensions follow, then their lower bounds, then NULLs, then elements.
_DIMENSIONS, _DATA_OFFSET, _ELEMENT_TYPE, _ARRAY_HEADER = 4, 8, 12, 16
_MOST_DIMENSIONS = 6
FLAT_HEADER = 24  # of an array of one dimension
BYTES_HEADER = 4  # of any other value without a fixed size, its length
_ALLOW_HUGE = 1  # MCXT_ALLOC_HUGE
_ALIGNED_AS_INT = 105  # the letter i

# What PostgreSQL's callbacks add to the memory of one call, in words: numbers that were converted, a result that is a
# number, and what deconstruct_array fills in.
_CONVERTED = HOSTS_OWN
_NUMBER_RESULT = _CONVERTED + d.MAX_ARGUMENTS
_PARTS = _NUMBER_RESULT + 1
WORK_BYTES = 8 * (_PARTS + 3)


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
def work_of(call_info):
    """Memory that all calls of one place in a query share, which keeps what texts and extents said."""
    info = word_at(call_info)
    kept = array_at(info + FN_EXTRA, 1, word)
    if kept[0] == 0:
        kept[0] = allocate_zeros_in(word_at(info + _FN_CONTEXT), WORK_BYTES)
    return kept[0]


@njit
def raise_error(descriptor, work, code):
    """Leave the callback with an error."""
    _raise_error(word_at(descriptor[SQLSTATES] - 8 * code), message_of(descriptor, code, work))
    return 0


@njit
def check_count(call_info, descriptor, work, count):
    """Refuse a call of a function that SQL declares with another number of arguments than the library knows."""
    declared = word(array_at(call_info + _COUNT, 1, types.int16)[0])
    if declared != count:
        report(work, declared, count)
        raise_error(descriptor, work, d.WRONG_ARGUMENTS)


@njit
def detoast(datum):
    """A datum whole, uncompressed, with a long header, at an address that fits all numbers."""
    whole = _detoast(datum)
    if whole & 7 == 0:
        return whole
    copied = allocate(bytes_of(whole))
    copy_bytes(copied, whole, bytes_of(whole))
    return copied


@njit
def bytes_of(datum):
    return (half_at(datum) >> 2) & 0x3FFFFFFF


@njit
def read_row(call_info, first, descriptor, work):
    """Write addresses and sizes of a call's arguments, from number `first` on, to the row; 0, NULL_ROW, or a code."""
    for index in range(descriptor[d.ARGUMENTS]):
        if is_null(call_info, first + index):
            return NULL_ROW
    for index in range(descriptor[d.ARGUMENTS]):
        target, kind = array_at(work + 8 * ROW + 16 * index, 2, word), descriptor[d.HEADER + 2 * index]
        datum = datum_of(call_info, first + index)
        if kind == d.TEXT:
            text = _detoast(datum)
            target[0], target[1] = text + BYTES_HEADER, bytes_of(text) - BYTES_HEADER
        elif kind == d.VALUE:
            target[0], target[1] = call_info + _ARGUMENTS + 16 * (first + index), 1
            declared, wanted = descriptor[DECLARED + index], descriptor[WANTED + index]
            if declared != wanted:
                target[0] = work + 8 * (_CONVERTED + index)
                _convert_number(declared, wanted, datum, target[0])
        else:
            code = _read_array(datum, descriptor, work, index, target)
            if code < 0:
                return code
    return 0


@njit
def _read_array(datum, descriptor, work, index, target):
    """Address and elements of an argument that is an array; 0 or a code."""
    array = detoast(datum)
    kind, declared, wanted = descriptor[d.HEADER + 2 * index], descriptor[DECLARED + index], descriptor[WANTED + index]
    code = check_array(array, declared, work, index)
    if code < 0:
        return code
    data, size = elements_of(array)
    if declared != wanted:
        converted = _allocate_with(8 * size + 8, _ALLOW_HUGE)
        _convert_elements(declared, wanted, array, data, size, work, converted)
        data = converted
    target[0], target[1] = data, size
    return pair_elements(kind, work, index, target, data) if is_complex(kind) else 0


@njit
def check_array(array, element_type, work, index):
    """0 if an array is well-formed, of that type, and holds no NULL, else a code."""
    found = half_at(array + _ELEMENT_TYPE)
    if found != element_type:
        report(work, index + 1, found, element_type)
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
    """Address and number of an array's elements, whatever its dimensions and lower bounds, in C order."""
    dimensions, offset = half_at(array + _DIMENSIONS), half_at(array + _DATA_OFFSET)
    if offset == 0:
        offset = _ARRAY_HEADER + 8 * dimensions
    return array + offset, word(_count_items(dimensions, array + _ARRAY_HEADER))


@njit
def _convert_number(declared, wanted, datum, target):
    """Write an int4, int8 or numeric as a float64, or an int4 as an int64."""
    if declared == NUMERIC:
        array_at(target, 1, word)[0] = _numeric_to_float(datum)  # a datum, too: the float's bits
    elif wanted == FLOAT8:
        array_at(target, 1, types.float64)[0] = types.float64(_whole_of(declared, datum))
    else:
        array_at(target, 1, word)[0] = _whole_of(declared, datum)


@njit
def _whole_of(declared, datum):
    return word(types.int32(datum)) if declared == INT4 else datum


@njit
def _convert_elements(declared, wanted, array, data, size, work, target):
    if declared == NUMERIC:
        parts = array_at(work + 8 * _PARTS, 3, word)
        start = work + 8 * _PARTS
        _deconstruct(array, NUMERIC, -1, 0, _ALIGNED_AS_INT, start, start + 8, start + 16)
        data = parts[0]
    for index in range(size):
        datum = half_at(data + 4 * index) if declared == INT4 else word_at(data + 8 * index)
        _convert_number(declared, wanted, datum, target + 8 * index)


@njit
def new_array(descriptor, work, size):
    """A new array for `size` elements of a result, each of one or two numbers; its address, or a code."""
    numbers = size * descriptor[d.RESULT_LANES]
    item_bytes = descriptor[d.RESULT_BYTES]
    if size > descriptor[d.LIMIT_BYTES] // item_bytes:
        report(work, size * item_bytes, descriptor[d.LIMIT_BYTES])
        return d.RESULT_TOO_LARGE
    total = FLAT_HEADER + size * item_bytes
    array = allocate(total)
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
def new_bytes(descriptor, work, size):
    """A new value for so many bytes; its address, or a code."""
    if size > descriptor[d.LIMIT_BYTES]:
        report(work, size, descriptor[d.LIMIT_BYTES])
        return d.RESULT_TOO_LARGE
    whole = allocate(BYTES_HEADER + size)
    array_at(whole, 1, _half)[0] = BYTES_HEADER + size << 2
    return whole


@njit
def number_result(work):
    """Address of a zeroed word for a result that is a number."""
    array_at(work + 8 * _NUMBER_RESULT, 1, word)[0] = 0
    return work + 8 * _NUMBER_RESULT

"""Kernels: the callbacks of PostgreSQL's scalar functions, which run the kernel that their descriptor names.

The callbacks take the addresses of a FunctionCallInfo and a descriptor, and return a datum.
"""

from numba import njit, types

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.kernel_calls import (
    NULL_ROW,
    ROW,
    compute,
    copy_bytes,
    measure,
    part_size,
    report,
    word,
)
from sparseeinsum.kernels.compiled.postgresql.datums import (
    BYTES_HEADER,
    FLAT_HEADER,
    FN_EXTRA,
    WORK_BYTES,
    allocate_huge_in,
    allocate_zeros_in,
    datum_of,
    descriptor_at,
    new_array,
    new_bytes,
    null_result,
    number_result,
    raise_error,
    read_row,
    word_at,
    work_of,
)
from sparseeinsum.kernels.compiled.raw_memory import array_at
from sparseeinsum.kernels.compiled.threads import compute_array
from sparseeinsum.kernels.postgresql.descriptors import DECLARED_TYPES, KERNEL_TYPES, LARGEST_RESULT

_start_set = types.ExternalFunction("init_MultiFuncCall", word(word))
_continue_set = types.ExternalFunction("per_MultiFuncCall", word(word))
_end_set = types.ExternalFunction("end_MultiFuncCall", types.void(word, word))

# Offsets in FuncCallContext of funcapi.h and ReturnSetInfo of execnodes.h, and the values of its isDone.
_CALLS, _MOST_CALLS, _OWN_DATA, _SET_CONTEXT = 0, 8, 16, 32
_RESULT_INFO, _IS_DONE = 16, 32
_MORE, _NO_MORE = 1, 2

# The memory of a function that returns a set, in words; then the size of every part, in elements, and all elements.
_WORK = 0
_NEXT_ELEMENT = 1
_ELEMENTS = 2  # address of the elements
_SIZES = 3


@njit
def postgres_value(call_info, description):
    """Compute a scalar function that returns a number."""
    descriptor, work = descriptor_at(description), work_of(call_info)
    code = read_row(call_info, 0, descriptor, work)
    if code == NULL_ROW:
        return null_result(call_info)
    out = number_result(work)
    if code == 0:
        code = measure(descriptor, work, work + 8 * ROW)
    if code >= 0:
        code = compute(descriptor, work, work + 8 * ROW, out, 1)
    return raise_error(descriptor, work, code) if code < 0 else word_at(out)


@njit
def postgres_array(call_info, description):
    """Compute a scalar function that returns an array."""
    descriptor, work = descriptor_at(description), work_of(call_info)
    code = read_row(call_info, 0, descriptor, work)
    if code == NULL_ROW:
        return null_result(call_info)
    row = work + 8 * ROW
    size = measure(descriptor, work, row) if code == 0 else code
    array = new_array(descriptor, work, size) if size >= 0 else size
    code = compute_array(descriptor, work, row, array + FLAT_HEADER, size) if array >= 0 else array
    return raise_error(descriptor, work, code) if code < 0 else array


@njit
def postgres_bytes(call_info, description):
    """Return the elements of an array, or of a part of it, as the bytes that they have in memory."""
    descriptor, work = descriptor_at(description), work_of(call_info)
    code = read_row(call_info, 0, descriptor, work)
    if code == NULL_ROW:
        return null_result(call_info)
    item_bytes, address = descriptor[d.HEADER + 1], array_at(work + 8 * ROW, 1, word)[0]
    first, count = _part(descriptor, work) if code == 0 else (word(0), word(0))
    value = new_bytes(descriptor, work, count * item_bytes) if code == 0 else code
    if value < 0:
        return raise_error(descriptor, work, value)
    copy_bytes(value + BYTES_HEADER, address + first * item_bytes, count * item_bytes)
    return value


@njit
def _part(descriptor, work):
    """Return the first element of the part of an array that the arguments after it select, and how many it has."""
    row = array_at(work + 8 * ROW, d.ROW_WORDS, word)
    size = row[1]
    if descriptor[d.ARGUMENTS] == 1:
        return word(0), size
    first = min(max(word_at(row[2]), 0), size)
    return first, min(max(word_at(row[4]), 0), size - first)


@njit
def postgres_array_of_bytes(call_info, description):
    """Return the array whose elements have the bytes of the first argument, the inverse of `postgres_bytes`."""
    descriptor, work = descriptor_at(description), work_of(call_info)
    code = read_row(call_info, 0, descriptor, work)
    if code == NULL_ROW:
        return null_result(call_info)
    argument, item_bytes = array_at(work + 8 * ROW, 2, word), descriptor[d.RESULT_BYTES]
    if argument[1] % item_bytes != 0:
        report(work, argument[1], item_bytes)
        return raise_error(descriptor, work, d.PART_OF_AN_ELEMENT)
    array = new_array(descriptor, work, argument[1] // item_bytes)
    if array < 0:
        return raise_error(descriptor, work, array)
    copy_bytes(array + FLAT_HEADER, argument[0], argument[1])
    return array


@njit
def postgres_checked(call_info, description):
    """Compute a check: return the second argument unchanged, or raise an error."""
    descriptor, work = descriptor_at(description), work_of(call_info)
    if descriptor[DECLARED_TYPES + 1] != descriptor[KERNEL_TYPES + 1]:
        return _checked_copy(call_info, description)
    code = read_row(call_info, 0, descriptor, work)
    if code == NULL_ROW:
        return null_result(call_info)
    if code == 0:
        code = compute(descriptor, work, work + 8 * ROW, 0, 0)
    return raise_error(descriptor, work, code) if code < 0 else datum_of(call_info, 1)


@njit
def _checked_copy(call_info, description):
    is_value = descriptor_at(description)[d.HEADER + 2] == d.VALUE
    return postgres_value(call_info, description) if is_value else postgres_array(call_info, description)


@njit
def postgres_set(call_info, description):
    """Return the next row of a set of arrays: the first argument, split into parts."""
    descriptor = descriptor_at(description)
    if word_at(word_at(call_info) + FN_EXTRA) == 0:  # the first call for these arguments
        context = _start_set(call_info)
        code = _split(call_info, descriptor, context)
        if code < 0:
            return raise_error(descriptor, word_at(word_at(context + _OWN_DATA)), code)
    context = _continue_set(call_info)
    calls, status = array_at(context, 2, word), array_at(word_at(call_info + _RESULT_INFO) + _IS_DONE, 1, types.int32)
    if calls[0] >= calls[1]:
        _end_set(call_info, context)
        status[0] = _NO_MORE
        return null_result(call_info)
    part = calls[0]
    calls[0] += 1
    status[0] = _MORE
    return _part_of_set(descriptor, word_at(context + _OWN_DATA), part)


@njit
def _split(call_info, descriptor, context):
    """Compute all parts into the memory of the set; returns 0 or an error code."""
    memory = word_at(context + _SET_CONTEXT)
    work = allocate_zeros_in(memory, WORK_BYTES)
    row = work + 8 * ROW
    set_words = array_at(allocate_zeros_in(memory, 8 * _SIZES), _SIZES, word)
    set_words[_WORK] = work
    own, most = array_at(context + _OWN_DATA, 1, word), array_at(context + _MOST_CALLS, 1, word)
    own[0] = set_words.ctypes.data
    code = read_row(call_info, 0, descriptor, work)
    if code != 0:
        return min(code, 0)  # NULL has no parts
    part_count = measure(descriptor, work, row)
    if part_count < 0:
        return part_count
    if part_count > LARGEST_RESULT // 8:
        report(work, 8 * part_count, LARGEST_RESULT)
        return d.RESULT_TOO_LARGE
    elements, item_bytes = word_at(row + 8), descriptor[d.RESULT_BYTES]
    parts_memory = allocate_huge_in(memory, 8 * (_SIZES + part_count) + elements * item_bytes)
    words = array_at(parts_memory, _SIZES + part_count, word)
    words[_WORK], words[_NEXT_ELEMENT] = work, 0
    words[_ELEMENTS] = parts_memory + 8 * (_SIZES + part_count)
    for part in range(part_count):
        words[_SIZES + part] = part_size(descriptor, work, row, part, part_count)
    own[0], most[0] = parts_memory, part_count
    return compute(descriptor, work, row, words[_ELEMENTS], elements)


@njit
def _part_of_set(descriptor, memory, part):
    words, item_bytes = array_at(memory, _SIZES + part + 1, word), descriptor[d.RESULT_BYTES]
    size = words[_SIZES + part]
    array = new_array(descriptor, words[_WORK], size)
    if array < 0:
        return raise_error(descriptor, words[_WORK], array)
    copy_bytes(array + FLAT_HEADER, words[_ELEMENTS] + words[_NEXT_ELEMENT] * item_bytes, size * item_bytes)
    words[_NEXT_ELEMENT] += size
    return array

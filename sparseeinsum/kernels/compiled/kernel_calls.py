"""Kernels: calls the functions of a kernel through a descriptor, and lays out the memory of a call, for every host.

The *work memory* of a call, `work`, contains a row of arguments, the scratch memory of the kernel, an error message,
the threads that it may use, then words of the host. descriptors.py defines the layout of descriptors and rows.
"""

from numba import njit, types

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.message_format import format_message
from sparseeinsum.kernels.compiled.raw_memory import array_at, call

word = types.int64

# GNU/Linux has an old memcpy, too, which is the one that is found without a version.
_memmove = types.ExternalFunction("memmove", word(word, word, word))

NULL_ROW = 1  # returned when a row is read: an argument is NULL, and so is the result

# The parts of the work memory: their offsets in words.
ROW = 0
_SCRATCH = ROW + d.ROW_WORDS
_MESSAGE = _SCRATCH + d.SCRATCH_BYTES // 8
_MESSAGE_BYTES = 512
THREADS = _MESSAGE + _MESSAGE_BYTES // 8  # how many threads the call may compute with, its own among them
HOST_WORDS = THREADS + 1


@njit
def is_list(kind):
    return kind == d.LIST or kind == d.EXTENTS or is_complex(kind)


@njit
def is_complex(kind):
    return kind == d.COMPLEX_LIST or kind == d.COMPLEX


@njit
def pair_elements(kind, work, index, argument, address):
    """Turn an argument of re, im, ... into one of complex numbers at `address`; returns 0 or an error code."""
    size = argument[1]
    argument[0], argument[1] = address, size // 2
    if size % 2 == 0 and (kind == d.COMPLEX_LIST or size == 2):
        return 0
    report(work, index + 1, size)
    return d.ODD_LENGTH if kind == d.COMPLEX_LIST else d.NOT_ONE_COMPLEX


@njit
def message_of(descriptor, code, work):
    """Format an error: the function's name, then the template of its code with the reported numbers; its address."""
    numbers = array_at(scratch_of(work), d.MESSAGE_WORDS, word)
    arguments = (descriptor[d.NAME], numbers[0], numbers[1], numbers[2], numbers[3])
    format_message(work + 8 * _MESSAGE, _MESSAGE_BYTES, template_of(descriptor, code), arguments)
    return work + 8 * _MESSAGE


@njit
def template_of(descriptor, code):
    return array_at(descriptor[d.MESSAGES] - 8 * code, 1, word)[0]


@njit
def report(work, first, second, third=0, fourth=0):
    words = array_at(scratch_of(work), d.MESSAGE_WORDS, word)
    words[0], words[1], words[2], words[3] = first, second, third, fourth


@njit
def scratch_of(work):
    """Return the address of the scratch memory of a call."""
    return work + 8 * _SCRATCH


@njit
def shape_of(work):
    """Return the shape of the row that was measured last (see descriptors.py): a count, then as many words."""
    return words_at(work + 8 * (_SCRATCH + d.MESSAGE_WORDS))


@njit
def words_at(address):
    """Return the array at an address that starts with a count of words, followed by as many words."""
    return array_at(address, 1 + array_at(address, 1, word)[0], word)


@njit
def check_fit(size, shape, state_size, state_shape):
    """Return (0, 0, 0) if a row fits a state in size and shape, else an error code and the two numbers that differ."""
    if state_size != size:
        return d.STATE_LENGTH, size, state_size
    shared = min(shape.size, state_shape.size)
    for index in range(shared if size > 0 else 0):
        place = (index + 1) % shared  # compares the count last, because the words say more about the error
        if shape[place] != state_shape[place]:
            return d.STATE_SHAPE, shape[place], state_shape[place]
    return 0, 0, 0


@njit
def measure(descriptor, work, row):
    return call(descriptor[d.MEASURE], (row, scratch_of(work)))


@njit
def compute(descriptor, work, row, out, size):
    if descriptor[d.COMPUTE_SLICE] != 0:
        return call(descriptor[d.COMPUTE_SLICE], (row, out, size, 0, 1, scratch_of(work)))
    return call(descriptor[d.COMPUTE], (row, out, size, scratch_of(work)))


@njit
def part_size(descriptor, work, row, part, part_count):
    return call(descriptor[d.PART_SIZE], (row, part, part_count, scratch_of(work)))


@njit
def compute_batch(descriptor, work, row, steps, rows, out, size):
    """Compute many rows at once: returns 1, 0 if the kernel needs one row at a time, or an error code."""
    return call(descriptor[d.BATCH], (row, steps, rows, out, size, scratch_of(work)))


@njit
def copy_bytes(target, source, size):
    _memmove(target, source, size)

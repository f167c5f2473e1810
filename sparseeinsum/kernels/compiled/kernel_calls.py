"""Kernels: the memory of one call, and calls of a kernel's parts through a descriptor; the same for every host.

That memory holds, from its start: a row of arguments, scratch memory for kernels, an error's message, then what a
host's callbacks put there themselves. descriptors.py says how descriptors and rows are laid out.
"""

from numba import njit, types

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.memory import array_at, call
from sparseeinsum.kernels.compiled.messages import format_message

word = types.int64

NULL_ROW = 1  # what reading a row returns besides 0 and codes: an argument is NULL, and so is the result

# Where what lies, in words.
ROW = 0
_SCRATCH = ROW + d.ROW_WORDS
_MESSAGE = _SCRATCH + d.SCRATCH_BYTES // 8
_MESSAGE_BYTES = 512
HOSTS_OWN = _MESSAGE + _MESSAGE_BYTES // 8


@njit
def is_list(kind):
    return kind == d.LIST or kind == d.EXTENTS or is_complex(kind)


@njit
def is_complex(kind):
    return kind == d.COMPLEX_LIST or kind == d.COMPLEX


@njit
def pair_elements(kind, work, index, argument, address):
    """Make an argument of re, im, ... one of complex numbers; 0 or a code."""
    size = argument[1]
    argument[0], argument[1] = address, size // 2
    if size % 2 == 0 and (kind == d.COMPLEX_LIST or size == 2):
        return 0
    report(work, index + 1, size)
    return d.ODD_LENGTH if kind == d.COMPLEX_LIST else d.NOT_ONE_COMPLEX


@njit
def message_of(descriptor, code, work):
    """Address of an error's text: the function's name, then the template for the code with the numbers reported."""
    numbers = array_at(work + 8 * _SCRATCH, d.MESSAGE_WORDS, word)
    arguments = (descriptor[d.NAME], numbers[0], numbers[1], numbers[2], numbers[3])
    format_message(work + 8 * _MESSAGE, _MESSAGE_BYTES, template_of(descriptor, code), arguments)
    return work + 8 * _MESSAGE


@njit
def template_of(descriptor, code):
    return array_at(descriptor[d.MESSAGES] - 8 * code, 1, word)[0]


@njit
def report(work, first, second, third=0, fourth=0):
    words = array_at(work + 8 * _SCRATCH, d.MESSAGE_WORDS, word)
    words[0], words[1], words[2], words[3] = first, second, third, fourth


@njit
def shape_of(work):
    """What the row measured last must share with its group beside its number of elements: a count, and the words."""
    return words_at(work + 8 * (_SCRATCH + d.MESSAGE_WORDS))


@njit
def words_at(address):
    """A number of words, and as many of them."""
    return array_at(address, 1 + array_at(address, 1, word)[0], word)


@njit
def find_misfit(size, shape, known_size, known):
    """(0, 0, 0) if an array of such a size and shape can be folded into a state, else a code, and what differs."""
    if known_size != size:
        return d.STATE_LENGTH, size, known_size
    shared = min(shape.size, known.size)
    for index in range(shared if size > 0 else 0):
        place = (index + 1) % shared  # the number of words last: it says less than they
        if shape[place] != known[place]:
            return d.STATE_SHAPE, shape[place], known[place]
    return 0, 0, 0


@njit
def measure(descriptor, work, row):
    return call(descriptor[d.MEASURE], (row, work + 8 * _SCRATCH))


@njit
def compute(descriptor, work, row, out, size):
    return call(descriptor[d.COMPUTE], (row, out, size, work + 8 * _SCRATCH))


@njit
def part_size(descriptor, work, row, part, parts):
    return call(descriptor[d.PART_SIZE], (row, part, parts, work + 8 * _SCRATCH))


@njit
def compute_batch(descriptor, work, row, steps, rows, out, size):
    """1 if the kernel computed all rows at once, 0 if it wants them one by one, or a code."""
    return call(descriptor[d.BATCH], (row, steps, rows, out, size, work + 8 * _SCRATCH))


@njit
def copy_bytes(target, source, size):
    to, origin = array_at(target, size, types.uint8), array_at(source, size, types.uint8)
    for i in range(size):
        to[i] = origin[i]

"""Kernels: reads the arguments of a row, and lays out the scratch memory of a call, in int64 words.

`row` and `scratch` are addresses (int64); descriptors.py defines the layout of rows and the start of scratch memory.
"""

from numba import njit, types

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.plan_memory import AFTER_PLANS
from sparseeinsum.kernels.compiled.raw_memory import array_at

evaluation = load_kernels("evaluation")
expression = load_kernels("expression")
layout = load_kernels("layout")

word = types.int64
half_word = types.int32  # of a position in a row of entries
byte = types.uint8

# Offsets in scratch memory, in words, after plans. A key is a length plus 1 (0 in new scratch memory), then the text.
TEXT_KEY = AFTER_PLANS
PROGRAM = TEXT_KEY + 1 + d.MAX_TEXT // 8
CONSTANTS = PROGRAM + 1 + 2 * expression.MAX_OPERATIONS
OPERATORS = CONSTANTS + expression.CONSTANT_WORDS
DIGITS = OPERATORS + 1 + expression.MAX_OPERATIONS
ONE = DIGITS + (expression.MAX_DIGITS + 8) // 8
BLOCKS = ONE + 2  # a complex128 is two words
_BLOCK_WORDS = evaluation.BLOCK * (expression.MAX_DEPTH + 2)
MOST_ROWS = _BLOCK_WORDS  # of a matrix that is inverted
_TILE = BLOCKS + _BLOCK_WORDS  # where a tile starts along every axis, and how long it is there
assert 8 * (_TILE + 2 * layout.MAX_AXES) <= d.SCRATCH_BYTES


@njit
def report(scratch, code, first, second, third, fourth=0):
    """Store the numbers that an error message shows; returns the error code."""
    words = array_at(scratch, d.MESSAGE_WORDS, word)
    words[0], words[1], words[2], words[3] = first, second, third, fourth
    return code


@njit
def argument(row, index):
    """Return the address and the number of elements of one argument of a row."""
    words = array_at(row + 16 * index, 2, word)
    return words[0], words[1]


@njit
def integer(row, index):
    return array_at(argument(row, index)[0], 1, word)[0]


@njit
def integers(row, index):
    address, size = argument(row, index)
    return array_at(address, size, word)


@njit
def scratch_words(scratch, start, size):
    return array_at(scratch + 8 * start, size, word)


@njit
def program_of(scratch):
    return scratch_words(scratch, PROGRAM, 1 + 2 * expression.MAX_OPERATIONS)


@njit
def constants_of(scratch):
    return array_at(scratch + 8 * CONSTANTS, expression.CONSTANT_WORDS, types.float64)


@njit
def evaluation_stack(scratch, block, dtype):
    """Return the stack on which expressions are evaluated: MAX_DEPTH blocks of `block` elements."""
    return array_at(scratch + 8 * BLOCKS, block * expression.MAX_DEPTH, dtype)


@njit
def pivot_memory(scratch, rows):
    """Return memory for an integer for each row of a matrix; at most MOST_ROWS. It is that of the blocks."""
    return scratch_words(scratch, BLOCKS, rows)


@njit
def operand_block(scratch, operand, block, dtype):
    """Return memory for one block of the elements of an operand, number 0 or 1."""
    start = BLOCKS + evaluation.BLOCK * (expression.MAX_DEPTH + operand)
    return array_at(scratch + 8 * start, block, dtype)


@njit
def array_of_one(scratch, dtype):
    """Return an array that contains a single 1, which replaces a missing second operand."""
    one = array_at(scratch + 8 * ONE, 1, dtype)
    one[0] = dtype(1)
    return one


@njit
def tile_memory(scratch):
    """Return memory for the position of a tile: where it starts along every axis, and its extents."""
    words = scratch_words(scratch, _TILE, 2 * layout.MAX_AXES)
    return words[: layout.MAX_AXES], words[layout.MAX_AXES :]


@njit
def shape_of(scratch):
    """Return memory for the shape of the row (see descriptors.py): a count, then as many words."""
    return scratch_words(scratch, d.MESSAGE_WORDS, d.SHAPE_WORDS)

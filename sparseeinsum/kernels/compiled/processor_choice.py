"""Kernels: which of the processors that a library has code for the one at hand is, and the environment asks for."""

from numba import njit, types

from sparseeinsum.kernels.compiled.memory import array_at, call

word = types.int64

# What a library knows of each processor, in words: addresses of its name, of a function without arguments that tells
# whether the one at hand has all that it has, and of what else the library has for it.
NAME, FITS, CODE, PROCESSOR_WORDS = range(4)

_getenv = types.ExternalFunction("getenv", word(word))
_strcmp = types.ExternalFunction("strcmp", types.int32(word, word))


@njit
def choose_processor(processors, count, variable):
    """Address of the words of the best processor that fits; 0 where none does, or not the one asked for.

    processors: addresses of the words of `count` of them, the best first; variable: address of the name of the variable
    of the environment that asks for one.
    """
    asked_for = _getenv(variable)
    if asked_for != 0 and array_at(asked_for, 1, types.uint8)[0] == 0:
        asked_for = 0
    for index in range(count):
        address = processors + 8 * PROCESSOR_WORDS * index
        words = array_at(address, PROCESSOR_WORDS, word)
        if (asked_for == 0 or _strcmp(asked_for, words[NAME]) == 0) and call(words[FITS], ()) != 0:
            return address
    return 0

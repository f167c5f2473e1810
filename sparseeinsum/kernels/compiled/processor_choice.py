"""Kernels: chooses, when a library is loaded, for which of its processors code runs on this machine."""

from numba import njit, types

from sparseeinsum.kernels.compiled.raw_memory import array_at, call

word = types.int64

# The words of each processor in a library: addresses of its name, of a function without arguments that returns whether
# this machine has all of its features, and of the library's code for it.
NAME, FITS, CODE, PROCESSOR_WORDS = range(4)

_getenv = types.ExternalFunction("getenv", word(word))
_strcmp = types.ExternalFunction("strcmp", types.int32(word, word))


@njit
def choose_processor(processors, count, variable):
    """Return the address of the words of the best processor that fits; 0 if none fits, or not the requested one.

    Args:
        processors: The address of the words of all processors of the library, the best first.
        count: The number of processors.
        variable: The address of the name of the environment variable that requests a processor.
    """
    requested = _getenv(variable)
    if requested != 0 and array_at(requested, 1, types.uint8)[0] == 0:  # empty, as if it were not set
        requested = 0
    for index in range(count):
        address = processors + 8 * PROCESSOR_WORDS * index
        words = array_at(address, PROCESSOR_WORDS, word)
        if (requested == 0 or _strcmp(requested, words[NAME]) == 0) and call(words[FITS], ()) != 0:
            return address
    return 0

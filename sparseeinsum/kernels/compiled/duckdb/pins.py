"""Kernels: keeps resident memory alive while a callback reads it.

A *pin* is four words of memory, zero at first: a vector that shares the memory, its address, its handle, its elements.
"""

from numba import njit

from sparseeinsum.kernels.compiled.duckdb.logical_types import create_vector, destroy_vector
from sparseeinsum.kernels.compiled.duckdb.vectors import get_data, word
from sparseeinsum.kernels.compiled.raw_memory import array_at
from sparseeinsum.kernels.compiled.resident_access import share

PIN_WORDS = 4
_VECTOR, _ADDRESS, _HANDLE, _ELEMENTS = range(PIN_WORDS)


@njit
def pin(place, handle, resident_type, element_type):
    """Keep the memory of a handle alive until the next `pin` or `unpin` at this place.

    Args:
        place: The address of the pin.
        handle: The handle.
        resident_type: The type under which the memory is in the table of residents.
        element_type: The logical type of the vector that owns the memory.

    Returns:
        The number of elements, or an error code.
    """
    words = array_at(place, PIN_WORDS, word)
    if words[_VECTOR] != 0 and words[_HANDLE] == handle:
        return words[_ELEMENTS]
    unpin(place)
    elements = share(handle, resident_type, create_vector(element_type, 1, place))
    if elements < 0:
        unpin(place)
        return elements
    words[_ADDRESS], words[_HANDLE], words[_ELEMENTS] = get_data(words[_VECTOR]), handle, elements
    return elements


@njit
def pinned_address(place):
    """Return the address of the memory that is pinned at a place."""
    return array_at(place, PIN_WORDS, word)[_ADDRESS]


@njit
def unpin(place):
    if array_at(place, PIN_WORDS, word)[_VECTOR] != 0:
        destroy_vector(place)


@njit
def pinned_handle(place):
    """Return the handle of the memory that is pinned at this place; 0 if there is none."""
    words = array_at(place, PIN_WORDS, word)
    return words[_HANDLE] if words[_VECTOR] != 0 else 0

"""Kernels: the table of resident arrays: those that a running statement keeps in memory and reads by handle.

All databases of the process share it. An aggregate's state owns an array, and takes it off the table when the engine
destroys the state; who reads an array shares its memory, which goes with the last reader. A handle is a slot of the
table and bits that nobody can guess, so that a handle that was made up or kept for too long is none.
"""

import ctypes
import os

from numba import njit, types

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.memory import address_of, array_at

word = types.int64
_bits = types.uint64

# The table, in words: a mutex, what makes handles hard to guess, how many there were so far and are, then the slots.
_MUTEX_WORDS = 8
_SECRET = _MUTEX_WORDS
_COUNT = _SECRET + 1
_LIVE = _COUNT + 1
_SLOTS = _LIVE + 1
_SLOT_BITS = 10
MAX_RESIDENTS = 1 << _SLOT_BITS
_HANDLE, _VECTOR, _ELEMENTS, _TYPE = range(4)  # of a slot; one without a handle is free
_SLOT_WORDS = 4
_TABLE_WORDS = _SLOTS + MAX_RESIDENTS * _SLOT_WORDS

_RANDOM_BITS = 52
_IS_HANDLE = 1 << 62  # set in all handles: none is 0 or negative

_table_address = address_of(d.RESIDENTS)
_lock = types.ExternalFunction("pthread_mutex_lock", types.int32(word))
_unlock = types.ExternalFunction("pthread_mutex_unlock", types.int32(word))
_reference = types.ExternalFunction("duckdb_vector_reference_vector", types.void(word, word))

_TABLE = (ctypes.c_int64 * _TABLE_WORDS)()


def addresses_for_kernels() -> dict[str, int]:
    """The table's address under the name by which compiled code knows it; its mutex is made ready."""
    c_library = ctypes.CDLL(None)
    c_library.pthread_mutex_init(ctypes.byref(_TABLE), None)
    _TABLE[_SECRET] = int.from_bytes(os.urandom(8), "little", signed=True)
    functions = ("pthread_mutex_lock", "pthread_mutex_unlock")
    found = {name: ctypes.cast(c_library[name], ctypes.c_void_p).value or 0 for name in functions}
    return {d.RESIDENTS: ctypes.addressof(_TABLE), **found}


def count_residents() -> int:
    """How many arrays of this process are resident now."""
    return int(_TABLE[_LIVE])


@njit
def _words():
    return array_at(_table_address(), _TABLE_WORDS, word)


@njit
def _slot(words, index):
    start = _SLOTS + index * _SLOT_WORDS
    return words[start : start + _SLOT_WORDS]


@njit
def _mixed(value):
    """All bits of a word scattered over all others (the finaliser of SplitMix64)."""
    bits = _bits(value)
    bits = (bits ^ (bits >> _bits(30))) * _bits(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> _bits(27))) * _bits(0x94D049BB133111EB)
    return bits ^ (bits >> _bits(31))


@njit
def publish(vector, elements, kind):
    """Enter an array into the table: its vector, of how many elements of which logical type; 0 if there is no room."""
    words = _words()
    handle = word(0)
    _lock(words.ctypes.data)
    for index in range(MAX_RESIDENTS):
        slot = _slot(words, index)
        if slot[_HANDLE] == 0:
            words[_COUNT] += 1
            words[_LIVE] += 1
            random = word(_mixed(_mixed(words[_COUNT]) ^ _bits(words[_SECRET])) >> _bits(64 - _RANDOM_BITS))
            handle = word(_IS_HANDLE) | (random << _SLOT_BITS) | index
            slot[_HANDLE], slot[_VECTOR], slot[_ELEMENTS], slot[_TYPE] = handle, vector, elements, kind
            break
    _unlock(words.ctypes.data)
    return handle


@njit
def withdraw(handle):
    """Take an array off the table; who reads it by now goes on to."""
    words = _words()
    _lock(words.ctypes.data)
    slot = _slot(words, handle & (MAX_RESIDENTS - 1))
    if slot[_HANDLE] == handle:
        slot[_HANDLE] = 0
        words[_LIVE] -= 1
    _unlock(words.ctypes.data)


@njit
def share(handle, kind, vector):
    """Let a vector refer to a resident array, which stays as long as the vector does; its elements, or a code."""
    words = _words()
    elements = word(d.NOT_RESIDENT)
    _lock(words.ctypes.data)
    slot = _slot(words, handle & (MAX_RESIDENTS - 1))
    if handle > 0 and slot[_HANDLE] == handle:
        elements = slot[_ELEMENTS] if slot[_TYPE] == kind else word(d.RESIDENT_TYPE_DIFFERS)
        if elements >= 0:
            _reference(vector, slot[_VECTOR])
    _unlock(words.ctypes.data)
    return elements

"""Kernels: adds arrays to the table of resident arrays, removes them, and shares them by handle; see residents.py."""

from numba import njit, types

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.raw_memory import address_of, array_at
from sparseeinsum.kernels.residents import (
    COUNT,
    ELEMENTS,
    HANDLE,
    LIVE,
    LOCK,
    MAX_RESIDENTS,
    SECRET,
    SLOT_BITS,
    SLOT_WORDS,
    SLOTS,
    TABLE_WORDS,
    TYPE,
    VECTOR,
)
from sparseeinsum.kernels.symbols import RESIDENTS

word = types.int64
_bits = types.uint64

_RANDOM_BITS = 52
_IS_HANDLE = 1 << 62  # set in all handles, so that none is 0 or negative

_table_address = address_of(RESIDENTS)
_lock = types.ExternalFunction("sparseeinsum_lock", types.void(word))
_unlock = types.ExternalFunction("sparseeinsum_unlock", types.void(word))
_reference = types.ExternalFunction("duckdb_vector_reference_vector", types.void(word, word))


@njit
def _words():
    return array_at(_table_address(), TABLE_WORDS, word)


@njit
def lock_table():
    """Wait until no other thread has the table, then keep it until `unlock_table`."""
    _lock(_table_address() + 8 * LOCK)


@njit
def unlock_table():
    _unlock(_table_address() + 8 * LOCK)


@njit
def _slot(words, index):
    start = SLOTS + index * SLOT_WORDS
    return words[start : start + SLOT_WORDS]


@njit
def _mix_bits(value):
    """Mix the bits of a word, so that each affects all others (the finaliser of SplitMix64)."""
    bits = _bits(value)
    bits = (bits ^ (bits >> _bits(30))) * _bits(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> _bits(27))) * _bits(0x94D049BB133111EB)
    return bits ^ (bits >> _bits(31))


@njit
def publish(vector, elements, element_type):
    """Add an array to the table; returns its handle, or 0 if the table is full.

    Args:
        vector: The DuckDB vector that owns the array, or the first chunk of collected tuples.
        elements: The number of elements.
        element_type: The logical type of the elements, as in the registry.
    """
    handle = enter(vector, elements, element_type, MAX_RESIDENTS)
    if handle != 0:
        words = _words()
        lock_table()
        words[LIVE] += 1
        unlock_table()
    return handle


@njit
def enter(vector, elements, element_type, most):
    """Enter an array into one of the first `most` slots; the rest is as for `publish`, which counts it."""
    words = _words()
    handle = word(0)
    lock_table()
    for index in range(most):
        slot = _slot(words, index)
        if slot[HANDLE] == 0:
            words[COUNT] += 1
            random = word(_mix_bits(_mix_bits(words[COUNT]) ^ _bits(words[SECRET])) >> _bits(64 - _RANDOM_BITS))
            handle = word(_IS_HANDLE) | (random << SLOT_BITS) | index
            slot[HANDLE], slot[VECTOR], slot[ELEMENTS], slot[TYPE] = handle, vector, elements, element_type
            break
    unlock_table()
    return handle


@njit
def withdraw(handle):
    """Remove an array that `publish` added, and return what owned it, or 0; vectors that already share it keep it."""
    owner = remove(handle)
    if owner != 0:
        words = _words()
        lock_table()
        words[LIVE] -= 1
        unlock_table()
    return owner


@njit
def type_of(handle):
    """Return the type under which an array is in the table, or an error code."""
    words = _words()
    lock_table()
    slot = _slot(words, handle & (MAX_RESIDENTS - 1))
    kind = slot[TYPE] if handle > 0 and slot[HANDLE] == handle else word(d.NOT_RESIDENT)
    unlock_table()
    return kind


@njit
def change_type(handle, before, after):
    """Change the type under which an array is in the table; returns 0 or an error code."""
    words = _words()
    code = word(d.NOT_RESIDENT)
    lock_table()
    slot = _slot(words, handle & (MAX_RESIDENTS - 1))
    if handle > 0 and slot[HANDLE] == handle and slot[TYPE] == before:
        slot[TYPE] = after
        code = word(0)
    unlock_table()
    return code


@njit
def remove(handle):
    """Remove an array from the table; returns the vector that owned it, or 0 if there is no such array."""
    words = _words()
    vector = word(0)
    lock_table()
    slot = _slot(words, handle & (MAX_RESIDENTS - 1))
    if handle > 0 and slot[HANDLE] == handle:
        vector, slot[HANDLE] = slot[VECTOR], 0
    unlock_table()
    return vector


@njit
def share(handle, element_type, vector):
    """Make a vector refer to a resident array, which then lives as long; returns its elements or an error code."""
    words = _words()
    elements = word(d.NOT_RESIDENT)
    lock_table()
    slot = _slot(words, handle & (MAX_RESIDENTS - 1))
    if handle > 0 and slot[HANDLE] == handle:
        elements = slot[ELEMENTS] if slot[TYPE] == element_type else word(d.RESIDENT_TYPE_DIFFERS)
        if elements >= 0:
            _reference(vector, slot[VECTOR])
    unlock_table()
    return elements

"""Kernels: the table of resident arrays: those that a running statement keeps in memory and reads by handle.

All databases of the process share it. An aggregate's state owns an array, and takes it off the table when the engine
destroys the state; who reads an array shares its memory, which goes with the last reader. A handle is a slot of the
table and bits that nobody can guess, so that a handle that was made up or kept for too long is none.
"""

import ctypes
import os

from sparseeinsum.kernels import descriptors as d

# The table, in words: a mutex, what makes handles hard to guess, how many there were so far and are, then the slots.
MUTEX = 0
SECRET = MUTEX + 8
COUNT = SECRET + 1
LIVE = COUNT + 1
SLOTS = LIVE + 1
SLOT_BITS = 10
MAX_RESIDENTS = 1 << SLOT_BITS
HANDLE, VECTOR, ELEMENTS, TYPE = range(4)  # of a slot; one without a handle is free
SLOT_WORDS = 4
TABLE_WORDS = SLOTS + MAX_RESIDENTS * SLOT_WORDS

_TABLE = (ctypes.c_int64 * TABLE_WORDS)()
_C_FUNCTIONS = ("pthread_mutex_lock", "pthread_mutex_unlock")


def addresses_for_kernels() -> dict[str, int]:
    """The table's address under the name by which compiled code knows it, and what locks it; it is made ready."""
    c_library = ctypes.CDLL(None)
    c_library.pthread_mutex_init(ctypes.byref(_TABLE, 8 * MUTEX), None)
    _TABLE[SECRET] = int.from_bytes(os.urandom(8), "little", signed=True)
    found = {name: ctypes.cast(c_library[name], ctypes.c_void_p).value or 0 for name in _C_FUNCTIONS}
    return {d.RESIDENTS: ctypes.addressof(_TABLE), **found}


def count_residents() -> int:
    """How many arrays of this process are resident now."""
    return int(_TABLE[LIVE])

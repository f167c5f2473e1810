"""Kernels: defines the layout of the table of resident arrays, which a statement keeps in memory and reads by handle.

All databases of the process share the table, which is in the library for DuckDB. The state of an aggregate owns an
array, and removes it from the table when the engine destroys the state; the process owns what is kept after that.
Readers share the memory of the array, which is freed with the last reader. A handle is a slot of the table and random
bits, so that a handle that was made up or that has expired is not valid.
"""

# The table, in words: a lock of the operating system, the secret that makes handles hard to guess, the number of arrays
# so far, and of those of statements now, then the slots.
LOCK = 0
SECRET = LOCK + 8
COUNT = SECRET + 1
LIVE = COUNT + 1
SLOTS = LIVE + 1
SLOT_BITS = 10
MAX_RESIDENTS = 1 << SLOT_BITS
MAX_KEPT = MAX_RESIDENTS // 2  # of the first slots; statements always have the others
HANDLE, VECTOR, ELEMENTS, TYPE = range(4)  # the words of a slot; a slot with the handle 0 is free
SLOT_WORDS = 4
TABLE_WORDS = SLOTS + MAX_RESIDENTS * SLOT_WORDS

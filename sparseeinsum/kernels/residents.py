"""Kernels: the layout of the table of resident arrays: those that a statement keeps in memory and reads by handle.

All databases of the process share the table, which is in the library for DuckDB. An aggregate's state owns an array,
and takes it off the table when the engine destroys the state; who reads an array shares its memory, which goes with the
last reader. A handle is a slot of the table and bits that nobody can guess, so that a handle that was made up or kept
for too long is none.
"""

# The table, in words: a lock of the operating system, what makes handles hard to guess, how many there were so far and
# are, then the slots.
LOCK = 0
SECRET = LOCK + 8
COUNT = SECRET + 1
LIVE = COUNT + 1
SLOTS = LIVE + 1
SLOT_BITS = 10
MAX_RESIDENTS = 1 << SLOT_BITS
HANDLE, VECTOR, ELEMENTS, TYPE = range(4)  # of a slot; one without a handle is free
SLOT_WORDS = 4
TABLE_WORDS = SLOTS + MAX_RESIDENTS * SLOT_WORDS

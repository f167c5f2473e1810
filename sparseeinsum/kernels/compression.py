"""Kernels: defines the layout of compressed entries, which a statement keeps in memory and reads by handle.

Entries are numbers, each with a row and a position. While they come, the state of an aggregate holds them in a chain of
chunks, in the order in which they come. Then they move to one block of memory, ordered by row: compressed sparse rows.
"""

# The state, in words: the chain of chunks, the number of entries, the number of rows, one more than the largest
# position; then the vector that owns the block, and its handle, once there is a block.
FIRST, LAST, ENTRIES, ROWS, BOUND, OWNER, HANDLE = range(7)
STATE_WORDS = 7

# A chunk, in words: the next chunk, how many entries it holds, and for how many it has room; then the rows and the
# positions, int32, and the numbers.
NEXT, USED, CAPACITY = range(3)
CHUNK_WORDS = 3
LEAST_CAPACITY = 1 << 11  # even, so that numbers are aligned
MOST_CAPACITY = 1 << 16

# A block, in words: rows, entries, one more than the largest position; where each row begins, and where the last one
# ends; then the positions, int32, and the numbers.
BLOCK_ROWS, BLOCK_ENTRIES, BLOCK_BOUND = range(3)
BLOCK_WORDS = 3

LARGEST = (1 << 31) - 1  # the most rows, and the most positions
COMPRESSED_TYPE = 1 << 16  # added to the type of the numbers in the table of residents

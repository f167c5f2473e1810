"""Kernels: defines the layout of compressed entries, which a statement keeps in memory and reads by handle.

Entries are numbers, each with a row and a position. While they come, the state of an aggregate holds them in a chain of
chunks, in the order in which they come. Then they move to one block of memory, ordered by row: compressed sparse rows.
"""

# The state, in words: the chain of chunks, the number of entries, the number of rows, one more than the largest
# position; then the vector that owns the block, and its handle, once there is a block; whether another state has taken
# the chunks.
FIRST, LAST, ENTRIES, ROWS, BOUND, OWNER, HANDLE, IS_TAKEN = range(8)
STATE_WORDS = 8

# A chunk, in words: the next chunk, how many entries it holds, and for how many it has room; then the rows and the
# positions, int32, and the numbers.
NEXT, USED, CAPACITY = range(3)
CHUNK_WORDS = 3
LEAST_CAPACITY = 1 << 11  # even, so that numbers are aligned
MOST_CAPACITY = 1 << 18

# A block, in words: rows, entries, one more than the largest position, the entries of the longest row; where each row
# begins, and where the last one ends; then the positions, int32, and the numbers.
BLOCK_ROWS, BLOCK_ENTRIES, BLOCK_BOUND, BLOCK_LONGEST = range(4)
BLOCK_WORDS = 4

# What a kernel needs to write a row of a product of two blocks, in words: the address of the number that sums start
# from; the slots, how many there are, the factor and the shift of their hash function (see udfs/compressed_rows.py);
# where the row begins in the result; the positions of the result, int32, and its numbers.
START, SLOTS, SLOT_COUNT, FACTOR, SHIFT, ROW_BEGIN, OUT_POSITIONS, OUT_NUMBERS = range(8)
PRODUCT_WORDS = 8

# What a kernel needs to write numbers, in words: their address, and that of their validity, 64 in each word.
NUMBERS, VALIDITY = range(2)
NUMBERS_WORDS = 2

LARGEST = (1 << 31) - 1  # the most rows, the most positions, and the most entries of a vector of rows of a product
COMPRESSED_TYPE = 1 << 16  # added to the type of the numbers in the table of residents

"""Kernels: defines the layout of memory that a statement reserves for an array, which all its threads write.

A vector of DuckDB has the elements first. Behind them, at a multiple of 8 bytes, come the words below, then a byte for
every row of the array, which is 1 once the row has been written. A row that nobody has written gets the fill when the
array becomes resident.
"""

# The words behind the elements: the number of rows, the elements of each, and the fill.
ROWS, SIZE, FILL = range(3)
RESERVATION_WORDS = 3

# The state of the aggregate that reserves memory, in words: the vector that owns it, its handle once there is one, its
# number of elements, and whether another state has taken it.
OWNER, HANDLE, ELEMENTS, IS_TAKEN = range(4)
STATE_WORDS = 4

RESERVED_TYPE = 1 << 19  # added to the type of the elements in the table of residents
LARGEST = 1 << 40  # the most rows, and the most elements

"""Kernels: defines the layout of tuples that an aggregate collects for the client, which reads them where they are.

Each state has a chain of chunks. The client reads the chain of a handle that `tensor_keep` returned, and releases it.
"""

# The state, in words: the chain of chunks, the number of tuples, whether another state has taken the chunks, and the
# handle, once there is one.
FIRST, LAST, TUPLES, IS_TAKEN, HANDLE = range(5)
STATE_WORDS = 5

# A chunk, in words: the next chunk; how many tuples and elements it holds, and for how many it has room; the addresses
# of where arrays begin and the last one ends, int32, and of the elements; and the vector of DuckDB that owns the chunk,
# 0 if malloc returned it. Then the numbers of the tuples, int64.
NEXT, USED, ELEMENTS, CAPACITY, ELEMENT_CAPACITY, STARTS_ADDRESS, ELEMENTS_ADDRESS, OWNER = range(8)
CHUNK_WORDS = 8
LEAST_BYTES = 1 << 16  # of the elements of a chunk; every chunk has room for twice as many as the one before it
MOST_BYTES = 1 << 24
MOST_TUPLES = 1 << 20  # for which a chunk has room before more are known
MOST_ELEMENTS = (1 << 31) - 1

# Added to the type of the elements in the table of residents, before and after the tuples are kept.
COLLECTED_TYPE = 1 << 17
KEPT_TYPE = 1 << 18

"""Kernels: how the registry of functions lies in memory, where compiled code walks it; see registry.py."""

from sparseeinsum.kernels import descriptors as d

# The registry, in words.
ENTRIES = 0  # address of the entries, those of one name side by side
ENTRY_COUNT = 1
LARGEST_VECTOR = 2  # bytes
UNCONNECTED = 3  # addresses of texts of errors
REFUSED = 4
OTHER_DATABASE = 5
HINT_NAME = 6  # of the table function that steers joins: addresses of its name, of that of its column, of its code
HINT_COLUMN = 7
HINT_BIND = 8
HINT_INIT = 9
HINT_SCAN = 10
REGISTRY_WORDS = 11

# An entry: one function of one dtype.
NAME = 0
IS_AGGREGATE = 1
IS_VOLATILE = 2
TAKES_NULL = 3
DESCRIPTOR = 4
RETURNS = 5  # types are a duckdb_type, and LIST_DEPTH times how many lists deep it is
PARAMETER_COUNT = 6
PARAMETERS = 7
CALLBACKS = PARAMETERS + d.MAX_ARGUMENTS  # of an aggregate its six; of any other function one
CALLBACK_COUNT = 6
ENTRY_WORDS = CALLBACKS + CALLBACK_COUNT
LIST_DEPTH = 256
BIGINT = 5  # duckdb_type in duckdb.h

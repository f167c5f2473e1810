"""Kernels: defines the memory layout of the registry of functions, which compiled code reads; see registry.py."""

from sparseeinsum.kernels import descriptors as d

# The registry, in words.
ENTRIES = 0  # address of the entries; those of the same name are adjacent
ENTRY_COUNT = 1
LARGEST_VECTOR = 2  # bytes
UNCONNECTED = 3  # addresses of the texts of three errors
REFUSED = 4
OTHER_DATABASE = 5
TABLE_FUNCTIONS = 6  # address of the table functions, one after the other
TABLE_FUNCTION_COUNT = 7
ENTRY_FIELDS = 8  # addresses of the names of the fields of an entry, then of those of a match
REGISTRY_WORDS = 9

# A table function: addresses of its name, its extra info and its three callbacks; how many BIGINTs it takes.
TABLE_NAME, TABLE_INFO, TABLE_BIND, TABLE_INIT, TABLE_SCAN, TABLE_PARAMETERS = range(6)
TABLE_WORDS = 6

# An entry: one function of one dtype.
NAME = 0
IS_AGGREGATE = 1
IS_VOLATILE = 2
TAKES_NULL = 3
DESCRIPTOR = 4
RETURNS = 5  # a type is a duckdb_type plus LIST_DEPTH times the depth of lists around it; see ENTRY_OF
PARAMETER_COUNT = 6
PARAMETERS = 7
CALLBACKS = PARAMETERS + d.MAX_ARGUMENTS  # six for an aggregate; else that of rows, then the one before a statement
CALLBACK_COUNT = 6
ENTRY_WORDS = CALLBACKS + CALLBACK_COUNT
LIST_DEPTH = 256
ENTRY_OF = 128  # added to the duckdb_type of a number: a pair of a position and such a number
MATCH_OF = ENTRY_OF + 64  # added to it: a position and two such numbers; duckdb_types of numbers are smaller
BOOLEAN, INTEGER, BIGINT, FLOAT, DOUBLE, VARCHAR, BLOB = 1, 4, 5, 10, 11, 17, 18  # duckdb_type in duckdb.h

# The list of functions, in words: the addresses of the callback that frees memory and of an error, the numbers of
# columns and rows, the address of the name and the type of each column, then the rows: addresses of texts, or 0 and 1.
LIST_DESTROY, LIST_NO_MEMORY, LIST_COLUMNS, LIST_ROWS, LIST_HEADER = range(5)

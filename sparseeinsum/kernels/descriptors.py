"""Kernels: defines the two layouts that compiled code and Python share, and the error codes of compiled code.

A *host* is a database engine that calls kernels. A *descriptor* describes one function to a callback of the host: an
int64 array of HEADER words, then two words for each argument. A *row* holds the arguments of one call of a kernel: two
words for each argument, its address and its number of elements.
"""

NAME = 0  # address of the function's name
MESSAGES = 1  # address of an array of message templates, indexed by the negated error code; see messages.py
ARGUMENTS = 2  # number of arguments
MEASURE = 3  # address of the function that returns the number of elements of the result, or an error code
COMPUTE = 4  # address of the kernel's function for one row
BATCH = 5  # address of the kernel's function for many rows at once, or 0
COMBINE = 6  # aggregates: address of the function that merges two states
INITIALISE = 7  # aggregates: address of the function that fills a new state
RESULT_BYTES = 8  # bytes of one element of the result, with all its lanes (see RESULT_LANES)
LIMIT_BYTES = 9  # the most bytes that one result or state may have
RESULT_LANES = 10  # elements of the host's array that one element of the result takes: 2 for complex numbers
PART_SIZE = 11  # arrays of arrays: address of the function that returns the elements of one part; else 0
ELEMENT_TYPE = 12  # resident arrays: the host's type of the elements; else 0
FINISH = 13  # aggregates: address of the function that turns a state into a result, or 0 if it is the result
COMPUTE_SLICE = 14  # address of the kernel's function for one slice of the result of a row, or 0
MULTIPLIES_MATRICES = 15  # 1 if rows that share an operand are one matrix product, for which BLAS has threads, else 0
HEADER = 16
MAX_ARGUMENTS = 10
DESCRIPTOR_WORDS = HEADER + 2 * MAX_ARGUMENTS

# Kinds of arguments, the first of the two words for each argument. The second is the bytes of an element; a complex
# number counts with both parts.
VALUE = 0
LIST = 1
TEXT = 2
EXTENTS = 3  # a list of integers that says how to compute; all rows of a batch share it, as they share texts
COMPLEX_LIST = 4  # a list of re, im, re, im, ...: two elements of the host are one complex element
COMPLEX = 5  # a list of one complex number

ROW_WORDS = 2 * MAX_ARGUMENTS

# The table of users' functions in a library (see udfs/expression.py): the most functions, and the words of each.
MAX_USER_FUNCTIONS = 64
USER_FUNCTION_WORDS = 10
MAX_FUNCTION_NAME = 64

# A kernel's scratch memory starts with the numbers of an error message, then the *shape* of the row: what all rows of a
# group must share besides the number of elements. A shape is a number of words and the words, at most one per axis.
MESSAGE_WORDS = 4
SHAPE_WORDS = 1 + 16
REPORT_WORDS = MESSAGE_WORDS + SHAPE_WORDS
SCRATCH_BYTES = 64 * 1024
MAX_TEXT = 4096

# Errors that callbacks of hosts report; udfs/ defines the other codes.
HOLDS_NULL = -41
LENGTHS_DIFFER = -42
WRONG_LENGTH = -43
RESULT_TOO_LARGE = -44
OUT_OF_MEMORY = -45
STATE_LENGTH = -46
TEXT_TOO_LONG = -47
BAD_SIZE = -48
TOO_MANY_EXTENTS = -49
BAD_INNER = -50
STACK_TOO_LARGE = -51
STATE_SHAPE = -52
ODD_LENGTH = -53
NOT_ONE_COMPLEX = -54
WRONG_ARGUMENTS = -55
NOT_AN_AGGREGATE = -56
WRONG_ELEMENTS = -57
DAMAGED_ARRAY = -58
DAMAGED_STATE = -59
PART_OF_AN_ELEMENT = -60
NOT_PORTABLE = -69
NOT_RESIDENT = -65
RESIDENT_TYPE_DIFFERS = -66
OUTSIDE_RESIDENT = -67
TOO_MANY_RESIDENTS = -68
OUTSIDE_ROWS = -72
TOO_MANY_ROWS = -73
ALREADY_COMPRESSED = -74
UNKNOWN_SEMIRING = -75
NOT_A_VECTOR = -78
ALREADY_COLLECTED = -79
POSITIONS_MISSING = -80
NO_SUCH_ROW = -81
ROWS_DIFFER = -82
ENTRIES_DIFFER = -83
ALREADY_RESERVED = -84
RESERVATIONS_DIFFER = -85
NOT_RESERVED = -86
WRITTEN_TWICE = -87
RESULT_IS_NULL = -88
WRONG_POSITIONS = -89

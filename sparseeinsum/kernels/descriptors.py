"""Kernels: the two layouts that compiled code and Python share, and the codes of errors of compiled code.

A *descriptor* tells a host's callback about one function: an int64 array of HEADER words, then two words an
argument. A *row* is what a kernel gets: two words an argument, its address and its number of elements.
"""

NAME = 0  # address of the function's name
MESSAGES = 1  # address of an array of message templates, by negated code; see messages.py
ARGUMENTS = 2  # number of arguments
MEASURE = 3  # address of the kernel's part that returns how many elements the result has, or a code
COMPUTE = 4  # of the part that computes one row
BATCH = 5  # of the part that computes many rows at once, 0 where there is none
COMBINE = 6  # aggregates: of the part that merges two states
INITIALISE = 7  # aggregates: of the part that fills a new state
RESULT_BYTES = 8  # bytes of one element of the result, with all its lanes
LIMIT_BYTES = 9  # most bytes that one result or state may have
RESULT_LANES = 10  # elements of the host's array that one element of the result takes: 2 for complex numbers
PART_SIZE = 11  # of the part that tells the elements of one of a result's parts, 0 where it is no array of arrays
ELEMENT_TYPE = 12  # the host's type of a resident array's elements, where the function makes or reads one, else 0
HEADER = 13
MAX_ARGUMENTS = 6
DESCRIPTOR_WORDS = HEADER + 2 * MAX_ARGUMENTS

# Kinds of arguments: the first word of the two that describe one; the second is the bytes of an element, those of a
# complex number with both parts.
VALUE = 0
LIST = 1
TEXT = 2
EXTENTS = 3  # a list of integers that says how to compute: equal in all rows of a batch, as texts are
COMPLEX_LIST = 4  # a list of re, im, re, im, ...: one element is two of the host's
COMPLEX = 5  # the same, of a single complex number

ROW_WORDS = 2 * MAX_ARGUMENTS

# The table of users' functions (see udfs/expression.py), which a library has: room for so many, words of each.
MAX_USERS_FUNCTIONS = 64
USERS_FUNCTION_WORDS = 10
MAX_FUNCTION_NAME = 64

# The start of a kernel's scratch memory: words that its messages may show, then what else than the number of elements
# all rows of a group must agree on, how many words and they, one an axis at most; and the scratch memory itself.
MESSAGE_WORDS = 4
SHAPE_WORDS = 1 + 16
REPORT_WORDS = MESSAGE_WORDS + SHAPE_WORDS
SCRATCH_BYTES = 64 * 1024
MAX_TEXT = 4096

# What a host's callbacks report themselves; udfs/ has the other codes.
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

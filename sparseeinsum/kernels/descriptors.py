"""Kernels: the two layouts that compiled code and Python share, and the messages of compiled code.

A *descriptor* tells a host's callback about one function: an int64 array of HEADER words, then two words an
argument. A *row* is what a kernel gets: two words an argument, its address and its number of elements.
"""

NAME = 0  # address of the function's name
MESSAGES = 1  # address of an array of message templates, by negated code
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

# The table of users' functions (see udfs/expression.py): a host supplies it under this name, with room for so many.
USERS_FUNCTIONS = "sparseeinsum_users_functions"
MAX_USERS_FUNCTIONS = 64
USERS_FUNCTION_WORDS = 10
MAX_FUNCTION_NAME = 64

# The table of resident arrays (see residents.py): a host supplies it under this name.
RESIDENTS = "sparseeinsum_residents"

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
NOT_RESIDENT = -65
RESIDENT_TYPE_DIFFERS = -66
OUTSIDE_RESIDENT = -67
TOO_MANY_RESIDENTS = -68

MESSAGES_BY_CODE: dict[int, str] = {
    -1: "the spec has a character that is no letter, comma or ->; write it as in 'ij,jk->ik'",
    -2: "the spec has more than 16 labels",
    -3: "the spec does not list %lld operands and a result; write it as in 'ij,jk->ik' or 'ij->ji'",
    -4: "a label of the result is in no operand",
    -5: "a label stands twice in the result",
    -6: "there are %lld extents, but %lld labels; give one for each, in order of appearance",
    -7: "an extent is %lld; none may be negative",
    -8: "the extents multiply to more than 2^40 elements",
    -11: "the expression cannot be read; write it as in 'abs(u - v) ^ 2'",
    -12: "the expression names an unknown function; known: neg pow abs exp log sqrt sign relu "
    "sigmoid tanh conj min max where; functions of users are known only in the Python process that compiled them",
    -13: "the expression is too long or nested too deeply; compute parts of it in statements of their own",
    -14: "the expression names v, but there is one operand, u",
    -15: "the expression has an imaginary literal, but computes with real numbers; use tensor_complex_map or _reduce",
    -21: "the aggregate is none of sum, prod, max, min, any, all, logsumexp",
    -24: "%.*s turned NaN or infinite out of finite values; nonfinite='allow' lets a run go on",
    -31: "axis %lld is out of range or named twice; there are %lld axes, counted from 0",
    -32: "position %lld is outside an axis of %lld",
    -33: "an extent is %lld; none may be negative",
    -34: "the extents multiply to more than 2^40 elements",
    -35: "a tile is %lld; none may be negative, and 0 keeps an axis whole",
    -36: "there are %lld tiles, but %lld extents; give one for each axis, 0 for an axis that stays whole",
    -37: "there are %lld starts, %lld extents and %lld sizes; give one of each for every axis",
    -38: "an array of extent %lld that starts at %lld does not fit into the size %lld of axis %lld, counted from 0",
    HOLDS_NULL: "argument %lld, an array of %lld elements, holds NULL; arrays of numbers must be complete",
    LENGTHS_DIFFER: "u has %lld elements, v has %lld; they must have one length",
    WRONG_LENGTH: "operand %lld has %lld elements, but its extents multiply to %lld",
    RESULT_TOO_LARGE: "the result would take %lld bytes for one vector of rows, more than the limit of %lld",
    OUT_OF_MEMORY: "out of memory: %lld bytes could not be had",
    STATE_LENGTH: "a row's result has %lld elements, but an earlier row of its group has %lld",
    TEXT_TOO_LONG: "a text argument has %lld characters, more than %lld",
    BAD_SIZE: "the size %lld is not between 0 and 2^40",
    TOO_MANY_EXTENTS: "there are %lld extents, more than 16",
    BAD_INNER: "an array of %lld elements does not divide into runs of inner = %lld",
    STATE_SHAPE: "a row differs in size, sizes or inner from an earlier row of its group: %lld, not %lld",
    STACK_TOO_LARGE: "%lld arrays of %lld elements are more than 2^40 elements",
    ODD_LENGTH: "argument %lld has %lld elements, an odd number; complex arrays hold re, im, re, im, ...",
    NOT_ONE_COMPLEX: "argument %lld has %lld elements; a complex number is an array of two, [re, im]",
    WRONG_ARGUMENTS: "declared with %lld arguments, but the library knows it with %lld; install both from one version",
    NOT_AN_AGGREGATE: "called by itself; it computes only inside its aggregate",
    WRONG_ELEMENTS: "argument %lld is an array of the type with OID %lld, but is declared as one of the type %lld",
    DAMAGED_ARRAY: "argument %lld is a damaged array",
    DAMAGED_STATE: "the aggregate's state is damaged",
    PART_OF_AN_ELEMENT: "%lld bytes are no whole number of elements of %lld bytes each",
    NOT_RESIDENT: "no array is resident under the handle %lld; one is only while the statement runs that made it, "
    "in DuckDB before version 2 not even then: for that compile programs with --no-indexes",
    RESIDENT_TYPE_DIFFERS: "the array under the handle %lld has elements of another type than the fill",
    OUTSIDE_RESIDENT: "row %lld of %lld elements each is none of a resident array of %lld elements",
    TOO_MANY_RESIDENTS: "there are %lld resident arrays already, the most there may be at a time",
    -61: "int64 overflow: a result is below -2^63 or above 2^63 - 1; cast the operands to DOUBLE to compute in float64",
    -62: "an exponent is negative, and int64 has no such powers; cast the operands to DOUBLE",
    -63: "the expression has a literal that is no int64, but computes in int64; cast the operands to DOUBLE",
    -64: "int64 has no / exp log sqrt sigmoid tanh logsumexp and no functions of users; cast the operands to DOUBLE",
    -71: "complex numbers have no order, and so no < <= > >= min max relu logsumexp, and no functions of users; "
    "take tensor_complex_real or _imag first",
}

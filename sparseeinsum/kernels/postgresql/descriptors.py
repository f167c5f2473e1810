"""Kernels: what PostgreSQL's descriptors hold beyond descriptors.py, and the SQLSTATEs of errors."""

from sparseeinsum.kernels import descriptors as d

DECLARED = d.DESCRIPTOR_WORDS  # OID of the type of each argument, or of the elements of its array, in SQL
WANTED = DECLARED + d.MAX_ARGUMENTS  # the same, as the kernel computes with it
RESULT_TYPE = WANTED + d.MAX_ARGUMENTS  # of the result or its elements
SQLSTATES = RESULT_TYPE + 1  # address of their codes, by the negated code of a message
DESCRIPTOR_WORDS = SQLSTATES + 1

BYTEA, INT8, INT4, TEXT, FLOAT4, FLOAT8, NUMERIC = 17, 20, 23, 25, 700, 701, 1700  # OIDs of types

LARGEST_RESULT = 0x3FFFFFFF - 256  # bytes of elements; PostgreSQL allocates no more than 2^30 - 1, headers and all

_STATES = {
    d.HOLDS_NULL: "22004",  # null_value_not_allowed
    -61: "22003",  # numeric_value_out_of_range: int64 overflow
    -8: "54000",  # program_limit_exceeded
    -34: "54000",
    d.RESULT_TOO_LARGE: "54000",
    d.STACK_TOO_LARGE: "54000",
    d.TEXT_TOO_LONG: "54000",
    d.WRONG_ARGUMENTS: "42P13",  # invalid_function_definition
    d.WRONG_ELEMENTS: "42804",  # datatype_mismatch
    d.NOT_AN_AGGREGATE: "39000",  # external_routine_invocation_exception
    d.DAMAGED_ARRAY: "22000",  # data_exception
    d.DAMAGED_STATE: "22000",
}
_ELSE = "22023"  # invalid_parameter_value


def sqlstate_words() -> tuple[int, ...]:
    """SQLSTATEs by negated code of a message."""
    return tuple(sqlstate_word(state_of(-code)) for code in range(1 - min(d.MESSAGES_BY_CODE)))


def state_of(code: int) -> str:
    """The SQLSTATE of a message's code."""
    return _STATES.get(code, _ELSE)


def sqlstate_word(state: str) -> int:
    """An SQLSTATE as `errcode` takes it: six bits a character, the first one lowest."""
    return sum((ord(character) - ord("0") & 0x3F) << 6 * place for place, character in enumerate(state))

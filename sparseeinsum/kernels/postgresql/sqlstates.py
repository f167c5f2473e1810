"""Kernels: assigns SQLSTATEs to the errors of compiled code, for PostgreSQL."""

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.messages import MESSAGES_BY_CODE

_STATES = {
    d.HOLDS_NULL: "22004",  # null_value_not_allowed
    d.RESULT_IS_NULL: "22004",
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
    """Return the encoded SQLSTATEs of all messages, by their negated codes."""
    return tuple(sqlstate_word(state_of(-code)) for code in range(1 - min(MESSAGES_BY_CODE)))


def state_of(code: int) -> str:
    """Return the SQLSTATE for the code of a message."""
    return _STATES.get(code, _ELSE)


def sqlstate_word(state: str) -> int:
    """Encode an SQLSTATE as `errcode` takes it: six bits for each character, the first character lowest."""
    return sum((ord(character) - ord("0") & 0x3F) << 6 * index for index, character in enumerate(state))

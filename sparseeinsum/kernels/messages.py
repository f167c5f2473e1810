"""Kernels: lists the messages of errors in compiled code, by their codes.

Compiled code contains only the codes, so that a changed text does not recompile anything.
"""

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.operators.aggregates import AGGREGATES, aggregates_without
from sparseeinsum.operators.functions import functions_without, named_functions
from sparseeinsum.operators.semirings import SEMIRINGS


def _lacking(kind: str) -> str:
    """List the functions and aggregates that are not defined for a kind of numbers, such as `integer`."""
    return " ".join((*(function.display_name for function in functions_without(kind)), *aggregates_without(kind)))


MESSAGES_BY_CODE: dict[int, str] = {
    -1: "the spec has a character that is no letter, comma or ->; write it as in 'ij,jk->ik'",
    -2: "the spec has more than 16 labels",
    -3: "the spec does not list %lld operands and a result; write it as in 'ij,jk->ik' or 'ij->ji'",
    -4: "a label of the result is in no operand",
    -5: "a label stands twice in the result",
    -6: "there are %lld extents, but %lld labels; give one for each, in order of appearance",
    -7: "an extent is %lld; none may be negative",
    -8: "the extents multiply to more than 2^40 elements",
    -9: "interrupted",
    -11: "the expression cannot be read; write it as in 'abs(u - v) ^ 2'",
    -12: f"the expression names an unknown function; known: {' '.join(named_functions())}; "
    "functions of users are known only in the Python process that compiled them",
    -13: "the expression is too long or nested too deeply; compute parts of it in statements of their own",
    -14: "the expression names v, but there is one operand, u",
    -15: "the expression has an imaginary literal, but computes with real numbers; use tensor_complex_map or _reduce",
    -16: "the expression has a function that this library does not know; reinstall both",
    -21: f"the aggregate is none of {', '.join(AGGREGATES)}",
    -22: "no such aggregate is registered; those of users are known only in the Python process that compiled them",
    -23: "the aggregate takes %lld arguments, and is given %lld arrays",
    -24: "%.*s turned NaN or infinite out of finite values; nonfinite='allow' lets a run go on",
    -25: "the last two of %lld extents differ, or are not there; a matrix that is inverted is square",
    -26: "the matrix has no inverse: its column %lld, counted from 0, depends on those before",
    -27: "a matrix of %lld rows is inverted; at most %lld are possible",
    -31: "axis %lld is out of range or named twice; there are %lld axes, counted from 0",
    -32: "position %lld is outside an axis of %lld",
    -33: "an extent is %lld; none may be negative",
    -34: "the extents multiply to more than 2^40 elements",
    -35: "a tile is %lld; none may be negative, and 0 keeps an axis whole",
    -36: "there are %lld tiles, but %lld extents; give one for each axis, 0 for an axis that stays whole",
    -37: "there are %lld starts, %lld extents and %lld sizes; give one of each for every axis",
    -38: "an array of extent %lld that starts at %lld does not fit into the size %lld of axis %lld, counted from 0",
    -39: "%lld elements of each line are wanted, and an axis has %lld",
    d.HOLDS_NULL: "argument %lld, an array of %lld elements, holds NULL; arrays of numbers must be complete",
    d.LENGTHS_DIFFER: "u has %lld elements, v has %lld; they must have one length",
    d.WRONG_LENGTH: "operand %lld has %lld elements, but its extents multiply to %lld",
    d.RESULT_TOO_LARGE: "the result would take %lld bytes for one vector of rows, more than the limit of %lld",
    d.OUT_OF_MEMORY: "out of memory: %lld bytes could not be had",
    d.STATE_LENGTH: "a row's result has %lld elements, but an earlier row of its group has %lld",
    d.TEXT_TOO_LONG: "a text argument has %lld characters, more than %lld",
    d.BAD_SIZE: "the size %lld is not between 0 and 2^40",
    d.TOO_MANY_EXTENTS: "there are %lld extents, more than 16",
    d.BAD_INNER: "an array of %lld elements does not divide into runs of inner = %lld",
    d.STATE_SHAPE: "a row differs in size, sizes or inner from an earlier row of its group: %lld, not %lld",
    d.STACK_TOO_LARGE: "%lld arrays of %lld elements are more than 2^40 elements",
    d.ODD_LENGTH: "argument %lld has %lld elements, an odd number; complex arrays hold re, im, re, im, ...",
    d.NOT_ONE_COMPLEX: "argument %lld has %lld elements; a complex number is an array of two, [re, im]",
    d.WRONG_ARGUMENTS: "declared with %lld arguments, but the library knows it with %lld; install both from one "
    "version",
    d.NOT_AN_AGGREGATE: "called by itself; it computes only inside its aggregate",
    d.WRONG_ELEMENTS: "argument %lld is an array of the type with OID %lld, but is declared as one of the type %lld",
    d.DAMAGED_ARRAY: "argument %lld is a damaged array",
    d.DAMAGED_STATE: "the aggregate's state is damaged",
    d.PART_OF_AN_ELEMENT: "%lld bytes are no whole number of elements of %lld bytes each",
    d.NOT_RESIDENT: "no array is resident under the handle %lld; one is only while the statement runs that made it, "
    "in DuckDB before version 2 not even then: for that compile programs with --no-indexes",
    d.RESIDENT_TYPE_DIFFERS: "the array under the handle %lld has elements of another type than the fill",
    d.OUTSIDE_RESIDENT: "row %lld of %lld elements each is none of a resident array of %lld elements",
    d.OUTSIDE_ROWS: "row %lld, position %lld: rows are 0 to %lld here, and positions 0 to 2^31 - 2",
    d.TOO_MANY_ROWS: "rows is %lld; it must be 0 to 2^31 - 1",
    d.ALREADY_COMPRESSED: "the entries have been ordered already; a window of rows cannot add to them",
    d.ALREADY_COLLECTED: "the tuples have been collected already; neither a window of rows nor another tensor_keep can "
    "take them again",
    d.NOT_A_VECTOR: "the second operand has a number at position %lld; a vector has numbers at position 0 alone",
    d.UNKNOWN_SEMIRING: f"the semiring is none of {', '.join(semiring.text for semiring in SEMIRINGS)}",
    -76: "a row of the mask has an entry twice; add entries up first",
    -77: "a row has an entry twice; add entries up first",
    d.NOT_PORTABLE: "not available without the library; install the extension, or compute it elsewhere",
    d.POSITIONS_MISSING: "there are %lld numbers, but %lld positions; give one for each",
    d.NO_SUCH_ROW: "position %lld is outside an array of %lld rows of %lld elements each",
    d.ROWS_DIFFER: "the entries have %lld rows, not %lld",
    d.ENTRIES_DIFFER: "there are %lld entries, but %lld numbers for them",
    d.ALREADY_RESERVED: "the memory has been reserved already; give one row, and no window of rows",
    d.RESERVATIONS_DIFFER: "a row names the memory %lld, and an earlier row of its group %lld",
    d.NOT_RESERVED: "no memory is reserved under the handle %lld; rows are written only before the array is resident, "
    "in DuckDB before version 2 not even then: for that compile programs with --no-indexes",
    d.WRITTEN_TWICE: "row %lld has been written already",
    d.RESULT_IS_NULL: "a result holds NULL, which no tensor has",
    d.WRONG_POSITIONS: "positions is %lld; it must be more than every position, here at least %lld, and less than 2^31",
    d.TOO_MANY_RESIDENTS: "there are %lld resident arrays already, the most there may be at a time",
    -61: "int64 overflow: a result is below -2^63 or above 2^63 - 1; cast the operands to DOUBLE to compute in float64",
    -62: "an exponent is negative, and int64 has no such powers; cast the operands to DOUBLE",
    -63: "the expression has a literal that is no int64, but computes in int64; cast the operands to DOUBLE",
    -64: f"int64 has no {_lacking('integer')} and no functions of users; cast the operands to DOUBLE",
    -71: f"complex numbers have no order, and none of {_lacking('complex')}, "
    "and no functions of users; take tensor_complex_real or _imag first",
}

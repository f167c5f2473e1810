"""Language: scalar expressions, such as the join of an EinSum: evaluated by numpy, and written as text."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np

from sparseeinsum.errors import SemanticsError
from sparseeinsum.operators.dtypes import ITEM_BYTES, Array, Number
from sparseeinsum.operators.expressions import AxisBound, Bound, Call, Literal, Operand, Scalar, U, V
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.records import ScalarFunction

PRODUCT = Call("mul", (U, V))
# Small dtypes in which numpy computes functions of bool, and the dtypes of tensors that replace them.
_WIDER = {np.dtype("float16"): "float32", np.dtype("int8"): "int64"}
_PYTHON_NUMBERS = (bool, int, float, complex)  # numpy converts these to the dtype of the other operands
_NAMES = "uvwxyzabcdefghijklmnopqrst"

_NEGATION = FUNCTIONS["neg"].precedence
_ADDITION = FUNCTIONS["add"].precedence
_COMPARISON = FUNCTIONS["lt"].precedence
_TIGHTEST = FUNCTIONS["pow"].precedence + 1

_EMPTY = {dtype: np.empty(0, dtype) for dtype in ITEM_BYTES}

Operands = Sequence[Array | Number] | Mapping[int, Array | Number]  # by position


def evaluate(expression: Scalar, operands: Operands) -> Array:
    """The value of an expression of `operands`, by numpy, without its warnings about NaN, infinity and overflow."""
    with np.errstate(all="ignore"):
        return np.asarray(_evaluate(expression, operands))


def evaluated_dtype(expression: Scalar, dtypes: Sequence[str]) -> str:
    """The dtype that numpy gives an expression of operands of `dtypes`."""
    return _evaluated_dtype(expression, tuple(dtypes), key_of(expression))


@lru_cache(maxsize=4096)  # planning asks for the same expressions many times
def _evaluated_dtype(expression: Scalar, dtypes: tuple[str, ...], key: tuple[object, ...]) -> str:
    """The dtype of an expression; `key` is its `key_of`."""
    del key
    return str(evaluate(expression, {index: _EMPTY[dtypes[index]] for index in operands_of(expression)}).dtype)


def _evaluate(expression: Scalar, operands: Operands) -> Array | Number:
    match expression:
        case Operand(index):
            return operands[index]
        case Literal(value):
            return value
        case Bound() | AxisBound():
            raise ValueError(f"{write(expression)} is not known yet")
        case Call(function, arguments):
            return _applied(FUNCTIONS[function], [_evaluate(argument, operands) for argument in arguments])


def _applied(record: ScalarFunction, values: Sequence[Array | Number]) -> Array | Number:
    """A function of values, in dtypes that tensors have; literals alone give a literal."""
    if record.complex is None and record.python is None and any(map(np.iscomplexobj, values)):
        compares = record.returns_bool or bool(record.returned_arguments)
        problem = (
            f"order, and so no {record.display_name}; compare" if compares else f"{record.display_name}; take it of"
        )
        raise SemanticsError(f"complex numbers have no {problem} abs(...)")
    function = record.numpy
    result = np.asarray(function(*values))
    if all(type(value) in _PYTHON_NUMBERS for value in values):
        # A value of literals alone stays a literal, so that 2 * 3 times a float32 is a float32.
        number: Number = result.item()
        return number
    wider = _WIDER.get(result.dtype)
    if wider is None:
        return result
    return function(*(value if type(value) in _PYTHON_NUMBERS else np.asarray(value, wider) for value in values))


def write(expression: Scalar, names: Sequence[str] = _NAMES) -> str:
    """The expression as text, with as few parentheses as possible; `names` are those of the operands."""
    return _write(expression, names, 0)


def _write(expression: Scalar, names: Sequence[str], binding: int) -> str:
    """The expression as text, in parentheses if its precedence is below `binding`."""
    match expression:
        case Operand(index):
            return names[index]
        case Literal(value):
            text, precedence = write_number(value), _precedence_of(value)
        case Bound(label):
            return f"bound({label})"
        case AxisBound(tensor, axis):
            return f"bound({tensor}, {axis})"
        case Call(name, arguments) if FUNCTIONS[name].symbol and not _reads_as_number(expression):
            text, precedence = _write_operator(name, arguments, names), FUNCTIONS[name].precedence
        case Call(name, arguments):
            return f"{name}({', '.join(_write(argument, names, 0) for argument in arguments)})"
    return f"({text})" if precedence < binding else text


def _write_operator(name: str, arguments: tuple[Scalar, ...], names: Sequence[str]) -> str:
    symbol, precedence = FUNCTIONS[name].symbol, FUNCTIONS[name].precedence
    if len(arguments) == 1:
        return f"{symbol}{' ' if symbol.isalpha() else ''}{_write(arguments[0], names, precedence)}"
    first, second = arguments
    if name == "pow":
        return f"{_write(first, names, precedence + 1)} {symbol} {_write(second, names, precedence)}"
    compares = precedence == _COMPARISON  # comparisons do not chain, so both sides need parentheses
    return f"{_write(first, names, precedence + compares)} {symbol} {_write(second, names, precedence + 1)}"


def write_number(value: Number) -> str:
    """A number as text that parses to the same number of the same type: 2 and 2.0 differ."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, complex):
        return repr(value)
    if value.real == 0 and _is_negative(value.real) == _is_negative(value.imag):
        return f"{value.imag!r}j"
    sign = "-" if _is_negative(value.imag) else "+"
    return f"{value.real!r} {sign} {abs(value.imag)!r}j"


def _precedence_of(value: Number) -> int:
    """The precedence of a number as it is written: that of a sum (1 + 2j), a negation (-2), or one token (2)."""
    text = write_number(value)
    return _ADDITION if " " in text else _NEGATION if text.startswith("-") else _TIGHTEST


def negated_number(value: Number) -> Number | None:
    """The literal that a minus sign and `value` form; None if `value` is a truth value or more than one token."""
    if isinstance(value, bool) or _precedence_of(value) < _TIGHTEST:
        return None
    return -value


def complex_number(real: Number, sign: int, imaginary: Number) -> complex | None:
    """The literal that `real + imaginary` forms, or `real - imaginary` for sign -1; None if it is a plain sum."""
    if not isinstance(imaginary, complex) or _precedence_of(imaginary) < _TIGHTEST:
        return None
    return None if isinstance(real, bool | complex) else complex(real, math.copysign(imaginary.imag, sign))


def _reads_as_number(call: Call) -> bool:
    """Whether the text of the call would parse as one number, as -2 and 1 + 2j do."""
    match call:
        case Call("neg", (Literal(value),)):
            return negated_number(value) is not None
        case Call("add" | "sub", (Literal(real), Literal(imaginary))):
            return complex_number(real, 1, imaginary) is not None
        case _:
            return False


def _is_negative(value: float) -> bool:
    return math.copysign(1, value) < 0


@lru_cache(maxsize=4096)  # as `_evaluated_dtype`
def operands_of(expression: Scalar) -> frozenset[int]:
    """The positions of the operands that an expression uses."""
    match expression:
        case Operand(index):
            return frozenset((index,))
        case Call(_, arguments):
            return frozenset().union(*(operands_of(argument) for argument in arguments))
        case _:
            return frozenset()


def operands_in_order(expression: Scalar) -> tuple[int, ...]:
    """The positions of the operands in the order in which they first appear, as parsing numbers them."""
    match expression:
        case Operand(index):
            return (index,)
        case Call(_, arguments):
            return tuple(dict.fromkeys(index for argument in arguments for index in operands_in_order(argument)))
        case _:
            return ()


def gives_infinity(expression: Scalar) -> bool:
    """Whether an infinite literal of an expression can be its value, as in where(u != 0, v, -inf)."""
    match expression:
        case Literal(value):
            return not isinstance(value, int) and math.isinf(abs(value))
        case Call(function, arguments):
            return any(gives_infinity(arguments[position]) for position in FUNCTIONS[function].returned_arguments)
        case _:
            return False


@lru_cache(maxsize=4096)
def functions_of(expression: Scalar) -> frozenset[str]:
    """The names of the functions and operators that an expression calls."""
    if not isinstance(expression, Call):
        return frozenset()
    return frozenset((expression.function,)).union(*map(functions_of, expression.arguments))


def axis_bounds_of(expression: Scalar) -> Iterator[AxisBound]:
    """The bounds of tensors' axes that occur in an expression."""
    match expression:
        case AxisBound():
            yield expression
        case Call(_, arguments):
            for argument in arguments:
                yield from axis_bounds_of(argument)


def key_of(expression: Scalar) -> tuple[object, ...]:
    """The functions that an expression calls: what caches of results need besides it, as users may replace them."""
    return tuple([FUNCTIONS[name] for name in functions_of(expression)])


@lru_cache(maxsize=4096)
def interned(expression: Scalar) -> Scalar:
    """An equal expression that is the same object for all callers, so that caches need not compare its parts."""
    return expression


def count_operations(expression: Scalar) -> int:
    """The number of functions and operators that one evaluation computes."""
    if not isinstance(expression, Call):
        return 0
    return 1 + sum(count_operations(argument) for argument in expression.arguments)


def count_function(expression: Scalar, name: str) -> int:
    """The number of times that an expression calls a function."""
    if not isinstance(expression, Call):
        return 0
    return (expression.function == name) + sum(count_function(argument, name) for argument in expression.arguments)

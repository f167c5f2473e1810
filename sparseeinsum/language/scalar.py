"""Language: scalar expressions of one or two operands, the `join` of an EinSum."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Operand:
    """The value of an operand, by its position: 0 is u, 1 is v."""

    index: int


@dataclass(frozen=True, slots=True)
class Literal:
    """A number written in the program."""

    value: float


@dataclass(frozen=True, slots=True)
class Call:
    """A function, or an operator by its name in FUNCTIONS, of scalar expressions."""

    function: str
    arguments: tuple["Scalar", ...]


Scalar = Operand | Literal | Call


@dataclass(frozen=True, slots=True)
class Function:
    """What a scalar function is.

    Attributes:
        operands: How many it takes.
        numpy: The function that defines its values.
        keeps_finite: Whether it is finite wherever its operands are (leaving overflow of + - * aside).
        symbol: Its operator, where it is written as one.
        precedence: How tightly the operator binds; 0 for functions.
    """

    operands: int
    numpy: Callable[..., _Array]
    keeps_finite: bool
    symbol: str = ""
    precedence: int = 0


def _sigmoid(x: _Array) -> _Array:
    return np.asarray(1 / (1 + np.exp(-x)))


# udfs/expression.py has the same names.
FUNCTIONS: dict[str, Function] = {
    "add": Function(2, np.add, True, "+", 1),
    "sub": Function(2, np.subtract, True, "-", 1),
    "mul": Function(2, np.multiply, True, "*", 2),
    "div": Function(2, np.divide, False, "/", 2),
    "neg": Function(1, np.negative, True, "-", 3),
    "pow": Function(2, np.power, False, "^", 4),
    "abs": Function(1, np.abs, True),
    "exp": Function(1, np.exp, False),
    "log": Function(1, np.log, False),
    "sqrt": Function(1, np.sqrt, False),
    "sign": Function(1, np.sign, True),
    "relu": Function(1, lambda x: np.maximum(x, 0), True),
    "sigmoid": Function(1, _sigmoid, True),
    "tanh": Function(1, np.tanh, True),
    "min": Function(2, np.minimum, True),
    "max": Function(2, np.maximum, True),
}

AGGREGATES = ("sum", "prod", "max", "min")

U, V = Operand(0), Operand(1)
PRODUCT = Call("mul", (U, V))


def evaluate(expression: Scalar, operands: Sequence[_Array | float]) -> _Array:
    """The value of an expression, by numpy, without warnings for what IEEE 754 defines."""
    with np.errstate(all="ignore"):
        return np.asarray(_evaluate(expression, operands))


def _evaluate(expression: Scalar, operands: Sequence[_Array | float]) -> _Array | float:
    match expression:
        case Operand(index):
            return operands[index]
        case Literal(value):
            return value
        case Call(function, arguments):
            return FUNCTIONS[function].numpy(*(_evaluate(argument, operands) for argument in arguments))


def write(expression: Scalar, names: Sequence[str] = ("u", "v")) -> str:
    """The expression as text, with as few parentheses as its operators need."""
    return _write(expression, names, 0)


def _write(expression: Scalar, names: Sequence[str], binding: int) -> str:
    match expression:
        case Operand(index):
            return names[index]
        case Literal(value):
            return write_number(value)
        case Call("neg", (argument,)):
            text, precedence = "-" + _write(argument, names, 3), 3
        case Call("pow", (base, exponent)):
            text, precedence = f"{_write(base, names, 5)} ^ {_write(exponent, names, 4)}", 4
        case Call(name, (first, second)) if FUNCTIONS[name].symbol:
            precedence = FUNCTIONS[name].precedence
            left, right = _write(first, names, precedence), _write(second, names, precedence + 1)
            text = f"{left} {FUNCTIONS[name].symbol} {right}"
        case Call(name, arguments):
            return f"{name}({', '.join(_write(argument, names, 0) for argument in arguments)})"
    return f"({text})" if precedence < binding else text


def write_number(value: float) -> str:
    """A number as short as it can be without losing a bit: 2 rather than 2.0."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def substitute(expression: Scalar, index: int, value: float) -> Scalar:
    """The expression with one operand set to a number, as far simplified as is exact for finite operands.

    `u * v` with u = 0 becomes 0, `u + v` becomes v; `u / v` stays, because v may be 0, too.
    """
    match expression:
        case Operand(position):
            return Literal(value) if position == index else expression
        case Literal():
            return expression
        case Call(function, arguments):
            return _simplify(function, tuple(substitute(argument, index, value) for argument in arguments))


def _simplify(function: str, arguments: tuple[Scalar, ...]) -> Scalar:
    call = Call(function, arguments)
    if all(isinstance(argument, Literal) for argument in arguments):
        return Literal(float(evaluate(call, ())))
    zero = Literal(0.0)
    match function, arguments:
        case "mul", (first, second) if zero in (first, second) and keeps_finite(first) and keeps_finite(second):
            return zero
        case "mul", (Literal(1.0), other) | (other, Literal(1.0)):
            return other
        case "add", (Literal(0.0), other) | (other, Literal(0.0)):
            return other
        case ("sub", (other, Literal(0.0))) | ("div", (other, Literal(1.0))):
            return other
        case _:
            return call


def operands_of(expression: Scalar) -> frozenset[int]:
    """Positions of the operands that an expression uses."""
    match expression:
        case Operand(index):
            return frozenset((index,))
        case Literal():
            return frozenset()
        case Call(_, arguments):
            return frozenset().union(*(operands_of(argument) for argument in arguments))


def count_operations(expression: Scalar) -> int:
    """Scalar operations that one evaluation takes."""
    if not isinstance(expression, Call):
        return 0
    return 1 + sum(count_operations(argument) for argument in expression.arguments)


def keeps_finite(expression: Scalar) -> bool:
    """Whether finite operands always give a finite value, leaving overflow of + - * aside."""
    match expression:
        case Operand():
            return True
        case Literal(value):
            return bool(np.isfinite(value))
        case Call("pow", (base, Literal(exponent))) if exponent >= 0 and exponent.is_integer():
            return keeps_finite(base)
        case Call("div", (dividend, Literal(divisor))) if divisor != 0:
            return keeps_finite(dividend)
        case Call(function, arguments):
            return FUNCTIONS[function].keeps_finite and all(map(keeps_finite, arguments))

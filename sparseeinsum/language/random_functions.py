"""Language: random numbers, such as uniform(seed, step, i, j), as expressions of functions that draw no number twice.

The keys are numbers, parameters, tensors or labels, which stand for their indices. Threefry folds them, one after the
other, into 52 bits, from which a function makes a number. So a draw depends on its keys alone: it is the same for every
plan, engine and number of threads.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sparseeinsum.language.syntax import (
    ErrorAt,
    ExpressionTree,
    FunctionCall,
    MatrixName,
    NumberLiteral,
    RangeExpression,
    call_of,
    free_labels,
    labels_of,
    references,
)
from sparseeinsum.operators.random_numbers import RANDOM_BITS, threefry

_NameValue = Callable[[tuple[str, ...], ExpressionTree], ExpressionTree]

_FIRST_KEY = NumberLiteral(0)


@dataclass(frozen=True, slots=True)
class RandomFunction:
    """A function of random numbers.

    Attributes:
        make: (bits, further arguments) -> the random number.
        arguments: The number of further arguments, which come before the keys.
        example: A call, for messages.
    """

    make: Callable[..., ExpressionTree]
    arguments: int
    example: str


def _uniform(bits: ExpressionTree) -> ExpressionTree:
    """A number of at least 0 and less than 1: a multiple of 2^-52."""
    return call_of("mul", bits, 2.0**-RANDOM_BITS)


def _normal(bits: ExpressionTree) -> ExpressionTree:
    """The quantile of a number between 0 and 1, an odd multiple of 2^-53."""
    return call_of("normal_quantile", call_of("mul", call_of("add", bits, 0.5), 2.0**-RANDOM_BITS))


def _bernoulli(bits: ExpressionTree, probability: ExpressionTree) -> ExpressionTree:
    """Whether a uniform number is less than the probability."""
    return call_of("lt", _uniform(bits), probability)


RANDOM_FUNCTIONS = {
    "uniform": RandomFunction(_uniform, 0, "uniform(seed, step, i, j)"),
    "normal": RandomFunction(_normal, 0, "normal(seed, step, i, j)"),
    "bernoulli": RandomFunction(_bernoulli, 1, "bernoulli(0.5, seed, step, i, j)"),
}


def with_labels_as_keys(call: FunctionCall, parameters: frozenset[str]) -> FunctionCall:
    """The call of a random function with index(i) in place of the labels among its keys, such as i.

    Args:
        call: The call.
        parameters: The names that are no labels.
    """
    count = RANDOM_FUNCTIONS[call.name].arguments

    def as_key(argument: ExpressionTree) -> ExpressionTree:
        if not isinstance(argument, MatrixName) or argument.name in parameters:
            return argument
        return RangeExpression("index", argument.name, None, argument.at)

    keys = map(as_key, call.arguments[count:])
    return FunctionCall(call.name, call.labels, (*call.arguments[:count], *keys), call.at)


def expand_random(call: FunctionCall, name_value: _NameValue, error: ErrorAt) -> ExpressionTree:
    """The expression that a call of a random function stands for.

    Args:
        call: The call; its arguments have no aggregates.
        name_value: (labels, expression) -> a reference to an intermediate, which is computed once.
        error: Makes an error of a problem and a place.

    Raises:
        ParseError: The call has labels in brackets, too few arguments, or a key that is no whole number.
    """
    function = RANDOM_FUNCTIONS[call.name]
    further, keys = call.arguments[: function.arguments], call.arguments[function.arguments :]
    if call.labels is not None:
        raise error(f"{call.name} takes its labels as keys, as in {function.example}", call.at)
    if not keys:
        raise error(f"{call.name} has no key; give it a seed and labels, as in {function.example}", call.at)
    bits: ExpressionTree = _FIRST_KEY
    for number, key in enumerate(keys):
        if number and (labels_of(bits) or any(references(bits))):  # no number without tensors
            bits = name_value(tuple(dict.fromkeys(free_labels(bits))), bits)
        bits = _folded(bits, key, call.name, error)
    return function.make(bits, *further)


def _folded(bits: ExpressionTree, key: ExpressionTree, name: str, error: ErrorAt) -> ExpressionTree:
    """The bits that Threefry makes of bits and a further key."""
    if not isinstance(key, NumberLiteral):
        return call_of("threefry", bits, key)
    if not isinstance(key.value, int) or not -(2**63) <= key.value < 2**63:
        raise error(f"{key.value} is a key of {name}, but keys are whole numbers from -2^63 below 2^63", key.at)
    if not isinstance(bits, NumberLiteral):
        return call_of("threefry", bits, key)
    return NumberLiteral(threefry(np.asarray(bits.value, np.int64), np.asarray(key.value, np.int64)).item())

"""Language: registers functions of states as an aggregate that programs can call."""

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sparseeinsum.errors import SemanticsError
from sparseeinsum.language.function_registration import RESERVED, as_rules, computation_key
from sparseeinsum.language.parsing import parse_join
from sparseeinsum.operators.dtypes import Array
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.records import ScalarFunction
from sparseeinsum.operators.user_aggregates import USER_AGGREGATES, State, UserAggregate

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,59}")
_MOST_NUMBERS = 4  # of a state
_PLAIN_PARAMETERS = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_PROBES = (1.0, -2.0, 0.5)  # values with which the laws of an aggregate are tested


def aggregate(
    name: str,
    fold: Callable[..., Any],
    identity: float | Sequence[float],
    combine: Callable[..., Any],
    repeat: Callable[..., Any] | None = None,
    derivatives: str | Sequence[str] | None = None,
) -> None:
    """Register Python functions as an aggregate of programs; it replaces an earlier one of the same name.

    A state is a number, or a tuple of two to four numbers. In a program, `name[j](A[i, j])` aggregates over j if a
    state has one number. If it has several, a second label in the brackets counts them: `name[j, n](A[i, j])` has the
    labels i and n. The functions are compiled with numba, compute in float64, and run in this process, on DuckDB.

    Args:
        name: The name of the aggregate in programs.
        fold: (state, value) -> state; or (state, value, second value) -> state, for an aggregate of two arguments.
        identity: The state before the first value.
        combine: (state, other state) -> state; it must be commutative and associative.
        repeat: (value, times) -> the state of `times` copies of `value`, for absent entries; both are floats. By
            default, states are doubled with `combine`.
        derivatives: For every value that `fold` takes, what a small change g of it adds to the result v, as program
            text of g, v and the values, u or u and w; None if it has no derivatives. States have one number then.

    Raises:
        SemanticsError: The name is taken, a function has other parameters, the functions contradict each other, or
            there are more or fewer derivatives than values.
        ParseError: A derivative has a syntax error, or reads something else than g, v and the values.

    >>> aggregate("magnitude", lambda s, x: s + abs(x), 0.0, lambda s, t: s + t, lambda x, n: abs(x) * n)
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SemanticsError(f"{name!r} cannot be the name of an aggregate; it needs up to 60 letters, digits and _")
    if name in RESERVED or name in FUNCTIONS:
        raise SemanticsError(f"{name} has a meaning in programs already; give the aggregate another name")
    arguments = _count_parameters(name, "fold", fold, (2, 3)) - 1
    _count_parameters(name, "combine", combine, (2,))
    if repeat is not None:
        _count_parameters(name, "repeat", repeat, (2,))
    state = _state(name, identity)
    functions = (fold, combine, repeat)
    rules = as_rules(derivatives)
    source = (state, rules, *(None if function is None else computation_key(function) for function in functions))
    earlier = USER_AGGREGATES.get(name)
    if earlier is not None and earlier.source == source:
        return
    record = UserAggregate(name, fold, state, combine, repeat, arguments, rules, source)
    _check_laws(record)
    _check_derivatives(record)
    USER_AGGREGATES[name] = record
    if arguments == 2:
        FUNCTIONS[record.pair] = ScalarFunction(name=record.pair, operands=2, numpy=_pairs(name), python=fold)


def _state(name: str, identity: float | Sequence[float]) -> State:
    """The identity as a tuple of one to four floats."""
    numbers = tuple(identity) if isinstance(identity, Sequence) else (identity,)
    if not 1 <= len(numbers) <= _MOST_NUMBERS or not all(
        isinstance(number, int | float | np.number) for number in numbers
    ):
        raise SemanticsError(f"the identity of {name} is {identity!r}; it must be one to {_MOST_NUMBERS} real numbers")
    try:
        return tuple(map(float, numbers))
    except OverflowError:
        raise SemanticsError(f"the identity of {name} is {identity!r}, which is too large for float64") from None


def _count_parameters(name: str, part: str, function: Callable[..., Any], allowed: Sequence[int]) -> int:
    """The number of parameters of a function, if `allowed` has it; `part` is the role of the function, for errors."""
    if not inspect.isfunction(getattr(function, "py_func", function)):
        raise SemanticsError(f"the {part} of {name} is {function!r}; it must be a function written in Python")
    parameters = inspect.signature(function).parameters.values()
    is_plain = all(parameter.kind in _PLAIN_PARAMETERS for parameter in parameters)
    if not is_plain or len(parameters) not in allowed:
        shown, counts = ", ".join(map(str, parameters)), " or ".join(map(str, allowed))
        raise SemanticsError(f"the {part} of {name} takes ({shown}); it must take {counts} arguments")
    return len(parameters)


def _check_laws(record: UserAggregate) -> None:
    """Test the functions on some values: results must not depend on the order or the grouping of the values."""
    states = [_call(record, "fold", record.fold_all, [(value,) * record.arguments]) for value in _PROBES]
    for state in (record.identity, *states):
        if len(state) != record.numbers:
            raise SemanticsError(
                f"the fold of {record.name} returns {len(state)} numbers, and its identity has {record.numbers}"
            )
    first, second = states[:2]
    combined = _combine(record, first, second)
    folded = _call(record, "fold", record.fold_all, [(value,) * record.arguments for value in _PROBES[:2]])
    for problem, actual, expected in (
        ("combine(identity, state) is not state", _combine(record, record.identity, first), first),
        ("combine depends on the order of its arguments", _combine(record, second, first), combined),
        ("combine of the states of two values is not the fold of both", combined, folded),
    ):
        _check_equal(record, problem, actual, expected)
    if record.arguments == 1:
        for value in _PROBES:
            repeated = _call(record, "repeat", record.fold_repeated, value, 3)
            folded = _call(record, "fold", record.fold_all, [(value,)] * 3)
            _check_equal(record, "repeat(value, 3) is not the fold of three", repeated, folded)


def _check_derivatives(record: UserAggregate) -> None:
    """Refuse derivatives that are too many, too few, or no expressions of g, the result and the values."""
    if record.derivatives is None:
        return
    if record.numbers > 1:
        problem = f"{record.name} has states of {record.numbers} numbers, and derivatives"
        raise SemanticsError(f"{problem}; only aggregates whose states are one number can have derivatives")
    if len(record.derivatives) != record.arguments:
        problem = f"{record.name} aggregates {record.arguments} values at a time, but has {len(record.derivatives)}"
        raise SemanticsError(f"{problem} derivatives; give one for each, such as '2 * g * u' for the sum of squares")
    for text in record.derivatives:
        parse_join(text, (*record.operands, "g"))


def _combine(record: UserAggregate, first: State, second: State) -> State:
    plain = (first[0], second[0]) if record.numbers == 1 else (first, second)

    def combine(*states: Any) -> State:  # noqa: ANN401  # floats or tuples of floats
        state = record.combine(*states)
        return tuple(map(float, (state,) if record.numbers == 1 else state))

    combined: State = _call(record, "combine", combine, *plain)
    return combined


def _check_equal(record: UserAggregate, problem: str, actual: State, expected: State) -> None:
    if len(actual) != len(expected) or not np.allclose(actual, expected, rtol=1e-9, atol=1e-12, equal_nan=True):
        raise SemanticsError(f"{record.name} is not an aggregate: {problem}; it gives {actual} for {expected}")


def _call(record: UserAggregate, part: str, function: Callable[..., Any], *arguments: Any) -> Any:  # noqa: ANN401
    """The result of a user's function; an exception in it becomes a SemanticsError."""
    try:
        return function(*arguments)
    except Exception as error:
        shown = ", ".join(map(str, arguments))
        raise SemanticsError(f"the {part} of {record.name} fails for {shown}: {error!r}") from error


def _pairs(name: str) -> Callable[..., Array]:
    """A function of two arguments that has the shape of their values, for the inference of dtypes."""

    def pairs(*operands: Any) -> Array:  # noqa: ANN401  # arrays and numbers
        if any(map(np.iscomplexobj, operands)):
            raise SemanticsError(f"{name} takes real numbers, as all aggregates that are registered")
        return np.zeros(np.broadcast(*operands).shape)

    return pairs

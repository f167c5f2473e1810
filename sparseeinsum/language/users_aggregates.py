"""Language: a user's functions of states in, an aggregate that programs may call out."""

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sparseeinsum.errors import SemanticsError
from sparseeinsum.language.functions import RESERVED, source_of
from sparseeinsum.operators.dtypes import Array
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.records import ScalarFunction
from sparseeinsum.operators.user_aggregates import USER_AGGREGATES, State, UserAggregate

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,59}")
_MOST_NUMBERS = 4
_PROBES = (1.0, -2.0, 0.5)  # values that an aggregate is tried with to see whether it is one


def aggregate(
    name: str,
    fold: Callable[..., Any],
    identity: float | Sequence[float],
    combine: Callable[..., Any],
    repeat: Callable[..., Any] | None = None,
) -> None:
    """Make functions of yours an aggregate of programs; of one that has this name it takes the place.

    A state is a number, or a tuple of two to four. In a program, `name[j](A[i, j])` folds one number over j; of more
    numbers, another label in the brackets counts them: `name[j, n](A[i, j])` has the labels i and n. Kernels compile
    the functions with numba and compute in float64; they run in this process, on DuckDB.

    Args:
        name: In programs.
        fold: (state, value) -> state; or (state, value, another) -> state, of an aggregate of two arguments.
        identity: The state of nothing.
        combine: (state, another) -> state, commutative and associative.
        repeat: (value, times) -> the state of a value so many times, which what is absent contributes; both are floats.
            By default states are doubled with `combine`.

    Raises:
        SemanticsError: The name is taken, a function takes something else, or they contradict each other.

    >>> aggregate("magnitude", lambda s, x: s + abs(x), 0.0, lambda s, t: s + t, lambda x, n: abs(x) * n)
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SemanticsError(f"{name!r} is no name for an aggregate; it needs up to 60 letters, digits and _")
    if name in RESERVED or name in FUNCTIONS:
        raise SemanticsError(f"{name} has a meaning in programs already; give the aggregate another name")
    arguments = _count_parameters(name, "fold", fold, (2, 3)) - 1
    _count_parameters(name, "combine", combine, (2,))
    if repeat is not None:
        _count_parameters(name, "repeat", repeat, (2,))
    state = _state(name, identity)
    source = (state, *(None if each is None else source_of(each) for each in (fold, combine, repeat)))
    known = USER_AGGREGATES.get(name)
    if known is not None and known.source == source:
        return
    record = UserAggregate(name, fold, state, combine, repeat, arguments, source)
    _check(record)
    USER_AGGREGATES[name] = record
    if arguments == 2:
        FUNCTIONS[record.pair] = ScalarFunction(name=record.pair, operands=2, numpy=_pairs(name), python=fold)


def _state(name: str, identity: float | Sequence[float]) -> State:
    numbers = tuple(identity) if isinstance(identity, Sequence) else (identity,)
    if not 1 <= len(numbers) <= _MOST_NUMBERS or not all(isinstance(each, int | float | np.number) for each in numbers):
        raise SemanticsError(f"the identity of {name} is {identity!r}; it must be one to {_MOST_NUMBERS} real numbers")
    try:
        return tuple(map(float, numbers))
    except OverflowError:
        raise SemanticsError(f"the identity of {name} is {identity!r}, which no float64 is") from None


def _count_parameters(name: str, part: str, function: Callable[..., Any], allowed: Sequence[int]) -> int:
    if not inspect.isfunction(getattr(function, "py_func", function)):
        raise SemanticsError(f"the {part} of {name} is {function!r}; it must be a function written in Python")
    parameters = inspect.signature(function).parameters.values()
    is_plain = all(each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in parameters)
    if not is_plain or len(parameters) not in allowed:
        shown, wanted = ", ".join(map(str, parameters)), " or ".join(map(str, allowed))
        raise SemanticsError(f"the {part} of {name} takes ({shown}); it must take {wanted} arguments")
    return len(parameters)


def _check(record: UserAggregate) -> None:
    """Try the functions with some values; what they compute must not depend on the order, nor on how it is divided."""
    states = [_tried(record, "fold", record.fold_all, [(value,) * record.arguments]) for value in _PROBES]
    for state in (record.identity, *states):
        if len(state) != record.numbers:
            raise SemanticsError(
                f"the fold of {record.name} returns {len(state)} numbers, and its identity has {record.numbers}"
            )
    one, other = states[:2]
    both = _combined(record, one, other)
    folded = _tried(record, "fold", record.fold_all, [(value,) * record.arguments for value in _PROBES[:2]])
    for what, found, wanted in (
        ("combine(identity, state) is not state", _combined(record, record.identity, one), one),
        ("combine depends on the order of its arguments", _combined(record, other, one), both),
        ("combine of the states of two values is not the fold of both", both, folded),
    ):
        _check_same(record, what, found, wanted)
    if record.arguments == 1:
        for value in _PROBES:
            found = _tried(record, "repeat", record.fold_repeated, value, 3)
            three = _tried(record, "fold", record.fold_all, [(value,)] * 3)
            _check_same(record, "repeat(value, 3) is not the fold of three", found, three)


def _combined(record: UserAggregate, one: State, other: State) -> State:
    plain = (one[0], other[0]) if record.numbers == 1 else (one, other)

    def combine(*states: Any) -> State:  # noqa: ANN401  # as functions take them
        found = record.combine(*states)
        return tuple(map(float, (found,) if record.numbers == 1 else found))

    combined: State = _tried(record, "combine", combine, *plain)
    return combined


def _check_same(record: UserAggregate, problem: str, found: State, wanted: State) -> None:
    if len(found) != len(wanted) or not np.allclose(found, wanted, rtol=1e-9, atol=1e-12, equal_nan=True):
        raise SemanticsError(f"{record.name} is no aggregate: {problem}; it gives {found} for {wanted}")


def _tried(record: UserAggregate, part: str, function: Callable[..., Any], *arguments: Any) -> Any:  # noqa: ANN401
    try:
        return function(*arguments)
    except Exception as error:
        shown = ", ".join(map(str, arguments))
        raise SemanticsError(f"the {part} of {record.name} fails for {shown}: {error!r}") from error


def _pairs(name: str) -> Callable[..., Array]:
    """What stands for two arguments where a dtype is asked for."""

    def pairs(*operands: Any) -> Array:  # noqa: ANN401  # arrays and numbers
        if any(map(np.iscomplexobj, operands)):
            raise SemanticsError(f"{name} takes real numbers, as all aggregates that are registered")
        return np.zeros(np.broadcast(*operands).shape)

    return pairs

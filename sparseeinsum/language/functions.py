"""Language: a user's Python function of numbers in, a scalar function that programs may call out."""

import inspect
import itertools
import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from sparseeinsum.errors import SemanticsError
from sparseeinsum.language.linear_algebra import FOLDS
from sparseeinsum.language.macros import MACROS
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.dtypes import Array
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.picks import PICKS
from sparseeinsum.operators.records import ScalarFunction
from sparseeinsum.operators.scans import SCANS
from sparseeinsum.operators.user_aggregates import USER_AGGREGATES

_WORDS = ("trace", "one_hot", "bound", "index", "ones", "true", "false", "inf", "infj")
RESERVED = frozenset((*AGGREGATES, *SCANS, *PICKS, *MACROS, *FOLDS, *_WORDS))
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PROBES = (1.0, 0.0, 2.0, -1.0)  # what a function is tried with to see whether it says what is true
_MOST_OPERANDS = 3


def register(python: Callable[..., Any]) -> str:
    """Make a Python function one of FUNCTIONS, under its own name, which is returned; it replaces an earlier one.

    Raises:
        SemanticsError: The name is taken or no name, or the function takes something else than so many operands.
    """
    name = getattr(python, "__name__", repr(python))
    if not _NAME.fullmatch(name):
        raise SemanticsError(f"{name} is no name for a function in a program; write it with def, in ASCII")
    known = FUNCTIONS.get(name)
    if name in RESERVED or name in USER_AGGREGATES or (known is not None and known.python is None):
        raise SemanticsError(f"{name} has a meaning in programs already; give the function another name")
    source = source_of(python)
    if known is not None and known.source == source:
        return name
    FUNCTIONS[name] = ScalarFunction(
        name=name,
        operands=_count_operands(name, python),
        numpy=_by_numpy(name, python),
        python=python,
        source=source,
    )
    return name


def source_of(python: Callable[..., Any], callers: tuple[object, ...] = ()) -> Hashable:
    """What a function does now, wherever it was defined; what it captures, and globals, are part of it."""
    python = getattr(python, "py_func", python)  # of what numba compiled
    callers = (*callers, python)

    def of(value: object) -> Hashable:
        return source_of(value, callers) if isinstance(value, FunctionType) and value not in callers else repr(value)

    codes = tuple(_codes_of(python.__code__))
    captured = tuple(of(cell.cell_contents) for cell in python.__closure__ or ())
    read = tuple(of(python.__globals__.get(name)) for code in codes for name in code.co_names)
    return tuple(map(_text_of, codes)), captured, read


def _codes_of(code: CodeType) -> Iterator[CodeType]:
    """The code of a function, and of those defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes_of(constant)


def _text_of(code: CodeType) -> Hashable:
    constants = tuple(repr(each) for each in code.co_consts if not isinstance(each, CodeType))
    return code.co_code, constants, code.co_names, code.co_varnames


def _count_operands(name: str, python: Callable[..., Any]) -> int:
    parameters = inspect.signature(python).parameters.values()
    for parameter in parameters:
        positional = parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        if not positional or parameter.default is not parameter.empty:
            raise SemanticsError(f"{name} has the parameter {parameter}; it may have plain ones only, each an operand")
    if not 1 <= len(parameters) <= _MOST_OPERANDS:
        raise SemanticsError(f"{name} has {len(parameters) or 'no'} parameters; it must have 1 to {_MOST_OPERANDS}")
    return len(parameters)


def _by_numpy(name: str, python: Callable[..., Any]) -> Callable[..., Array]:
    """The function of arrays: as in kernels it is called with every number as a float64, whatever its dtype.

    The result is a float64; a float32 where all operands are; truth where the function returns nothing else.
    """

    def call(values: Sequence[float]) -> Any:  # noqa: ANN401  # whatever a user's function returns
        try:
            return python(*map(np.float64, values))
        except Exception as error:
            given = ", ".join(map(str, values))
            problem = f"{name}({given}) raises {type(error).__name__}: {error}"
            raise SemanticsError(f"{problem}; functions of numpy give NaN and inf where those of math raise") from error

    def evaluate(*operands: Any) -> Array:  # noqa: ANN401  # arrays and numbers
        dtype = bool if _is_truth(name, call, len(operands)) else _result_dtype(name, operands)
        arrays = np.broadcast_arrays(*operands)
        results = [call(values) for values in zip(*(array.ravel() for array in arrays), strict=True)]
        return np.array(results, dtype).reshape(arrays[0].shape)

    return evaluate


def _result_dtype(name: str, operands: Sequence[Any]) -> str:
    """As of numpy's functions of floating point, for which numbers of Python are of any dtype."""
    dtypes = {np.asarray(operand).dtype.name for operand in operands if type(operand) not in (bool, int, float)}
    if any(np.dtype(dtype).kind == "c" for dtype in dtypes):
        raise SemanticsError(f"{name} takes real numbers, as all functions that are registered, and no {max(dtypes)}")
    return "float32" if dtypes == {"float32"} else "float64"


def _is_truth(name: str, call: Callable[[Sequence[float]], Any], operands: int) -> bool:
    """Whether the function returns true or false for some small numbers."""
    results, failures = [], []
    for values in itertools.product(_PROBES, repeat=operands):
        try:
            results.append(call(values))
        except SemanticsError as error:
            failures.append(error)
    if not results:
        raise failures[0]
    for result in results:
        if not isinstance(result, np.bool_ | np.floating | np.integer | bool | int | float):
            raise SemanticsError(f"{name} returns {result!r}, which is no real number")
    return all(isinstance(result, bool | np.bool_) for result in results)

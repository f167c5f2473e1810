"""Language: registers Python functions of numbers as scalar functions that programs can call."""

import inspect
import itertools
from collections.abc import Callable, Hashable, Iterator, Sequence
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from sparseeinsum.errors import SemanticsError
from sparseeinsum.language.linear_algebra import MATRIX_AGGREGATES
from sparseeinsum.language.macros import MACROS
from sparseeinsum.language.parsing import parse_join
from sparseeinsum.language.random_functions import RANDOM_FUNCTIONS
from sparseeinsum.language.syntax import is_name
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.dtypes import Array
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.picks import PICKS
from sparseeinsum.operators.records import ScalarFunction
from sparseeinsum.operators.scans import SCANS
from sparseeinsum.operators.user_aggregates import USER_AGGREGATES

_WORDS = ("trace", "one_hot", "gradient", "bound", "index", "ones", "true", "false", "inf", "infj")
RESERVED = frozenset((*AGGREGATES, *SCANS, *PICKS, *MACROS, *RANDOM_FUNCTIONS, *MATRIX_AGGREGATES, *_WORDS))
_PROBES = (1.0, 0.0, 2.0, -1.0)  # arguments with which a function is tried, to see whether it returns truth values
_MOST_OPERANDS = 3


def register(python: Callable[..., Any], derivatives: str | Sequence[str] | None = None) -> str:
    """Add a Python function to FUNCTIONS under its own name, which is returned; it replaces an earlier one.

    Args:
        python: The function.
        derivatives: Its derivatives, see `ScalarFunction`, or the only one; None if it has none.

    Raises:
        SemanticsError: The name is taken or not a name, the parameters of the function are not 1 to 3 plain ones, or
            there are more or fewer derivatives than parameters.
        ParseError: A derivative has a syntax error, or reads something else than g and the arguments.
    """
    name = getattr(python, "__name__", repr(python))
    if not is_name(name):
        raise SemanticsError(f"{name} cannot be the name of a function in a program; use def and a name in ASCII")
    earlier = FUNCTIONS.get(name)
    if name in RESERVED or name in USER_AGGREGATES or (earlier is not None and earlier.python is None):
        raise SemanticsError(f"{name} has a meaning in programs already; give the function another name")
    source = computation_key(python)
    rules = as_rules(derivatives)
    if earlier is not None and (earlier.source, earlier.derivatives) == (source, rules):
        return name
    operands = _count_operands(name, python)
    _check_derivatives(name, operands, rules)
    FUNCTIONS[name] = ScalarFunction(
        name=name,
        operands=operands,
        derivatives=rules,
        numpy=_by_numpy(name, python),
        python=python,
        source=source,
    )
    return name


def as_rules(derivatives: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """The derivatives that a user gives, of which a single one may be without a list; None if there are none."""
    if derivatives is None:
        return None
    return (derivatives,) if isinstance(derivatives, str) else tuple(derivatives)


def _check_derivatives(name: str, operands: int, derivatives: tuple[str, ...] | None) -> None:
    """Refuse derivatives that are too many, too few or no expressions of g, u, v and w."""
    if derivatives is not None and len(derivatives) != operands:
        problem = f"{name} has {operands} parameters, but {len(derivatives)} derivatives"
        raise SemanticsError(f"{problem}; give one for each, such as '2 * g * u' for u^2")
    for text in derivatives or ():
        parse_join(text, (*"uvw"[:operands], "g"))


def computation_key(python: Callable[..., Any], callers: tuple[object, ...] = ()) -> Hashable:
    """A key of what a function computes now: its code, the values that it captures, and the globals that it reads.

    Two functions with equal keys compute the same. `callers` are those whose keys are being made, to end recursion.
    """
    python = getattr(python, "py_func", python)  # numba wraps the functions that it compiles
    callers = (*callers, python)

    def key_of(value: object) -> Hashable:
        return (
            computation_key(value, callers) if isinstance(value, FunctionType) and value not in callers else repr(value)
        )

    codes = tuple(_nested_codes(python.__code__))
    captured = tuple(key_of(cell.cell_contents) for cell in python.__closure__ or ())
    read = tuple(key_of(python.__globals__.get(name)) for code in codes for name in code.co_names)
    return tuple(map(_code_key, codes)), captured, read


def _nested_codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function, and of the functions that it defines."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested_codes(constant)


def _code_key(code: CodeType) -> Hashable:
    """A key of the instructions and constants of a code object; line numbers and file names do not count."""
    constants = tuple(repr(constant) for constant in code.co_consts if not isinstance(constant, CodeType))
    return code.co_code, constants, code.co_names, code.co_varnames


def _count_operands(name: str, python: Callable[..., Any]) -> int:
    """The number of parameters of a function; refuses other than one to three plain ones."""
    parameters = inspect.signature(python).parameters.values()
    for parameter in parameters:
        positional = parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        if not positional or parameter.default is not parameter.empty:
            raise SemanticsError(
                f"{name} has the parameter {parameter}; only plain parameters are allowed, one per operand"
            )
    if not 1 <= len(parameters) <= _MOST_OPERANDS:
        raise SemanticsError(f"{name} has {len(parameters) or 'no'} parameters; it must have 1 to {_MOST_OPERANDS}")
    return len(parameters)


def _by_numpy(name: str, python: Callable[..., Any]) -> Callable[..., Array]:
    """The function of arrays. As in kernels, every number is converted to float64 before the call.

    The result is bool if the function returns truth values only, float32 if all operands are, and else float64.
    """

    def call(values: Sequence[float]) -> Any:  # noqa: ANN401  # a function of a user can return anything
        try:
            return python(*map(np.float64, values))
        except Exception as error:
            arguments = ", ".join(map(str, values))
            problem = f"{name}({arguments}) raises {type(error).__name__}: {error}"
            raise SemanticsError(f"{problem}; functions of numpy give NaN and inf where those of math raise") from error

    def evaluate(*operands: Any) -> Array:  # noqa: ANN401  # arrays and numbers
        dtype = bool if _is_truth(name, call, len(operands)) else _result_dtype(name, operands)
        arrays = np.broadcast_arrays(*operands)
        results = [call(values) for values in zip(*(array.ravel() for array in arrays), strict=True)]
        return np.array(results, dtype).reshape(arrays[0].shape)

    return evaluate


def _result_dtype(name: str, operands: Sequence[Any]) -> str:
    """The dtype of the result of a floating-point function of numpy; Python's numbers adapt to the other operands."""
    dtypes = {np.asarray(operand).dtype.name for operand in operands if type(operand) not in (bool, int, float)}
    if any(np.dtype(dtype).kind == "c" for dtype in dtypes):
        raise SemanticsError(f"{name} takes real numbers, as all functions that are registered, and no {max(dtypes)}")
    return "float32" if dtypes == {"float32"} else "float64"


def _is_truth(name: str, call: Callable[[Sequence[float]], Any], operands: int) -> bool:
    """Whether the function returns truth values for some small numbers."""
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
            raise SemanticsError(f"{name} returns {result!r}, which is not a real number")
    return all(isinstance(result, bool | np.bool_) for result in results)

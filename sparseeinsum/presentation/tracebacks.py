"""Tracebacks: errors show the call of the user, rather than the place in this package that raised them."""

import os
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from sparseeinsum.errors import SparseEinsumError

VARIABLE = "SPARSEEINSUM_TRACEBACKS"  # environment variable; `full` shows all frames

Function = TypeVar("Function", bound=Callable[..., Any])


def shortened(error: SparseEinsumError) -> SparseEinsumError:
    """An error without the frames of its traceback and of its cause; unchanged if VARIABLE is `full`."""
    if os.environ.get(VARIABLE) == "full":
        return error
    if error.__cause__ is not None:
        error.__cause__.__traceback__ = None
    return error.with_traceback(None)


def one_frame(function: Function) -> Function:
    """A decorator: tracebacks of errors of this package show one frame of the function."""

    @wraps(function)
    def called(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401  # any arguments and results
        try:
            return function(*arguments, **named)
        except SparseEinsumError as error:
            raise shortened(error) from error.__cause__

    return cast(Function, called)

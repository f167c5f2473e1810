"""Tracebacks: what is wrong with what a user asked for is shown where they asked, and not where it was noticed."""

import os
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from sparseeinsum.errors import SparseEinsumError

VARIABLE = "SPARSEEINSUM_TRACEBACKS"  # of the environment; `full` shows all frames

Function = TypeVar("Function", bound=Callable[..., Any])


def shortened(error: SparseEinsumError) -> SparseEinsumError:
    """An error without the frames in which it came up, and those of its cause; whole where that is asked for."""
    if os.environ.get(VARIABLE) == "full":
        return error
    if error.__cause__ is not None:
        error.__cause__.__traceback__ = None
    return error.with_traceback(None)


def one_frame(function: Function) -> Function:
    """A function of which tracebacks of our errors show one frame."""

    @wraps(function)
    def called(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401  # whatever the function takes and returns
        try:
            return function(*arguments, **named)
        except SparseEinsumError as error:
            raise shortened(error) from error.__cause__

    return cast(Function, called)

"""Engines: one call at a time on a connection, from whichever thread it comes."""

from collections.abc import Callable
from functools import wraps
from threading import Lock, RLock
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

from sparseeinsum.errors import SparseEinsumError
from sparseeinsum.tracebacks import shortened

Method = TypeVar("Method", bound=Callable[..., Any])

_LOCKS: "WeakKeyDictionary[Any, Any]" = WeakKeyDictionary()  # RLock is no type
_NEW = Lock()


def lock_of(connection: object) -> Any:  # noqa: ANN401  # RLock is no type
    """The lock of a driver's connection, the same for all who use that; a thread that has it may take it again."""
    with _NEW:
        try:
            return _LOCKS.setdefault(connection, RLock())
        except TypeError:  # of what is no connection, but a number, say
            return RLock()


def synchronized(method: Method) -> Method:
    """A method of what has a `connection`: it waits for other threads' calls, and its errors show one frame of ours."""

    @wraps(method)
    def locked(self: Any, /, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401  # whatever the method has
        with lock_of(self.connection):
            try:
                return method(self, *arguments, **named)
            except SparseEinsumError as error:
                raise shortened(error) from error.__cause__

    return cast(Method, locked)

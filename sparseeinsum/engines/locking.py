"""Engines: calls from several threads take turns on a connection."""

from collections.abc import Callable
from functools import wraps
from threading import Lock, RLock
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

from sparseeinsum.errors import SparseEinsumError
from sparseeinsum.presentation.tracebacks import shortened

Method = TypeVar("Method", bound=Callable[..., Any])

_LOCKS: "WeakKeyDictionary[Any, Any]" = WeakKeyDictionary()  # by connection; values are RLocks, which have no type
_LOCKS_GUARD = Lock()


def lock_of(connection: object) -> Any:  # noqa: ANN401  # RLock is no type
    """Return the reentrant lock of a driver's connection: the same one for all objects that use the connection."""
    with _LOCKS_GUARD:
        try:
            return _LOCKS.setdefault(connection, RLock())
        except TypeError:  # no connection, but a number, say, which takes no weak reference
            return RLock()


def synchronized(method: Method) -> Method:
    """Decorate a method of an object with a `connection`: calls from several threads wait for each other.

    The traceback of an error that the method raises shows one frame of this package.
    """

    @wraps(method)
    def locked(self: Any, /, *arguments: Any, **keywords: Any) -> Any:  # noqa: ANN401  # those of the method
        with lock_of(self.connection):
            try:
                return method(self, *arguments, **keywords)
            except SparseEinsumError as error:
                raise shortened(error) from error.__cause__

    return cast(Method, locked)

"""Engines: one call at a time on a connection, from whichever thread it comes."""

from collections.abc import Callable
from functools import wraps
from threading import Lock, RLock
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar
from weakref import WeakKeyDictionary

Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")

_LOCKS: "WeakKeyDictionary[Any, Any]" = WeakKeyDictionary()  # RLock is no type
_NEW = Lock()


def lock_of(connection: object) -> Any:  # noqa: ANN401  # RLock is no type
    """The lock of a driver's connection, the same for all who use that; a thread that has it may take it again."""
    with _NEW:
        try:
            return _LOCKS.setdefault(connection, RLock())
        except TypeError:  # of what is no connection, but a number, say
            return RLock()


class _HasConnection(Protocol):
    @property
    def connection(self) -> Any:  # noqa: ANN401  # each driver has a type of its own
        """The driver's connection."""


Owner = TypeVar("Owner", bound=_HasConnection)


def one_at_a_time(
    method: Callable[Concatenate[Owner, Arguments], Value],
) -> Callable[Concatenate[Owner, Arguments], Value]:
    """A method that waits for other threads' calls on its connection."""

    @wraps(method)
    def locked(self: Owner, /, *arguments: Arguments.args, **named: Arguments.kwargs) -> Value:
        with lock_of(self.connection):
            return method(self, *arguments, **named)

    return locked

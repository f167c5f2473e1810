"""Engines: work in a snapshot of a database, tried again where others wrote at the same time."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TypeVar

from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import EngineError

_ATTEMPTS = 4

Value = TypeVar("Value")


def in_snapshot(engine: Engine, work: Callable[[], Value]) -> Value:
    """Do work in a snapshot; where it conflicts with what others wrote, do it again, three times at most.

    Raises:
        EngineError: It conflicts still, or the database refused a statement.
    """

    def whole() -> Value:
        with engine.snapshot():
            return work()

    return with_retries(engine, whole)


@contextmanager
def retried_context(engine: Engine, make: Callable[[], AbstractContextManager[Value]]) -> Iterator[Value]:
    """Enter a context, as `in_snapshot` does work; what follows within is not done again."""
    with ExitStack() as stack:
        yield with_retries(engine, lambda: stack.enter_context(make()))


def with_retries(engine: Engine, work: Callable[[], Value]) -> Value:
    """Do work in a transaction of its own; where that conflicts with what others wrote, again, three times at most.

    Raises:
        EngineError: It conflicts still, or the database refused a statement.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return work()
        except EngineError as error:
            if not engine.is_conflict(error):
                raise
    return work()

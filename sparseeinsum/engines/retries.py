"""Engines: transactions that are retried after a conflict with concurrent writes."""

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TypeVar

from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import EngineError

_LOGGER = logging.getLogger(__name__)
_ATTEMPTS = 4

Value = TypeVar("Value")


def in_snapshot(engine: Engine, work: Callable[[], Value], is_reading: bool = False) -> Value:
    """Call `work` in a snapshot; retry as `with_retries` does.

    Args:
        engine: The engine of the snapshot.
        work: Runs the statements.
        is_reading: Whether they change no permanent table.

    Raises:
        EngineError: The last attempt conflicts, too, or the database refused a statement.
    """

    def work_in_snapshot() -> Value:
        with engine.snapshot(is_reading):
            return work()

    return with_retries(engine, work_in_snapshot)


def in_own_snapshot(engine: Engine, work: Callable[[], Value]) -> Value:
    """As `in_snapshot`, where it is known that this connection has no transaction; see `Engine.own_snapshot`."""

    def work_in_snapshot() -> Value:
        with engine.own_snapshot():
            return work()

    return with_retries(engine, work_in_snapshot)


@contextmanager
def retried_context(engine: Engine, make: Callable[[], AbstractContextManager[Value]]) -> Iterator[Value]:
    """Enter the context that `make` returns, with retries; the body of the `with` statement is not retried."""
    with ExitStack() as stack:
        yield with_retries(engine, lambda: stack.enter_context(make()))


def after_late_signals(work: Callable[[], Value]) -> Value:
    """Call `work`, which cleans up after an error; call it again if it fails.

    Ctrl-C that a busy machine notices late stops a statement after the one that it was meant for.
    """
    try:
        return work()
    except EngineError:
        return work()


def with_retries(engine: Engine, work: Callable[[], Value]) -> Value:
    """Call `work`, which has a transaction of its own; call it again after a conflict, at most three times.

    Raises:
        EngineError: The last attempt conflicts, too, or the database refused a statement.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return work()
        except EngineError as error:
            if not engine.is_conflict(error):
                raise
            _LOGGER.info("another transaction wrote at the same time; trying again")
    return work()

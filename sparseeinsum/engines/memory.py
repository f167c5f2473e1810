"""Engines: the memory limit of a database, lowered while a run keeps to one of its own."""

import math
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import EngineError, PlanError
from sparseeinsum.plan import Plan

# What a database gets for its buffers however low a limit is: below it, hash tables cannot spill (bench/memory.py).
_LEAST_BUFFER_BYTES = 64_000_000

# A limit that would hardly change is left alone: other runs need not wait.
_WORTH_SETTING = 0.95

# The limit is global to a database, and runs in one process share its memory: those with limits take turns.
_TURN = threading.RLock()


@contextmanager
def bounded(engine: Engine, limit_bytes: float) -> Iterator[None]:
    """Let a database take so many bytes more than it takes now, and no more than it may anyway.

    The limit is that of the whole database, other connections to it included, until the end. What hash tables and
    temporary tables take beyond it, DuckDB spills to its `temp_directory`. A server is left as it is.

    Args:
        engine: A connection to the database.
        limit_bytes: What its buffers may grow by; at least 64 MB are granted.
    """
    in_use = None if limit_bytes == math.inf else engine.memory_in_use()
    if in_use is None:
        yield
        return
    with _limited(engine, in_use + max(limit_bytes, _LEAST_BUFFER_BYTES)):
        yield


@contextmanager
def _limited(engine: Engine, limit_bytes: float) -> Iterator[None]:
    if limit_bytes > _WORTH_SETTING * engine.memory_limit():
        yield
        return
    left = limit_bytes - (engine.memory_in_use() or 0)
    with _TURN, engine.memory_limited_to(limit_bytes):
        try:
            yield
        except EngineError as error:
            if not engine.lacks_memory(error):
                raise
            raise EngineError(
                f"memory_limit leaves {engine.title} {math.floor(left):,} bytes for what it keeps, which are not "
                "enough for what it cannot write to a disk; raise memory_limit",
                error.statement,
            ) from error.__cause__


@contextmanager
def keeping_to_memory(plan: Plan, engine: Engine, into: Mapping[str, str]) -> Iterator[Callable[[Plan], None]]:
    """Bound what the database takes, so that with aggregation states and results a run keeps to its memory.

    Yields:
        What to tell of another plan for the rest of this one, from where on it runs.

    Raises:
        PlanError: Results that are to be returned would leave too little.
    """
    in_use = engine.memory_in_use()
    if in_use is None:
        yield lambda _: None
        return
    sizes = _returned_bytes(plan, into)
    _check_room(plan, sizes)
    with ExitStack() as limits:

        def keep(other: Plan) -> None:
            sizes.update(_returned_bytes(other, into))
            if plan.memory_limit is None:  # the database's own holds; to lower it makes short runs twice as long
                return
            left = max(_left(other, sizes), _LEAST_BUFFER_BYTES)
            limits.enter_context(_limited(engine, in_use + left))

        keep(plan)
        yield keep


def _returned_bytes(plan: Plan, into: Mapping[str, str]) -> dict[str, float]:
    """Expected sizes of the outputs that no table takes."""
    return {name: plan.delivered_bytes(name) for name in plan.outputs if name not in into}


def _left(plan: Plan, sizes: Mapping[str, float]) -> float:
    """What is left of the memory limit beside aggregation states and results."""
    return plan.alternatives.model.memory.usable_bytes - plan.largest_statement.states_bytes - sum(sizes.values())


def _check_room(plan: Plan, sizes: Mapping[str, float]) -> None:
    returned = sum(sizes.values())
    if returned <= _LEAST_BUFFER_BYTES or _left(plan, sizes) >= plan.largest_statement.vector_bytes:
        return
    name = max(sizes, key=lambda each: sizes[each])
    raise PlanError(
        f"results that are returned are expected to take {math.ceil(returned):,} bytes, most of it {name}, which "
        f"leaves too little of the memory limit of {plan.alternatives.model.memory.limit_bytes:,} bytes; give {name} "
        f"a table, as in into={{{name!r}: ...}}, or raise memory_limit"
    )

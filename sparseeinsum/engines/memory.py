"""Engines: the memory limit of a database, lowered while a run keeps to one of its own."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext

from sparseeinsum.decompose.memory import LEAST_BUFFER_BYTES, threads_within
from sparseeinsum.decompose.staging import StatementSizes
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.settings_lock import SettingsLock
from sparseeinsum.errors import EngineError, PlanError
from sparseeinsum.plans.plan import Plan
from sparseeinsum.render.statements import Statement

# A limit that would hardly change is left alone: other runs need not wait.
_WORTH_SETTING = 0.95

# Expectations are off: where no more than this share of a limit is expected to be taken, the limit needs no keeping.
_LITTLE = 0.25

# The limit is global to a database, and runs in one process share its memory: those with limits take turns.
_TURNS = SettingsLock()


class OutOfMemoryError(EngineError):
    """What a memory limit leaves a database is not enough for a statement."""


@contextmanager
def deterministic_order(engine: Engine, is_wanted: bool = True) -> Iterator[None]:
    """Within, if that is wanted, groups are folded in the same order whenever a statement runs on the same tables.

    On DuckDB, that is a setting of the whole database.

    Raises:
        PlanError: There are several machines.
    """
    if not is_wanted:
        yield
        return
    if engine.dialect.distributes:
        raise PlanError("a cluster adds up what its machines send as it comes: no run of it is deterministic")
    is_server = engine.memory_in_use() is None  # whose settings are those of a transaction
    with nullcontext() if is_server else _TURNS.taken(), engine.single_threaded():
        yield


@contextmanager
def limited_memory(engine: Engine, limit_bytes: float | None, expected_bytes: float = math.inf) -> Iterator[None]:
    """Let a database take so many bytes more than it takes now, and no more than it may anyway.

    The limit is that of the whole database, other connections to it included, until the end. What hash tables and
    temporary tables take beyond it, DuckDB spills to its `temp_directory`. A server is left as it is.

    Args:
        engine: A connection to the database.
        limit_bytes: What its buffers may grow by; at least 24 MB are granted. None leaves the database its own limit.
        expected_bytes: What they will grow by at most; the limit of the database stays as it is where that is little.
    """
    needs_none = limit_bytes is None or expected_bytes <= _LITTLE * limit_bytes
    in_use = None if needs_none else engine.memory_in_use()
    if limit_bytes is None or in_use is None:
        yield
        return
    threads = threads_within(limit_bytes, engine.threads())
    with _limited(engine, in_use + max(limit_bytes, LEAST_BUFFER_BYTES), threads):
        yield


@contextmanager
def _limited(
    engine: Engine, limit_bytes: float, threads: int, failure: type[EngineError] = EngineError
) -> Iterator[Callable[[float], None]]:
    """Lower the limit of a database, and its threads, which may be lower; what comes sets another limit.

    Raises:
        EngineError: A statement within takes more; of the type that is given.
    """
    in_use, now = engine.memory_in_use() or 0, limit_bytes

    def limit(size: float) -> None:
        nonlocal now
        now = min(size, most)
        set_limit(now)

    try:
        with _TURNS.taken():
            most, threads_now = engine.memory_limit(), engine.threads()
            if limit_bytes > _WORTH_SETTING * most and threads >= threads_now:
                now = most
                yield _left_alone
                return
            with engine.memory_limited_to(min(limit_bytes, most), min(threads, threads_now)) as set_limit:
                yield limit
    except EngineError as error:
        if not engine.is_out_of_memory_error(error):
            raise
        raise failure(
            f"memory_limit leaves {engine.title} {math.floor(now - in_use):,} bytes for what it keeps, which are "
            "not enough for what it cannot write to a disk; raise memory_limit",
            error.statement,
        ) from error.__cause__


def _left_alone(_: float) -> None:
    """The limit of the database is no higher."""


class MemoryGuard:
    """Bounds what the database takes, so that with arrays, aggregation states and results a run keeps to its memory.

    To lower the limit of a database makes short runs twice as long, as all of its memory that is free goes back to the
    system: it is left alone where the user gave none, and where a plan is expected to take little of it.
    """

    def __init__(self, engine: Engine, elsewhere: Collection[str], limits: ExitStack) -> None:
        self._engine = engine
        self._elsewhere = elsewhere
        self._limits = limits
        self._in_use = engine.memory_in_use()
        self._returned: dict[str, float] = {}
        self._limit: Callable[[float], None] | None = None

    def follow(self, plan: Plan, statements: Sequence[Statement]) -> None:
        """Keep to the memory of a plan, the first one or one for the rest of it, from here on."""
        if self._in_use is None:
            return
        first = not self._returned
        self._returned |= {name: plan.delivered_bytes(name) for name in plan.outputs if name not in self._elsewhere}
        returned = sum(self._returned.values())
        if plan.memory_limit is None and returned <= LEAST_BUFFER_BYTES:
            return  # without a look at every statement, which would take longer than small ones run
        sizes = _largest([plan.sizes_of(statement.computes) for statement in statements])
        if first:
            _check_room(plan, sizes, self._returned)
        if plan.memory_limit is None or self._limit is not None:
            return
        more = max(self._engine.threads() / plan.threads, 1)  # that is taken if threads are left as they are
        if sizes.all_bytes * more + returned > _LITTLE * plan.memory_limit:
            most = self._in_use + plan.alternatives.model.memory.available_bytes
            limited = _limited(self._engine, most, plan.threads, OutOfMemoryError)
            self._limit = self._limits.enter_context(limited)

    def begin(self, plan: Plan, computed: Collection[str]) -> None:
        """Before a statement that computes some results of a plan: leave room for what the database does not count."""
        if self._limit is not None and self._in_use is not None:
            sizes = plan.sizes_of(computed)
            left = max(_left(plan, sizes, self._returned), sizes.vector_bytes + LEAST_BUFFER_BYTES)
            self._limit(self._in_use + left)


@contextmanager
def memory_guard(engine: Engine, elsewhere: Collection[str]) -> Iterator[MemoryGuard]:
    """For one run, some of whose results go elsewhere than to memory, bound what the database takes."""
    with ExitStack() as limits:
        yield MemoryGuard(engine, elsewhere, limits)


def _largest(sizes: Sequence[StatementSizes]) -> StatementSizes:
    """The most of everything that one of several statements takes."""
    return StatementSizes(
        max((size.states_bytes for size in sizes), default=0.0),
        max((size.vector_bytes for size in sizes), default=0.0),
        max((size.returned_bytes for size in sizes), default=0.0),
        max((size.all_bytes for size in sizes), default=0.0),
    )


def _left(plan: Plan, sizes: StatementSizes, returned: Mapping[str, float]) -> float:
    """What is left of the memory limit beside what the engine does not count: states, results and split scans."""
    memory = plan.alternatives.model.memory
    uncounted = memory.margins.states * sizes.states_bytes + sizes.returned_bytes + plan.split_bytes
    return memory.available_bytes - uncounted - sum(returned.values())


def _check_room(plan: Plan, sizes: StatementSizes, returned: Mapping[str, float]) -> None:
    if sum(returned.values()) <= LEAST_BUFFER_BYTES or _left(plan, sizes, returned) >= sizes.vector_bytes:
        return
    name = max(returned, key=lambda each: returned[each])
    raise PlanError(
        f"results that are returned are expected to take {math.ceil(sum(returned.values())):,} bytes, most of it "
        f"{name}, which leaves too little of the memory limit of {plan.alternatives.model.memory.total_bytes:,} bytes; "
        f"give {name} a table, as in into={{{name!r}: ...}}, or raise memory_limit"
    )

"""Engines: lowers the memory limit of a database while a run has a memory limit of its own."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cached_property

from sparseeinsum.decompose.memory_footprint import LEAST_BUFFER_BYTES, threads_within
from sparseeinsum.decompose.staging import StatementSizes, statement_sizes
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.settings_lock import SettingsLock
from sparseeinsum.errors import EngineError, PlanError
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.plans.result_sizes import delivered_bytes
from sparseeinsum.render.sql_statement import SqlStatement

# A limit above this share of the present one is not set: it would change little, and other runs would have to wait.
_WORTH_SETTING = 0.95

# If a run is expected to use at most this share of its limit, the limit is not enforced. The share is small because
# predictions have errors.
_LITTLE = 0.25

# The limit is global to a database, and the runs of a process share its memory: only one of them sets limits at a time.
_SETTINGS_LOCK = SettingsLock()


class OutOfMemoryError(EngineError):
    """A statement needs more memory than the memory limit of a run leaves the database."""


@contextmanager
def deterministic_order(engine: Engine, is_requested: bool = True) -> Iterator[None]:
    """Aggregate the rows of a group in the same order in every run on the same tables, if `is_requested`.

    On DuckDB, this changes a setting of the whole database.

    Raises:
        PlanError: The database is on several machines.
    """
    if not is_requested:
        yield
        return
    if engine.dialect.distributes:
        raise PlanError(
            "no run on a cluster is deterministic: it adds partial results in the order in which they arrive"
        )
    # The settings of a server end with the transaction, so that no lock is needed.
    with nullcontext() if engine.is_server else _SETTINGS_LOCK.acquired(), engine.single_threaded():
        yield


@contextmanager
def limited_memory(engine: Engine, limit_bytes: float | None, expected_bytes: float = math.inf) -> Iterator[None]:
    """Let a database use `limit_bytes` more than it uses now, but no more than its own limit allows.

    The limit applies to the whole database, other connections included, until the end of the context. DuckDB spills
    hash tables and temporary tables that need more to its `temp_directory`. A server is left as it is.

    Args:
        engine: A connection to the database.
        limit_bytes: How much its buffers may grow, at least 24 MB; None keeps the database's own limit.
        expected_bytes: How much they are expected to grow; if that is little, the database's own limit is kept.
    """
    if engine.is_server or limit_bytes is None or expected_bytes <= _LITTLE * limit_bytes:
        yield
        return
    threads = threads_within(limit_bytes, engine.threads())
    with _limited(engine, engine.memory_in_use() + max(limit_bytes, LEAST_BUFFER_BYTES), threads):
        yield


@contextmanager
def _limited(
    engine: Engine, limit_bytes: float, threads: int, error_type: type[EngineError] = EngineError
) -> Iterator[Callable[[float], None]]:
    """Lower the memory limit of a database and the number of its threads; neither is ever raised.

    Args:
        engine: A connection to the database.
        limit_bytes: The limit.
        threads: The number of threads.
        error_type: What is raised if a statement of the context needs more memory.

    Yields:
        A function that sets another limit.
    """
    in_use, current_limit = engine.memory_in_use(), limit_bytes

    def set_limit(size: float) -> None:
        nonlocal current_limit
        current_limit = min(size, largest_limit)
        set_database_limit(current_limit)

    try:
        with _SETTINGS_LOCK.acquired():
            largest_limit, largest_threads = engine.memory_limit(), engine.threads()
            if limit_bytes > _WORTH_SETTING * largest_limit and threads >= largest_threads:
                current_limit = largest_limit
                yield _keep_limit
                return
            limited = engine.memory_limited_to(min(limit_bytes, largest_limit), min(threads, largest_threads))
            with limited as set_database_limit:
                yield set_limit
    except EngineError as error:
        if not engine.is_out_of_memory_error(error):
            raise
        raise error_type(
            f"memory_limit leaves {engine.title} {math.floor(current_limit - in_use):,} bytes of memory, which is not "
            "enough for what it cannot spill to disk; raise memory_limit",
            error.statement,
        ) from error.__cause__


def _keep_limit(_: float) -> None:
    """Do nothing: the database's own limit is no higher than the one that would be set."""


class MemoryGuard:
    """Limits the memory of a database, so that it fits the run's limit together with arrays, states and results.

    Arrays, aggregation states and results are outside of what the database counts. To lower the limit of a database
    makes short runs twice as long, because the database then returns all its free memory to the system. So the limit is
    kept if the user gave none, and if a plan is expected to use little of it.
    """

    def __init__(self, engine: Engine, elsewhere: Collection[str], limits: ExitStack) -> None:
        self._engine = engine
        self._elsewhere = elsewhere
        self._limits = limits
        self._returned: dict[str, float] = {}
        self._set_limit: Callable[[float], None] | None = None

    def adopt_plan(self, plan: ProgramPlan, statements: Sequence[SqlStatement]) -> None:
        """Keep to the memory limit of a plan from now on: the plan of a run, or a new one for the rest of it.

        Args:
            plan: The plan.
            statements: Those of its statements that will run.
        """
        is_first = not self._returned
        self._returned |= {name: delivered_bytes(plan, name) for name in plan.outputs if name not in self._elsewhere}
        returned = sum(self._returned.values())
        if plan.options.memory_limit is None and returned <= LEAST_BUFFER_BYTES:
            return  # without looking at every statement, which would take longer than small statements run
        if self._engine.is_server:
            return
        sizes = _largest([_statement_sizes(plan, statement.computes) for statement in statements])
        if is_first:
            _check_room(plan, sizes, self._returned)
        if plan.options.memory_limit is None or self._set_limit is not None:
            return
        in_use = self._in_use  # which is measured before the first statement, though a later plan may set the limit
        # Without a limit, the database would run with all its threads, each of which needs memory.
        thread_ratio = max(self._engine.threads() / plan.threads, 1)
        if sizes.all_bytes * thread_ratio + returned > _LITTLE * plan.options.memory_limit:
            limit_bytes = in_use + plan.alternatives.model.memory.available_bytes
            limited = _limited(self._engine, limit_bytes, plan.threads, OutOfMemoryError)
            self._set_limit = self._limits.enter_context(limited)

    @cached_property
    def _in_use(self) -> int:
        """The bytes that the database used when this was asked first: before the statements of the run."""
        return self._engine.memory_in_use()

    def make_room(self, plan: ProgramPlan, computed: Collection[str]) -> None:
        """Before a statement that computes the results `computed`, leave room for what the database does not count."""
        if self._set_limit is not None:
            sizes = _statement_sizes(plan, computed)
            room = max(_room(plan, sizes, self._returned), sizes.vector_bytes + LEAST_BUFFER_BYTES)
            self._set_limit(self._in_use + room)


@contextmanager
def memory_guard(engine: Engine, elsewhere: Collection[str]) -> Iterator[MemoryGuard]:
    """Limit the memory of a database during one run.

    Args:
        engine: A connection to the database.
        elsewhere: Names of the results that go into tables or files, and not into memory.
    """
    with ExitStack() as limits:
        yield MemoryGuard(engine, elsewhere, limits)


def _statement_sizes(plan: ProgramPlan, computed: Collection[str]) -> StatementSizes:
    """What a statement is expected to take that computes these results, or none and repartitions a tensor."""
    return statement_sizes(plan.decomposed, set(computed), plan.alternatives.model)


def _largest(sizes: Sequence[StatementSizes]) -> StatementSizes:
    """Return for every size the largest one of several statements."""
    return StatementSizes(
        max((size.states_bytes for size in sizes), default=0.0),
        max((size.vector_bytes for size in sizes), default=0.0),
        max((size.returned_bytes for size in sizes), default=0.0),
        max((size.all_bytes for size in sizes), default=0.0),
    )


def _room(plan: ProgramPlan, sizes: StatementSizes, returned: Mapping[str, float]) -> float:
    """Return the memory limit less what the engine does not count: states, results and split scans, in bytes."""
    memory = plan.alternatives.model.memory
    uncounted = memory.margins.states * sizes.states_bytes + sizes.returned_bytes + plan.statements.split_bytes
    return memory.available_bytes - uncounted - sum(returned.values())


def _check_room(plan: ProgramPlan, sizes: StatementSizes, returned: Mapping[str, float]) -> None:
    """Refuse a run whose results in memory, `returned` with their bytes, leave statements too little memory."""
    if sum(returned.values()) <= LEAST_BUFFER_BYTES or _room(plan, sizes, returned) >= sizes.vector_bytes:
        return
    largest = max(returned, key=lambda name: returned[name])
    raise PlanError(
        f"results that are returned are expected to take {math.ceil(sum(returned.values())):,} bytes, most of it "
        f"{largest}, which leaves too little of the memory limit of {plan.alternatives.model.memory.total_bytes:,} "
        f"bytes; give {largest} a table, as in into={{{largest!r}: ...}}, or raise memory_limit"
    )

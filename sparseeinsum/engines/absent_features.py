"""Engines: what engines answer that have one machine, no roles, or a server that manages its own memory."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from sqlglot import exp

from sparseeinsum.decompose.clusters.transfers import Cluster
from sparseeinsum.engines.engine import RelationAccess
from sparseeinsum.errors import EngineError
from sparseeinsum.render.table_distribution import TableDistribution


class OneMachine:
    """The part of an engine that knows where tables are."""

    def cluster(self) -> Cluster | None:
        """Return None: there is one machine."""
        return None

    def table_distribution(self, table: exp.Table) -> TableDistribution | None:
        """Return None: one machine has all tables."""
        return None


class NoRoles:
    """The part of an engine that checks rights; DuckDB has none."""

    def check_access(self, readings: Sequence[RelationAccess]) -> None:
        """Do nothing: a DuckDB database has no roles."""

    def role_owns(self, role: str | None, table: exp.Table) -> bool:
        """Return True: a DuckDB database has no roles."""
        return True

    def grant(self, role: str) -> None:
        """Refuse to grant anything.

        Raises:
            EngineError: Always, as a DuckDB database has no roles.
        """
        raise EngineError("DuckDB has no roles; who may write a database file may do all")

    def is_permission_error(self, error: EngineError) -> bool:
        """Return False: a DuckDB database has no roles."""
        return False


class _Server(Protocol):
    """A server with settings that say what statements may take."""

    def memory_limit(self) -> int:
        """Return how many bytes the database may use."""

    def threads(self) -> int:
        """Return how many threads the database runs statements with."""


class ServerMemory:
    """The part of an engine that watches memory and progress; PostgreSQL tells a client neither."""

    is_server: bool = True

    def capacity(self: _Server) -> tuple[int, int]:
        """Return what `memory_limit` and `threads` return."""
        return self.memory_limit(), self.threads()

    def memory_in_use(self) -> int:
        """Return 0: a server has memory of its own."""
        return 0

    def memory_limited_to(self, limit_bytes: float, threads: int) -> AbstractContextManager[Callable[[float], None]]:
        """Do nothing: a server spills what needs more than work_mem."""
        return nullcontext(lambda _: None)

    def measured_progress(self) -> AbstractContextManager[Callable[[], float | None]]:
        """Measure nothing: a server tells the progress of no SELECT."""
        return nullcontext(lambda: None)

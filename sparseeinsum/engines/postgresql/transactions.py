"""Engines: the transactions of a PostgreSQL session, with the settings and the search_path that this package needs."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from sparseeinsum.engines.engine import RelationAccess
from sparseeinsum.engines.postgresql.read_consistency import ReadConsistency, ensure_consistent_reads
from sparseeinsum.engines.postgresql.search_path import SearchPath
from sparseeinsum.engines.postgresql.sessions import DatabaseSession, Isolation
from sparseeinsum.engines.postgresql.transaction_settings import (
    has_quick_compression,
    setting_changes,
    settings_for_transaction,
    transaction_settings,
)

_ONE_PROCESS = {"max_parallel_workers_per_gather": "0", "synchronize_seqscans": "off"}


class PostgreSQLTransactions:
    """Begins and ends the transactions of a session.

    Args:
        session: The session.
        functions_schema: The schema of this package's functions.
    """

    isolation = Isolation.REPEATABLE_READ  # of the transactions of runs
    statements_per_machine = "1"  # SQL for the number of statements that share the memory of a machine

    def __init__(self, session: DatabaseSession, functions_schema: str) -> None:
        self._session = session
        self._functions_schema = functions_schema
        self._compresses_quickly = has_quick_compression(session)
        self._path: SearchPath | None = None  # the user's search_path, while the session has this package's
        self._consistency = ReadConsistency.NONE

    @property
    def user_path(self) -> SearchPath:
        """The search_path of the user."""
        return self._path or SearchPath.of_session(self._session)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Run the statements of the context in a transaction in which all see the same data."""
        is_nested = self._session.is_in_transaction()
        with self.transaction(self.isolation):
            before, self._consistency = self._consistency, self.required_consistency(is_nested)
            try:
                yield
            finally:
                self._consistency = before

    @contextmanager
    def transaction(self, isolation: Isolation | None = None) -> Iterator[None]:
        """Run the statements of the context in a transaction, or in a savepoint of one that is open."""
        is_nested = self._session.is_in_transaction()
        engine_settings = self.engine_settings(is_nested)
        if not (is_nested or engine_settings):
            values = settings_for_transaction(self.statements_per_machine, self._compresses_quickly)
            changes = setting_changes(values)
            with self._session.transaction(isolation), self._fixed_path(is_nested, changes):
                yield
            return
        with self._session.transaction(isolation), self._fixed_path(is_nested):
            settings = transaction_settings(
                self._session, engine_settings, self.statements_per_machine, self._compresses_quickly
            )
            self.set_local(settings.during)
            yield
            if is_nested:  # the end of an own transaction restores the settings
                self.set_local(settings.before)

    def protected(self) -> AbstractContextManager[None]:
        """Keep relations that were checked unchanged, and fix what names in this package's SQL refer to."""
        return nullcontext() if self._path is not None else self.transaction()

    @contextmanager
    def _fixed_path(self, is_nested: bool, further_changes: Sequence[str] = ()) -> Iterator[None]:
        """Let names without a schema refer to functions of PostgreSQL and of this package, whatever others created.

        Other settings are changed by the same statement, as columns of a SELECT.
        """
        if self._path is not None:
            yield
            return
        self._path = SearchPath.replace_in(self._session, self._functions_schema, further_changes)
        try:
            yield
            if is_nested:  # the end of an own transaction restores it, as does an error
                self._path.restore(self._session)
        finally:
            self._path = None

    @contextmanager
    def single_threaded(self) -> Iterator[None]:
        """Run the statements of the context in one process, with scans that begin at the beginning of the table."""
        current = ", ".join(f"pg_catalog.current_setting('{name}')" for name in _ONE_PROCESS)
        ((*before,),) = self._session.fetch(f"SELECT {current}")
        self.set_local(_ONE_PROCESS)
        yield
        self.set_local(dict(zip(_ONE_PROCESS, map(str, before), strict=True)))

    def keep_unchanged(self, accesses: Sequence[RelationAccess], kinds: Mapping[str, str]) -> None:
        """Make all statements of the open snapshot see the same rows of relations; see `ensure_consistent_reads`."""
        ensure_consistent_reads(self._session, accesses, kinds, self._consistency)

    def required_consistency(self, is_nested: bool) -> ReadConsistency:
        """Return how relations are kept unchanged in the open transaction, which the user opened if `is_nested`."""
        return (
            ReadConsistency.BY_LOCKS if is_nested and not self._session.has_snapshot() else ReadConsistency.BY_SNAPSHOT
        )

    def engine_settings(self, is_nested: bool) -> Mapping[str, str]:
        """Return the settings of this engine for a transaction, which is part of the user's if `is_nested`."""
        return {}

    def set_local(self, settings: Mapping[str, str]) -> None:
        """Change settings for the rest of the transaction."""
        calls = (f"set_config('{name}', '{value}', TRUE) AS \"{name}\"" for name, value in settings.items())
        self._session.fetch(f"SELECT {', '.join(calls)}")

"""Engines: the part of PostgreSQL's engine that asks who may do what."""

from collections.abc import Mapping, Sequence

from sqlglot import exp

from sparseeinsum.engines.engine import RelationAccess
from sparseeinsum.engines.postgresql import rights
from sparseeinsum.engines.postgresql.installed_functions import InstalledFunctions
from sparseeinsum.engines.postgresql.sessions import DatabaseSession, sqlstate
from sparseeinsum.engines.postgresql.transactions import PostgreSQLTransactions
from sparseeinsum.errors import EngineError

_INSUFFICIENT_PRIVILEGE = "42501"  # an SQLSTATE


class ServerRoles:
    """The part of an engine that checks rights, for a server with roles."""

    _session: DatabaseSession
    _functions: InstalledFunctions
    _transactions: PostgreSQLTransactions

    def catalogue_columns(self, schema: str, name: str) -> Mapping[str, str] | None:
        """Return the columns of a table of the catalogue with their types; None if it does not exist.

        Raises:
            RightsError: It belongs to a role whose triggers and policies the user should not run.
        """
        return rights.catalogue_columns(self._session, schema, name)

    def check_access(self, accesses: Sequence[RelationAccess]) -> None:
        """Refuse relations that would run other roles' functions with the user's rights; keep the rest unchanged.

        Raises:
            RightsError: Names the first such relation and the reason.
            EngineError: A relation cannot be kept unchanged, or was changed already.
        """
        with self._transactions.protected():
            kinds = rights.check_access(self._session, accesses)
            self._transactions.keep_unchanged(accesses, kinds)

    def role_owns(self, role: str | None, table: exp.Table) -> bool:
        """Return whether `table` belongs to the role that recorded it, so that it may be dropped with its tensor."""
        return rights.role_owns(self._session, role, table)

    def grant(self, role: str) -> None:
        """Let a role use the catalogue, which must exist, and the functions.

        Raises:
            EngineError: There is no such role, or the user may not grant this.
        """
        rights.grant(self._session, role, self._functions.schema)

    def is_permission_error(self, error: EngineError) -> bool:
        """Return whether a statement was refused because the user lacks a privilege."""
        return sqlstate(error) == _INSUFFICIENT_PRIVILEGE

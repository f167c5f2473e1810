"""Engines: the search_path of a PostgreSQL session: the user's, and a safe one for this package's SQL."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from sparseeinsum.engines.engine import DatabaseRelation
from sparseeinsum.engines.postgresql.sessions import DatabaseSession
from sparseeinsum.engines.quoting import quoted
from sparseeinsum.environment import assets

SEARCH_PATH = "search_path"
REFUSED_KINDS = "restrict_nonsystem_relation_kind"  # since PostgreSQL 15.8, 16.4 and 17
_ALL_BUT_TABLES = "view, foreign-table"

_COLUMNS = (
    f"pg_catalog.current_setting('{SEARCH_PATH}') AS path, "
    "CAST(pg_catalog.array_to_json(pg_catalog.current_schemas(TRUE)) AS pg_catalog.text) AS schemas, "
    f"CAST(pg_catalog.current_schema() AS pg_catalog.text) AS first, "
    f"pg_catalog.current_setting('{REFUSED_KINDS}', TRUE) AS unread_kinds"
)


@dataclass(frozen=True, slots=True)
class SearchPath:
    """The search_path of the user.

    Attributes:
        text: The setting.
        schemas: The schemas that exist, in the order in which they are searched, implicit ones included.
        first: The schema in which a table is created if its name has none; None if no schema exists.
        refused_kinds: The kinds of relations that the session refuses to read; None if the server lacks this setting.
    """

    text: str
    schemas: tuple[str, ...]
    first: str | None
    refused_kinds: str | None

    @classmethod
    def of_session(cls, session: DatabaseSession) -> Self:
        """Return the current search_path of a session."""
        ((*row,),) = session.fetch(f"SELECT {_COLUMNS}")
        return cls._of_row(row)

    @classmethod
    def replace_in(cls, session: DatabaseSession, functions_schema: str, further_changes: Sequence[str] = ()) -> Self:
        """Let names refer to functions of PostgreSQL and of this package only, until the transaction ends.

        The schema of temporary tables comes last; by default it would be searched first.

        Args:
            session: A session in a transaction.
            functions_schema: The schema of this package's functions.
            further_changes: Columns of a SELECT that change other settings.

        Returns:
            The search_path before.
        """
        # The columns of a SELECT are computed in order: the last one changes the setting after the others read it.
        fixed = f"pg_catalog.set_config('{SEARCH_PATH}', $1, TRUE) AS fixed"
        query = f"SELECT {', '.join((_COLUMNS, *further_changes, fixed))}"
        ((*row,),) = session.fetch(query, f"pg_catalog, {quoted(functions_schema)}, pg_temp")
        return cls._of_row(row[:4])

    @classmethod
    def _of_row(cls, row: Sequence[object]) -> Self:
        text, schemas, first, kinds = row
        return cls(
            str(text),
            tuple(json.loads(str(schemas))),
            None if first is None else str(first),
            None if kinds is None else str(kinds),
        )

    def relations_named(self, session: DatabaseSession, name: str) -> list[DatabaseRelation]:
        """Return the relations that a name without a schema may refer to; the first is the one that it refers to."""
        rows = session.fetch(assets.read("sql/postgresql/relations.sql"), name, json.dumps(self.schemas))
        return [
            DatabaseRelation(None, str(schema), str(spelling), None if comment is None else str(comment))
            for schema, spelling, comment in rows
        ]

    def restore(self, session: DatabaseSession) -> None:
        """Set the user's search_path again in a transaction that goes on."""
        _set_local(session, SEARCH_PATH, self.text)
        if self.refused_kinds is not None:
            _set_local(session, REFUSED_KINDS, self.refused_kinds)


def refuse_views_and_foreign_tables(session: DatabaseSession) -> None:
    """Let the server refuse views and foreign tables, by which somebody could replace tables while they are read."""
    _set_local(session, REFUSED_KINDS, _ALL_BUT_TABLES)


def _set_local(session: DatabaseSession, name: str, value: str) -> None:
    session.fetch(f"SELECT pg_catalog.set_config('{name}', $1, TRUE)", value)

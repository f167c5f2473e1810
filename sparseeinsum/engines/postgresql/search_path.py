"""Engines: what names stand for in a PostgreSQL session: in what the user says, and in SQL of ours."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from sparseeinsum.engines.postgresql.names import quoted
from sparseeinsum.engines.postgresql.sessions import Session

_PATH = "search_path"
_KINDS = "restrict_nonsystem_relation_kind"  # from PostgreSQL 15.8, 16.4 and 17 on
_ORDINARY_ALONE = "view, foreign-table"

_COLUMNS = (
    f"pg_catalog.current_setting('{_PATH}') AS path, "
    "CAST(pg_catalog.array_to_json(pg_catalog.current_schemas(TRUE)) AS pg_catalog.text) AS schemas, "
    f"CAST(pg_catalog.current_schema() AS pg_catalog.text) AS first, "
    f"pg_catalog.current_setting('{_KINDS}', TRUE) AS unread_kinds"
)


@dataclass(frozen=True, slots=True)
class SearchPath:
    """The search_path as the user has it.

    Attributes:
        text: The setting.
        schemas: Those that there are, in the order in which they are searched, with those that nobody names.
        first: Where a bare name stands for a new table; None where there is no schema on it.
        unread_kinds: Of relations, that this session reads none of; None where the server has no such setting.
    """

    text: str
    schemas: tuple[str, ...]
    first: str | None
    unread_kinds: str | None

    @classmethod
    def of(cls, session: Session) -> Self:
        """That of a session, now."""
        ((*found,),) = session.fetch(f"SELECT {_COLUMNS}")
        return cls._of_row(found)

    @classmethod
    def fixed(cls, session: Session, functions: str) -> Self:
        """That of a session until now; from now on bare names stand for what PostgreSQL and our functions' schema have.

        That holds until the transaction ends. Temporary tables come last: by default they would come first.

        Args:
            session: In a transaction.
            functions: Name of that schema.
        """
        # Columns are computed in their order.
        query = f"SELECT {_COLUMNS}, pg_catalog.set_config('{_PATH}', $1, TRUE) AS fixed"
        ((*found, _),) = session.fetch(query, f"pg_catalog, {quoted(functions)}, pg_temp")
        return cls._of_row(found)

    @classmethod
    def _of_row(cls, row: Sequence[object]) -> Self:
        text, schemas, first, kinds = row
        return cls(
            str(text),
            tuple(json.loads(str(schemas))),
            None if first is None else str(first),
            None if kinds is None else str(kinds),
        )

    def restore(self, session: Session) -> None:
        """Set it as the user has it, in a transaction that goes on."""
        _set(session, _PATH, self.text)
        if self.unread_kinds is not None:
            _set(session, _KINDS, self.unread_kinds)


def read_ordinary_tables_alone(session: Session) -> None:
    """Let the server refuse views and foreign tables, whose names somebody gives them while tables are read."""
    _set(session, _KINDS, _ORDINARY_ALONE)


def _set(session: Session, name: str, value: str) -> None:
    session.fetch(f"SELECT pg_catalog.set_config('{name}', $1, TRUE)", value)

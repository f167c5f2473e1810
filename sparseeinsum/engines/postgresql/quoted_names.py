"""Engines: quoted names of PostgreSQL, and which databases are PostgreSQL's."""

import sys
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    import psycopg


def quoted(*parts: str) -> str:
    """Return a quoted name; its parts are, for example, a schema and a table.

    >>> quoted("main", 'a"b')
    '"main"."a""b"'
    """
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def is_postgresql(target: object) -> TypeGuard["str | psycopg.Connection[Any]"]:
    """Return whether a URL, or a connection, is one of PostgreSQL."""
    if isinstance(target, str):
        return target.startswith(("postgresql://", "postgres://"))
    driver = sys.modules.get("psycopg")
    return driver is not None and isinstance(target, driver.Connection)

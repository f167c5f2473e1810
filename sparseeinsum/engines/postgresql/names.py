"""Engines: names of PostgreSQL: of databases as users give them, and of what is in them as any SQL has them."""

import sys
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    import psycopg


def quoted(*parts: str) -> str:
    """A name, of a schema and what is in it, say.

    >>> quoted("main", 'a"b')
    '"main"."a""b"'
    """
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def is_postgresql(target: object) -> TypeGuard["str | psycopg.Connection[Any]"]:
    """Whether a database that a user names, or a connection that they have, is of PostgreSQL."""
    if isinstance(target, str):
        return target.startswith(("postgresql://", "postgres://"))
    driver = sys.modules.get("psycopg")
    return driver is not None and isinstance(target, driver.Connection)

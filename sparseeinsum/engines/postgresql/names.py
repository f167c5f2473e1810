"""Engines: names of PostgreSQL: of databases as users give them, and of tables as any SQL has them."""

import sys
from typing import TYPE_CHECKING, Any, TypeGuard

from sqlglot import exp

if TYPE_CHECKING:
    import psycopg


def quoted(table: exp.Table) -> str:
    """The name of a table with its schema."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in (table.db, table.name))


def is_postgresql(target: object) -> TypeGuard["str | psycopg.Connection[Any]"]:
    """Whether a database that a user names, or a connection that they have, is of PostgreSQL."""
    if isinstance(target, str):
        return target.startswith(("postgresql://", "postgres://"))
    driver = sys.modules.get("psycopg")
    return driver is not None and isinstance(target, driver.Connection)

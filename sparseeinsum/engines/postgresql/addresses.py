"""Engines: which databases are PostgreSQL's."""

import sys
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    import psycopg


def is_postgresql(target: object) -> TypeGuard["str | psycopg.Connection[Any]"]:
    """Return whether a URL, or a connection, is one of PostgreSQL."""
    if isinstance(target, str):
        return target.startswith(("postgresql://", "postgres://"))
    driver = sys.modules.get("psycopg")
    return driver is not None and isinstance(target, driver.Connection)

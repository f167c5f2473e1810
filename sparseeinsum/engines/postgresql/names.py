"""Engines: which of the databases that users name are of PostgreSQL."""

import sys
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    import psycopg


def is_postgresql(target: object) -> TypeGuard["str | psycopg.Connection[Any]"]:
    """Whether a database that a user names, or a connection that they have, is of PostgreSQL."""
    if isinstance(target, str):
        return target.startswith(("postgresql://", "postgres://"))
    driver = sys.modules.get("psycopg")
    return driver is not None and isinstance(target, driver.Connection)

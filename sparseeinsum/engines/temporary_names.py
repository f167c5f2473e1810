"""Engines: names of temporary tables."""

import secrets

_TOKEN = secrets.token_hex(3)  # differs between processes, so that no table of a user has such a name


def temporary_name(name: str) -> str:
    """Return the name of a temporary table; `name` says what it is for."""
    return f"sparseeinsum_{_TOKEN}_{name}"

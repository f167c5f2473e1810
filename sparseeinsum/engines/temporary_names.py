"""Engines: names of tables that are gone when a transaction ends."""

import secrets

_TOKEN = secrets.token_hex(3)  # of this process, so that no table of a user has such a name


def temporary_name(name: str) -> str:
    """What a table for something of a name is called."""
    return f"sparseeinsum_{_TOKEN}_{name}"

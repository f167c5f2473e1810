"""The queries that a connection runs."""

from typing import Any

import pytest

import sparseeinsum as se


def observe_queries(db: se.Database, patch: pytest.MonkeyPatch) -> list[str]:
    """A list to which the text of every query that returns rows is added from now on."""
    statements: list[str] = []
    rows = type(db._engine).rows

    def observed(engine: Any, statement: Any) -> Any:  # noqa: ANN401  # of the engine's method
        statements.append(str(statement))
        return rows(engine, statement)

    patch.setattr(type(db._engine), "rows", observed)
    return statements

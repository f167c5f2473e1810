"""Statistics: what the queries of this room need of a database."""

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa
from sqlglot import exp


class Executor(Protocol):
    """Runs statements on a database."""

    @property
    def dialect_name(self) -> str:
        """Name of the engine's SQL dialect, which is also its folder in stats/."""

    def rows(self, statement: exp.Expr | str) -> Sequence[tuple[object, ...]]:
        """Run a query and return all its rows."""

    def arrow(self, statement: exp.Expr | str) -> pa.Table:
        """Run a query of many rows and return them as an Arrow table."""

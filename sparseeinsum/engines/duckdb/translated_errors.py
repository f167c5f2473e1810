"""Engines: errors of DuckDB and its driver, raised as our own."""

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import pyarrow as pa
from sqlglot import exp

from sparseeinsum.engines.statement_text import check_text
from sparseeinsum.errors import EngineError
from sparseeinsum.render.dialects import DUCKDB, write_sql

_INTERRUPTED = "Query interrupted"


@contextmanager
def translated_errors(statement: exp.Expr | str) -> Iterator[str]:
    """Yield the text of a statement, which runs in the context.

    Raises:
        EngineError: The text has a character that no database stores, or DuckDB refuses the statement.
    """
    text = statement if isinstance(statement, str) else write_sql(statement, DUCKDB)
    check_text(text)
    try:
        yield text
    except (duckdb.Error, OSError, pa.ArrowException) as error:  # a reader has errors of Arrow's own
        raise EngineError(str(error), text) from error
    except RuntimeError as error:  # DuckDB reports Ctrl-C in this way
        if str(error) != _INTERRUPTED:
            raise
        raise KeyboardInterrupt from None

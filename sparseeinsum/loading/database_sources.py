"""Loading: which tables, views and files a database can read; others are streamed, files by a separate DuckDB."""

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import pyarrow as pa
from sqlglot import exp

from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.temporary_names import temporary_name
from sparseeinsum.errors import CatalogueError
from sparseeinsum.language.program_files import is_data_file
from sparseeinsum.loading.sources.arrow_tables import stream_of
from sparseeinsum.loading.sources.input_data import DatabaseRows, EntryBatches
from sparseeinsum.storage.existing_tables import relation_named

_RELATION = temporary_name("relation")


def can_read(engine: Engine, source: object) -> bool:
    """Return whether the database can read a source: one of its relations, or a file if it reads files."""
    if isinstance(source, str):
        return engine.dialect.reads_files or not is_data_file(source)
    return isinstance(source, duckdb.DuckDBPyRelation) and engine.has_relation(source)


@contextmanager
def readable_source(engine: Engine, source: object) -> Iterator[tuple[str, exp.Table]]:
    """Make a source readable in the context; yield its title for messages and the table to select from.

    Raises:
        CatalogueError: There is no such table, view or file.
    """
    if isinstance(source, str):
        yield source, relation_named(engine, source)
        return
    with engine.registered(source, _RELATION) as table:
        yield "the relation", table


def stream_rows(name: str, rows: DatabaseRows) -> EntryBatches:
    """Return the batches of a source that the database cannot read itself.

    Args:
        name: The name of the tensor, for messages.
        rows: The source and its columns.

    Raises:
        CatalogueError: The file cannot be read.
        DataError: The source lacks a column.
    """
    source = rows.source
    try:
        relation = _file(source) if isinstance(source, str) else source
        reader = pa.RecordBatchReader.from_stream(relation)
    except duckdb.Error as error:
        raise CatalogueError(f"tensor {name}: {source} cannot be read: {error}") from error
    return stream_of(name, reader, rows.columns)


def _file(path: str) -> duckdb.DuckDBPyRelation:
    query = exp.select("*").from_(exp.Table(this=exp.Literal.string(path)))
    return duckdb.connect().sql(query.sql("duckdb"))

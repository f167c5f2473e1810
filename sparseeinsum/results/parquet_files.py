"""Results: writes Parquet files with one entry per row, completely or not at all."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from sparseeinsum.errors import DataError


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary path to write to; the file takes the place of `path` at the end, unless there was an error.

    Raises:
        DataError: The folder does not exist.
    """
    if not path.parent.is_dir():
        raise DataError(f"there is no folder {path.parent} to write {path.name} into; make it first")
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_parquet(path: Path, schema: pa.Schema, tables: Iterator[pa.Table]) -> int:
    """Write tables of one schema, with its metadata, to a file; return the number of rows."""
    count = 0
    with parquet.ParquetWriter(path, schema) as writer:
        for table in tables:
            writer.write_table(table)
            count += table.num_rows
    return count

"""Results: Parquet files of results, one entry a row; written whole or not at all."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from sparseeinsum.errors import DataError


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A path to write to; what is there in the end takes the place of the file, which after an error is as it was.

    Raises:
        DataError: The folder is not there.
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
    """Write tables of one schema, with its metadata, to a file; returns how many rows they have."""
    count = 0
    with parquet.ParquetWriter(path, schema) as writer:
        for table in tables:
            writer.write_table(table)
            count += table.num_rows
    return count

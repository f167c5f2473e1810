"""Engines: Arrow tables with text columns as CSV for PostgreSQL's COPY, and back.

All values are quoted, because PostgreSQL reads an unquoted empty value as NULL.
"""

import io
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyarrow import csv

_ROWS = 1 << 17  # in a piece
_BLOCK_BYTES = 1 << 22  # a value must fit into a block


def encode(rows: pa.Table | pa.RecordBatchReader) -> Iterator[bytes]:
    """Yield the CSV text of an Arrow table, or of batches, without NULL, in pieces."""
    options = csv.WriteOptions(include_header=False, quoting_style="all_valid")
    for table in [rows] if isinstance(rows, pa.Table) else map(pa.table, rows):
        for start in range(0, table.num_rows, _ROWS):
            piece = io.BytesIO()
            csv.write_csv(table.slice(start, _ROWS), piece, options)
            yield piece.getvalue()


def decode(data: bytes | bytearray, names: Sequence[str]) -> pa.Table:
    """Return an Arrow table of text columns with these names from CSV without a header."""
    if not data:
        return pa.table([pa.array([], pa.large_string()) for _ in names], names=list(names))
    try:
        return _read(data, names, _BLOCK_BYTES)
    except pa.ArrowInvalid:  # a value is larger than a block
        return _read(data, names, len(data) + 1)


def _read(data: bytes | bytearray, names: Sequence[str], block_bytes: int) -> pa.Table:
    return csv.read_csv(
        pa.py_buffer(data),
        csv.ReadOptions(column_names=list(names), block_size=block_bytes),
        csv.ParseOptions(newlines_in_values=True),
        csv.ConvertOptions(column_types=dict.fromkeys(names, pa.large_string()), strings_can_be_null=False),
    )

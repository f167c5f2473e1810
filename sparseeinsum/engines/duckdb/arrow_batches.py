"""Engines: how many rows the batches of an Arrow table have that DuckDB makes of a result."""

# Batches grow by copying, so that large ones take up to 1.5 times as long (measured: TTM and SpMM of bench/peers).
_BATCH_BYTES = 3 << 20
_MOST_ROWS = 1 << 14


def batch_rows(row_bytes: int) -> int:
    """The rows of a batch if a row has about so many bytes."""
    return max(1, min(_BATCH_BYTES // max(row_bytes, 1), _MOST_ROWS))

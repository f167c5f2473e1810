"""Engines: a value of bytes in parts, so that neither server nor driver copies all of it, into memory that is new."""

from collections.abc import Iterable

import numpy as np

_PART_BYTES = 1 << 18  # that stay in a processor's cache


def parts_query(query: str) -> str:
    """The query of the parts of the only value of a query: where a part begins, the size of the value, the part.

    The value must be computed, since one that is read from a table might be decompressed for each part. One that is
    NULL, or empty, is one part.
    """
    # OFFSET keeps the value a column that is computed once.
    return (
        f"SELECT part.first, pg_catalog.octet_length(whole.bytes), "
        f"pg_catalog.substr(whole.bytes, part.first + 1, {_PART_BYTES}) "
        f"FROM (SELECT * FROM ({query}) AS computed OFFSET 0) AS whole(bytes) "
        f"CROSS JOIN LATERAL pg_catalog.generate_series(0, "
        f"GREATEST(pg_catalog.octet_length(whole.bytes) - 1, 0), {_PART_BYTES}) AS part(first)"
    )


def whole_value(parts: Iterable[tuple[int, int | None, memoryview]]) -> memoryview | None:
    """The value that the query of `parts_query` returned in parts; None if it is NULL, or there is no row."""
    value = None
    for first, size, part in parts:
        if value is None and size is not None:
            value = np.empty(size, np.uint8)  # numpy asks for large pages
        if value is not None:
            value[first : first + len(part)] = np.frombuffer(part, np.uint8)
    return None if value is None else value.data

"""Engines: a value of bytes, or an array, in parts, so that neither the server nor the driver copies all of it."""

from collections.abc import Iterable

import numpy as np

_PART_BYTES = 1 << 18  # that stay in a processor's cache
_VALUE = "whole.value"


def parts_query(query: str, item_bytes: int) -> str:
    """The query of the parts of the only value of a query: where a part begins, the size of the value, the part.

    The value must be computed, since one that is read from a table might be decompressed for each part. One that is
    NULL, or empty, is one part.

    Args:
        query: The query.
        item_bytes: The bytes of an element if the value is an array, of which sizes are counts; 1 for a value of bytes.
    """
    size, part = f"pg_catalog.octet_length({_VALUE})", f"pg_catalog.substr({_VALUE}, part.first + 1, {_PART_BYTES})"
    if item_bytes > 1:
        size = f"pg_catalog.cardinality({_VALUE})"
        part = f"tensor_bytes({_VALUE}, part.first, {_PART_BYTES // item_bytes})"
    # OFFSET keeps the value a column that is computed once.
    return (
        f"SELECT part.first, {size}, {part} FROM (SELECT * FROM ({query}) AS computed OFFSET 0) AS whole(value) "
        f"CROSS JOIN LATERAL pg_catalog.generate_series(0, GREATEST({size} - 1, 0), {_PART_BYTES // item_bytes}) "
        "AS part(first)"
    )


def whole_value(parts: Iterable[tuple[int, int | None, memoryview]], item_bytes: int) -> memoryview | None:
    """The bytes that the query of `parts_query` returned in parts; None if the value is NULL, or there is no row."""
    value = None
    for first, size, part in parts:
        if value is None and size is not None:
            value = np.empty(size * item_bytes, np.uint8)  # numpy asks for large pages
        if value is not None:
            begin = first * item_bytes
            value[begin : begin + len(part)] = np.frombuffer(part, np.uint8)
    return None if value is None else value.data

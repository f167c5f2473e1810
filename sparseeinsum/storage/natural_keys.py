"""Storage: which columns hold natural keys, and the distinct keys of a column of a frame."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparseeinsum.environment.extras import late
from sparseeinsum.errors import DataError
from sparseeinsum.statistics.columns import is_index_type

# The SQL types of keys, as the catalogue records them for all engines, and the types of Arrow.
ARROW_TYPES = {
    "TEXT": pa.large_string(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMPTZ": pa.timestamp("us", "UTC"),
    "UUID": pa.uuid(),
    "BIGINT": pa.int64(),
}
KINDS_OF_KEYS = "texts, dates, timestamps or UUIDs"

# Other names of types whose values such keys represent exactly, as engines show them.
_SYNONYMS = {"VARCHAR": "TEXT", "CHARACTER VARYING": "TEXT", "TIMESTAMP_S": "TIMESTAMP", "TIMESTAMP_MS": "TIMESTAMP"}
_SYNONYMS |= {"TIMESTAMP WITH TIME ZONE": "TIMESTAMPTZ"}
_SYNONYM_PATTERNS = (
    (re.compile(r"CHARACTER VARYING\(\d+\)\Z|ENUM\("), "TEXT"),
    (re.compile(r"TIMESTAMP\(\d\) WITHOUT TIME ZONE\Z"), "TIMESTAMP"),
    (re.compile(r"TIMESTAMP\(\d\) WITH TIME ZONE\Z"), "TIMESTAMPTZ"),
)


def key_type_of(sql_type: str) -> str | None:
    """Return the type of the keys in a column of an SQL type; None if its values cannot be keys.

    >>> key_type_of("VARCHAR"), key_type_of("INTEGER"), key_type_of("DOUBLE")
    ('TEXT', 'BIGINT', None)
    """
    if is_index_type(sql_type):
        return "BIGINT"
    if sql_type in ARROW_TYPES or sql_type in _SYNONYMS:
        return _SYNONYMS.get(sql_type, sql_type)
    return next((kind for pattern, kind in _SYNONYM_PATTERNS if pattern.match(sql_type)), None)


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of natural keys.

    Attributes:
        key_type: The SQL type of the keys.
        keys: The distinct keys.
        positions: For every row the position of its key in `keys`.
    """

    key_type: str
    keys: pa.Array
    positions: NDArray[np.int64]


def is_natural(kind: pa.DataType) -> bool:
    """Return whether the values of a column of a frame can be natural keys, but not indices."""
    return key_type_of_arrow(kind) not in (None, "BIGINT")


def value_type_of(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values of a column, also if Arrow stores them in a dictionary, as categories."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def plain_values(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column with its values in place of a dictionary of Arrow."""
    if not pa.types.is_dictionary(column.type):
        return column
    kind = column.type.value_type
    kind = pa.large_string() if pa.types.is_string_view(kind) else kind  # Arrow has no `take` for string views
    return pa.chunked_array([chunk.dictionary.cast(kind).take(chunk.indices) for chunk in column.chunks], kind)


def key_type_of_arrow(kind: pa.DataType) -> str | None:
    """Return the type of the keys in a column of an Arrow type; None if its values cannot be keys."""
    kind = value_type_of(kind)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "TEXT"
    if pa.types.is_date(kind):
        return "DATE"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP" if kind.tz is None else "TIMESTAMPTZ"
    if pa.types.is_integer(kind):
        return "BIGINT"
    return "UUID" if kind == ARROW_TYPES["UUID"] else None


def read_keys(tensor: str, column: str, values: pa.ChunkedArray) -> KeyColumn:
    """Return the distinct keys of a column without NULL, and their positions.

    Args:
        tensor: The name of the tensor, for messages.
        column: The name of the column, for messages.
        values: The column.

    Raises:
        DataError: The values cannot be keys, or a conversion would change one.
    """
    key_type = key_type_of_arrow(values.type)
    if key_type is None:
        raise DataError(
            f"tensor {tensor}: the column {column} holds {values.type}; keys must be whole numbers, {KINDS_OF_KEYS}"
        )
    kind = ARROW_TYPES[key_type]
    plain = plain_values(values)
    try:
        converted = plain if plain.type == kind else plain.cast(kind)
    except pa.ArrowInvalid as error:
        finest = "timestamps are kept in microseconds, whole numbers as BIGINT"
        raise DataError(f"tensor {tensor}: a key of {column} would change: {error} ({finest})") from None
    stored = (
        pa.chunked_array([chunk.storage for chunk in converted.chunks], pa.binary(16)) if _is_uuid(kind) else converted
    )
    encoded = late("pyarrow.compute").dictionary_encode(stored).combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # if there are no chunks
        encoded = pa.array([], stored.type).dictionary_encode()
    keys = pa.ExtensionArray.from_storage(kind, encoded.dictionary) if _is_uuid(kind) else encoded.dictionary
    return KeyColumn(key_type, keys, np.asarray(encoded.indices.to_numpy(), np.int64))


def as_keys(column: pa.ChunkedArray, key_type: str) -> pa.Array:
    """Return a column that an engine returned as keys of a type."""
    kind = ARROW_TYPES[key_type]
    if _is_uuid(kind) and column.type != kind:  # some engines return UUIDs as text
        compute = late("pyarrow.compute")
        digits = "".join(compute.replace_substring(column, "-", "").to_pylist())
        storage = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(16), len(column), [None, pa.py_buffer(bytes.fromhex(digits))]
        )
        return pa.ExtensionArray.from_storage(kind, storage)
    keys: Any = (column if column.type == kind else column.cast(kind)).combine_chunks()
    return keys


def _is_uuid(kind: pa.DataType) -> bool:
    return bool(kind == ARROW_TYPES["UUID"])

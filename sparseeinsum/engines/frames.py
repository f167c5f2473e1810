"""Engines: frames and Arrow tables (index columns, then the value) as coordinates and values."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparseeinsum.errors import DataError

_Array: TypeAlias = NDArray[Any]


def is_frame(data: object) -> bool:
    """Whether data can be read as an Arrow table."""
    return hasattr(data, "__arrow_c_stream__") or isinstance(data, pa.Table)


def metadata_of_frame(data: object) -> Mapping[bytes, bytes] | None:
    """What a frame says besides its columns; only those of Arrow do."""
    schema = getattr(data, "schema", None)
    return schema.metadata if isinstance(schema, pa.Schema) else None


def entries_of_frame(name: str, data: object, dtype: str | None) -> tuple[list[str], list[_Array], _Array]:
    """Names of the index columns, coordinates by axis, and values.

    Args:
        name: Of the tensor.
        data: The frame.
        dtype: That is wanted; None leaves it to the values.

    Raises:
        DataError: A column has a wrong type, or holds NULL.
    """
    table = _as_table(name, data)
    *index_names, value_name = table.column_names
    for column in index_names:
        if not pa.types.is_integer(table.schema.field(column).type):
            raise DataError(
                f"tensor {name}: the index column {column} holds {table.schema.field(column).type}; indices must be "
                "whole numbers, and the value must be the last column"
            )
    _check_nulls(name, table)
    coordinates = [table.column(column).to_numpy() for column in index_names]
    return index_names, coordinates, _values(name, value_name, table.column(value_name), dtype)


def _as_table(name: str, data: object) -> pa.Table:
    try:
        table = pa.table(data)
    except pa.ArrowException as error:
        raise DataError(
            f"tensor {name} cannot be read as an Arrow table: {error}; what Arrow lacks, such as complex numbers, can "
            "be given as (coordinates, values)"
        ) from None
    columns = table.column_names
    if not columns:
        raise DataError(f"tensor {name} is given a table without columns; it needs index columns, then the value")
    for column in columns:
        if columns.count(column) > 1:
            raise DataError(f"tensor {name} is given a table with two columns named {column}; rename one")
    return table


def _check_nulls(name: str, table: pa.Table) -> None:
    """NULL in a frame: refused before numpy turns it into NaN."""
    nulls = []
    for position, column in enumerate(table.columns):
        parts = [column, *(column.flatten() if pa.types.is_struct(column.type) else ())]
        nulls += [(int(np.argmax(part.is_null().to_numpy())), position) for part in parts if part.null_count]
    if nulls:
        row, position = min(nulls)
        raise DataError(
            f"tensor {name}, row {row} (counted from 0): the column {table.column_names[position]} is NULL; leave such "
            "rows out"
        )


def _values(name: str, column: str, values: pa.ChunkedArray, dtype: str | None) -> _Array:
    kind = values.type
    if pa.types.is_decimal(kind):
        return _decimals(name, column, values, dtype)
    if _is_complex(kind):
        real, imaginary = (part.to_numpy() for part in values.flatten())
        pairs = np.empty(len(real), np.result_type(real, imaginary, np.complex64))
        pairs.real, pairs.imag = real, imaginary  # a sum would make NaN of infinite parts
        return pairs
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        raise DataError(
            f"tensor {name}: the value column {column} holds {kind}, which is no number; the last column must be the "
            "value"
        )
    return np.asarray(values.to_numpy())


def _is_complex(kind: pa.DataType) -> bool:
    """Whether values are complex numbers as results have them: struct<re, im>."""
    return pa.types.is_struct(kind) and [(field.name, pa.types.is_floating(field.type)) for field in kind] == [
        ("re", True),
        ("im", True),
    ]


def _decimals(name: str, column: str, values: pa.ChunkedArray, dtype: str | None) -> _Array:
    """Decimals, which numpy lacks: whole ones as int64, or those with digits behind the point rounded to float64."""
    is_whole = dtype in ("int64", "bool") or (dtype is None and values.type.scale <= 0)
    if not is_whole and values.type.scale > 0:
        return np.asarray(values.cast(pa.float64()).to_numpy())
    try:
        return np.asarray(values.cast(pa.int64()).to_numpy())
    except pa.ArrowInvalid:  # one does not fit
        numbers = values.to_pylist()
    wanted = "int64" if is_whole else "float64"
    for row, number in enumerate(numbers):
        if not (_is_int64(number) if is_whole else Decimal(float(number)) == number):
            raise DataError(
                f"tensor {name}, row {row} (counted from 0): the value {column} is {number}, which is no {wanted}; "
                "choose another dtype, as in dtype='float64', or round it first"
            )
    return np.array(numbers, wanted)


def _is_int64(number: Decimal) -> bool:
    return number == int(number) and -(1 << 63) <= number < 1 << 63

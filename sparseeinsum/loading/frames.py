"""Loading: reads coordinates and values from Arrow tables of index columns and a value column."""

from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparseeinsum.errors import DataError
from sparseeinsum.storage.natural_keys import KINDS_OF_KEYS, KeyColumn, is_natural, read_keys
from sparseeinsum.storage.tensor_description import TensorDescription

_Array: TypeAlias = NDArray[Any]


def entries_of_frame(
    description: TensorDescription, table: pa.Table, first_row: int = 0
) -> tuple[list[str], list[_Array | KeyColumn], _Array]:
    """Return the names of the index columns, coordinates by axis, and values.

    Args:
        description: What the user says of the tensor.
        table: The table, whose last column holds the values.
        first_row: The number of its first row, for messages; a batch is a part of more rows.

    Raises:
        DataError: A column has a wrong type, or holds NULL.
    """
    name, dtype = description.name, description.checked_dtype()
    *index_names, value_name = table.column_names
    dictionaries = dictionaries_of_frame(description, table.schema)
    _check_nulls(name, table, first_row)
    coordinates = [
        table.column(column).to_numpy() if dictionary is None else read_keys(name, column, table.column(column))
        for column, dictionary in zip(index_names, dictionaries, strict=True)
    ]
    return index_names, coordinates, _values(name, value_name, table.column(value_name), dtype, first_row)


def dictionaries_of_frame(description: TensorDescription, schema: pa.Schema) -> list[str | None]:
    """Return for every index column the name of its dictionary; None for a column of indices.

    Raises:
        DataError: A column holds neither indices nor keys.
        ShapeError: The user gives a dictionary to an axis that does not exist.
    """
    *index, _ = schema
    for column in index:
        if not (pa.types.is_integer(column.type) or is_natural(column.type)):
            raise DataError(
                f"tensor {description.name}: the index column {column.name} holds {column.type}; indices must be whole "
                f"numbers, or natural keys ({KINDS_OF_KEYS}), and the value must be the last column"
            )
    axes = description.axis_names(len(index), [column.name for column in index])
    return description.dictionary_names(axes, [is_natural(column.type) for column in index])


def _check_nulls(name: str, table: pa.Table, first_row: int) -> None:
    """Refuse NULL in a table, which numpy would turn into NaN."""
    nulls = []
    for position, column in enumerate(table.columns):
        columns = [column, *(column.flatten() if pa.types.is_struct(column.type) else ())]
        nulls += [(int(np.argmax(part.is_null().to_numpy())), position) for part in columns if part.null_count]
    if nulls:
        row, position = min(nulls)
        raise DataError(
            f"tensor {name}, row {first_row + row} (counted from 0): the column {table.column_names[position]} is "
            "NULL; leave such rows out"
        )


def _values(name: str, column: str, values: pa.ChunkedArray, dtype: str | None, first_row: int) -> _Array:
    """Convert the value column to an array of numbers; the arguments are those of `_decimals`."""
    kind = values.type
    if pa.types.is_decimal(kind):
        return _decimals(name, column, values, dtype, first_row)
    if pa.types.is_struct(kind):
        real, imaginary = (part.to_numpy() for part in values.flatten())
        pairs = np.empty(len(real), np.result_type(real, imaginary, np.complex64))
        pairs.real, pairs.imag = real, imaginary  # a sum would make NaN of infinite parts
        return pairs
    return np.asarray(values.to_numpy())


def _decimals(name: str, column: str, values: pa.ChunkedArray, dtype: str | None, first_row: int) -> _Array:
    """Convert decimals, which numpy lacks: integers to int64, others rounded to float64.

    Args:
        name: The name of the tensor, for messages.
        column: The name of the column, for messages.
        values: The column.
        dtype: The dtype that the user gives, if any.
        first_row: The number of the first row, for messages.

    Raises:
        DataError: A value is no int64, or an integer changes as a float64.
    """
    is_whole = dtype in ("int64", "bool") or (dtype is None and values.type.scale <= 0)
    if not is_whole and values.type.scale > 0:
        return np.asarray(values.cast(pa.float64()).to_numpy())
    try:
        return np.asarray(values.cast(pa.int64()).to_numpy())
    except pa.ArrowInvalid:  # one does not fit
        numbers = values.to_pylist()
    target = "int64" if is_whole else "float64"
    for row, number in enumerate(numbers):
        if not (_is_int64(number) if is_whole else Decimal(float(number)) == number):
            raise DataError(
                f"tensor {name}, row {first_row + row} (counted from 0): the value {column} is {number}, which is "
                f"no {target}; choose another dtype, as in dtype='float64', or round it first"
            )
    return np.array(numbers, target)


def _is_int64(number: Decimal) -> bool:
    return number == int(number) and -(1 << 63) <= number < 1 << 63

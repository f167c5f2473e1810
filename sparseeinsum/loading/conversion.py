"""Loading: converts values of the user to a dtype that tensors can have, without changing them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.errors import DataError
from sparseeinsum.operators.dtypes import ITEM_BYTES

# The default dtypes by the kind or name of numpy's dtype: the narrowest one that represents all values. For uint64 it
# is int64, and values that do not fit are refused.
_DEFAULTS = {"i": "int64", "u": "int64", "b": "bool", "float16": "float32"}
_DEFAULTS |= {dtype: dtype for dtype in ITEM_BYTES}


def dtype_of_values(name: str, requested: str | None, actual: np.dtype[Any]) -> str:
    """Return the dtype of a tensor: the requested one, else a default for the values.

    Args:
        name: The name of the tensor, for messages.
        requested: The dtype that the user gives, if any.
        actual: The dtype of the values.

    Raises:
        DataError: The values are no numbers, or no dtype of tensors represents them all.
    """
    if actual.kind not in "fiubc":
        raise DataError(f"tensor {name} holds {actual.name}, which is no number; convert its values to float64 first")
    dtype = requested or _DEFAULTS.get(actual.kind) or _DEFAULTS.get(actual.name)
    if dtype is None:
        nearest = "complex128" if actual.kind == "c" else "float64"
        raise DataError(
            f"tensor {name} has dtype {actual.name}, which is not supported; pass dtype='{nearest}' to round it"
        )
    return dtype


def converted_values(name: str, values: NDArray[Any], dtype: str, first_row: int = 0) -> NDArray[Any]:
    """Convert values to a dtype, in this machine's byte order; only floating-point numbers may be rounded.

    Args:
        name: The name of the tensor, for messages.
        values: The values.
        dtype: The dtype.
        first_row: The number of the first row, for messages; a batch is a part of more rows.

    Raises:
        DataError: An integer would change, or a finite value would become infinite.
    """
    with np.errstate(all="ignore"):
        is_real = values.dtype.kind == "c" and np.dtype(dtype).kind != "c"
        converted: NDArray[Any] = (values.real if is_real else values).astype(dtype, copy=False)
        if converted.dtype == values.dtype:
            return converted
        positions = np.flatnonzero(_is_changed(values, converted))
    if positions.size:
        value, position = values.flat[positions[0]], position_of(positions[0], values, first_row)
        raise DataError(f"tensor {name}, {position}: {value} is no {dtype}; {_suggestion(values, dtype)}")
    return converted


def _is_changed(before: NDArray[Any], after: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where values have changed in a conversion."""
    changed = _is_part_changed(before.real, after.real)
    if before.dtype.kind == "c":
        changed |= _is_part_changed(before.imag, after.imag) if after.dtype.kind == "c" else before.imag != 0
    return changed


def _is_part_changed(before: NDArray[Any], after: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where real numbers have changed; between floats, only infinities count."""
    if before.dtype.kind == after.dtype.kind == "f":
        infinite: NDArray[np.bool_] = np.isinf(after) & np.isfinite(before)
        return infinite
    changed: NDArray[np.bool_] = after.astype(before.dtype) != before
    # The greatest integers are rounded up to a float beyond their type, which wraps around when it is converted back.
    if before.dtype.kind in "iu" and after.dtype.kind == "f":
        changed |= after >= float(int(np.iinfo(before.dtype).max) + 1)
    if after.dtype.kind == "i":  # numbers from 2^63 on wrap around, or become the least one
        changed |= (before > 0) & (after < 0) if before.dtype.kind == "u" else before >= 2.0**63
    return changed


def _suggestion(values: NDArray[Any], dtype: str) -> str:
    if values.dtype.kind == "c" and np.dtype(dtype).kind != "c":
        return "pass dtype='complex128', or leave out the imaginary parts first"
    if np.dtype(dtype).kind in "fc":
        return f"round it first, as in values.astype({dtype!r})"
    return "choose another dtype, as in dtype='float64', or round it first"


def position_of(position: int | np.intp, values: NDArray[Any], first_row: int = 0) -> str:
    """Return the position of a value, for a message: its row, or its index in an array of several axes.

    Args:
        position: The position in the flat array, in C order.
        values: The array.
        first_row: The number of its first row.
    """
    index = tuple(map(int, np.unravel_index(position, values.shape)))
    return f"row {first_row + index[0]} (counted from 0)" if len(index) == 1 else f"element {index}"

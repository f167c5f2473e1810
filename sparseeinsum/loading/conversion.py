"""Loading: values of the user's in a dtype that tensors have, exactly."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.errors import DataError
from sparseeinsum.operators.dtypes import ITEM_BYTES

# What values become where the user does not say, by kind or name: narrower numbers the nearest dtype that holds them
# all, and uint64 int64 if every value fits.
_DEFAULTS = {"i": "int64", "u": "int64", "b": "bool", "float16": "float32"}
_DEFAULTS |= {dtype: dtype for dtype in ITEM_BYTES}


def dtype_of_values(name: str, wanted: str | None, found: np.dtype[Any]) -> str:
    """The dtype given, else that of the values.

    Raises:
        DataError: The values are no numbers, or of a dtype that has no like among those of tensors.
    """
    if found.kind not in "fiubc":
        raise DataError(f"tensor {name} holds {found.name}, which is no number; convert its values to float64 first")
    dtype = wanted or _DEFAULTS.get(found.kind) or _DEFAULTS.get(found.name)
    if dtype is None:
        nearest = "complex128" if found.kind == "c" else "float64"
        raise DataError(
            f"tensor {name} has dtype {found.name}, which is not supported; pass dtype='{nearest}' to round it"
        )
    return dtype


def converted_values(name: str, values: NDArray[Any], dtype: str, first_row: int = 0) -> NDArray[Any]:
    """Values of the dtype wanted, in this machine's byte order; floating-point numbers may be rounded to another float.

    The number of the first row is for messages, where the values are a part of more.

    Raises:
        DataError: Another value would change, or a finite one become infinite.
    """
    with np.errstate(all="ignore"):
        is_real = values.dtype.kind == "c" and np.dtype(dtype).kind != "c"
        converted: NDArray[Any] = (values.real if is_real else values).astype(dtype, copy=False)
        if converted.dtype == values.dtype:
            return converted
        positions = np.flatnonzero(_is_changed(values, converted))
    if positions.size:
        value, place = values.flat[positions[0]], place_of(positions[0], values, first_row)
        raise DataError(f"tensor {name}, {place}: {value} is no {dtype}; {_way_out(values, dtype)}")
    return converted


def _is_changed(before: NDArray[Any], after: NDArray[Any]) -> NDArray[np.bool_]:
    """Where values are other ones after a conversion."""
    changed = _is_part_changed(before.real, after.real)
    if before.dtype.kind == "c":
        changed |= _is_part_changed(before.imag, after.imag) if after.dtype.kind == "c" else before.imag != 0
    return changed


def _is_part_changed(before: NDArray[Any], after: NDArray[Any]) -> NDArray[np.bool_]:
    if before.dtype.kind == after.dtype.kind == "f":
        infinite: NDArray[np.bool_] = np.isinf(after) & np.isfinite(before)
        return infinite
    changed: NDArray[np.bool_] = after.astype(before.dtype) != before
    # The greatest whole numbers are rounded to one that they lack, and what is beyond them wraps around.
    if before.dtype.kind in "iu" and after.dtype.kind == "f":
        changed |= after >= float(int(np.iinfo(before.dtype).max) + 1)
    if before.dtype.kind in "fu" and after.dtype.kind == "i":
        changed |= before >= 2.0**63
    return changed


def _way_out(values: NDArray[Any], dtype: str) -> str:
    if values.dtype.kind == "c" and np.dtype(dtype).kind != "c":
        return "pass dtype='complex128', or leave out the imaginary parts first"
    return "choose another dtype, as in dtype='float64', or round it first"


def place_of(position: int | np.intp, values: NDArray[Any], first_row: int = 0) -> str:
    """Where a value stands, for a message."""
    index = tuple(int(place) for place in np.unravel_index(position, values.shape))
    return f"row {first_row + index[0]} (counted from 0)" if len(index) == 1 else f"element {index}"

"""Engines: what users say of a tensor (axes, shape, dtype), checked, and its values in the dtype wanted."""

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.errors import DataError, ShapeError
from sparseeinsum.language.tensors import ITEM_BYTES, Axis

# Bounds are kept in the catalogue as BIGINT.
_GREATEST_BOUND = (1 << 63) - 1


def agreed_bounds(name: str, shape: Sequence[int] | None, found: Sequence[int]) -> tuple[int, ...]:
    """The shape that data have.

    Raises:
        ShapeError: Another is given.
    """
    actual = tuple(int(bound) for bound in found)
    if shape is not None and bounds_of(name, shape) != actual:
        raise ShapeError(f"tensor {name} is given shape {tuple(shape)}, but its data have shape {actual}")
    return actual


def bounds_of(name: str, shape: Sequence[int]) -> tuple[int, ...]:
    """A shape as the user gives it.

    Raises:
        ShapeError: It is no sequence of whole numbers.
    """
    try:
        return tuple(operator.index(bound) for bound in shape)
    except TypeError:
        raise ShapeError(f"tensor {name} is given shape {shape!r}; give a whole number for every axis") from None


def dtype_named(name: str, dtype: str) -> str:
    """A dtype as the user gives it.

    Raises:
        DataError: It is none that tensors can have.
    """
    try:
        wanted = np.dtype(dtype).name
    except TypeError:
        wanted = str(dtype)
    if wanted not in ITEM_BYTES:
        raise DataError(f"tensor {name} is to have dtype {wanted}, which is not supported; choose float64 or float32")
    return wanted


def dtype_of_values(name: str, dtype: str | None, found: np.dtype[Any]) -> str:
    """The dtype given, else that of the values.

    Raises:
        DataError: The values cannot have it, or are no numbers.
    """
    if found.kind not in "fiub":
        raise DataError(
            f"tensor {name} holds {found.name}, which is no real number; convert its values to float64 first"
        )
    if dtype is not None:
        return dtype_named(name, dtype)
    if found.name not in ITEM_BYTES:
        raise DataError(
            f"tensor {name} has dtype {found.name}, which is not supported yet; pass dtype='float64' to convert it"
        )
    return found.name


def converted_values(name: str, values: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Values of the dtype wanted, in this machine's byte order.

    Raises:
        DataError: A whole number would change, or a finite one become infinite.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        converted = values.astype(dtype, copy=False)
        if values.dtype.kind in "iu":
            beyond = float(int(np.iinfo(values.dtype).max) + 1)  # what the greatest whole numbers are rounded to
            changed = (converted >= beyond) | (converted.astype(values.dtype) != values)
        elif converted.dtype.itemsize < values.dtype.itemsize:
            changed = np.isinf(converted) & np.isfinite(values)
        else:
            return converted
    positions = np.flatnonzero(changed)
    if positions.size:
        value, place = values.flat[positions[0]], place_of(positions[0], values)
        raise DataError(f"tensor {name}, {place}: {value} is no {dtype}; choose another dtype, or round it first")
    return converted


def place_of(position: int | np.intp, values: NDArray[Any]) -> str:
    """Where a value stands, for a message."""
    index = tuple(int(place) for place in np.unravel_index(position, values.shape))
    return f"row {index[0]} (counted from 0)" if len(index) == 1 else f"element {index}"


def axes_of(name: str, given: Iterable[str] | None, bounds: Sequence[int]) -> tuple[Axis, ...]:
    """Axes by the names given, else dim_0, dim_1, ...

    Raises:
        ShapeError: Names and bounds do not fit together, a name is empty, or a bound too large.
    """
    names = [f"dim_{position}" for position in range(len(bounds))] if given is None else list(given)
    if len(names) != len(bounds):
        shown = f": {', '.join(names)}" if names else ""
        raise ShapeError(f"tensor {name} has {len(bounds)} axes, but {len(names)} names are given{shown}")
    if not all(names):
        raise ShapeError(f"tensor {name} has an axis without a name; name it in axes=[...]")
    for axis, bound in zip(names, bounds, strict=True):
        if bound > _GREATEST_BOUND:
            raise ShapeError(f"axis {axis} of tensor {name} has the bound {bound}, beyond {_GREATEST_BOUND}")
    return tuple(Axis(axis.lower(), int(bound)) for axis, bound in zip(names, bounds, strict=True))

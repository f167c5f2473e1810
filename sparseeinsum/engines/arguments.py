"""Engines: what users say of a tensor (axes, shape, fill, dtype), checked."""

import operator
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from sparseeinsum.errors import DataError, SemanticsError, ShapeError
from sparseeinsum.language.dtypes import ITEM_BYTES, Number, as_number, is_complex
from sparseeinsum.language.tensors import Axis, Tensor

# Bounds are kept in the catalogue as BIGINT.
_GREATEST_BOUND = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Description:
    """What a user says of a tensor besides its data; None leaves it to them.

    Attributes:
        name: Of the tensor.
        axes: Names of the axes.
        shape: Their bounds.
        fill: Value of every index that the data lack; 0 where neither the user nor the data say.
        dtype: Of the values.
    """

    name: str
    axes: Sequence[str] | None = None
    shape: Sequence[int] | None = None
    fill: Number | None = None
    dtype: str | None = None

    def tensor(self, bounds: Sequence[int], dtype: str, names: Sequence[str] | None = None) -> Tensor:
        """The tensor that this and the data make.

        Args:
            bounds: Of the axes.
            dtype: Of the values.
            names: Of the axes, where the user gives none; dim_0, dim_1, ... by default.

        Raises:
            DataError: The dtype does not hold the fill.
            ShapeError: Names and bounds make no axes.
        """
        axes = _axes(self.name, names if self.axes is None else self.axes, bounds)
        return Tensor(self.name, axes, dtype, _fill(self.name, 0 if self.fill is None else self.fill, dtype))

    def agreed_bounds(self, found: Sequence[int]) -> tuple[int, ...]:
        """The shape that data have.

        Raises:
            ShapeError: Another is given.
        """
        actual = tuple(int(bound) for bound in found)
        if self.shape is not None and self.bounds() != actual:
            raise ShapeError(f"tensor {self.name} is given shape {tuple(self.shape)}, but its data have shape {actual}")
        return actual

    def bounds(self) -> tuple[int, ...]:
        """The shape that the user gives.

        Raises:
            ShapeError: It is no sequence of whole numbers.
        """
        try:
            return tuple(operator.index(bound) for bound in (() if self.shape is None else self.shape))
        except TypeError:
            raise ShapeError(
                f"tensor {self.name} is given shape {self.shape!r}; give a whole number for every axis"
            ) from None

    def wanted_dtype(self) -> str | None:
        """The dtype that the user gives.

        Raises:
            DataError: It is none that tensors can have.
        """
        if self.dtype is None:
            return None
        try:
            wanted = np.dtype(self.dtype).name
        except TypeError:
            wanted = str(self.dtype)
        if wanted not in ITEM_BYTES:
            raise DataError(
                f"tensor {self.name} is to have dtype {wanted}, which is not supported; choose {', '.join(ITEM_BYTES)}"
            )
        return wanted


def _fill(name: str, fill: object, dtype: str) -> Number:
    number = fill.item() if isinstance(fill, np.generic) else fill
    if not isinstance(number, bool | int | float | complex):
        raise DataError(f"tensor {name} is given the fill {fill!r}, which is no number")
    found = None
    if not isinstance(number, complex) or is_complex(dtype):
        with suppress(SemanticsError, OverflowError):
            found = as_number(number, dtype)
    # Python compares whole numbers with others exactly.
    if found is None or (isinstance(number, int) and found != number):
        raise DataError(
            f"tensor {name} has dtype {dtype}, which does not hold the fill {number}; choose another fill, or a dtype "
            "that does"
        )
    return found


def _axes(name: str, given: Sequence[str] | None, bounds: Sequence[int]) -> tuple[Axis, ...]:
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

"""Storage: checks what users say of a tensor: axes, shape, fill, dtype and dictionaries."""

import operator
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from sparseeinsum.engines.statement_text import has_line_break, unsupported_character
from sparseeinsum.errors import DataError, SemanticsError, ShapeError
from sparseeinsum.language.tensors import Axis, Dictionary, Tensor
from sparseeinsum.operators.dtypes import ITEM_BYTES, Number, as_number, is_complex

# The catalogue stores bounds as BIGINT.
GREATEST_BOUND = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class TensorDescription:
    """What a user says of a tensor besides its data; what is None follows from the data.

    Attributes:
        name: The name of the tensor.
        axes: The names of the axes.
        shape: The bounds of the axes.
        fill: The fill; if neither the user nor the data give one, it is 0.
        dtype: The dtype of the values.
        keys: The names of dictionaries by the names of their axes.
        unnamed_axes: The names of the axes if neither the user nor the data name them; dim_0, dim_1, ... by default.
    """

    name: str
    axes: Sequence[str] | None = None
    shape: Sequence[int | None] | None = None
    fill: Number | None = None
    dtype: str | None = None
    keys: Mapping[str, str] = field(default_factory=dict)
    unnamed_axes: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.keys, Mapping):
            raise ShapeError(
                f"tensor {self.name} is given keys {self.keys!r}; give dictionaries of axes, as in {{'src': 'person'}}"
            )

    def tensor(
        self,
        bounds: Sequence[int],
        dtype: str,
        names: Sequence[str] | None = None,
        data_fill: Number | None = None,
        dictionaries: Sequence[Dictionary | None] | None = None,
    ) -> Tensor:
        """Return the tensor that follows from this description and the data.

        Args:
            bounds: The bounds of the axes.
            dtype: The dtype of the values.
            names: The names of the axes if the user gives none; dim_0, dim_1, ... by default.
            data_fill: The fill of the data, if they have one.
            dictionaries: The dictionaries of the axes; none by default.

        Raises:
            DataError: The dtype cannot represent the fill, or the data have another fill than the user gives.
            ShapeError: The names do not fit the bounds.
        """
        axis_dictionaries = dictionaries or [None] * len(bounds)
        axes = _axes(self.name, self.axis_names(len(bounds), names), bounds, axis_dictionaries)
        return Tensor(self.name, axes, dtype, _checked_fill(self.name, self._agreed_fill(data_fill), dtype))

    def _agreed_fill(self, data_fill: Number | None) -> object:
        """Return the fill of the user or of the data, 0 by default; raise DataError if they differ."""
        if self.fill is None:
            return 0 if data_fill is None else data_fill
        if data_fill is not None and self.fill != data_fill:
            raise DataError(
                f"tensor {self.name} is given the fill {self.fill}, but its data have the fill {data_fill}; leave the "
                "fill out, or change that of the data first"
            )
        return self.fill

    def axis_names(self, count: int, names: Sequence[str] | None = None) -> list[str]:
        """Return the names of the axes in lower case.

        Args:
            count: The number of axes.
            names: Their names if the user gives none; dim_0, dim_1, ... by default.

        Raises:
            ShapeError: There are fewer or more names than axes, or a name is empty or not supported.
        """
        source = next((axes for axes in (self.axes, names, self.unnamed_axes) if axes is not None), None)
        result = [f"dim_{position}" for position in range(count)] if source is None else list(source)
        if len(result) != count:
            shown = f": {', '.join(result)}" if result else ""
            raise ShapeError(f"tensor {self.name} has {count} axes, but {len(result)} names are given{shown}")
        if not all(result):
            raise ShapeError(f"tensor {self.name} has an axis without a name; name it in axes=[...]")
        for axis in result:
            character = unsupported_character(axis)
            if character is not None:
                raise ShapeError(
                    f"tensor {self.name} has the axis {axis!a}, a name with {character!a}, which databases do not "
                    "store; choose another"
                )
            if has_line_break(axis):
                raise ShapeError(f"tensor {self.name} has the axis {axis!a}, a name of several lines; choose another")
        return [axis.lower() for axis in result]

    def dictionary_names(self, axes: Sequence[str], are_natural: Sequence[bool]) -> list[str | None]:
        """Return for every axis the name of its dictionary, or None.

        Args:
            axes: The names of the axes, in lower case.
            are_natural: Whether the data have natural keys for an axis; their dictionary has the name of the axis
                unless the user gives one.

        Raises:
            ShapeError: The user gives a dictionary to an axis that does not exist.
        """
        named = {axis.lower(): name for axis, name in self.keys.items()}
        for axis, name in named.items():
            if axis not in axes:
                raise ShapeError(f"tensor {self.name} has no axis {axis} to give keys; it has {', '.join(axes)}")
            if not isinstance(name, str) or not name:
                raise ShapeError(f"tensor {self.name} is given keys {name!r} for axis {axis}; give a dictionary's name")
        names = [
            named.get(axis, axis if is_natural else None) for axis, is_natural in zip(axes, are_natural, strict=True)
        ]
        return [None if name is None else name.lower() for name in names]

    def agreed_bounds(self, data_shape: Sequence[int], sizes: Sequence[int | None] | None = None) -> tuple[int, ...]:
        """Return the shape of the data as integers.

        Args:
            data_shape: The shape of the data.
            sizes: The sizes of the axes' dictionaries; None for an axis without one.

        Raises:
            ShapeError: The user gives another shape, or a dictionary has another size than its axis.
        """
        actual = tuple(int(bound) for bound in data_shape)
        if self.shape is not None and self.bounds(sizes) != actual:
            raise ShapeError(f"tensor {self.name} is given shape {tuple(self.shape)}, but its data have shape {actual}")
        for axis, (bound, size) in enumerate(zip(actual, sizes or (), strict=False)):
            if size not in (None, bound):
                raise ShapeError(
                    f"tensor {self.name} has shape {actual}, but the dictionary of axis {axis} (counted from 0) has "
                    f"{size} keys; give the data one place for every key"
                )
        return actual

    def bounds(self, sizes: Sequence[int | None] | None = None) -> tuple[int, ...]:
        """Return the shape that the user gives; the bound of an axis with a dictionary may be None.

        Args:
            sizes: The sizes of the axes' dictionaries, which are their bounds; None for an axis without one.

        Raises:
            ShapeError: It is no sequence of whole numbers, or a bound differs from the size of the dictionary.
        """
        try:
            shape = () if self.shape is None else tuple(self.shape)
            dictionary_sizes = (*(sizes or ()), *[None] * len(shape))
            bounds = tuple(
                operator.index(size if bound is None and size is not None else bound)  # type: ignore[arg-type]
                for bound, size in zip(shape, dictionary_sizes, strict=False)
            )
        except TypeError:
            raise ShapeError(
                f"tensor {self.name} is given shape {self.shape!r}; give a whole number for every axis"
            ) from None
        for axis, (bound, size) in enumerate(zip(bounds, dictionary_sizes, strict=False)):
            if size not in (None, bound):
                raise ShapeError(
                    f"tensor {self.name} is given the bound {bound} for axis {axis} (counted from 0), whose dictionary "
                    f"has {size} keys; give None, because a dictionary may grow"
                )
        return bounds

    def checked_dtype(self) -> str | None:
        """Return the name of the dtype that the user gives, or None.

        Raises:
            DataError: Tensors cannot have this dtype.
        """
        if self.dtype is None:
            return None
        try:
            dtype = np.dtype(self.dtype).name
        except TypeError:
            dtype = str(self.dtype)
        if dtype not in ITEM_BYTES:
            raise DataError(
                f"tensor {self.name} is to have dtype {dtype}, which is not supported; choose {', '.join(ITEM_BYTES)}"
            )
        return dtype


def _checked_fill(name: str, fill: object, dtype: str) -> Number:
    """Convert the fill of a tensor to its dtype; raise DataError if that would change it."""
    number = fill.item() if isinstance(fill, np.generic) else fill
    if not isinstance(number, bool | int | float | complex):
        raise DataError(f"tensor {name} is given the fill {fill!r}, which is no number")
    converted = None
    if not isinstance(number, complex) or is_complex(dtype):
        with suppress(SemanticsError, OverflowError):
            converted = as_number(number, dtype)
    # Python compares integers with floating-point numbers exactly.
    if converted is None or (isinstance(number, int) and converted != number):
        raise DataError(
            f"tensor {name} has dtype {dtype}, which does not hold the fill {number}; choose another fill, or a dtype "
            "that does"
        )
    return converted


def _axes(
    name: str, names: Sequence[str], bounds: Sequence[int], dictionaries: Sequence[Dictionary | None]
) -> tuple[Axis, ...]:
    for axis, bound in zip(names, bounds, strict=True):
        if bound > GREATEST_BOUND:
            raise ShapeError(f"axis {axis} of tensor {name} has the bound {bound}, beyond {GREATEST_BOUND}")
    return tuple(map(Axis, names, map(int, bounds), dictionaries))

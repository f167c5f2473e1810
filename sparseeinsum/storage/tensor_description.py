"""Storage: what users say of a tensor (axes, shape, fill, dtype), checked."""

import operator
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from sparseeinsum.engines.statement_text import has_line_break, unsupported_character
from sparseeinsum.errors import DataError, SemanticsError, ShapeError
from sparseeinsum.language.tensors import Axis, Dictionary, Tensor
from sparseeinsum.operators.dtypes import ITEM_BYTES, Number, as_number, is_complex

# Bounds are kept in the catalogue as BIGINT.
GREATEST_BOUND = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class TensorDescription:
    """What a user says of a tensor besides its data; None leaves it to them.

    Attributes:
        name: Of the tensor.
        axes: Names of the axes.
        shape: Their bounds.
        fill: Value of every index that the data lack; None leaves it to them, and is 0 where they do not say.
        dtype: Of the values.
        keys: Dictionaries of axes, by the names of the axes.
    """

    name: str
    axes: Sequence[str] | None = None
    shape: Sequence[int | None] | None = None
    fill: Number | None = None
    dtype: str | None = None
    keys: Mapping[str, str] = field(default_factory=dict)

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
        found: Number | None = None,
        dictionaries: Sequence[Dictionary | None] | None = None,
    ) -> Tensor:
        """The tensor that this and the data make.

        Args:
            bounds: Of the axes.
            dtype: Of the values.
            names: Of the axes, where the user gives none; dim_0, dim_1, ... by default.
            found: The fill that the data have, if they have one.
            dictionaries: Of the axes; none by default.

        Raises:
            DataError: The dtype does not hold the fill, or the data have another one.
            ShapeError: Names and bounds make no axes.
        """
        known = dictionaries or [None] * len(bounds)
        axes = _axes(self.name, self.axis_names(len(bounds), names), bounds, known)
        return Tensor(self.name, axes, dtype, _fill(self.name, self._agreed_fill(found), dtype))

    def _agreed_fill(self, found: Number | None) -> object:
        if self.fill is None:
            return 0 if found is None else found
        if found is not None and self.fill != found:
            raise DataError(
                f"tensor {self.name} is given the fill {self.fill}, but what its data do not store is {found}; leave "
                "the fill out, or change that of the data first"
            )
        return self.fill

    def axis_names(self, count: int, names: Sequence[str] | None = None) -> list[str]:
        """Names of the axes in lower case; see `tensor`.

        Raises:
            ShapeError: There are fewer or more of them, or an empty one.
        """
        given = names if self.axes is None else self.axes
        found = [f"dim_{position}" for position in range(count)] if given is None else list(given)
        if len(found) != count:
            shown = f": {', '.join(found)}" if found else ""
            raise ShapeError(f"tensor {self.name} has {count} axes, but {len(found)} names are given{shown}")
        if not all(found):
            raise ShapeError(f"tensor {self.name} has an axis without a name; name it in axes=[...]")
        for axis in found:
            refused = unsupported_character(axis)
            if refused is not None:
                raise ShapeError(
                    f"tensor {self.name} has the axis {axis!a}, a name with {refused!a}, which databases do not store; "
                    "choose another"
                )
            if has_line_break(axis):
                raise ShapeError(f"tensor {self.name} has the axis {axis!a}, a name of several lines; choose another")
        return [axis.lower() for axis in found]

    def dictionary_names(self, axes: Sequence[str], are_natural: Sequence[bool]) -> list[str | None]:
        """For every axis the name of its dictionary, or None.

        Args:
            axes: Their names, in lower case.
            are_natural: Whether an axis has natural keys: they have a dictionary of its name unless the user gives one.

        Raises:
            ShapeError: The user gives one to an axis that there is not.
        """
        given = {axis.lower(): name for axis, name in self.keys.items()}
        for axis, name in given.items():
            if axis not in axes:
                raise ShapeError(f"tensor {self.name} has no axis {axis} to give keys; it has {', '.join(axes)}")
            if not isinstance(name, str) or not name:
                raise ShapeError(f"tensor {self.name} is given keys {name!r} for axis {axis}; give a dictionary's name")
        names = [
            given.get(axis, axis if is_natural else None) for axis, is_natural in zip(axes, are_natural, strict=True)
        ]
        return [None if name is None else name.lower() for name in names]

    def agreed_bounds(self, found: Sequence[int], sizes: Sequence[int | None] | None = None) -> tuple[int, ...]:
        """The shape that data have; see `bounds`.

        Raises:
            ShapeError: Another is given, or an axis with a dictionary has another bound.
        """
        actual = tuple(int(bound) for bound in found)
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
        """The shape that the user gives.

        Args:
            sizes: Of the dictionaries of axes, whose bounds they are; the user may leave them out, as None.

        Raises:
            ShapeError: It is no sequence of whole numbers, or has another one than the size of a dictionary.
        """
        try:
            given = () if self.shape is None else tuple(self.shape)
            known = (*(sizes or ()), *[None] * len(given))
            found = tuple(
                operator.index(size if bound is None and size is not None else bound)  # type: ignore[arg-type]
                for bound, size in zip(given, known, strict=False)
            )
        except TypeError:
            raise ShapeError(
                f"tensor {self.name} is given shape {self.shape!r}; give a whole number for every axis"
            ) from None
        for axis, (bound, size) in enumerate(zip(found, known, strict=False)):
            if size not in (None, bound):
                raise ShapeError(
                    f"tensor {self.name} is given the bound {bound} for axis {axis} (counted from 0), whose dictionary "
                    f"has {size} keys; give None, because a dictionary may grow"
                )
        return found

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


def _axes(
    name: str, names: Sequence[str], bounds: Sequence[int], dictionaries: Sequence[Dictionary | None]
) -> tuple[Axis, ...]:
    for axis, bound in zip(names, bounds, strict=True):
        if bound > GREATEST_BOUND:
            raise ShapeError(f"axis {axis} of tensor {name} has the bound {bound}, beyond {GREATEST_BOUND}")
    return tuple(map(Axis, names, map(int, bounds), dictionaries))

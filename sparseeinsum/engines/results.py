"""Engines: rows of a tensor relation as numpy, scipy, pandas, Arrow and polars."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import scipy  # loads scipy.sparse where it is first used
from numpy.typing import NDArray

from sparseeinsum.algebra.operators import Schema
from sparseeinsum.errors import ShapeError
from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.render.relations import write_schema

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


@dataclass(frozen=True, slots=True)
class TensorResult:
    """A tensor that a run computed.

    Attributes:
        schema: Its name, axes, dtype, and how its rows hold it.
        rows: Key columns, then `val`: numbers, or flat arrays in C order.
    """

    schema: Schema
    rows: pa.Table

    @property
    def name(self) -> str:
        """The tensor's name."""
        return self.schema.tensor.name

    @property
    def shape(self) -> tuple[int, ...]:
        """Bounds of its axes."""
        return self.schema.tensor.shape

    @property
    def fill(self) -> float:
        """The value of every index that no row holds."""
        return self.schema.tensor.fill

    @property
    def notation(self) -> str:
        """How its rows hold it, as in Y[I, n]."""
        return write_schema(self.schema)

    def to_numpy(self) -> NDArray[Any]:
        """A dense array of the tensor's shape."""
        tensor, decomposition = self.schema.tensor, self.schema.decomposition
        order = (*decomposition.promoted, *decomposition.demoted)
        dense = np.full([tensor.shape[axis] for axis in order], tensor.fill, dtype=tensor.dtype)
        if decomposition.promoted:
            dense[self._keys()] = self._values()
        elif self.rows.num_rows:
            dense[...] = self._values()[0]
        return np.transpose(dense, np.argsort(order)) if order else dense

    def to_scipy(self) -> "scipy.sparse.csr_array":
        """A sparse matrix of the entries that are not the fill; for tensors with two axes.

        Raises:
            ShapeError: The tensor has another number of axes.
        """
        if len(self.shape) != 2:
            raise ShapeError(f"{self.name} has {len(self.shape)} axes; a scipy.sparse matrix has 2")
        coordinates, values = self._entries()
        return scipy.sparse.csr_array((values, coordinates), shape=self.shape)

    def arrow(self) -> pa.Table:
        """An Arrow table: a column of indices for every label, then `val`; what it lacks holds the fill."""
        if self.schema.is_scalar:
            return self.rows
        coordinates, values = self._entries()
        names = [*(axis.name for axis in self.schema.tensor.axes), VALUE_COLUMN]
        return pa.table([*(pa.array(indices) for indices in coordinates), pa.array(values)], names=names)

    def df(self) -> "pd.DataFrame":
        """A pandas frame with the columns of `arrow`."""
        frame: pd.DataFrame = self.arrow().to_pandas()
        return frame

    def pl(self) -> "pl.DataFrame":
        """A polars frame with the columns of `arrow`."""
        import polars  # noqa: PLC0415  # an optional dependency

        frame = polars.from_arrow(self.arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def __repr__(self) -> str:
        return f"<{self.notation} {self._axes_text()} {self.schema.tensor.dtype}, {self.rows.num_rows:,} rows>"

    def _axes_text(self) -> str:
        return " x ".join(f"{axis.name}: {axis.bound:,}" for axis in self.schema.tensor.axes) or "scalar"

    def _keys(self) -> tuple[NDArray[Any], ...]:
        return tuple(self.rows.column(key).to_numpy() for key in self.schema.keys)

    def _values(self) -> NDArray[Any]:
        """The values of all rows, (rows, *extents inside)."""
        column = self.rows.column(VALUE_COLUMN).combine_chunks()
        numbers = column if self.schema.is_scalar else column.flatten()
        flat: NDArray[Any] = numbers.to_numpy(zero_copy_only=False)
        return flat if self.schema.is_scalar else flat.reshape((self.rows.num_rows, *self.schema.inside))

    def _entries(self) -> tuple[tuple[NDArray[Any], ...], NDArray[Any]]:
        """Coordinates in axis order and values of the entries that are not the fill."""
        tensor, decomposition = self.schema.tensor, self.schema.decomposition
        values = self._values()
        present = values != tensor.fill
        row, *inside = np.nonzero(present)
        coordinates: dict[int, NDArray[Any]] = {}
        for position, keys in zip(decomposition.promoted, self._keys(), strict=True):
            coordinates[position] = keys[row]
        for position, indices in zip(decomposition.demoted, inside, strict=True):
            coordinates[position] = indices
        return tuple(coordinates[position] for position in range(len(tensor.axes))), values[present]

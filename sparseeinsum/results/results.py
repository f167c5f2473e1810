"""Results: a computed tensor, which converts to arrays, sparse matrices, frames and files."""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import CatalogueError, PackageError, SemanticsError, ShapeError
from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.operators.dtypes import Number, is_complex
from sparseeinsum.plans.preview import Preview
from sparseeinsum.plans.units import write_rows
from sparseeinsum.presentation.spelling import did_you_mean
from sparseeinsum.render.relation_names import write_schema
from sparseeinsum.render.sql_statement import SqlStatement
from sparseeinsum.results.array_interface import ArrayInterface
from sparseeinsum.results.entry_tables import BATCH_NUMBERS, EntryTables
from sparseeinsum.results.greatest import EntriesByRow
from sparseeinsum.results.parquet_files import whole_file, write_parquet

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import scipy.sparse
    import sparse
    import torch
    import xarray as xr

_PREVIEW_SIZE = 1 << 16  # at most, so that previews of large results stay cheap


@dataclass(frozen=True, slots=True)
class TensorResult(ArrayInterface):
    """A tensor that a run computed. numpy, Arrow and what understands their interfaces take it as it is.

    Attributes:
        schema: The tensor and its layout.
        rows: Key columns, then `val` with numbers or flat arrays in row-major order.
        dictionaries: Natural keys in the order of their indices, by the name of the dictionary.
    """

    schema: Schema
    rows: pa.Table
    dictionaries: Mapping[str, pa.Array] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the tensor."""
        return self.schema.tensor.name

    @property
    def fill(self) -> Number:
        """The value at every index that has no stored entry."""
        return self.schema.tensor.fill

    @property
    def notation(self) -> str:
        """The layout of its rows, as in Y[I, n]."""
        return write_schema(self.schema)

    def keys(self, axis: str) -> pa.Array:
        """The natural keys of an axis in the order of its indices, which is that of the array from `to_numpy`.

        Raises:
            ShapeError: The axis does not exist, or has no dictionary.
        """
        for candidate in self.schema.tensor.axes:
            if candidate.name == axis.lower():
                if candidate.dictionary is None:
                    raise ShapeError(f"axis {axis} of {self.name} has plain indices, and no keys")
                return self.dictionaries[candidate.dictionary.name][: candidate.bound]
        raise ShapeError(f"{self.name} has no axis {axis}; it has {', '.join(self._entry_tables.names[:-1])}")

    def topk(self, count: int, axis: str | None = None, least: bool = False) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The greatest values along an axis, greatest first, and their indices.

        Absent entries count: they hold the fill. Of equal values the one with the smaller index comes first. NaN comes
        before all other values, as in numpy's argmax.

        Args:
            count: The number of values along the axis.
            axis: The name of the axis; the last one by default.
            least: Whether to return the least values, least first.

        Returns:
            Values and indices: dense arrays of the shape of the tensor without the axis, followed by `count`.

        Raises:
            ShapeError: The axis does not exist, or has fewer than `count` indices.
            SemanticsError: The values are complex, and have no order.
        """
        names = self._entry_tables.names[:-1]
        if not names or (axis is not None and axis.lower() not in names):
            raise ShapeError(f"{self.name} has no axis {axis or 'at all'}; it has {', '.join(names) or 'one value'}")
        place = len(names) - 1 if axis is None else names.index(axis.lower())
        bound = self.shape[place]
        if not 1 <= count <= bound:
            raise ShapeError(f"axis {names[place]} of {self.name} has {bound} indices; {count} are asked for")
        if is_complex(self.schema.tensor.dtype):
            raise SemanticsError(f"{self.name} is complex, and complex numbers have no order")
        coordinates, values = self._tensor_rows.entries()
        others = [size for position, size in enumerate(self.shape) if position != place]
        row = np.zeros(len(values), np.int64)
        for position, size in enumerate(self.shape):
            if position != place:
                row = row * size + coordinates[position]
        rows = EntriesByRow(
            math.prod(others), self.shape[place], self.fill, row, np.asarray(coordinates[place], np.int64), values
        )
        greatest, indices = rows.greatest(count, least)
        return greatest.reshape(*others, count), indices.reshape(*others, count)

    def to_scipy(self) -> "scipy.sparse.csr_array | scipy.sparse.coo_array":
        """A sparse array of the entries that are not the fill: a csr_array if it has two axes, otherwise a coo_array.

        Raises:
            ShapeError: The tensor has no axes.
            SemanticsError: The tensor has another fill; scipy would read absent entries as 0.
            PackageError: The package scipy is not installed.
        """
        if not self.shape:
            raise ShapeError(f"{self.name} has no axes; a sparse array of scipy has some")
        self._check_no_fill("a sparse array of scipy", "to_numpy(), or arrow() for the entries")
        with _needing("scipy"):
            import scipy.sparse  # noqa: PLC0415  # an optional dependency

        coordinates, values = self._writable_entries()
        if len(self.shape) == 2:
            return scipy.sparse.csr_array((values, coordinates), shape=self.shape)
        entries: Any = (values, coordinates)  # the stubs have at most two axes
        return scipy.sparse.coo_array(entries, shape=self.shape)

    def to_sparse(self) -> "sparse.COO":
        """An array of pydata/sparse with the entries that are not the fill, of any rank and with any fill.

        Raises:
            PackageError: The package sparse is not installed.
        """
        with _needing("sparse"):
            import sparse  # noqa: PLC0415  # an optional dependency

        coordinates, values = self._writable_entries()
        places = np.array(coordinates, np.intp).reshape(len(self.shape), len(values))
        fill = np.array(self.fill, self.schema.tensor.dtype)[()]
        return sparse.COO(places, values, shape=self.shape, has_duplicates=False, fill_value=fill)

    def torch(self, dense: bool = False) -> "torch.Tensor":
        """A tensor of PyTorch in the memory of the CPU.

        Args:
            dense: Whether to return a dense tensor; otherwise it is sparse_coo and coalesced, and the fill must be 0.

        Raises:
            SemanticsError: The fill is not 0; torch would read absent entries as 0.
            PackageError: The package torch is not installed.
        """
        with _needing("torch"):
            import torch  # noqa: PLC0415  # an optional dependency

        if dense:
            return torch.from_numpy(np.asarray(self.to_numpy(), order="C"))
        self._check_no_fill("a sparse tensor of torch", "torch(dense=True), or to_sparse()")
        coordinates, values = self._writable_entries()
        places = np.array(coordinates, np.int64).reshape(len(self.shape), len(values))
        places_and_values = torch.from_numpy(places), torch.from_numpy(values)
        return torch.sparse_coo_tensor(*places_and_values, self.shape, check_invariants=True).coalesce()

    def _writable_entries(self) -> tuple[tuple[NDArray[Any], ...], NDArray[Any]]:
        """Coordinates and values of all entries, in memory that libraries may write."""
        coordinates, values = self._tensor_rows.entries()
        writable = [np.require(column, requirements="W") for column in (*coordinates, values)]
        return tuple(writable[:-1]), writable[-1]

    def to_xarray(self) -> "xr.DataArray":
        """A dense array of xarray with the name and the axes of the tensor; natural keys are its coordinates.

        Raises:
            ResultSizeError: The array would take more than the memory of this machine.
            PackageError: The package xarray is not installed.
        """
        with _needing("xarray"):
            import xarray  # noqa: PLC0415  # an optional dependency

        axes = self.schema.tensor.axes
        coordinates = {axis.name: self.keys(axis.name).to_pandas() for axis in axes if axis.dictionary}
        return xarray.DataArray(self.to_numpy(), coordinates, [axis.name for axis in axes], self.name)

    def to_parquet(self, path: str | Path) -> None:
        """Write the columns of `arrow` to a Parquet file, completely or not at all; an existing file is replaced.

        Args:
            path: The file, in a folder that exists.

        Raises:
            DataError: The folder does not exist.
        """
        table = self.arrow()
        with whole_file(Path(path)) as partial:
            write_parquet(partial, table.schema, iter([table]))

    def arrow(self) -> pa.Table:
        """An Arrow table with a column for every axis, then `val`; indices without a row hold the fill.

        The columns of axes hold natural keys if the axis has a dictionary, and indices otherwise: int32, or int64 for
        bounds above 2^31, whatever the plan. Complex values are struct<re, im>. The metadata of the schema hold bounds
        and fill; Parquet files keep them, and `Database.tensor` reads them.
        """
        return self._entry_tables.whole()

    def tables(self, most_numbers: int) -> Iterator[pa.Table]:
        """The table of `arrow` in at least one part; parts have at most `most_numbers` entries if rows hold arrays."""
        return self._entry_tables.parts(most_numbers)

    @property
    def _entry_tables(self) -> EntryTables:
        return EntryTables(self._tensor_rows, self.dictionaries)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.arrow().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return replace(self, rows=self.rows.slice(0, 0)).arrow().schema.__arrow_c_schema__()

    def df(self) -> "pd.DataFrame":
        """A pandas frame with the columns of `arrow`; complex values are complex numbers."""
        with _needing("pandas"):
            import pandas  # noqa: PLC0415  # an optional dependency

        if not is_complex(self.schema.tensor.dtype):
            frame: pd.DataFrame = self.arrow().to_pandas()
            return frame
        columns, values = self._tensor_rows.columns()
        labelled = [pa.chunked_array([column]).to_pandas() for column in self._entry_tables.labelled(columns)]
        return pandas.DataFrame(dict(zip(self._entry_tables.names, [*labelled, values], strict=True)))

    def pl(self) -> "pl.DataFrame":
        """A polars frame with the columns of `arrow`; UUIDs become 16 bytes each, since polars has no such type."""
        with _needing("polars"):
            import polars  # noqa: PLC0415  # an optional dependency

        frame = polars.from_arrow(self.arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def preview(self, rows: int = 10) -> Preview:
        """A title, and the first entries by their indices; of a large result, among those that are stored first.

        Args:
            rows: The number of entries.
        """
        previewed = min(self.rows.num_rows, max(1, _PREVIEW_SIZE // max(self.schema.list_length, 1)))
        part = replace(self, rows=self.rows.slice(0, previewed))
        tensor_rows, is_scalar = part._tensor_rows, self.schema.decomposition.is_scalar
        indices, values = tensor_rows.columns() if is_scalar else tensor_rows.entries(0, _PREVIEW_SIZE)
        order = np.lexsort(indices[::-1])[:rows] if indices else np.arange(len(values))[:rows]
        columns = [column.to_pylist() for column in self._entry_tables.labelled([column[order] for column in indices])]
        entries = list(zip(*columns, values[order].tolist(), strict=True))
        is_whole = (
            previewed == self.rows.num_rows
            and len(values) <= rows
            and self._tensor_rows.count_numbers() <= _PREVIEW_SIZE
        )
        total = write_rows(self.rows.num_rows) if is_scalar else "more"
        return Preview(
            self._title(), self._entry_tables.names, entries, "" if is_whole else f"{len(entries):,} of {total}"
        )

    def __str__(self) -> str:
        return repr(self) if self.shape else str(self.item())

    def __format__(self, specification: str) -> str:
        """The text, or the value of a result without axes as in f"{loss:.3f}"."""
        return format(str(self) if self.shape else self.item(), specification)

    def __repr__(self) -> str:
        return self.preview().text()

    def _repr_html_(self) -> str:
        return self.preview().html()

    def _title(self) -> str:
        tensor = self.schema.tensor
        stored = self._tensor_rows.count_numbers()
        fill = "" if self.fill == 0 else f", fill {self.fill}"
        density = f", density {stored / tensor.size:.3g}" if stored < tensor.size else ""
        rows = write_rows(self.rows.num_rows)
        return f"<{self.notation} {tensor.axes_text} {tensor.dtype}{fill}, {rows}{density}>"

    def _check_no_fill(self, kind: str, others: str) -> None:
        if self.fill != 0:
            raise SemanticsError(
                f"{self.name} holds {self.fill} wherever no row says otherwise, and {kind} holds 0 there; take {others}"
            )


class Results(dict[str, TensorResult]):
    """The results of a run, by name."""

    def __repr__(self) -> str:
        return "\n\n".join(map(repr, self.values())) or "{}"

    def _repr_html_(self) -> str:
        return "".join(result._repr_html_() for result in self.values())

    def __missing__(self, name: object) -> NoReturn:
        raise unknown_result(name, self)


def unknown_result(name: object, names: Iterable[str]) -> CatalogueError:
    """The error for a name that is not among the `names` results of a run."""
    hint = did_you_mean(str(name), names, otherwise="it has", none="it has none")
    return CatalogueError(f"this run has no result {name}; {hint}")


def result_of(schema: Schema, rows: pa.Table) -> TensorResult:
    """A result from the rows that an engine returned; engines may have truncated the names of columns."""
    return TensorResult(schema, rows.rename_columns([*schema.keys, VALUE_COLUMN]))


def entries_in_batches(
    engine: Engine, statement: SqlStatement, schema: Schema, dictionaries: Mapping[str, pa.Array]
) -> Iterator[pa.Table]:
    """Yield the entries of a result while it is computed, with the columns of `TensorResult.arrow`; at least one table.

    Raises:
        EngineError: The database refused the statement, or the statement failed.
    """
    for rows in engine.batches(statement.text, max(1, BATCH_NUMBERS // max(schema.list_length, 1))):
        yield from replace(result_of(schema, rows), dictionaries=dictionaries).tables(BATCH_NUMBERS)


@contextmanager
def _needing(package: str) -> Iterator[None]:
    """Within, an import that fails raises an error that says what to install."""
    try:
        yield
    except ImportError as error:
        raise PackageError(
            f"the package {package} cannot be imported ({error}); install it, as in pip install {package}"
        ) from error

"""Results: rows of a tensor relation as arrays, sparse matrices, frames, tensors of other packages, and files."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparseeinsum.algebra.operators import Schema
from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import CatalogueError, PackageError, SemanticsError, ShapeError
from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.operators.dtypes import Number, is_complex
from sparseeinsum.plans.preview import Preview
from sparseeinsum.render.relations import write_schema
from sparseeinsum.render.statements import Statement
from sparseeinsum.results.greatest import Rows
from sparseeinsum.results.parquet_files import whole_file, write_parquet
from sparseeinsum.results.tensor_rows import TensorRows
from sparseeinsum.storage.tensor_metadata import metadata_of

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import scipy.sparse
    import sparse
    import torch
    import xarray as xr

_LOOKED_AT = 1 << 16  # numbers, for a preview, which must be cheap however many there are
_BATCH_NUMBERS = 1 << 20  # of a batch: 8 MB of doubles, and as much for the indices of every axis


@dataclass(frozen=True, slots=True)
class TensorResult:
    """A tensor that a run computed.

    Attributes:
        schema: Its name, axes, dtype, and how its rows hold it.
        rows: Key columns, then `val`: numbers, or flat arrays in C order.
        dictionaries: Natural keys in the order of their indices, by the names of dictionaries.
    """

    schema: Schema
    rows: pa.Table
    dictionaries: Mapping[str, pa.Array] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The tensor's name."""
        return self.schema.tensor.name

    @property
    def shape(self) -> tuple[int, ...]:
        """Bounds of its axes."""
        return self.schema.tensor.shape

    @property
    def fill(self) -> Number:
        """The value of every index that no row holds."""
        return self.schema.tensor.fill

    @property
    def notation(self) -> str:
        """How its rows hold it, as in Y[I, n]."""
        return write_schema(self.schema)

    def keys(self, axis: str) -> pa.Array:
        """Natural keys of an axis in the order of its indices; those that `to_numpy` has.

        Raises:
            ShapeError: There is no such axis, or it has plain indices.
        """
        for each in self.schema.tensor.axes:
            if each.name == axis.lower():
                if each.dictionary is None:
                    raise ShapeError(f"axis {axis} of {self.name} has plain indices, and no keys")
                return self.dictionaries[each.dictionary.name][: each.bound]
        raise ShapeError(f"{self.name} has no axis {axis}; it has {', '.join(self._names()[:-1])}")

    def to_numpy(self) -> NDArray[Any]:
        """A dense array of the tensor's shape."""
        return self._held.dense()

    def topk(self, count: int, axis: str | None = None, least: bool = False) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The greatest values along an axis, greatest first, and their indices: two dense arrays.

        What is absent counts: it holds the fill. Of equal values the one with the smaller index comes first; NaN comes
        before all, as for numpy's argmax.

        Args:
            count: How many.
            axis: Along which; the last by default.
            least: The least values instead, least first.

        Returns:
            Values and indices, both of the shape of the tensor without that axis, then count.

        Raises:
            ShapeError: There is no such axis, or it has fewer indices than count.
            SemanticsError: The values are complex, and have no order.
        """
        names = self._names()[:-1]
        if not names or (axis is not None and axis.lower() not in names):
            raise ShapeError(f"{self.name} has no axis {axis or 'at all'}; it has {', '.join(names) or 'one value'}")
        place = len(names) - 1 if axis is None else names.index(axis.lower())
        bound = self.shape[place]
        if not 1 <= count <= bound:
            raise ShapeError(f"axis {names[place]} of {self.name} has {bound} indices; {count} are asked for")
        if is_complex(self.schema.tensor.dtype):
            raise SemanticsError(f"{self.name} is complex, and complex numbers have no order")
        coordinates, values = self._held.entries()
        others = [each for position, each in enumerate(self.shape) if position != place]
        row = np.zeros(len(values), np.int64)
        for position, each in enumerate(self.shape):
            if position != place:
                row = row * each + coordinates[position]
        rows = Rows(
            math.prod(others), self.shape[place], self.fill, row, np.asarray(coordinates[place], np.int64), values
        )
        found, where = rows.first(count, least)
        return found.reshape(*others, count), where.reshape(*others, count)

    def to_scipy(self) -> "scipy.sparse.csr_array":
        """A sparse matrix of the entries that are not the fill; for tensors with two axes and the fill 0.

        Raises:
            ShapeError: The tensor has another number of axes.
            SemanticsError: It has another fill, so that scipy would take absent entries for 0.
            PackageError: The package scipy is not installed.
        """
        if len(self.shape) != 2:
            raise ShapeError(f"{self.name} has {len(self.shape)} axes; a scipy.sparse matrix has 2")
        self._check_no_fill("a scipy.sparse matrix", "to_numpy(), or arrow() for the entries")
        with _needing("scipy"):
            import scipy.sparse  # noqa: PLC0415  # an optional dependency

        coordinates, values = self._held.entries()
        return scipy.sparse.csr_array((values, coordinates), shape=self.shape)

    def to_sparse(self) -> "sparse.COO":
        """An array of pydata/sparse, of any number of axes and any fill: the entries that are not the fill.

        Raises:
            PackageError: The package sparse is not installed.
        """
        with _needing("sparse"):
            import sparse  # noqa: PLC0415  # an optional dependency

        coordinates, values = self._held.entries()
        places = np.array(coordinates, np.intp).reshape(len(self.shape), len(values))
        fill = np.array(self.fill, self.schema.tensor.dtype)[()]
        return sparse.COO(places, values, shape=self.shape, has_duplicates=False, fill_value=fill)

    def torch(self, dense: bool = False) -> "torch.Tensor":
        """A tensor of PyTorch, in the memory of the processor: sparse_coo and coalesced, or dense.

        Args:
            dense: Whether to hold every index; a sparse tensor holds those that are not the fill, which must be 0.

        Raises:
            SemanticsError: The fill is another one, so that torch would take absent entries for 0.
            PackageError: The package torch is not installed.
        """
        with _needing("torch"):
            import torch  # noqa: PLC0415  # an optional dependency

        if dense:
            return torch.from_numpy(np.asarray(self.to_numpy(), order="C"))
        self._check_no_fill("a sparse tensor of torch", "torch(dense=True), or to_sparse()")
        coordinates, values = self._held.entries()
        places = np.array(coordinates, np.int64).reshape(len(self.shape), len(values))
        parts = torch.from_numpy(places), torch.from_numpy(values)
        return torch.sparse_coo_tensor(*parts, self.shape, check_invariants=True).coalesce()

    def to_xarray(self) -> "xr.DataArray":
        """A dense array of xarray, with the tensor's name and axes.

        Raises:
            PackageError: The package xarray is not installed.
        """
        with _needing("xarray"):
            import xarray  # noqa: PLC0415  # an optional dependency

        return xarray.DataArray(self.to_numpy(), dims=[axis.name for axis in self.schema.tensor.axes], name=self.name)

    def to_parquet(self, path: str | Path) -> None:
        """Write the columns of `arrow` to a Parquet file, whole or not at all; one that is there is replaced.

        Raises:
            DataError: The folder is not there.
        """
        table = self.arrow()
        with whole_file(Path(path)) as partial:
            write_parquet(partial, table.schema, iter([table]))

    def arrow(self) -> pa.Table:
        """An Arrow table: a column for every label, then `val`; what it lacks holds the fill.

        Columns of labels hold natural keys where they have a dictionary, and else indices. Complex values are
        struct<re, im>. The metadata of its schema tell bounds and fill, which `Database.tensor` reads; files of Parquet
        keep them.
        """
        if self.schema.is_scalar and not self.dictionaries:
            return self.rows.replace_schema_metadata(metadata_of(self.schema.tensor))
        if self.schema.is_scalar:
            return self._table(*self._held.columns())
        return pa.concat_tables(self.tables(_BATCH_NUMBERS))  # in parts, each of which takes little memory besides

    def tables(self, most_numbers: int) -> Iterator[pa.Table]:
        """What `arrow` gives, in parts of so many entries at most where rows hold arrays; at least one."""
        if self.schema.is_scalar:
            yield self.arrow()
            return
        count = max(1, most_numbers // max(self.schema.list_length, 1))
        for first in range(0, max(self.rows.num_rows, 1), count):
            part = replace(self, rows=self.rows.slice(first, count))
            for start in range(0, max(len(part._held.numbers()), 1), most_numbers):
                yield part._table(*part._held.entries(start, start + most_numbers))

    def _table(self, indices: Sequence[NDArray[Any]], values: NDArray[Any]) -> pa.Table:
        columns = [*self._labelled(indices), _column(values)]
        return pa.table(columns, names=self._names(), metadata=metadata_of(self.schema.tensor))

    def df(self) -> "pd.DataFrame":
        """A pandas frame with the columns of `arrow`; complex values are complex numbers."""
        with _needing("pandas"):
            import pandas  # noqa: PLC0415  # an optional dependency

        if not is_complex(self.schema.tensor.dtype):
            frame: pd.DataFrame = self.arrow().to_pandas()
            return frame
        columns, values = self._held.columns()
        labelled = [pa.chunked_array([column]).to_pandas() for column in self._labelled(columns)]
        return pandas.DataFrame(dict(zip(self._names(), [*labelled, values], strict=True)))

    def pl(self) -> "pl.DataFrame":
        """A polars frame with the columns of `arrow`; UUIDs, which polars lacks, are 16 bytes each."""
        with _needing("polars"):
            import polars  # noqa: PLC0415  # an optional dependency

        frame = polars.from_arrow(self.arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def preview(self, rows: int = 10) -> Preview:
        """What the result is, and its first entries in the order of their indices, among those that lie first.

        Args:
            rows: How many entries.
        """
        looked_at = min(self.rows.num_rows, max(1, _LOOKED_AT // max(self.schema.list_length, 1)))
        part = replace(self, rows=self.rows.slice(0, looked_at))
        indices, values = (
            part._held.columns() if self.schema.decomposition.is_scalar else part._held.entries(0, _LOOKED_AT)
        )
        order = np.lexsort(indices[::-1])[:rows] if indices else np.arange(len(values))[:rows]
        columns = [*(each.to_pylist() for each in self._labelled([each[order] for each in indices]))]
        entries = list(zip(*columns, values[order].tolist(), strict=True))
        is_whole = looked_at == self.rows.num_rows and len(values) <= rows and len(self._held.numbers()) <= _LOOKED_AT
        of = f"{self.rows.num_rows:,} rows" if self.schema.decomposition.is_scalar else "more"
        return Preview(self._title(), self._names(), entries, "" if is_whole else f"{len(entries):,} of {of}")

    def __str__(self) -> str:
        return self._title()

    def __repr__(self) -> str:
        return self.preview().text()

    def _repr_html_(self) -> str:
        return self.preview().html()

    def _title(self) -> str:
        tensor = self.schema.tensor
        numbers = sum(len(chunk) if self.schema.is_scalar else len(chunk.flatten()) for chunk in self._chunks())
        stored = numbers // (2 if is_complex(tensor.dtype) else 1)
        fill = "" if self.fill == 0 else f", fill {self.fill}"
        density = f", density {stored / tensor.size:.3g}" if stored < tensor.size else ""
        return f"<{self.notation} {self._axes_text()} {tensor.dtype}{fill}, {self.rows.num_rows:,} rows{density}>"

    @property
    def _held(self) -> TensorRows:
        return TensorRows(self.schema, self.rows)

    def _chunks(self) -> list[pa.Array]:
        chunks: list[pa.Array] = self.rows.column(VALUE_COLUMN).chunks
        return chunks

    def _axes_text(self) -> str:
        return " x ".join(f"{axis.name}: {axis.bound:,}" for axis in self.schema.tensor.axes) or "scalar"

    def _check_no_fill(self, kind: str, others: str) -> None:
        if self.fill != 0:
            raise SemanticsError(
                f"{self.name} holds {self.fill} wherever no row says otherwise, and {kind} holds 0 there; take {others}"
            )

    def _names(self) -> list[str]:
        return [*(axis.name for axis in self.schema.tensor.axes), VALUE_COLUMN]

    def _labelled(self, indices: Sequence[NDArray[Any]]) -> list[pa.Array]:
        """Natural keys in place of the indices of axes that have a dictionary."""
        axes = self.schema.tensor.axes
        return [
            pa.array(column)
            if axis.dictionary is None
            else self.dictionaries[axis.dictionary.name].take(pa.array(column))
            for axis, column in zip(axes, indices, strict=True)
        ]


class Results(dict[str, TensorResult]):
    """Results by name, shown one after the other."""

    def __repr__(self) -> str:
        return "\n\n".join(map(repr, self.values())) or "{}"

    def _repr_html_(self) -> str:
        return "".join(result._repr_html_() for result in self.values())

    def __missing__(self, name: object) -> NoReturn:
        raise unknown_result(name, self)


def unknown_result(name: object, known: Iterable[str]) -> CatalogueError:
    """The error where a run has no result of a name."""
    return CatalogueError(f"this run has no result {name}; it has {', '.join(known) or 'none'}")


def result_of(schema: Schema, rows: pa.Table) -> TensorResult:
    """A result of rows as an engine returns them; some cut names of columns."""
    return TensorResult(schema, rows.rename_columns([*schema.keys, VALUE_COLUMN]))


def entries_in_batches(
    engine: Engine, statement: Statement, schema: Schema, dictionaries: Mapping[str, pa.Array]
) -> Iterator[pa.Table]:
    """Entries of a result while it is computed, as `TensorResult.arrow` has them; one table at least.

    Raises:
        EngineError: The database refused the statement, or it failed on the way.
    """
    for rows in engine.batches(statement.text, max(1, _BATCH_NUMBERS // max(schema.list_length, 1))):
        yield from replace(result_of(schema, rows), dictionaries=dictionaries).tables(_BATCH_NUMBERS)


@contextmanager
def _needing(package: str) -> Iterator[None]:
    """Says what to install where a package is not there."""
    try:
        yield
    except ImportError as error:
        raise PackageError(
            f"the package {package} cannot be imported ({error}); install it, as in pip install {package}"
        ) from error


def _column(values: NDArray[Any]) -> pa.Array:
    if values.dtype.kind != "c":
        return pa.array(values)
    return pa.StructArray.from_arrays([pa.array(values.real), pa.array(values.imag)], names=["re", "im"])

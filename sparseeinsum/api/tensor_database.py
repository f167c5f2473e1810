"""API: the tensors of a database: how they are loaded, listed, measured and dropped."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self

import pyarrow as pa

from sparseeinsum.api.tensor_listing import TENSOR_COLUMNS, listed_tensors, tensor_rows
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.locking import synchronized
from sparseeinsum.environment.extras import late
from sparseeinsum.errors import ArgumentError
from sparseeinsum.language.layout_notation import parse_layout
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.loading.append import append, description_to_append
from sparseeinsum.loading.load import load, register_relation
from sparseeinsum.loading.sources.input_data import ColumnSelection
from sparseeinsum.loading.sources.readers import read
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.presentation.html_tables import html_table
from sparseeinsum.results.results import TensorResult
from sparseeinsum.statistics.estimate import Statistics
from sparseeinsum.storage.access_rights import grant
from sparseeinsum.storage.catalogue import Catalogue
from sparseeinsum.storage.catalogue_rows import StoredDictionary
from sparseeinsum.storage.dictionaries import Dictionaries
from sparseeinsum.storage.measuring import measure_tensor
from sparseeinsum.storage.ownership import drop_tensor
from sparseeinsum.storage.program_inputs import shapes_in
from sparseeinsum.storage.tensor_description import TensorDescription
from sparseeinsum.storage.tensor_metadata import completed_from_metadata

if TYPE_CHECKING:
    from sparseeinsum.api.tensor_relations import TensorRelation

_RELATIONAL_QUERIES = "sparseeinsum.api.relational_queries"


class TensorDatabase:
    """The tensors of a database, of which `Database` is one that runs programs, too."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __repr__(self) -> str:
        return f"<{self._engine.title} database {self._engine.place}>"  # asks the database nothing: it may be busy

    def _repr_html_(self) -> str:
        tensors, note = listed_tensors(self._engine)
        return html_table(repr(self), TENSOR_COLUMNS, tensor_rows(tensors), note)

    @property
    def connection(self) -> Any:  # noqa: ANN401  # of the engine's driver, whose types are its own
        """The connection of the driver, for your own SQL: a DuckDBPyConnection or a psycopg.Connection."""
        return self._engine.connection

    @property
    def costs(self) -> str:
        """The name of the cost constants, which depends on the engine and on the kind of its functions."""
        return self._engine.constants_name

    @synchronized
    def tensor(
        self,
        name: str,
        data: object,
        axes: Sequence[str] | None = None,
        shape: Sequence[int | None] | None = None,
        fill: Number | None = None,
        dtype: str | None = None,
        promoted: Sequence[str] | Mapping[str, int] | None = None,
        duplicates: str = "error",
        order: Sequence[str] = (),
        keys: Mapping[str, str] | None = None,
        index: Sequence[str] | None = None,
        value: str | None = None,
        distribute: str | None = None,
        layout: str | None = None,
    ) -> StoredTensor:
        """Load a tensor into a table of the same name; a tensor of that name that was loaded before is replaced.

        Args:
            name: The name of the tensor and its table.
            data: An array of numpy, torch or xarray, or nested sequences; a sparse array of scipy, torch or the package
                sparse; a pair of coordinates, of shape (rank, n), and values; or rows of index columns followed by the
                value: a result, a frame of pandas or polars, an Arrow table, reader or data set, a list or an iterator
                of these, a relation of DuckDB, the name of a table or view, or the path of a Parquet, CSV or JSON file.
                Readers, lazy frames, iterators, tables and files need not fit into memory. NULL is refused; NaN is a
                number.
            axes: The names of the axes. By default those of xarray's dimensions, of index columns or of the levels of
                a pandas index, otherwise dim_0, dim_1, ...
            shape: The bounds of the axes. By default those of the data; Arrow tables and Parquet files of results
                contain their bounds.
            fill: The value at every index that the data lack: any number of the dtype except NaN. By default the
                fill_value of an array of the package sparse, the fill of a result, or 0. It also replaces the 0 of
                entries that a sparse matrix of scipy or torch does not store.
            dtype: float64, float32, int64, bool, complex128 or complex64. By default that of the data: narrower
                integers become int64, and float16 becomes float32. Values are converted exactly or refused; only a
                conversion to a floating-point dtype may round.
            promoted: The axes that become key columns of the table; the other axes are inside arrays. A mapping gives
                the tile of every promoted axis, as in {"i": 64, "j": 64} for blocks. By default, sparse data are stored
                with all axes promoted and dense data with the first one. Large sparse matrices that take less space as
                arrays are stored like dense data.
            duplicates: `error` refuses a coordinate that occurs twice; `sum` adds its values, or computes `any` for
                bool.
            order: Key columns by which the rows of the table are sorted. Aggregates are faster if rows are sorted by
                groups. By default, sparse data are sorted by the axes.
            keys: The dictionaries of axes, as in {"src": "person", "dst": "person"}. The columns of these axes in a
                frame hold natural keys: texts, dates, timestamps, UUIDs or integers. New keys are added to the
                dictionary, and its size is the bound of the axis. By default, columns of texts, dates, timestamps and
                UUIDs have a dictionary with the name of the axis, and integers are indices. In other data, indices are
                positions in an existing dictionary.
            index: The index columns of rows, in axis order; by default all columns except that of the values.
            value: The value column of rows. By default the last column; if `index` is given, every row counts as 1.
            distribute: On a Citus cluster, the axis whose key column distributes the table, or `replicated` for a
                reference table, of which every machine has a copy. By default, small data are replicated, and other
                data are distributed by their first key column.
            layout: The layout as text, in place of `promoted`: "A[I, j]" promotes i, "A[I, J:64]" also j, in tiles. A
                label after ~ is compressed: "A[I, ~j]" has a row for every i, with a list of the positions j of its
                entries, and a list of their values; "A[I:1024, ~i, ~j]" has one for 1,024 of them. Labels are the names
                of the axes, and name them if neither `axes` nor the data do. One row an entry is in the view A_entries.

        Raises:
            DataError: The data are not a tensor; the message names the first such row, and the database is unchanged.
            ShapeError: Axes, shape and data do not fit together.
            CatalogueError: A table of that name was not loaded as a tensor, or another tensor has a name that differs
                only in case; or the table, view or file to read does not exist.
        """
        _check_duplicates(duplicates)
        if layout is not None and promoted is not None:
            raise ArgumentError("a layout says which axes are promoted; leave `promoted` out")
        notation = None if layout is None else parse_layout(name, layout)
        labels = None if notation is None else notation.labels
        description = completed_from_metadata(
            TensorDescription(name, axes, shape, fill, dtype, keys or {}, labels), data, index
        )
        source = read(description, data, ColumnSelection(index, value))
        return load(self._engine, description, source, notation or promoted, duplicates == "sum", order, distribute)

    @synchronized
    def append(
        self,
        name: str,
        data: object,
        duplicates: str = "error",
        index: Sequence[str] | None = None,
        value: str | None = None,
    ) -> StoredTensor:
        """Add entries to a tensor that was loaded, and that is stored in entries or in lists; it keeps its layout.

        Args:
            name: The name of the tensor.
            data: As for `tensor`, with the axes of the tensor. Values become those of its dtype. Of a dense array, all
                values are added that are not the fill.
            duplicates: `error` refuses a coordinate that the data have twice, or that the tensor has already; `sum`
                adds the values at it up, or computes `any` for bool.
            index: The index columns of rows, in axis order; by default all columns except that of the values.
            value: The value column of rows. By default the last column; if `index` is given, every row counts as 1.

        Raises:
            CatalogueError: There is no such tensor, or its table was not loaded.
            DataError: An entry is invalid, out of bounds or there already; the database is unchanged.
            ShapeError: The data have other axes or another shape, or the tensor is stored in arrays.
        """
        _check_duplicates(duplicates)
        description = description_to_append(self._engine, name)
        source = read(description, data, ColumnSelection(index, value))
        return append(self._engine, description, source, duplicates == "sum")

    @synchronized
    def tensor_from_table(
        self,
        name: str,
        relation: str | Path,
        index: Sequence[str],
        value: str | None = None,
        shape: Sequence[int | None] | None = None,
        axes: Sequence[str] | None = None,
        dtype: str | None = None,
        fill: Number | None = None,
        keys: Mapping[str, str] | None = None,
    ) -> StoredTensor:
        """Use a table, a view, or a Parquet, CSV or JSON file with one entry per row as a tensor, without a copy.

        A tensor of the same name is replaced; if it was loaded, its table is dropped.

        Args:
            name: The name of the tensor.
            relation: The name of a table or view, or the path of a file.
            index: The index columns, in axis order.
            value: The value column; without it, every row counts as 1. Complex values are arrays [real, imaginary],
                and need a dtype.
            shape: The bounds of the axes. By default one more than the greatest index of every column, or the bounds
                that a Parquet file of a result contains.
            axes: The names of the axes; by default those of the index columns.
            dtype: By default that of the column: int64 for integers, bool for BOOLEAN, and float64 for decimals with
                a fraction and without a value column. Values are read exactly or refused; only decimals and DOUBLE
                may be rounded to a floating-point dtype.
            fill: The value at every index without a row, as for `tensor`; rows can hold it as well. By default 0, or
                the fill that a Parquet file of a result contains.
            keys: The dictionaries of axes, as for frames in `tensor`. Keys are looked up whenever rows are read. Keys
                that were added to the relation later raise an error; call this method again to add them.

        Raises:
            CatalogueError: The relation or a column does not exist.
            DataError: The rows are not a tensor; the message names the first such row.
        """
        description = completed_from_metadata(
            TensorDescription(name, axes, shape, fill, dtype, keys or {}), relation, index
        )
        return register_relation(self._engine, description, str(relation), index, value)

    @synchronized
    def load_weights(
        self,
        source: "str | Path | Mapping[str, object]",
        prefix: str = "",
        names: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """Load the weights of a model into tensors.

        The tensor of `encoder.layers.0.weight` is `encoder_layers_0_weight`: `_` replaces each character that a name
        cannot have, and begins a name that would begin with a digit. float16 and bfloat16 become float32, which
        holds all their values; other dtypes are converted as by `tensor`.

        Args:
            source: A file of safetensors, an .npz file, a file with a state dict of torch (.pt, .pth, .bin), or a dict
                of arrays or tensors by name, such as `model.state_dict()`.
            prefix: What the name of every tensor begins with.
            names: The weights to load, by their names in `source`, with the names of their tensors; by default all.

        Returns:
            The names of the tensors, by the names in `source`.

        Raises:
            OSError: The file cannot be read.
            DataError: It is no such file, weights are no numbers, or two names would become one; nothing is loaded
                unless the values of a later one are refused.
            PackageError: The package safetensors or torch is needed and not installed.
        """
        weights: dict[str, tuple[str, object]] = late("sparseeinsum.models.named_weights").named_weights(
            source, prefix, names
        )
        for tensor, data in weights.values():
            self.tensor(tensor, data)
        return {name: tensor for name, (tensor, _) in weights.items()}

    @synchronized
    def tensors(self) -> dict[str, StoredTensor]:
        """The tensors of this database, by name."""
        with self._engine.protected():
            return dict(Catalogue(self._engine).all())

    @synchronized
    def dictionaries(self) -> dict[str, StoredDictionary]:
        """The dictionaries of natural keys in this database, by name, with their types and sizes."""
        with self._engine.protected():
            return Dictionaries(self._engine).all()

    @synchronized
    def dictionary(self, name: str) -> pa.Array:
        """All keys of a dictionary, in the order of their indices.

        Raises:
            CatalogueError: There is no such dictionary.
        """
        dictionaries = Dictionaries(self._engine)
        with self._engine.transaction():
            return dictionaries.keys(dictionaries.find(name).dictionary)

    @synchronized
    def drop_dictionary(self, name: str) -> None:
        """Drop a dictionary that no tensor uses.

        Raises:
            CatalogueError: There is no such dictionary, or a tensor uses it.
        """
        Dictionaries(self._engine).drop(name)

    @synchronized
    def grant(self, role: str) -> None:
        """Let a role of a PostgreSQL database see all tensors, add tensors and dictionaries, and change its own.

        Grant rights to the tables of tensors in SQL, as for other tables. A role can read a tensor of another role
        unless that would run code which the other role wrote.

        Args:
            role: The name of the role, or `public` for all.

        Raises:
            EngineError: The role does not exist, the user may not grant rights, or the database has no roles.
        """
        grant(self._engine, role)

    @synchronized
    def drop_tensor(self, name: str) -> StoredTensor:
        """Drop a tensor and the table that it was loaded into; your own tables, views and files stay.

        Returns:
            The dropped tensor.

        Raises:
            CatalogueError: There is no such tensor.
            EngineError: Its table cannot be dropped, for example because a view reads it; the database is unchanged.
        """
        return drop_tensor(self._engine, name)

    @synchronized
    def statistics(self, name: str, tilings: Iterable[Sequence[int]] = ()) -> Statistics:
        """Measure the statistics of a tensor: T, the number of entries, and V, the distinct indices of every axis.

        Args:
            name: The name of the tensor.
            tilings: Decompositions whose tuples are counted as well: for every axis a tile, or 0 for a demoted axis.

        Raises:
            CatalogueError: There is no such tensor, or its table does not exist.
            DataError: Its rows are not a tensor.
            PlanError: A tiling does not have one tile per axis.
        """
        return measure_tensor(name, [tuple(tiles) for tiles in tilings], self._engine)

    @synchronized
    def shape_of(self, name: str) -> Sequence[int | None] | None:
        """The bounds of a tensor, or of a table that can be read as one; a bound that is not known yet is None.

        Returns None if the database has neither.
        """
        return shapes_in(self._engine)(name)

    @synchronized
    def relation(self, name: str) -> "TensorRelation":
        """A tensor as a relation of keys and arrays, for expressions of the tensor relational algebra.

        The keys are the key columns of its table in axis order. `compute` evaluates expressions of such relations.

        Args:
            name: The name of the tensor.

        Raises:
            CatalogueError: There is no such tensor.
            DataError: Its rows are not a tensor.
        """
        relation: TensorRelation = late(_RELATIONAL_QUERIES).open_relation(name, self._engine)
        return relation

    @synchronized
    def compute(self, relation: "TensorRelation") -> TensorResult:
        """Compute a relation in the database.

        Returns:
            A tensor whose first axes k0, k1, ... are the keys, and whose other axes a0, a1, ... are those of the
            arrays; keys without a tuple hold the fill 0.

        Raises:
            AlgebraError: SQL cannot compute the relation, or a key occurs twice.
            EngineError: A tensor has changed since the relation was opened, or the database refused a statement.
        """
        result: TensorResult = late(_RELATIONAL_QUERIES).compute_relation(relation, self._engine)
        return result

    @synchronized
    def relation_sql(self, relation: "TensorRelation") -> str:
        """The SELECT that computes a relation."""
        text: str = late(_RELATIONAL_QUERIES).relation_sql(relation, self._engine)
        return text

    @synchronized
    def close(self) -> None:
        """Close the connection, if `connect` opened it."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Database is a connection, which no other process can have; call se.connect in each process")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _check_duplicates(duplicates: str) -> None:
    if duplicates not in ("error", "sum"):
        raise ArgumentError(f"duplicates {duplicates!r} is neither 'error' nor 'sum'")

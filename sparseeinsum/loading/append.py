"""Loading: adds entries to a tensor that was loaded before, and stays in its table and layout."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sqlglot import exp

from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.temporary_names import temporary_name
from sparseeinsum.errors import CatalogueError, DataError, ShapeError
from sparseeinsum.language.tensors import VALUE_COLUMN, ListLayout, StoredTensor, Tensor, fully_promoted
from sparseeinsum.loading.database_sources import can_read, stream_rows
from sparseeinsum.loading.entry_stream import EntryStream
from sparseeinsum.loading.incoming_entries import INCOMING, copied_entries, streamed_entries
from sparseeinsum.loading.sources.input_data import DatabaseRows, EntryBatches, InputData
from sparseeinsum.loading.stored_layouts import RowSizes
from sparseeinsum.loading.tensor_columns import columns_of
from sparseeinsum.statistics.columns import written_table
from sparseeinsum.statistics.list_columns import entries_query
from sparseeinsum.storage.catalogue import Catalogue, find_tensor
from sparseeinsum.storage.dictionaries import Dictionaries
from sparseeinsum.storage.list_tables import list_keys
from sparseeinsum.storage.ownership import owned_tensor
from sparseeinsum.storage.tensor_description import TensorDescription
from sparseeinsum.storage.tensor_tables import (
    TableLayout,
    check_duplicates,
    rows_as_stored,
    rows_as_written,
    stored_tensor,
)

_ADDED, _TOUCHED, _MERGED = (temporary_name(name) for name in ("added", "touched", "merged"))


def description_to_append(engine: Engine, name: str) -> TensorDescription:
    """Return what entries must be like to be added to a tensor: of its dtype, within its bounds, and with its keys.

    Raises:
        CatalogueError: There is no such tensor, or it is in a table that was not loaded.
        ShapeError: It is stored in arrays.
    """
    tensors = Catalogue(engine).all()
    stored = find_tensor(tensors, name)
    if owned_tensor(engine, tensors, name) is None:
        raise CatalogueError(
            f"tensor {name} is read from {stored.relation}, which was not loaded; add rows to it in SQL"
        )
    if not stored.decomposition.is_scalar:
        raise ShapeError(
            f"{stored.notation} is stored in arrays, which hold a value at every index; entries are added to tensors "
            "that are stored in entries or in lists: load it with another layout, or change its arrays in SQL"
        )
    tensor = stored.tensor
    return TensorDescription(
        name,
        shape=[None if axis.dictionary else axis.bound for axis in tensor.axes],
        fill=tensor.fill,
        dtype=tensor.dtype,
        keys={axis.name: axis.dictionary.name for axis in tensor.axes if axis.dictionary},
        unnamed_axes=[axis.name for axis in tensor.axes],
    )


def append(engine: Engine, description: TensorDescription, data: InputData, sum_duplicates: bool) -> StoredTensor:
    """Add entries to a tensor; rows of its table that get none stay as they are.

    Args:
        engine: The engine of the table.
        description: That of `description_to_append`.
        data: The entries.
        sum_duplicates: Whether values at one coordinate are added up, among them that in the tensor.

    Raises:
        DataError: An entry is invalid, or is there already; the database stays unchanged.
        ShapeError: Axes or shape of the data are others.
    """
    with engine.transaction(), _entries(engine, description, data) as source:
        stored = find_tensor(Catalogue(engine).all(), description.name)
        _check_axes(stored.tensor, source.tensor)
        if not sum_duplicates:
            check_duplicates(engine, source)
        _merge(engine, stored, source, sum_duplicates)
    return stored


@contextmanager
def _entries(engine: Engine, description: TensorDescription, data: InputData) -> Iterator[StoredTensor]:
    """Make data readable as a table of entries, which exists in the context."""
    if isinstance(data, DatabaseRows) and not can_read(engine, data.source):
        data = stream_rows(description.name, data)
    if isinstance(data, EntryBatches):
        with streamed_entries(engine, EntryStream(description, data.batches)) as source:
            yield source
    elif isinstance(data, DatabaseRows):
        with copied_entries(engine, description, data) as source:
            yield source
    else:
        names, sizes = description.unnamed_axes, RowSizes(0, engine.dialect.vector_rows)
        columns = columns_of(description, data, names, Dictionaries(engine), sizes)
        with engine.registered(columns.table, INCOMING) as incoming:
            yield stored_tensor(columns.tensor, columns.decomposition, incoming.sql(engine.dialect_name))


def _check_axes(tensor: Tensor, added: Tensor) -> None:
    names, others = ([axis.name for axis in some.axes] for some in (tensor, added))
    if names != others:
        raise ShapeError(
            f"tensor {tensor.name} has the axes {', '.join(names)}, and the data {', '.join(others)}; name the columns "
            "of the axes in their order, as in index=[...]"
        )


def _merge(engine: Engine, stored: StoredTensor, source: StoredTensor, sum_duplicates: bool) -> None:
    """Write the rows of the table anew that get entries, with these."""
    tensor, temporary = stored.tensor, engine.dialect.temporary_schema
    added, touched, merged = (exp.table_(name, db=temporary) for name in (_ADDED, _TOUCHED, _MERGED))
    table, layout = written_table(stored, engine.dialect_name), stored.lists.layout if stored.lists else None
    engine.create_temporary(added, rows_as_stored(engine, source))
    keys = {axis.name: exp.column(axis.name, table="entries", quoted=True) for axis in tensor.axes}
    is_touched = _is_touched(list_keys(tensor, layout) if layout else keys, added)
    columns = [exp.column(name, quoted=True) for name in (*keys, VALUE_COLUMN)]
    of_table = [exp.column(name, quoted=True) for name in _columns(tensor, layout)]
    engine.create_temporary(touched, exp.select(*of_table).from_(table.copy()).where(is_touched))
    before = (
        entries_query(tensor, layout, touched, engine.dialect_name)
        if layout
        else exp.select(*columns).from_(touched.copy())
    )
    both = exp.union(before, exp.select(*columns).from_(added.copy()), distinct=False)
    engine.create_temporary(merged, exp.select(*columns).from_(both.subquery("entries")))
    entries = stored_tensor(tensor, fully_promoted(len(keys)), merged.sql(engine.dialect_name))
    if not sum_duplicates:
        _check_new(engine, tensor, merged)
    rows = rows_as_written(engine, entries, TableLayout(entries.decomposition, sum_duplicates, lists=layout))
    engine.execute(exp.delete(table.copy(), where=is_touched.copy()))
    engine.insert(table, rows)
    for name in (added, touched, merged):
        engine.execute(exp.Drop(tables=[name], kind="TABLE"))


def _columns(tensor: Tensor, layout: ListLayout | None) -> tuple[str, ...]:
    """The columns of a table of entries or lists."""
    names = [axis.name for axis in tensor.axes]
    if layout is None:
        return (*names, VALUE_COLUMN)
    return (*(names[axis] for axis in layout.keys), *layout.list_columns(names), VALUE_COLUMN)


def _is_touched(keys: Mapping[str, exp.Expr], added: exp.Table) -> exp.Expr:
    """Whether a row has keys that some of the added entries have; with no keys, the only row has."""
    if not keys:
        return exp.true()
    of_entries = exp.select(*[key.copy() for key in keys.values()]).from_(
        exp.alias_(added.copy(), "entries", table=True)
    )
    columns = [exp.column(name, quoted=True) for name in keys]
    row: exp.Expr = columns[0] if len(columns) == 1 else exp.Tuple(expressions=columns)
    return exp.In(this=row, query=of_entries.subquery())


def _check_new(engine: Engine, tensor: Tensor, merged: exp.Table) -> None:
    """Refuse entries that the tensor has, since no two of the added ones are at one coordinate."""
    columns: list[exp.Expr] = [exp.column(axis.name, quoted=True) for axis in tensor.axes]
    query = exp.select(*(columns or [exp.Literal.number(1)])).from_(merged.copy())
    query = query.group_by(*[column.copy() for column in columns]).having("COUNT(*) > 1")
    for indices in engine.rows(query.order_by(*[column.copy() for column in columns]).limit(1)):
        at = ", ".join(f"{axis.name} {index}" for axis, index in zip(tensor.axes, indices, strict=False))
        raise DataError(
            f"tensor {tensor.name} has an entry at {at or 'its only index'} already, as the data have; add the values "
            "up with duplicates='sum', or delete the entry first"
        )

"""Loading: stores tensors in tables of the database, and records tables of users as tensors."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

from sqlglot import exp

from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import CatalogueError, ShapeError
from sparseeinsum.language.tensors import ListLayout, StoredTensor, Tensor
from sparseeinsum.loading.database_sources import can_read, stream_rows
from sparseeinsum.loading.entry_stream import EntryStream
from sparseeinsum.loading.incoming_entries import INCOMING, copied_entries, streamed_entries
from sparseeinsum.loading.list_rows import list_rows
from sparseeinsum.loading.sources.input_data import DatabaseRows, EntryBatches, InputData
from sparseeinsum.loading.stored_layouts import PromotedAxes, RowSizes, layout_of_entries, list_layout
from sparseeinsum.loading.tensor_columns import TensorColumns, columns_of
from sparseeinsum.statistics.ascending_runs import is_distinct_by_order
from sparseeinsum.statistics.loaded_measurements import is_measurable
from sparseeinsum.storage.catalogue import NO_STATISTICS, Catalogue, check_name
from sparseeinsum.storage.dictionaries import Dictionaries
from sparseeinsum.storage.existing_tables import read_relation, relation_as_tensor, relation_named
from sparseeinsum.storage.kept_statistics import statistics_to_keep
from sparseeinsum.storage.list_tables import in_lists
from sparseeinsum.storage.measuring import measure_all
from sparseeinsum.storage.ownership import claim_table, drop_table, owned_tensor
from sparseeinsum.storage.tensor_description import TensorDescription
from sparseeinsum.storage.tensor_placement import choose_distribution
from sparseeinsum.storage.tensor_tables import (
    TableLayout,
    check_duplicates,
    checked_order,
    stored_tensor,
    write_table,
)
from sparseeinsum.storage.value_checks import check_values


def load(
    engine: Engine,
    description: TensorDescription,
    data: InputData,
    promoted: PromotedAxes,
    sum_duplicates: bool,
    order: Sequence[str] = (),
    distribute: str | None = None,
) -> StoredTensor:
    """Store a tensor in a table of its name, replace one that was loaded before, and record it in the catalogue.

    Args:
        engine: The engine of the table.
        description: What the user says of the tensor.
        data: The data.
        promoted: Axes to store as key columns, and their tiles; None to choose them from the data.
        sum_duplicates: Whether the values of a repeated coordinate are added up.
        order: The key columns that sort the rows. By default, entries are sorted by all of them, and arrays are not
            sorted.
        distribute: How to distribute the rows over machines; see `choose_distribution`.

    Raises:
        CatalogueError: A table or view of that name exists that was not created by loading.
        ShapeError: Axes, shape and data do not fit together, or an axis in `order` is no key column.
        DataError: The data are invalid; the database stays unchanged.
    """
    if isinstance(data, DatabaseRows) and not can_read(engine, data.source):
        data = stream_rows(description.name, data)
    if isinstance(data, EntryBatches):
        return _load_stream(engine, EntryStream(description, data.batches), promoted, sum_duplicates, order, distribute)
    if isinstance(data, DatabaseRows):
        return _load_rows(engine, description, data, promoted, sum_duplicates, order, distribute)
    with engine.transaction():
        entry_bytes = 0 if order else engine.dialect.entry_bytes  # rows can be sorted only by promoted axes
        sizes = RowSizes(entry_bytes, engine.dialect.vector_rows)
        columns = columns_of(description, data, promoted, Dictionaries(engine), sizes)
        lists = list_layout(columns.tensor, promoted)
        return _load_columns(engine, columns, lists, sum_duplicates, order, distribute)


def _load_columns(
    engine: Engine,
    columns: TensorColumns,
    lists: ListLayout | None,
    sum_duplicates: bool,
    order: Sequence[str],
    distribute: str | None,
) -> StoredTensor:
    """Store columns in memory: directly if they are as the table needs them, else through a temporary table."""
    _check_lists(engine, columns.tensor, lists, order)
    order_columns = checked_order(columns.tensor, columns.stored_decomposition, order)
    distribution = choose_distribution(
        columns.tensor, columns.stored_decomposition, distribute, columns.table.nbytes, engine
    )
    layout = TableLayout(
        columns.stored_decomposition, sum_duplicates and columns.may_have_duplicates, order_columns, distribution, lists
    )
    is_final = not layout.sum_duplicates and not order_columns and columns.stored_decomposition == columns.decomposition
    if lists is not None:
        is_final = not columns.may_have_duplicates
    registering = nullcontext() if is_final else engine.registered(columns.table, INCOMING)
    with registering as incoming:
        catalogue = Catalogue(engine)
        table = claim_table(engine, catalogue, columns.tensor.name)
        stored = stored_tensor(columns.tensor, columns.stored_decomposition, table.sql(engine.dialect_name))
        loaded = None
        if is_final:
            rows = columns.table if lists is None else list_rows(columns.tensor, lists, columns.table)
            loaded = engine.load_table(table, rows, distribution)
        source = stored
        if incoming is not None:
            source = stored_tensor(columns.tensor, columns.decomposition, incoming.sql(engine.dialect_name))
        if columns.may_have_duplicates and not layout.sum_duplicates:
            check_duplicates(engine, source)
        if not is_final:
            write_table(engine, source, layout, table)
        stored = _with_view(engine, stored, layout, table)
        statistics = NO_STATISTICS
        if loaded is not None and columns.measure is not None and is_measurable(stored):
            statistics = statistics_to_keep(stored, loaded, columns.measure(stored), engine.dialect_name)
        catalogue.add(stored, statistics)
    return stored


def _check_lists(engine: Engine, tensor: Tensor, lists: ListLayout | None, order: Sequence[str]) -> None:
    """Refuse lists where the engine has none, and another order of their tuples than by their keys.

    Raises:
        ShapeError: The message says what to do instead.
    """
    if lists is None:
        return
    notation = lists.write(tensor.name, [axis.name for axis in tensor.axes])
    if not engine.dialect.stores_lists:
        raise ShapeError(
            f"{notation} is a layout of tables on one machine; {engine.title} stores entries or arrays: leave the "
            "layout out, or give promoted=[...]"
        )
    if order:
        raise ShapeError(f"{notation} has its tuples ordered by their keys; leave order out")


def _with_view(engine: Engine, stored: StoredTensor, layout: TableLayout, table: exp.Table) -> StoredTensor:
    """Return a new tensor with the view of its entries, if they are in lists."""
    if layout.lists is None:
        return stored
    return in_lists(engine, stored, layout.lists, table)


def _load_stream(
    engine: Engine,
    stream: EntryStream,
    promoted: PromotedAxes,
    sum_duplicates: bool,
    order: Sequence[str],
    distribute: str | None,
) -> StoredTensor:
    """Copy batches into a temporary table first: how they are stored is known only after all of them were read."""
    with engine.transaction():
        catalogue = Catalogue(engine)
        table = claim_table(engine, catalogue, stream.name)
        with streamed_entries(engine, stream) as source:
            layout = _layout(engine, source.tensor, promoted, sum_duplicates, order, stream.ascends)
            distribution = choose_distribution(source.tensor, layout.decomposition, distribute, None, engine)
            layout = replace(layout, distribution=distribution)
            stored = _store_entries(engine, source, layout, table, may_have_duplicates=not stream.ascends)
            stored = _with_view(engine, stored, layout, table)
        catalogue.add(stored)
    return stored


def _load_rows(
    engine: Engine,
    description: TensorDescription,
    data: DatabaseRows,
    promoted: PromotedAxes,
    sum_duplicates: bool,
    order: Sequence[str],
    distribute: str | None,
) -> StoredTensor:
    """Store rows that the database can read."""
    with engine.transaction(), copied_entries(engine, description, data) as rows:
        catalogue = Catalogue(engine)
        # After the copy, because it may drop the table that the rows come from.
        table = claim_table(engine, catalogue, description.name)
        layout = _layout(engine, rows.tensor, promoted, sum_duplicates, order, ascends=False)
        distribution = choose_distribution(rows.tensor, layout.decomposition, distribute, None, engine)
        layout = replace(layout, distribution=distribution)
        stored = _store_entries(engine, rows, layout, table, may_have_duplicates=True)
        stored = _with_view(engine, stored, layout, table)
        catalogue.add(stored)
    return stored


def _layout(
    engine: Engine, tensor: Tensor, promoted: PromotedAxes, sum_duplicates: bool, order: Sequence[str], ascends: bool
) -> TableLayout:
    """Return the layout of a table of entries, which are sorted by all axes unless the user chooses another order."""
    lists = list_layout(tensor, promoted)
    _check_lists(engine, tensor, lists, order)
    decomposition = layout_of_entries(tensor, promoted)
    order_columns = checked_order(tensor, decomposition, order)
    if decomposition.is_scalar and not order_columns and not ascends:
        order_columns = tuple(axis.name for axis in tensor.axes)
    return TableLayout(decomposition, sum_duplicates, order_columns, lists=lists)


def _store_entries(
    engine: Engine, source: StoredTensor, layout: TableLayout, table: exp.Table, may_have_duplicates: bool
) -> StoredTensor:
    """Write the table of entries; check for repeated coordinates where that takes least time."""
    must_check = may_have_duplicates and not layout.sum_duplicates
    stored = stored_tensor(source.tensor, layout.decomposition, table.sql(engine.dialect_name))
    has_entries = stored.decomposition == source.decomposition and layout.lists is None
    if must_check and not has_entries:  # no arrays and no lists can be made of repeated coordinates
        check_duplicates(engine, source)
    write_table(engine, source, layout, table)
    if must_check and has_entries and not is_distinct_by_order(stored, engine):
        check_duplicates(engine, source)
    return stored


def register_relation(
    engine: Engine, description: TensorDescription, relation: str, index: Sequence[str], value: str | None
) -> StoredTensor:
    """Record a table, view or file as a tensor without copying it.

    Args:
        engine: The engine of the relation.
        description: What the user says of the tensor.
        relation: The relation as the user names it.
        index: The columns of indices, in the order of the axes.
        value: The column of values; None if every row has the value 1.

    Raises:
        CatalogueError: The relation cannot be read or lacks a column.
        DataError: A column has a wrong type, or a row is invalid.
    """
    name = description.name
    with engine.transaction():
        catalogue = Catalogue(engine)
        tensors = catalogue.all()
        check_name(name, tensors, engine)
        catalogue.prepare()  # a cluster cannot create a schema in a transaction that has read many shards
        table = relation_named(engine, relation)
        text = table.sql(engine.dialect_name)
        replaced = owned_tensor(engine, tensors, name)
        if replaced is not None and text in (replaced.table, replaced.relation):
            raise CatalogueError(
                f"{relation} is the table that tensor {name} was loaded into; choose another name for the tensor"
            )
        if name in tensors:
            catalogue.remove(name)
        drop_table(engine, replaced)
        described = relation_as_tensor(engine, description, read_relation(engine, name, relation, table), index, value)
        stored = described.stored
        if value is not None:
            check_values(engine, stored, described.column_types[-1])
        measure_all({name: stored}, engine)
        catalogue.add(stored)
    return stored

"""Storage: tables that hold the entries of tensors in lists, and the views with one row an entry of them."""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from sparseeinsum.engines.engine import Engine
from sparseeinsum.language.tensors import VALUE_COLUMN, ListLayout, ListTable, StoredTensor, Tensor
from sparseeinsum.statistics.list_columns import entries_query
from sparseeinsum.storage.ownership import claim_view

# A view reads its table with the rights of whoever reads the view, as row-level security wants it.
_VIEW_OPTIONS = {"postgresql": " WITH (security_invoker = true)"}


def in_lists(engine: Engine, stored: StoredTensor, layout: ListLayout, table: exp.Table) -> StoredTensor:
    """Create the view of the entries in a table of lists, and return the tensor with both.

    Args:
        engine: The engine of the table.
        stored: The tensor, as one whose entries are the rows of the table.
        layout: How the table has them in lists.
        table: The table.

    Raises:
        CatalogueError: The view would have the name of another table or view.
    """
    view = claim_view(engine, stored.tensor.name)
    name = engine.dialect_name
    options = _VIEW_OPTIONS.get(name, "")
    engine.execute(
        f"CREATE VIEW {view.sql(name)}{options} AS {entries_query(stored.tensor, layout, table, name).sql(name)}"
    )
    return replace(stored, relation=view.sql(name), lists=ListTable(table.sql(name), layout))


def lists_query(tensor: Tensor, layout: ListLayout, rows: exp.Select) -> exp.Select:
    """The query of a table of lists, sorted by its keys.

    Args:
        tensor: The tensor.
        layout: How its entries are put into lists.
        rows: The query of its entries, none of them repeated, with columns that are named as the axes.
    """
    names = [axis.name for axis in tensor.axes]
    keys = list_keys(tensor, layout)
    positions = [_position(tensor, layout, axis) for axis in layout.compressed]
    values = [*positions, exp.column(VALUE_COLUMN)]
    lists = [_list(value, positions) for value in values]
    columns = (*layout.list_columns(names), VALUE_COLUMN)
    select = exp.select(
        *[exp.alias_(key, name, quoted=True) for name, key in keys.items()],
        *[exp.alias_(value, column, quoted=True) for value, column in zip(lists, columns, strict=True)],
    ).from_(rows.subquery("entries"))
    if not keys:
        return select.having("COUNT(*) > 0")
    order = [exp.Literal.number(number + 1) for number in range(len(keys))]
    return select.group_by(*[key.copy() for key in keys.values()]).order_by(*order)


def list_keys(tensor: Tensor, layout: ListLayout) -> dict[str, exp.Expr]:
    """The keys of the list that an entry of a relation `entries` is in, by key column."""
    return {tensor.axes[axis].name: _key(tensor, layout, axis) for axis in layout.keys}


def _key(tensor: Tensor, layout: ListLayout, axis: int) -> exp.Expr:
    column, tile = exp.column(tensor.axes[axis].name, table="entries", quoted=True), layout.tiles[axis]
    return column if tile == 1 else exp.IntDiv(this=column, expression=exp.Literal.number(tile))


def _position(tensor: Tensor, layout: ListLayout, axis: int) -> exp.Expr:
    column, tile = exp.column(tensor.axes[axis].name, table="entries", quoted=True), layout.tiles[axis]
    position = exp.Mod(this=column, expression=exp.Literal.number(tile)) if tile else column
    return exp.cast(position, "int")


def _list(value: exp.Expr, positions: Sequence[exp.Expr]) -> exp.Expr:
    order = exp.Order(this=value.copy(), expressions=[position.copy() for position in positions])
    return exp.Anonymous(this="ARRAY_AGG", expressions=[order])

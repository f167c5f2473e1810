"""Render: tuples in the cells of a grid, as a SELECT whose first column is the cell, and without that column."""

from sqlglot import exp

from sparseeinsum.algebra.operators import OffGrid, OnGrid
from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.render.calls import call, integer, integers
from sparseeinsum.render.sources import SelectSource, aliased, key_column, named, with_join


def on_grid_select(relation: OnGrid, source: SelectSource) -> exp.Select:
    """The SELECT of every tuple once for each of its cells.

    A cell is numbered by the pieces of the labels of the grid, the last of which counts fastest. The piece of a label
    is the remainder of its key; a tensor without the label is in all pieces, which a table of numbers enumerates.
    """
    place, schema = relation.place, relation.input.schema
    number: exp.Expr = integer(0)
    pieces_tables = []
    for at, (pieces, axis) in enumerate(zip(place.grid.pieces, place.axes, strict=True)):
        if axis is None:
            numbers = exp.Table(this=call("RANGE", integer(pieces)))
            pieces_tables.append(exp.select(exp.column("range").as_("piece")).from_(numbers).subquery(f"g{at}"))
            piece: exp.Expr = exp.column("piece", table=f"g{at}")
        else:
            key = source.key(schema.tensor.axes[axis].name, "t")
            piece = exp.Paren(this=exp.Mod(this=key, expression=integer(pieces)))
        before = exp.Mul(this=exp.Paren(this=number), expression=integer(pieces))
        number = exp.Add(this=before, expression=piece) if at else piece
    position = exp.Add(this=number, expression=integer(1))
    cell_keys = exp.Paren(this=integers(place.grid.cell_keys))
    cell = exp.cast(exp.Bracket(this=cell_keys, expressions=[position], offset=1), "bigint")
    keys = [key_column(source, key, "t") for key in schema.keys]
    select = exp.select(exp.alias_(cell, relation.cell), *keys, named(source.value("t"), VALUE_COLUMN))
    select = select.from_(aliased(source.table, "t"), copy=False)
    for table in pieces_tables:
        select = with_join(select, table, kind="CROSS")
    return select


def off_grid_select(relation: OffGrid, source: SelectSource) -> exp.Select:
    """The SELECT of every tuple without its cell."""
    keys = [key_column(source, key, "t") for key in relation.schema.keys]
    select = exp.select(*keys, named(source.value("t"), VALUE_COLUMN))
    return select.from_(aliased(source.table, "t"), copy=False)

"""The command line: results and rows as tables, the first rows of each."""

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

import sparseeinsum as se
from sparseeinsum.language.eingraph import write_label
from sparseeinsum.language.tensors import StoredTensor


def show_result(console: Console, result: se.TensorResult, rows: int) -> None:
    """Print what a result is, and its first entries, in the order of their indices."""
    console.print(repr(result), soft_wrap=True)
    frame = result.arrow()
    *keys, _ = frame.column_names
    if keys:
        frame = frame.sort_by([(key, "ascending") for key in keys])
    console.print(rows_table(frame.column_names, (row.values() for row in frame.slice(0, rows).to_pylist())))
    if frame.num_rows > rows:
        console.print(f"{rows:,} of {frame.num_rows:,} rows")


def rows_table(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> Table:
    """Rows under the names of their columns."""
    table = Table()
    for column in columns:
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(*map(_cell, row))
    return table


def _cell(value: object) -> str:
    if value is None:
        return "NULL"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def tensors_table(tensors: Iterable[StoredTensor]) -> Table:
    """What tensors are and where they lie."""
    table = Table(box=box.ROUNDED)
    for heading in ("tensor", "shape", "dtype", "fill", "stored as", "in"):
        table.add_column(heading)
    for stored in tensors:
        tensor = stored.tensor
        shape = " x ".join(f"{axis.name}: {axis.bound:,}" for axis in tensor.axes) or "scalar"
        table.add_row(tensor.name, shape, tensor.dtype, str(tensor.fill), notation(stored), stored.relation)
    return table


def notation(stored: StoredTensor) -> str:
    """How a table holds a tensor, as in A[I, j]: key columns in upper case, with their tiles."""
    axes = zip(stored.tensor.axes, stored.decomposition.tiles, strict=True)
    labels = (write_label(axis.name, {axis.name: tile} if tile else {}) for axis, tile in axes)
    return f"{stored.tensor.name}[{', '.join(labels)}]"

"""The command line: results and rows as tables, the first rows of each."""

from collections.abc import Iterable

from rich import box
from rich.console import Console
from rich.table import Table

import sparseeinsum as se
from sparseeinsum.language.tensors import StoredTensor


def show_result(console: Console, result: se.TensorResult, rows: int) -> None:
    """Print what a result is, and its first entries."""
    console.print(result.preview(rows).text(), soft_wrap=True)


def tensors_table(tensors: Iterable[StoredTensor]) -> Table:
    """What tensors are and where they lie."""
    table = Table(box=box.ROUNDED)
    for heading in ("tensor", "shape", "dtype", "fill", "stored as", "in"):
        table.add_column(heading)
    for stored in tensors:
        tensor = stored.tensor
        shape = " x ".join(f"{axis.name}: {axis.bound:,}" for axis in tensor.axes) or "scalar"
        table.add_row(tensor.name, shape, tensor.dtype, str(tensor.fill), stored.notation, stored.relation)
    return table

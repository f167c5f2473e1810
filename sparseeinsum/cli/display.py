"""The command line: tensors and durations as they are shown."""

from collections.abc import Iterable

from rich.table import Table

from sparseeinsum.api.tensor_listing import TENSOR_COLUMNS, tensor_rows
from sparseeinsum.language.tensors import StoredTensor


def tensors_table(tensors: Iterable[StoredTensor]) -> Table:
    """A table of tensors: their shapes, dtypes and fills, and where they are stored."""
    table = Table()
    for heading in TENSOR_COLUMNS:
        table.add_column(heading)
    for row in tensor_rows(tensors):
        table.add_row(*row)
    return table


def duration(seconds: float) -> str:
    """Seconds as text, in the largest unit in which the number is at least 1; 0 s below 1 ps."""
    units = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12}
    unit = next((unit for unit, size in units.items() if seconds >= size), None)
    if unit is None:
        return "0 s"
    return f"{seconds / units[unit]:.3g} {unit}"

"""Loading: the forms of data that readers return: entries or arrays in memory, streams, and relations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
from numpy.typing import NDArray

from sparseeinsum.errors import DataError
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.presentation.spelling import did_you_mean
from sparseeinsum.storage.natural_keys import KeyColumn


@dataclass(frozen=True, slots=True)
class EntryArrays:
    """Coordinates and values in memory.

    Attributes:
        coordinates: For every axis an array of indices, or natural keys.
        values: The values, as many as coordinates.
        shape: The bounds of the axes; None if the data have none besides the coordinates.
        axes: The names of the axes; None if the data have none.
        fill: The fill; None if the data have none.
    """

    coordinates: Sequence[NDArray[Any] | KeyColumn] | NDArray[Any]
    values: NDArray[Any]
    shape: tuple[int, ...] | None = None
    axes: Sequence[str] | None = None
    fill: Number | None = None


@dataclass(frozen=True, slots=True)
class DenseArray:
    """An array in memory, and the names of its axes if it has some."""

    values: NDArray[Any]
    axes: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class EntryBatches:
    """Record batches of index columns and a value column, which can be read once and need not fit into memory."""

    batches: pa.RecordBatchReader


@dataclass(frozen=True, slots=True)
class DatabaseRows:
    """Rows that a database can read by itself.

    Attributes:
        source: A relation of DuckDB's Python API, the name of a table or view, or the path of a file.
        columns: The columns that are read.
    """

    source: object
    columns: "ColumnSelection"


InputData: TypeAlias = EntryArrays | DenseArray | EntryBatches | DatabaseRows


@dataclass(frozen=True, slots=True)
class ColumnSelection:
    """The columns of rows that make up a tensor.

    Attributes:
        index: The columns of indices, in the order of the axes; None for all but the value column.
        value: The value column. None means the last one, or, if `index` is given, that every row has the value 1.
    """

    index: Sequence[str] | None = None
    value: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.index, str):
            raise DataError(f"index={self.index!r} is one text; give a list of columns, as in index=[{self.index!r}]")

    @property
    def are_chosen(self) -> bool:
        """Whether the user names any columns."""
        return self.index is not None or self.value is not None

    def among(self, name: str, names: Sequence[str]) -> tuple[list[str], str | None]:
        """Return the index columns and the value column, which may be None, as the data spell them.

        Args:
            name: The name of the tensor, for messages.
            names: All columns of the data, in order.

        Raises:
            DataError: The data have no columns, or lack one that the user names.
        """
        if not names:
            raise DataError(f"tensor {name} is given a table without columns; it needs index columns, then the value")
        index = [_spelled(name, column, names) for column in self.index or ()]
        value = None if self.value is None else _spelled(name, self.value, names)
        chosen = [*index, *([] if value is None else [value])]
        if len(set(chosen)) < len(chosen):
            repeated = next(column for column in chosen if chosen.count(column) > 1)
            raise DataError(f"tensor {name} is given the column {repeated} for two things; name every column once")
        if self.index is not None:
            return index, value
        last = names[-1] if value is None else value
        return [column for column in names if column != last], last


def _spelled(name: str, column: str, names: Sequence[str]) -> str:
    """Return a column as the data spell it; a difference in case is accepted if it is not ambiguous."""
    alike = [candidate for candidate in names if candidate.lower() == column.lower()]
    if column in names or len(alike) == 1:
        return column if column in names else alike[0]
    raise DataError(
        f"tensor {name}: its data have no column {column}; {did_you_mean(column, names, otherwise='they have')}"
    )

"""Loading: the forms that data have once they are read: entries or arrays in memory, rows that stream, relations."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
from numpy.typing import NDArray

from sparseeinsum.errors import DataError
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.storage.natural_keys import KeyColumn


@dataclass(frozen=True, slots=True)
class Entries:
    """Coordinates and values in memory.

    Attributes:
        coordinates: Indices, an array for every axis, or its natural keys.
        values: As many.
        shape: Bounds of the axes; None where the coordinates alone say.
        axes: Names of the axes; None where the data have none.
        fill: Value of every index that the data lack; None where they do not say.
    """

    coordinates: Sequence[NDArray[Any] | KeyColumn] | NDArray[Any]
    values: NDArray[Any]
    shape: tuple[int, ...] | None = None
    axes: Sequence[str] | None = None
    fill: Number | None = None


@dataclass(frozen=True, slots=True)
class Dense:
    """An array in memory, and names of its axes where it has some."""

    values: NDArray[Any]
    axes: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """Record batches that can be read once, and need not fit into memory: index columns, then the value."""

    batches: pa.RecordBatchReader


@dataclass(frozen=True, slots=True)
class Rows:
    """What a database can read by itself.

    Attributes:
        source: A relation of DuckDB's; or the name of a table or view, or the path of a file.
        columns: Which columns.
    """

    source: object
    columns: "ColumnSelection"


InputData: TypeAlias = Entries | Dense | Stream | Rows


@dataclass(frozen=True, slots=True)
class ColumnSelection:
    """Which columns of rows are a tensor.

    Attributes:
        index: Those of indices, in axis order; None for all but that of the values.
        value: That of the values; None for the last one, or, where `index` is given, for none: every row counts as 1.
    """

    index: Sequence[str] | None = None
    value: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.index, str):
            raise DataError(f"index={self.index!r} is one text; give a list of columns, as in index=[{self.index!r}]")

    @property
    def are_chosen(self) -> bool:
        """Whether the user names any."""
        return self.index is not None or self.value is not None

    def among(self, name: str, known: Sequence[str]) -> tuple[list[str], str | None]:
        """Index columns and the column of values of rows that have these columns.

        Args:
            name: Of the tensor.
            known: All columns, in order.

        Raises:
            DataError: There are none, or none of a name.
        """
        if not known:
            raise DataError(f"tensor {name} is given a table without columns; it needs index columns, then the value")
        index = [_spelled(name, column, known) for column in self.index or ()]
        value = None if self.value is None else _spelled(name, self.value, known)
        wanted = [*index, *([] if value is None else [value])]
        if len(set(wanted)) < len(wanted):
            twice = next(column for column in wanted if wanted.count(column) > 1)
            raise DataError(f"tensor {name} is given the column {twice} for two things; name every column once")
        if self.index is not None:
            return index, value
        last = known[-1] if value is None else value
        return [column for column in known if column != last], last


def _spelled(name: str, column: str, known: Sequence[str]) -> str:
    """A column as the data spell it, which may differ in case where there is one such alone."""
    alike = [candidate for candidate in known if candidate.lower() == column.lower()]
    if column in known or len(alike) == 1:
        return column if column in known else alike[0]
    near = difflib.get_close_matches(column, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"they have {', '.join(known)}"
    raise DataError(f"tensor {name}: its data have no column {column}; {hint}")

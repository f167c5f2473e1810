"""Results: the tables and Parquet files that take results instead of returning them."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from sparseeinsum.errors import PlanError
from sparseeinsum.language.program_files import is_data_file
from sparseeinsum.results.parquet_files import whole_file

_MODES = ("replace", "append")


@dataclass(frozen=True, slots=True)
class Table:
    """A permanent table that takes a result.

    Attributes:
        name: The name of the table in SQL, with schema and database if needed.
        mode: `replace` replaces the table. `append` adds the rows of the result to a table with the same columns, none
            of whose rows has the same indices; a missing table is created.

    Raises:
        PlanError: There is no such mode.
    """

    name: str
    mode: str = "replace"

    def __post_init__(self) -> None:
        if self.mode not in _MODES:
            raise PlanError(f"mode {self.mode!r} of the table {self.name} is neither 'replace' nor 'append'")

    def __str__(self) -> str:
        return f"the table {self.name}"


@dataclass(frozen=True, slots=True)
class ParquetFile:
    """A file that takes the entries of a result.

    Attributes:
        path: The absolute path of the file.
        written: The temporary path where it is written; the file is renamed when the run ends.
    """

    path: Path
    written: Path

    @property
    def name(self) -> str:
        """The absolute path as text, which is the name of the target."""
        return str(self.path)

    def __str__(self) -> str:
        return f"the file {self.path}"


OutputTarget: TypeAlias = Table | ParquetFile
Destination: TypeAlias = str | Path | Table  # as users write it


@contextmanager
def targets_of(into: Mapping[str, Destination]) -> Iterator[dict[str, OutputTarget]]:
    """The targets of results, by the name of the result; at the end, files replace old ones, unless there was an error.

    Raises:
        PlanError: A file is not a Parquet file.
        DataError: The folder of a file does not exist.
    """
    with ExitStack() as files:
        yield {name: _target(name, destination, files) for name, destination in into.items()}


def _target(result: str, destination: Destination, files: ExitStack) -> OutputTarget:
    if isinstance(destination, Table):
        if is_data_file(destination.name):
            raise PlanError(f"{destination.name} is the name of a file, which is replaced; give it without se.Table")
        return destination
    if isinstance(destination, str) and not is_data_file(destination):
        return Table(destination)
    path = Path(destination).resolve()
    if path.suffix.lower() != ".parquet":
        raise PlanError(
            f"{result} is to go into the file {destination}, but only Parquet is written; name it as in "
            f"{path.stem}.parquet, or take the result's df() or arrow()"
        )
    return ParquetFile(path, files.enter_context(whole_file(path)))

"""Results: where results go that are not returned, as users say it: tables, replaced or added to, and Parquet files."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from sparseeinsum.errors import PlanError
from sparseeinsum.language.files import is_data_file
from sparseeinsum.results.parquet_files import whole_file

_MODES = ("replace", "append")


@dataclass(frozen=True, slots=True)
class Table:
    """A permanent table that takes a result.

    Attributes:
        name: As SQL has it; with its schema, and that with its database, where need be.
        mode: `replace`: the rows of the result take the place of what is there. `append`: they are added to a table of
            the same columns, none of whose rows has the same indices; it is made where it is not there.

    Raises:
        PlanError: The mode is neither.
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
        path: Its name, whole.
        written: Where it is written; it goes to its place once the run is over.
    """

    path: Path
    written: Path

    @property
    def name(self) -> str:
        """The path as text."""
        return str(self.path)

    def __str__(self) -> str:
        return f"the file {self.path}"


Target: TypeAlias = Table | ParquetFile
Destination: TypeAlias = str | Path | Table  # as users say it


@contextmanager
def targets_of(into: Mapping[str, Destination]) -> Iterator[dict[str, Target]]:
    """Targets of results by name, for one run: what is in files in the end takes the places of old ones, or goes.

    Raises:
        PlanError: A file is to be of a kind that is not written.
        DataError: The folder of a file is not there.
    """
    with ExitStack() as files:
        yield {name: _target(name, given, files) for name, given in into.items()}


def _target(result: str, given: Destination, files: ExitStack) -> Target:
    if isinstance(given, Table):
        if is_data_file(given.name):
            raise PlanError(f"{given.name} is the name of a file, which is replaced; give it without se.Table")
        return given
    if isinstance(given, str) and not is_data_file(given):
        return Table(given)
    path = Path(given).resolve()
    if path.suffix.lower() != ".parquet":
        raise PlanError(
            f"{result} is to go into the file {given}, but only Parquet is written; name it as in {path.stem}.parquet, "
            "or take the result's df() or arrow()"
        )
    return ParquetFile(path, files.enter_context(whole_file(path)))

"""Language: files of program text in, the statements of them and of what they include out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sparseeinsum.errors import ParseError
from sparseeinsum.language.parameters import Parameters
from sparseeinsum.language.parsing import Report, parse
from sparseeinsum.language.syntax import Position, Source, Statement

_DATA_ENDINGS = (".parquet", ".csv", ".tsv", ".json", ".jsonl", ".ndjson")
_COMPRESSED_ENDINGS = (".gz", ".zst")


def is_data_file(relation: str) -> bool:
    """Whether the name of a relation is that of a file with data, by its ending."""
    path = Path(relation.lower())
    return (path.with_suffix("") if path.suffix in _COMPRESSED_ENDINGS else path).suffix in _DATA_ENDINGS


def read_source(path: Path) -> Source:
    """The text of a file.

    Raises:
        OSError: It cannot be read.
        ParseError: It is no text.
    """
    try:
        return Source(path.read_text(encoding="utf-8-sig"), str(path))
    except UnicodeDecodeError:
        raise ParseError("the file is no text in UTF-8", "", 1, 1, str(path)) from None


def read_statements(
    source: Source, folder: Path | None, parameters: Parameters, report: Report
) -> tuple[Statement, ...]:
    """The statements of program text, those of included files among them, each file once.

    Args:
        source: The text.
        folder: Where the files are that it names; None where it may include none.
        parameters: Takes up those that are declared.
        report: Told of errors, which it raises, or keeps so that the other statements are read.

    Raises:
        ParseError: Text cannot be read, or a file that it includes.
    """
    path = None if source.file is None else Path(source.file).resolve()
    begun = () if path is None else (path,)
    return _File(source, folder, begun, _Reading(parameters, report, set(begun))).statements()


@dataclass(frozen=True, slots=True)
class _Reading:
    """What all files of a program share."""

    parameters: Parameters
    report: Callable[[ParseError], None]
    seen: set[Path] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _File:
    """Text that is being read, the files whose reading is begun, this one last, and what they share."""

    source: Source
    folder: Path | None
    begun: tuple[Path, ...]
    reading: _Reading

    def statements(self) -> tuple[Statement, ...]:
        return tuple(parse(self.source, self.reading.parameters, self, self.reading.report))

    def include(self, name: str, at: Position) -> Sequence[Statement]:
        """The statements of another file; none where it was read before."""
        if self.folder is None:
            problem = "program text that is in no file includes none; read a file that does (se.lower_text)"
            raise at.error(problem, self.source)
        path = self.folder / name
        try:
            source = read_source(path)
        except OSError as error:
            raise at.error(f"cannot read {path}: {error.strerror}", self.source) from None
        found = path.resolve()
        if found in self.begun:
            circle = " -> ".join(each.name for each in (*self.begun[self.begun.index(found) :], found))
            raise at.error(f"{name} includes itself: {circle}", self.source)
        if found in self.reading.seen:
            return ()
        self.reading.seen.add(found)
        return _File(source, path.parent, (*self.begun, found), self.reading).statements()

    def locate(self, relation: str) -> str:
        """The name of a table as it is, and that of a data file so that it is found from anywhere."""
        if self.folder is None or "://" in relation or not is_data_file(relation):
            return relation
        return str(self.folder.resolve() / relation)

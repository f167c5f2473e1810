"""Language: reads the statements of program text and of the files that it includes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sparseeinsum.errors import ParseError
from sparseeinsum.language.parameters import Parameters
from sparseeinsum.language.parse_trees import Report
from sparseeinsum.language.parsing import parse
from sparseeinsum.language.syntax import Position, SourceText, Statement

_DATA_ENDINGS = (".parquet", ".csv", ".tsv", ".json", ".jsonl", ".ndjson")
_COMPRESSED_ENDINGS = (".gz", ".zst")


def is_data_file(relation: str) -> bool:
    """Whether the name of a relation is that of a data file, judged by its ending, such as .parquet."""
    path = Path(relation.lower())
    return (path.with_suffix("") if path.suffix in _COMPRESSED_ENDINGS else path).suffix in _DATA_ENDINGS


def read_source(path: Path) -> SourceText:
    """The program text in a file.

    Raises:
        OSError: The file cannot be read.
        ParseError: The file is not text in UTF-8.
    """
    try:
        return SourceText(path.read_text(encoding="utf-8-sig"), str(path))
    except UnicodeDecodeError:
        raise ParseError("the file is not text in UTF-8", "", 1, 1, str(path)) from None


def read_statements(
    source: SourceText, folder: Path | None, parameters: Parameters, report: Report
) -> tuple[Statement, ...]:
    """The statements of program text and of the files that it includes, each file once.

    Args:
        source: The text.
        folder: The folder of the files that it names; None forbids includes.
        parameters: Receives the parameters that are declared.
        report: Called with every error; if it does not raise, the other statements are still read.

    Raises:
        ParseError: The text or an included file cannot be read.
    """
    path = None if source.file is None else Path(source.file).resolve()
    open_files = () if path is None else (path,)
    return _File(source, folder, open_files, _SharedState(parameters, report, set(open_files))).statements()


@dataclass(frozen=True, slots=True)
class _SharedState:
    """What all files of a program share: parameters, the report of errors, and the files read so far."""

    parameters: Parameters
    report: Callable[[ParseError], None]
    files_read: set[Path] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _File:
    """A file that is being read, and the chain `open_files` of files that include each other, this one last."""

    source: SourceText
    folder: Path | None
    open_files: tuple[Path, ...]
    shared: _SharedState

    def statements(self) -> tuple[Statement, ...]:
        return tuple(parse(self.source, self.shared.parameters, self, self.shared.report))

    def include(self, name: str, at: Position) -> Sequence[Statement]:
        """The statements of another file; none if it was read before."""
        if self.folder is None:
            problem = "program text outside a file cannot include files; put it into a file for se.read_program"
            raise at.error(problem, self.source)
        path = self.folder / name
        try:
            source = read_source(path)
        except OSError as error:
            raise at.error(f"cannot read {path}: {error.strerror}", self.source) from None
        resolved = path.resolve()
        if resolved in self.open_files:
            cycle = " -> ".join(file.name for file in (*self.open_files[self.open_files.index(resolved) :], resolved))
            raise at.error(f"{name} includes itself: {cycle}", self.source)
        if resolved in self.shared.files_read:
            return ()
        self.shared.files_read.add(resolved)
        return _File(source, path.parent, (*self.open_files, resolved), self.shared).statements()

    def locate(self, relation: str) -> str:
        """The absolute path of a data file; the name of a table as it is."""
        if self.folder is None or "://" in relation or not is_data_file(relation):
            return relation
        return str(self.folder.resolve() / relation)

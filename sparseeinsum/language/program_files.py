"""Language: reads the statements of program text and of the files that it includes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from sparseeinsum.errors import ParseError
from sparseeinsum.language.parameters import Parameters
from sparseeinsum.language.parse_trees import ParseErrorReport, raise_error
from sparseeinsum.language.parsing import parse
from sparseeinsum.language.syntax import Position, SourceText, Statement

_LIBRARY = Path(__file__).parent / "library"
LIBRARIES = tuple(sorted(file.stem for file in _LIBRARY.glob("*.ein")))
"""The names of the files that programs include without having them."""

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
    source: SourceText, folder: Path | None, parameters: Parameters, report: ParseErrorReport
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
        """The statements of another file, or of one that this package brings; none if it was read before."""
        own = None if self.folder is None else self.folder / name
        if name in LIBRARIES:
            if own is not None and own.is_file():
                problem = f"{own} has the name of a file that this package brings; rename it, as in {name}.ein"
                raise at.error(problem, self.source)
            return self._read_once(_LIBRARY / name, lambda: _library(name))
        if own is None:
            problem = "program text outside a file cannot include files; put it into a file for se.read_program"
            raise at.error(f"{problem}, or include one of {', '.join(LIBRARIES)}", self.source)
        try:
            source = read_source(own)
        except OSError as error:
            raise at.error(f"cannot read {own}: {error.strerror}", self.source) from None
        resolved = own.resolve()
        if resolved in self.open_files:
            cycle = " -> ".join(file.name for file in (*self.open_files[self.open_files.index(resolved) :], resolved))
            raise at.error(f"{name} includes itself: {cycle}", self.source)
        included = _File(source, own.parent, (*self.open_files, resolved), self.shared)
        return self._read_once(resolved, included.statements)

    def _read_once(self, file: Path, read: Callable[[], tuple[Statement, ...]]) -> tuple[Statement, ...]:
        if file in self.shared.files_read:
            return ()
        self.shared.files_read.add(file)
        return read()

    def locate(self, relation: str) -> str:
        """The absolute path of a data file; the name of a table as it is."""
        if self.folder is None or "://" in relation or not is_data_file(relation):
            return relation
        return str(self.folder.resolve() / relation)


@cache
def _library(name: str) -> tuple[Statement, ...]:
    """The functions that a file of this package defines."""
    return read_statements(read_source(_LIBRARY / f"{name}.ein"), None, Parameters(), raise_error)

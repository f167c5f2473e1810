"""Errors: one root, one class per stage; each message names the thing, both values where two clash, and the way out."""


class SparseEinsumError(Exception):
    """Root of all errors of this package."""


class ParseError(SparseEinsumError, ValueError):
    """Program text that cannot be read: the message shows the line and points at the column.

    Attributes:
        problem: What is wrong.
        line: Line of the text, from 1.
        column: Column of the line, from 1.
        file: The file that the text is from; None where it is from none.
    """

    def __init__(self, problem: str, text: str, line: int, column: int, file: str | None = None) -> None:
        self.problem = problem
        self.line = line
        self.column = column
        self.file = file
        lines = text.split("\n")  # not splitlines, which splits at form feeds and others, too
        shown = lines[min(line, len(lines)) - 1].rstrip("\r")
        before = "".join("\t" if character == "\t" else " " for character in shown[: column - 1])
        place = f"line {line}, column {column}" if file is None else f"{file}:{line}:{column}"
        super().__init__(f"{place}: {problem}\n  {shown}\n  {before:{column - 1}}^")


class ShapeError(SparseEinsumError, ValueError):
    """Labels, axes and bounds that do not fit together."""


class SemanticsError(SparseEinsumError, ValueError):
    """An expression whose result would not be exact, or that asks for what this version cannot do."""


class DataError(SparseEinsumError, ValueError):
    """Data that is no tensor: NULL, an index out of range, a coordinate twice, a wrong type. Names the first row."""


class CatalogueError(SparseEinsumError, KeyError):
    """A tensor that the database does not know, or whose table is gone or has changed."""

    def __str__(self) -> str:  # KeyError would show the message quoted
        return str(self.args[0]) if self.args else ""


class NameTakenError(CatalogueError):
    """A name that another tensor or table has."""


class RightsError(SparseEinsumError, PermissionError):
    """Something that this role of the database may not do, or that would do what another role wrote in its name."""


class StatisticsError(SparseEinsumError):
    """Statistics that are missing or contradict the data."""


class AlgebraError(SparseEinsumError, ValueError):
    """Operators over tensor relations that do not fit together, or a relation that breaks what its type claims."""


class PlanError(SparseEinsumError):
    """No decomposition satisfies what was asked, such as a memory limit."""


class ExtensionError(SparseEinsumError):
    """The extension for a database server cannot be built or installed here."""


class KernelsError(SparseEinsumError):
    """The compiled kernels cannot be had in this process: says why, and what to do."""


class PackageError(SparseEinsumError, ImportError):
    """A package that is not installed, and that what was asked for needs."""


class DbtError(SparseEinsumError):
    """A dbt project into which models cannot be written."""


class EngineError(SparseEinsumError):
    """The database refused a statement.

    Attributes:
        statement: The SQL that failed, or None where none was run.
    """

    def __init__(self, message: str, statement: str | None = None) -> None:
        self.statement = statement
        super().__init__(message if statement is None else f"{message}\nin the statement:\n{statement}")

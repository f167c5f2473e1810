"""Errors: a root class, and one class for each stage. Messages name the object, conflicting values, and a solution."""


class SparseEinsumError(Exception):
    """The root of all errors of this package."""


class ParseError(SparseEinsumError, ValueError):
    """Program text with an error; the message shows the line and points to the column.

    Attributes:
        problem: What is wrong.
        line: The line, counted from 1.
        column: The column, counted from 1.
        file: The file of the text; None if it is from no file.
    """

    def __init__(self, problem: str, text: str, line: int, column: int, file: str | None = None) -> None:
        self.problem = problem
        self.line = line
        self.column = column
        self.file = file
        lines = text.split("\n")  # splitlines would also split at form feeds and others
        shown = lines[min(line, len(lines)) - 1].rstrip("\r")
        before = "".join("\t" if character == "\t" else " " for character in shown[: column - 1])
        place = f"line {line}, column {column}" if file is None else f"{file}:{line}:{column}"
        super().__init__(f"{place}: {problem}\n  {shown}\n  {before:{column - 1}}^")


class ShapeError(SparseEinsumError, ValueError):
    """Labels, axes and bounds that do not match."""


class SemanticsError(SparseEinsumError, ValueError):
    """An expression without an exact result, or with an operation that is not supported."""


class DataError(SparseEinsumError, ValueError):
    """Data that do not form a tensor: NULL, an index out of range, indices twice, a wrong type. Names the first row."""


class CatalogueError(SparseEinsumError, KeyError):
    """A tensor that is not in the catalogue, or whose table was dropped or changed."""

    def __str__(self) -> str:  # KeyError would show the message quoted
        return str(self.args[0]) if self.args else ""


class NameTakenError(CatalogueError):
    """A name that another tensor or table has already."""


class RightsError(SparseEinsumError, PermissionError):
    """An operation that this database role may not do, or that would run code of another role with its rights."""


class StatisticsError(SparseEinsumError):
    """Statistics that are missing, or that contradict the data."""


class AlgebraError(SparseEinsumError, ValueError):
    """Operators of the relational algebra that do not match, or a relation that violates its type."""


class PlanError(SparseEinsumError):
    """No decomposition satisfies the requirements, such as a memory limit; or an option of planning is invalid."""


class ExtensionError(SparseEinsumError):
    """The extension for a database server cannot be built or installed here."""


class KernelsError(SparseEinsumError):
    """The compiled kernels are not available in this process; the message says why, and what to do."""


class PackageError(SparseEinsumError, ImportError):
    """A package that an operation needs and that is not installed."""


class DbtError(SparseEinsumError):
    """A dbt project into which models cannot be written."""


class EngineError(SparseEinsumError):
    """The database refused a statement.

    Attributes:
        statement: The SQL that failed, or None if none was run.
    """

    def __init__(self, message: str, statement: str | None = None) -> None:
        self.statement = statement
        super().__init__(message if statement is None else f"{message}\nin the statement:\n{statement}")


class OutdatedPlanError(EngineError):
    """A plan that cannot run on the data as they are now, or may not be exact for them; plan again."""

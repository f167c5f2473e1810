"""Errors: a root class, and one class for each stage. Messages name the object, conflicting values, and a solution."""

_LONGEST_SHOWN = 160  # characters of a line of program text, around the place of an error
_LONGEST_TEXT = 2000  # characters of a statement or of a message of the database


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
        shown, column = _part_of_line(lines[min(line, len(lines)) - 1].rstrip("\r"), column)
        before = "".join("\t" if character == "\t" else " " for character in shown[: column - 1])
        place = f"line {line}, column {self.column}" if file is None else f"{file}:{line}:{self.column}"
        super().__init__(f"{place}: {problem}\n  {shown}\n  {before:{column - 1}}^")


def _part_of_line(text: str, column: int) -> tuple[str, int]:
    """The part of a long line around a column, and the column within it."""
    if len(text) <= _LONGEST_SHOWN:
        return text, column
    first = max(min(column - 1 - _LONGEST_SHOWN // 2, len(text) - _LONGEST_SHOWN), 0)
    last = first + _LONGEST_SHOWN
    before, after = "... " if first else "", " ..." if last < len(text) else ""
    return f"{before}{text[first:last]}{after}", column - first + len(before)


def _beginning_and_end(text: str) -> str:
    """A text, without the middle of one that would fill more than a screen."""
    if len(text) <= _LONGEST_TEXT:
        return text
    left_out = len(text) - _LONGEST_TEXT
    return f"{text[: _LONGEST_TEXT // 2]}\n... ({left_out:,} characters left out) ...\n{text[-_LONGEST_TEXT // 2 :]}"


class ArgumentError(SparseEinsumError, TypeError, ValueError):
    """An argument of a wrong type or value, for which numpy raises TypeError or ValueError."""


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


class ResultSizeError(SparseEinsumError, MemoryError):
    """A result whose dense array would take more than the memory of this machine."""


class DbtError(SparseEinsumError):
    """A dbt project into which models cannot be written."""


class EngineError(SparseEinsumError):
    """The database refused a statement.

    Attributes:
        statement: The SQL that failed, or None if none was run; the message leaves out the middle of a long one.
    """

    def __init__(self, message: str, statement: str | None = None) -> None:
        self.statement = statement
        shown = _beginning_and_end(message)
        super().__init__(shown if statement is None else f"{shown}\nin the statement:\n{_beginning_and_end(statement)}")


class StepError(EngineError):
    """A step of a loop that failed; the state is that of the last whole step.

    Attributes:
        step: The number of the step, from 0.
    """

    def __init__(self, step: int, error: EngineError) -> None:
        self.step = step
        super().__init__(f"step {step} failed, and the state is that of the last whole step: {error}")


class OutdatedPlanError(EngineError):
    """A plan that cannot run on the data as they are now, or may not be exact for them; plan again."""

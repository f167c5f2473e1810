"""The shell: a prompt for SQL and programs on one database, or a script on standard input."""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import duckdb
from rich.console import Console

import sparseeinsum as se
from sparseeinsum.cli.commands import open_database
from sparseeinsum.cli.display import duration, show_result, tensors_table
from sparseeinsum.cli.shell_input import Entered, Kind, NextLine, entered, read_line
from sparseeinsum.errors import PackageError
from sparseeinsum.extras import imported
from sparseeinsum.kernels.catalogue import functions
from sparseeinsum.language.files import read_statements
from sparseeinsum.language.lowering import lower
from sparseeinsum.language.matrix_statements import Shapes
from sparseeinsum.language.parameters import Parameters
from sparseeinsum.language.parsing import fail
from sparseeinsum.language.scalar import write_number
from sparseeinsum.language.syntax import Assignment, Source, Statement
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.plans.preview import rows_table

_HELP = """\
SQL ends with a semicolon and is run as it is. A program is a line such as
  Y[i] = sum(A[i, j] * X[j])
and shows the result; later programs may read it by its name, which stands for how it is computed.
Several statements on a line, separated by semicolons, show what none of them reads.
  param eta = 0.1          a number that programs entered after it may read
  include "layers.ein"     what a file declares and computes

  \\d               tensors of the database, and programs entered so far
  \\d NAME          one of them: entries, distinct indices, columns
  \\drop NAME       forget a tensor, with the table that it was loaded into
  \\plan PROGRAM    how a program would be computed, and what was chosen over what
  \\sql PROGRAM     the SQL that computes it
  \\rows NUMBER     how many rows of results to show
  \\timing          show how long things take, or no longer
  \\h               this help; \\h NAME: what an array function does
  \\q               quit, as the end of the input does
"""

_WRITING = ("INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "COPY")  # statements of which a count of rows is shown


class Quit(Exception):  # noqa: N818  # no error
    """The user wants to leave."""


def shell(asked: argparse.Namespace) -> None:
    """Open the database, and do what is entered until there is no more."""
    database = se.connect() if asked.database is None else open_database(asked.database)
    with database:
        session = Session(database)
        if sys.stdin.isatty():
            _converse(session)
        else:
            _run_script(session)


def _prompt(session: "Session") -> NextLine:
    """Reads lines, with history and completion where the package for them is installed."""
    try:
        prompt = imported("sparseeinsum.cli.shell_prompt", "shell", "history and completion").Prompt(session.words)
    except PackageError as error:
        print(f"without history and completion: {error}", file=sys.stderr)
        return read_line
    next_line: NextLine = prompt.next_line
    return next_line


def _converse(session: "Session") -> None:
    """Errors are shown, and leave the session as it is."""
    print(f"sparseeinsum {se.__version__} on {session.title}. Enter SQL; or programs; \\h for help, \\q to quit")
    next_line = _prompt(session)
    with _until_quit():
        for each in entered(next_line, session.dialect):
            try:
                session.run(each)
            except KeyboardInterrupt:
                print("stopped", file=sys.stderr)
            except Quit:
                raise
            except Exception as error:
                print(_message(error), file=sys.stderr)


def _run_script(session: "Session") -> None:
    """The first error ends a script: what follows may rely on what failed."""
    lines = sys.stdin.read().splitlines()
    lines.reverse()
    with _until_quit():
        for each in entered(lambda _: lines.pop() if lines else None, session.dialect):
            try:
                session.run(each)
            except (se.EngineError, session.errors) as error:
                raise se.SparseEinsumError(_message(error)) from error


@contextmanager
def _until_quit() -> Iterator[None]:
    try:
        yield
    except Quit:
        return


def _message(error: Exception) -> str:
    """What went wrong; of a statement that the user did not write only what the database said of it."""
    said = error.__cause__ if isinstance(error, se.EngineError) and error.__cause__ is not None else error
    is_told = isinstance(error, se.SparseEinsumError)
    return str(said).rstrip() if is_told else f"{type(error).__name__}: {error}".rstrip()


@dataclass(frozen=True, slots=True)
class _Part:
    """Program text that was entered, and what it says, with the parameters as they were."""

    text: str
    statements: tuple[Statement, ...]

    @property
    def is_program(self) -> bool:
        """Whether it computes something; it may declare only."""
        return any(isinstance(statement, Assignment) for statement in self.statements)

    def program(self, shapes: Shapes, earlier: tuple[Statement, ...] = ()) -> se.Program:
        """The program, after other statements, where the database has tensors of those shapes."""
        return lower((*earlier, *self.statements), Source(self.text), shapes=shapes)


class Session:
    """What a prompt knows: the database, and the programs entered so far."""

    def __init__(self, database: se.Database) -> None:
        self._database = database
        self._is_duckdb = isinstance(database.connection, duckdb.DuckDBPyConnection)
        self._console = Console(markup=False, highlight=False)
        self._programs: dict[str, _Part] = {}  # by every name that they assign or declare
        self._parameters: Mapping[str, Number] = {}
        self._rows = 20
        self._shows_time = False
        self._commands: dict[str, Callable[[str], None]] = {
            "d": self._describe,
            "drop": self._drop,
            "plan": self._plan,
            "sql": self._sql,
            "rows": self._set_rows,
            "timing": self._switch_timing,
            "h": self._help,
            "q": self._quit,
        }
        # Of the engine's driver.
        self.errors: type[Exception] = duckdb.Error if self._is_duckdb else type(database.connection).Error

    @property
    def dialect(self) -> str:
        """Name of the SQL dialect."""
        return "duckdb" if self._is_duckdb else "postgres"

    @property
    def title(self) -> str:
        """The engine."""
        return "DuckDB" if self._is_duckdb else "PostgreSQL"

    def words(self) -> list[str]:
        """What may be completed: commands, tensors, functions of SQL."""
        commands = [f"\\{command}" for command in self._commands]
        names = {function.name for function in functions()}
        tensors: Iterable[str] = ()
        with suppress(se.SparseEinsumError):  # as in a transaction that failed
            tensors = self._database.tensors()
        return [*commands, *tensors, *self._programs, *sorted(names)]

    def run(self, each: Entered) -> None:
        """Do what was entered.

        Raises:
            Quit: That is what was entered.
        """
        start = time.perf_counter()
        {Kind.COMMAND: self._run_command, Kind.PROGRAM: self._run_program, Kind.SQL: self._run_sql}[each.kind](
            each.text
        )
        if self._shows_time:
            print(f"Time: {duration(time.perf_counter() - start)}")

    def _run_command(self, text: str) -> None:
        name, _, argument = text.removeprefix("\\").partition(" ")
        command = self._commands.get(name)
        if command is None:
            raise se.SparseEinsumError(f"there is no command \\{name}; \\h lists them")
        command(argument.strip())

    def _run_program(self, text: str) -> None:
        parameters = Parameters(outer=self._parameters)
        part = self._part(text, parameters)
        if part.is_program:
            program = self._with_what_it_reads(part)
            wanted = part.program(self._database.shape_of).outputs
            results = self._database.run(program, outputs=wanted)
            for name in wanted:
                show_result(self._console, results[name], self._rows)
        for statement in part.statements:
            if isinstance(statement, Assignment):
                self._programs[statement.target.tensor] = part
            else:
                self._programs[statement.tensor] = part
                if not part.is_program:
                    print(f"declared; a program that reads {statement.tensor} is held to it")
        self._parameters = parameters.values

    def _part(self, text: str, parameters: Parameters) -> _Part:
        return _Part(text, read_statements(Source(text), Path(), parameters, fail))

    def _with_what_it_reads(self, part: _Part) -> se.Program:
        """A program after what it reads of those entered before, and what that reads."""
        parts: list[_Part] = []

        def add(each: _Part) -> None:
            for name in each.program(self._database.shape_of).inputs if each.is_program else ():
                earlier = self._programs.get(name)
                if earlier is not None and earlier != each and earlier not in parts:
                    add(earlier)
            parts.append(each)

        add(part)
        return part.program(
            self._database.shape_of, tuple(statement for each in parts[:-1] for statement in each.statements)
        )

    def _run_sql(self, text: str) -> None:
        cursor = self._database.connection.execute(text)
        names = [column[0] for column in cursor.description or ()]
        writes = text.split(maxsplit=1)[0].upper() in _WRITING
        if cursor.description is None or (writes and names == ["Count"]):  # psycopg, DuckDB
            (count,) = (cursor.fetchone() or (-1,)) if names else (cursor.rowcount,)
            if writes and count >= 0:
                print(f"{count:,} rows")
            return
        rows = cursor.fetchmany(self._rows + 1)
        if not rows and names == ["Success"]:  # of a statement that returns nothing, in DuckDB
            return
        self._console.print(rows_table(names, rows[: self._rows]))
        if len(rows) > self._rows:
            print(f"the first {self._rows:,} rows; \\rows NUMBER shows more")

    def _describe(self, name: str) -> None:
        tensors = self._database.tensors()
        if name:
            self._describe_one(name)
            return
        if tensors:
            self._console.print(tensors_table(tensors.values()))
        for part in dict.fromkeys(self._programs.values()):
            print(part.text)
        for name, value in self._parameters.items():
            print(f"param {name} = {write_number(value)}")
        if not (tensors or self._programs or self._parameters):
            print("no tensors")

    def _describe_one(self, name: str) -> None:
        if name in self._programs:
            print(self._programs[name].text)
            return
        measured = self._database.statistics(name)
        stored = self._database.tensors()[name]
        self._console.print(tensors_table([stored]))
        share = f", {measured.entries / stored.tensor.size:.3g} of all indices" if stored.tensor.size else ""
        print(f"{measured.entries:,.0f} entries that are not the fill{share}")
        for axis, distinct in zip(stored.tensor.axes, measured.distinct, strict=True):
            print(f"  {axis.name}: {distinct:,.0f} of {axis.bound:,} indices have some")
        print(f"columns: {', '.join(stored.keys)}; values: {stored.value or 'every row counts as 1'}")

    def _drop(self, name: str) -> None:
        stored = self._database.drop_tensor(name)
        print(f"{name} is gone" + (f", with the table {stored.relation}" if stored.is_owned else ""))

    def _plan(self, text: str) -> None:
        print(self._database.plan(self._read_now(text)).explain())

    def _sql(self, text: str) -> None:
        print(self._database.plan(self._read_now(text)).sql(), end="")

    def _read_now(self, text: str) -> se.Program:
        return self._with_what_it_reads(self._part(text, Parameters(outer=self._parameters)))

    def _set_rows(self, text: str) -> None:
        if not text.isdigit():
            raise se.SparseEinsumError(f"\\rows {text}: give a whole number, as in \\rows 50")
        self._rows = int(text)

    def _switch_timing(self, _: str) -> None:
        self._shows_time = not self._shows_time
        print(f"timing is {'on' if self._shows_time else 'off'}")

    def _help(self, name: str) -> None:
        if not name:
            print(_HELP, end="")
            return
        found = [function for function in functions() if function.name == name]
        if not found:
            raise se.SparseEinsumError(f"there is no array function {name}; their names begin with tensor_")
        for function in found:
            arguments = ", ".join(f"{argument.name} {argument.type}" for argument in function.arguments)
            print(f"{function.name}({arguments}) -> {function.returns}")
            print(f"  {function.description}\n  {function.example}")

    def _quit(self, _: str) -> None:
        raise Quit

"""The shell: runs SQL and programs on one database, from a prompt or from a script on standard input."""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import duckdb

import sparseeinsum as se
from sparseeinsum.cli.database_opening import open_database
from sparseeinsum.cli.display import duration, tensors_table
from sparseeinsum.cli.output import print_parts, print_preview, print_table
from sparseeinsum.cli.shell_input import InputKind, NextLine, ShellInput, inputs, read_line
from sparseeinsum.environment.extras import imported
from sparseeinsum.errors import PackageError
from sparseeinsum.kernels.array_functions import array_functions
from sparseeinsum.language.lowering import lower
from sparseeinsum.language.matrix_statements import Shapes
from sparseeinsum.language.parameters import Parameters
from sparseeinsum.language.parse_trees import raise_error
from sparseeinsum.language.program_files import read_statements
from sparseeinsum.language.scalar import write_number
from sparseeinsum.language.syntax import Assignment, Definition, SourceText, Statement
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.plans.preview import rows_table
from sparseeinsum.plans.units import write_rows

_HELP = """\
SQL ends with a semicolon and runs as it is. A program is a line such as
  Y[i] = sum(A[i, j] * X[j])
and shows its result. Later programs can read the result by its name; they compute it again.
Several statements on a line are separated by semicolons; only results that no statement reads are shown.
  param eta = 0.1          a number that later programs can read
  include "layers.ein"     the declarations and statements of a file

  \\d               list the tensors of the database and the programs so far
  \\d NAME          describe a tensor: entries, distinct indices, columns
  \\drop NAME       drop a tensor, and the table that it was loaded into
  \\plan PROGRAM    show the plan of a program and its alternatives
  \\sql PROGRAM     show the SQL of a program
  \\rows NUMBER     set the number of rows of results to show
  \\timing          switch the display of times on or off
  \\h               show this help; \\h NAME: describe an array function
  \\q               quit; so does the end of the input
"""

_WRITING = ("INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "COPY")  # for these, the number of rows is shown


class Quit(Exception):  # noqa: N818  # not an error
    """Raised by the command q, to leave the shell."""


def shell(arguments: argparse.Namespace) -> None:
    """Open the database, and run the inputs of the user or of a script until they end."""
    database = se.connect() if arguments.database is None else open_database(arguments.database)
    with database:
        session = ShellSession(database)
        if sys.stdin.isatty():
            _converse(session)
        else:
            _run_script(session)


def _prompt(session: "ShellSession") -> NextLine:
    """The function that reads lines, with history and completion if the package for them is installed."""
    try:
        prompt = imported("sparseeinsum.cli.shell_prompt", "shell", "history and completion").Prompt(session.words)
    except PackageError as error:
        print(f"without history and completion: {error}", file=sys.stderr)
        return read_line
    next_line: NextLine = prompt.next_line
    return next_line


def _converse(session: "ShellSession") -> None:
    """Run inputs from a terminal; errors are printed, and the session goes on."""
    print(f"sparseeinsum {se.__version__} on {session.title}. Enter SQL; or programs; \\h for help, \\q to quit")
    next_line = _prompt(session)
    with _until_quit():
        for user_input in inputs(next_line, session.dialect):
            try:
                session.run(user_input)
            except KeyboardInterrupt:
                print("stopped", file=sys.stderr)
            except Quit:
                raise
            except Exception as error:
                print(_message(error), file=sys.stderr)


def _run_script(session: "ShellSession") -> None:
    """Run inputs from standard input. The first error ends the script, because later inputs may rely on what failed."""
    lines = sys.stdin.read().splitlines()
    lines.reverse()
    with _until_quit():
        for user_input in inputs(lambda _: lines.pop() if lines else None, session.dialect):
            try:
                session.run(user_input)
            except (se.EngineError, session.errors) as error:
                raise se.SparseEinsumError(_message(error)) from error


@contextmanager
def _until_quit() -> Iterator[None]:
    """Ends the block without an error when the user quits."""
    try:
        yield
    except Quit:
        return


def _message(error: Exception) -> str:
    """The message of an error; for a generated statement, that of the database, without the statement."""
    if not isinstance(error, se.SparseEinsumError):
        return f"{type(error).__name__}: {error}".rstrip()
    cause = error.__cause__ if isinstance(error, se.EngineError) else None
    return str(error if cause is None else cause).rstrip()


@dataclass(frozen=True, slots=True)
class _EnteredProgram:
    """Program text that the user entered, and its statements, with the values of parameters at that time."""

    text: str
    statements: tuple[Statement, ...]

    @property
    def is_program(self) -> bool:
        """Whether it computes something, rather than only declares."""
        return any(isinstance(statement, Assignment) for statement in self.statements)

    def program(self, shapes: Shapes, earlier: tuple[Statement, ...] = ()) -> se.Program:
        """The program of `earlier` statements and its own; `shapes` looks up stored tensors."""
        return lower((*earlier, *self.statements), SourceText(self.text), shapes=shapes)


class ShellSession:
    """The state of a shell: the database, the programs and parameters so far, and settings."""

    def __init__(self, database: se.Database) -> None:
        self._database = database
        self._is_duckdb = isinstance(database.connection, duckdb.DuckDBPyConnection)
        self._programs: dict[str, _EnteredProgram] = {}  # by the names that they assign or declare
        self._definitions: dict[str, Definition] = {}
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
        # The class of errors of the engine's driver.
        self.errors: type[Exception] = duckdb.Error if self._is_duckdb else type(database.connection).Error

    @property
    def dialect(self) -> str:
        """The name of the SQL dialect, for sqlglot."""
        return "duckdb" if self._is_duckdb else "postgres"

    @property
    def title(self) -> str:
        """The name of the engine, for users."""
        return "DuckDB" if self._is_duckdb else "PostgreSQL"

    def words(self) -> list[str]:
        """The words that can be completed: commands, tensors, programs and SQL functions."""
        commands = [f"\\{command}" for command in self._commands]
        names = {function.name for function in array_functions()}
        tensors: Iterable[str] = ()
        with suppress(se.SparseEinsumError):  # for example in a failed transaction
            tensors = self._database.tensors()
        return [*commands, *tensors, *self._programs, *sorted(names)]

    def run(self, user_input: ShellInput) -> None:
        """Run one input.

        Raises:
            Quit: The input is the command q.
        """
        start = time.perf_counter()
        match user_input.kind:
            case InputKind.COMMAND:
                self._run_command(user_input.text)
            case InputKind.PROGRAM:
                self._run_program(user_input.text)
            case InputKind.SQL:
                self._run_sql(user_input.text)
        if self._shows_time:
            print(f"Time: {duration(time.perf_counter() - start)}")

    def _run_command(self, text: str) -> None:
        name, _, argument = text.removeprefix("\\").partition(" ")
        command = self._commands.get(name)
        if command is None:
            raise se.SparseEinsumError(f"there is no command \\{name}; \\h lists the commands")
        command(argument.strip())

    def _run_program(self, text: str) -> None:
        """Run a program together with the earlier programs that it reads, and show its outputs."""
        parameters = Parameters(outer=self._parameters)
        entered = self._parse(text, parameters)
        if entered.is_program:
            outputs = entered.program(self._database.shape_of).outputs
            results = self._database.run(self._with_earlier_programs(entered), outputs=outputs)
            for name in outputs:
                print_preview(results[name].preview(self._rows))
        for statement in entered.statements:
            if isinstance(statement, Assignment):
                self._programs[statement.target.tensor] = entered
            elif isinstance(statement, Definition):
                self._definitions[statement.name] = statement
            else:
                self._programs[statement.tensor] = entered
                if not entered.is_program:
                    print(f"declared; programs that read {statement.tensor} check the declaration")
        self._parameters = parameters.values

    def _parse(self, text: str, parameters: Parameters) -> _EnteredProgram:
        """The program that the user entered, after the functions that earlier programs define."""
        statements = read_statements(SourceText(text), Path(), parameters, raise_error)
        return _EnteredProgram(text, (*self._definitions.values(), *statements))

    def _with_earlier_programs(self, entered: _EnteredProgram) -> se.Program:
        """The program together with the earlier programs that it reads, directly or indirectly."""
        shapes = self._database.shape_of
        programs: list[_EnteredProgram] = []

        def add(program: _EnteredProgram) -> None:
            for name in program.program(shapes).inputs if program.is_program else ():
                earlier = self._programs.get(name)
                if earlier is not None and earlier != program and earlier not in programs:
                    add(earlier)
            programs.append(program)

        add(entered)
        statements = tuple(statement for program in programs[:-1] for statement in program.statements)
        return entered.program(shapes, statements)

    def _run_sql(self, text: str) -> None:
        """Run a SQL statement, and show its first rows or the number of changed rows."""
        cursor = self._database.connection.execute(text)
        names = [column[0] for column in cursor.description or ()]
        writes = text.split(maxsplit=1)[0].upper() in _WRITING
        if cursor.description is None or (writes and names == ["Count"]):  # psycopg, DuckDB
            (count,) = (cursor.fetchone() or (-1,)) if names else (cursor.rowcount,)
            if writes and count >= 0:
                print(write_rows(count))
            return
        rows = cursor.fetchmany(self._rows + 1)
        if not rows and names == ["Success"]:  # DuckDB, for a statement that returns nothing
            return
        print_table(rows_table(names, rows[: self._rows]))
        if len(rows) > self._rows:
            print(f"the first {self._rows:,} rows; \\rows NUMBER shows more")

    def _describe(self, name: str) -> None:
        """List tensors, programs and parameters, or describe the tensor or program `name`."""
        tensors = self._database.tensors()
        if name:
            self._describe_one(name)
            return
        if tensors:
            print_table(tensors_table(tensors.values()))
        for program in dict.fromkeys(self._programs.values()):
            print(program.text)
        for name, value in self._parameters.items():
            print(f"param {name} = {write_number(value)}")
        if not (tensors or self._programs or self._parameters):
            print("no tensors")

    def _describe_one(self, name: str) -> None:
        """Print the text of a program, or the measured properties of a stored tensor."""
        if name in self._programs:
            print(self._programs[name].text)
            return
        measured = self._database.statistics(name)
        stored = self._database.tensors()[name]
        print_table(tensors_table([stored]))
        share = f", {measured.entries / stored.tensor.size:.3g} of all indices" if stored.tensor.size else ""
        print(f"{measured.entries:,.0f} entries that are not the fill{share}")
        for axis, distinct in zip(stored.tensor.axes, measured.distinct, strict=True):
            print(f"  {axis.name}: {distinct:,.0f} of {axis.bound:,} indices have entries")
        print(f"columns: {', '.join(stored.keys)}; values: {stored.value or '1 in every row'}")

    def _drop(self, name: str) -> None:
        stored = self._database.drop_tensor(name)
        print(f"{name} is dropped" + (f", with its table {stored.relation}" if stored.is_owned else ""))

    def _plan(self, text: str) -> None:
        print_parts(self._database.plan(self._parse_with_earlier_programs(text)).explanation().parts())

    def _sql(self, text: str) -> None:
        print(self._database.plan(self._parse_with_earlier_programs(text)).sql(), end="")

    def _parse_with_earlier_programs(self, text: str) -> se.Program:
        return self._with_earlier_programs(self._parse(text, Parameters(outer=self._parameters)))

    def _set_rows(self, text: str) -> None:
        if not text.isdigit():
            raise se.SparseEinsumError(f"\\rows {text}: give a whole number, as in \\rows 50")
        self._rows = int(text)

    def _switch_timing(self, _: str) -> None:
        self._shows_time = not self._shows_time
        print(f"timing is {'on' if self._shows_time else 'off'}")

    def _help(self, name: str) -> None:
        """Print the help of the shell, or of the array function `name`."""
        if not name:
            print(_HELP, end="")
            return
        overloads = [function for function in array_functions() if function.name == name]
        if not overloads:
            raise se.SparseEinsumError(f"there is no array function {name}; their names begin with tensor_")
        for function in overloads:
            arguments = ", ".join(f"{argument.name} {argument.type}" for argument in function.arguments)
            print(f"{function.name}({arguments}) -> {function.returns}")
            print(f"  {function.description}\n  {function.example}")

    def _quit(self, _: str) -> None:
        raise Quit

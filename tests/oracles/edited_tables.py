"""Runs of programs between edits of their tables, whose results are those of numpy for the tables as they are."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import psycopg
from hypothesis import strategies as st
from random_edits import MATRICES, MATRIX, SIZE, VECTOR, VECTORS, Array, Edit, Layout, edits

import sparseeinsum as se
from sparseeinsum.semantics.dense import evaluate_program

PROGRAMS = (
    "Y[i] = sum(A[i, j] * X[j])",
    "Y[i] = max(A[i, j] + X[j])",
    "Y[i, k] = sum(A[i, j] * A[k, j])",
    "Y[i] = sum(exp(A[i, j]) * X[j])",
    "Y[j] = max(A[i, j])",
    "T[i, k] = sum(A[i, j] * A[j, k])\nY[i] = sum(T[i, k] * X[k])",
)
RUNNERS = ("program", "plan", "another database", "a new database", "prepared", "supplied", "sql")
_IMPATIENT = "SET lock_timeout = '50ms'; SET statement_timeout = '20s'"  # locks of a transaction that stays open


def _selected(connection: Any, query: str) -> Any:  # noqa: ANN401  # of either engine
    """A cursor of a query that is not prepared, since that would fail after the columns of a table have changed."""
    if isinstance(connection, duckdb.DuckDBPyConnection):
        return connection.execute(query)
    return connection.execute(query, prepare=False)


def has_errors(connection: Any, text: str) -> list[bool]:  # noqa: ANN401  # of either engine
    """Run statements, of which some may be refused; for each whether it was."""
    return [_is_refused(connection, statement) for statement in text.split("; ") if statement]


def _is_refused(connection: Any, statement: str) -> bool:  # noqa: ANN401  # of either engine
    try:
        connection.execute(statement)
    except (duckdb.Error, psycopg.Error):
        return True
    return False


@dataclass
class Sessions:
    """A database with the other sessions that edit it.

    Attributes:
        db: The database.
        others: Sessions by the places of edits.
        matrix: How A is stored.
        vector: How X is stored.
    """

    db: se.Database
    others: dict[str, Any]
    matrix: Layout
    vector: Layout
    is_open: dict[str, bool] = field(default_factory=dict)

    @classmethod
    def of(cls, db: se.Database, matrix: Layout, vector: Layout) -> "Sessions":
        places = ("another session", "open transaction", "second")
        return cls(db, {place: _another(db) for place in places}, matrix, vector)

    def load(self) -> None:
        if not isinstance(self.db.connection, duckdb.DuckDBPyConnection):
            self.db.connection.execute(_IMPATIENT)
        self.matrix.load(self.db, MATRIX)
        self.vector.load(self.db, VECTOR)

    def edit(self, edit: Edit) -> list[bool]:
        """Make an edit; whether its statements were refused."""
        if edit.text.startswith("CALL "):
            return [self._call(*edit.text.split()[1:])]
        is_here = edit.where.endswith("here")
        connection = self.db.connection if is_here else self.others[edit.where]
        text = edit.text
        if edit.where.startswith("open transaction") and not text.startswith(("COMMIT", "ROLLBACK", "VACUUM")):
            text = text if self.is_open.get(edit.where) else f"BEGIN; {text}"
            self.is_open[edit.where] = "COMMIT" not in text
        elif text in ("COMMIT", "ROLLBACK"):
            self.is_open[edit.where] = False
        return has_errors(connection, text)

    def _call(self, what: str, tensor: str, *numbers: str) -> bool:
        layout = self.matrix if tensor == "A" else self.vector
        if layout.table != tensor:
            return False
        try:
            if what == "load":
                layout.load(self.db, (MATRIX if tensor == "A" else VECTOR) * 2)
            else:
                *place, value = numbers[-len(self.db.tensors()[tensor].tensor.axes) - 1 :]
                self.db.append(tensor, (np.array([[int(index)] for index in place]), np.array([float(value)])))
        except (se.SparseEinsumError, duckdb.Error, psycopg.Error):
            return True
        return False

    def dense(self, runner: str) -> dict[str, Array]:
        """The tensors as the session of a runner sees them, without those whose tables are none."""
        connection = self.others["second"] if runner.endswith("database") else self.db.connection
        arrays = {}
        for layout in (self.matrix, self.vector):
            relation = "edges" if layout.table == "base" else layout.table
            try:
                cursor = _selected(connection, f"SELECT * FROM {relation}")
                columns, rows = [column[0] for column in cursor.description or ()], cursor.fetchall()
            except (duckdb.Error, psycopg.Error):
                continue
            array = layout.dense(columns, rows)
            if array is not None:
                arrays[layout.tensor] = array
        return arrays


def _another(db: se.Database) -> Any:  # noqa: ANN401  # a connection of either engine
    if isinstance(db.connection, duckdb.DuckDBPyConnection):
        return db.connection.cursor()
    connection = psycopg.connect(db.connection.info.dsn, autocommit=True, prepare_threshold=None)
    connection.execute(f"SET search_path = main, public; {_IMPATIENT}")
    return connection


@dataclass
class EditedRuns:
    """Runs of a program on a database, beside a copy of it that has the same edits.

    DuckDB's copy is read instead of the database: a query of the database would make a run look for changes.

    Attributes:
        sessions: The database.
        copy: The copy; the database itself where that changes nothing.
        program: The program.
        edits: The edits up to now.
        accepted: Those that the engine has not refused.
        results: The results that were compared; other runs were refused.
    """

    sessions: Sessions
    copy: Sessions
    program: str
    edits: int = 0
    accepted: int = 0
    results: int = 0

    def __post_init__(self) -> None:
        db = self.sessions.db
        self._read = {name for name in "AX" if f"{name}[" in self.program}
        self._has_fill_0 = not re.search(r"exp|max", self.program)
        self._plan = db.plan(self.program)
        inputs = [max(self._read)]
        self._prepared = db.prepare(self.program, inputs)
        self._supplied = {inputs[0]: MATRIX if inputs == ["A"] else VECTOR}
        self._second = se.connect(self.sessions.others["second"])

    def step(self, edit: Edit, runners: Sequence[str]) -> bool:
        """Make an edit and run; whether the copy is still one."""
        self.edits += 1
        if edit.when is None:
            if not self._edit(edit):
                return False
            for runner in runners:
                self._check(runner)
            return True
        before = self.copy.dense(runners[0])
        with self._during(edit, edit.when) as outcomes:
            results = self._run(runners[0])
        if not outcomes and not self._edit(edit):
            return False
        if outcomes and self.copy is not self.sessions and self.copy.edit(edit) != outcomes[0]:
            return False
        self._compare(runners[0], results, [before, self.copy.dense(runners[0])])
        self._check(runners[-1])
        return True

    def _edit(self, edit: Edit) -> bool:
        outcome = self.sessions.edit(edit)
        self.accepted += not all(outcome)
        return self.copy is self.sessions or self.copy.edit(edit) == outcome

    @contextmanager
    def _during(self, edit: Edit, query: int) -> Iterator[list[list[bool]]]:
        """Make an edit in the context, at a query of the database."""
        engine, outcomes, count = self.sessions.db._engine, list[list[bool]](), 0
        rows = type(engine).rows

        def edited(self_: Any, statement: Any) -> Any:  # noqa: ANN401  # of the engine's method
            nonlocal count
            count += self_ is engine
            if count == query and not outcomes:
                outcomes.append(self.sessions.edit(edit))
                self.accepted += not all(outcomes[0])
            return rows(self_, statement)

        type(engine).rows = edited  # type: ignore[method-assign,assignment]
        try:
            yield outcomes
        finally:
            type(engine).rows = rows  # type: ignore[method-assign]

    def _check(self, runner: str) -> None:
        self._compare(runner, self._run(runner), [self.copy.dense(runner)])

    def _run(self, runner: str) -> Array | None:
        """The result of a run; None if it was refused."""
        try:
            return self._runner(runner)()
        except (se.SparseEinsumError, duckdb.Error, psycopg.Error) as error:
            if isinstance(error, duckdb.InternalException | duckdb.FatalException):
                raise
            return None

    def _runner(self, runner: str) -> Callable[[], Array]:
        db, program = self.sessions.db, self.program
        match runner:
            case "plan":
                return lambda: db.run(self._plan)["Y"].to_numpy()
            case "another database":
                return lambda: self._second.run(program)["Y"].to_numpy()
            case "a new database":
                return lambda: se.connect(self.sessions.others["second"]).run(program)["Y"].to_numpy()
            case "prepared":
                return lambda: self._prepared.run()["Y"].to_numpy()
            case "supplied":
                return self._run_supplied
            case "sql" if isinstance(db.connection, duckdb.DuckDBPyConnection) and self._has_fill_0:
                return self._run_sql
            case _:
                return lambda: db.run(program)["Y"].to_numpy()

    def _run_supplied(self) -> Array:
        ((name, array),) = self._supplied.items()
        array = array + 1.0
        result = self._prepared.run(**{name: array})["Y"].to_numpy()
        self._supplied = {name: array}
        return result

    def _run_sql(self) -> Array:
        rows = self.sessions.db.connection.execute(f"FROM einsum('{self.program}')").fetchall()
        rank = len(self.program.splitlines()[-1].partition("]")[0].split(","))
        result = np.zeros((SIZE,) * rank)
        for *place, value in rows:
            result[tuple(place)] = value
        return result

    def _compare(self, runner: str, actual: Array | None, states: Sequence[dict[str, Array]]) -> None:
        if actual is None:
            return
        self.results += 1
        supplied = self._supplied if runner in ("prepared", "supplied") else {}
        arrays = [state | supplied for state in states]
        expected = [self._expected(state) for state in arrays if self._read <= state.keys()]
        assert any(_is_close(actual, array) for array in expected), f"{runner}: {actual} is none of {expected}"

    def _expected(self, arrays: dict[str, Array]) -> Array:
        with np.errstate(all="ignore"):
            return evaluate_program(se.program(self.program), arrays)["Y"]

    def close(self) -> None:
        """Close the sessions of the database, and those of its copy."""
        sessions = (self.sessions, self.copy) if self.copy is not self.sessions else (self.sessions,)
        closes: list[Callable[[], object]] = [self._prepared.close]
        closes += [other.close for side in sessions for other in side.others.values()]
        for close in closes:
            with suppress(duckdb.Error, psycopg.Error, se.SparseEinsumError):
                close()


def run_edits(data: st.DataObject, db: se.Database, engine: str, folder: str, most: int) -> EditedRuns:
    """Make a random sequence of edits of an empty database, with runs between; returns them, which are closed.

    Raises:
        AssertionError: A result differs from numpy's.
    """
    matrix = MATRICES[data.draw(st.sampled_from(list(MATRICES)))]
    vector = VECTORS[data.draw(st.sampled_from(list(VECTORS)))]
    program = data.draw(st.sampled_from(PROGRAMS))
    with _copy(db) as copy:
        sessions = _loaded(db, matrix, vector)
        runs = EditedRuns(sessions, sessions if copy is None else _loaded(copy, matrix, vector), program)
        try:
            for _ in range(data.draw(st.integers(1, most))):
                edit = data.draw(edits(matrix, vector, engine, folder))
                runners = data.draw(st.lists(st.sampled_from(RUNNERS), min_size=1, max_size=2))
                if not runs.step(edit, runners):
                    break
        finally:
            runs.close()
        return runs


@contextmanager
def _copy(db: se.Database) -> Iterator[se.Database | None]:
    if not isinstance(db.connection, duckdb.DuckDBPyConnection):
        yield None
        return
    with se.connect() as copy:
        yield copy


def _loaded(db: se.Database, matrix: Layout, vector: Layout) -> Sessions:
    sessions = Sessions.of(db, matrix, vector)
    sessions.load()
    return sessions


def _is_close(actual: Array, expected: Array) -> bool:
    with np.errstate(all="ignore"):
        return actual.shape == expected.shape and np.allclose(actual, expected, rtol=1e-9, equal_nan=True)

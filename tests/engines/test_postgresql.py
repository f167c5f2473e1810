"""Transactions, schemas, names, types and row formats work as PostgreSQL defines them."""

import datetime as dt
import socket
import uuid
from pathlib import Path

import numpy as np
import psycopg
import pyarrow as pa
import pytest
from cancelling import cancelled
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as numpy_strategies
from reading import assert_usable, contents, engine_of, read_back

import sparseeinsum as se
from sparseeinsum.engines.postgresql import copy_format, postgresql_opening
from sparseeinsum.engines.postgresql.postgresql_engine import PostgreSQLEngine
from sparseeinsum.engines.postgresql.sessions import DatabaseSession, Isolation

pytestmark = pytest.mark.engines("postgresql", reason="all of it is of PostgreSQL alone")

PRODUCT = "C[i, k] = sum(A[i, j] * B[j, k])"
A = np.array([[0.0, 1.5, 0.0], [2.0, 0.0, -3.0]])
B = np.arange(6.0).reshape(3, 2)


@pytest.fixture
def operands(db: se.Database) -> se.Database:
    """A database with two matrices."""
    db.tensor("A", A, promoted=["dim_0", "dim_1"])
    db.tensor("B", B)
    return db


def postgresql_session(db: se.Database) -> DatabaseSession:
    engine = engine_of(db)
    assert isinstance(engine, PostgreSQLEngine)
    return engine._session


def make_edges(db: se.Database, *rows: str, columns: str = "i INTEGER, j INTEGER, v DOUBLE PRECISION") -> None:
    db.connection.execute(f"CREATE TABLE edges ({columns})")
    if rows:
        db.connection.execute(f"INSERT INTO edges VALUES {', '.join(rows)}")


class TestTables:
    @pytest.mark.parametrize(
        ("sql_type", "dtype"),
        [
            ("smallint", "int64"),
            ("bigint", "int64"),
            ("numeric(9, 0)", "int64"),
            ("numeric(9, 2)", "float64"),
            ("numeric", "float64"),
            ("real", "float32"),
            ("double precision", "float64"),
            ("boolean", "bool"),
        ],
    )
    def test_dtype_is_that_of_the_column_or_the_argument(self, db: se.Database, sql_type: str, dtype: str) -> None:
        make_edges(
            db,
            *(f"({i}, CAST({i % 2} AS {'int' if dtype == 'bool' else sql_type})::{sql_type})" for i in range(4)),
            columns=f"i BIGINT, v {sql_type}",
        )
        for expected in (None, "bool") if dtype == "bool" else (None, "float64", "float32", "int64", "bool"):
            stored = db.tensor_from_table("E", "edges", ["i"], "v", dtype=expected)
            assert stored.tensor.dtype == (expected or dtype)
            np.testing.assert_array_equal(read_back(db, "E"), [0, 1, 0, 1])

    @pytest.mark.parametrize(
        ("sql_type", "value", "dtype"),
        [
            ("double precision", "0.5", "int64"),
            ("double precision", "'nan'", "int64"),
            ("double precision", "1e19", "int64"),
            ("double precision", "1e39", "float32"),
            ("bigint", "9007199254740993", "float64"),
            ("numeric", "9223372036854775808", "int64"),
            ("integer", "2", "bool"),
        ],
    )
    def test_values_that_would_change_are_refused(self, db: se.Database, sql_type: str, value: str, dtype: str) -> None:
        make_edges(db, "(0, 1)", f"(1, {value})", columns=f"i INTEGER, v {sql_type}")
        with pytest.raises(se.DataError, match=rf"tensor E, row 1 \(counted from 0\): the value v is .* no {dtype}"):
            db.tensor_from_table("E", "edges", ["i"], "v", dtype=dtype)
        assert db.tensors() == {}

    @pytest.mark.parametrize(
        ("rows", "message"),
        [
            (("(0, 0, 1)", "(NULL, 0, 2)"), "row 1 .*the index i is NULL"),
            (("(0, 0, 1)", "(0, 1, NULL)"), "row 1 .*the value v is NULL"),
            (("(0, 0, 1)", "(0, -1, 2)"), "row 1 .*the index j is -1"),
            (("(0, 0, 1)", "(3, 0, 2)"), "row 1 .*the index i is 3, but axis i has the bound 3"),
            (("(0, 0, 1)", "(1, 1, 1)", "(0, 0, 2)"), r"row 2 .*coordinate \(0, 0\) stands in an earlier row"),
        ],
    )
    def test_first_bad_row_is_named(self, db: se.Database, rows: tuple[str, ...], message: str) -> None:
        make_edges(db, *rows)
        with pytest.raises(se.DataError, match=message):
            db.tensor_from_table("E", "edges", ["i", "j"], "v", shape=(3, 3))
        assert_usable(db)

    def test_booleans_are_no_numbers(self, db: se.Database) -> None:
        make_edges(db, "(0, TRUE)", columns="i INTEGER, v BOOLEAN")
        with pytest.raises(se.DataError, match=r"column v of edges has type BOOLEAN.*no numbers.*read it as bool, or"):
            db.tensor_from_table("E", "edges", ["i"], "v", dtype="float64")

    def test_names_are_folded_unless_quoted(self, db: se.Database) -> None:
        db.connection.execute('CREATE TABLE Plain (Src INTEGER, "Weight" REAL); INSERT INTO plain VALUES (1, 2.5)')
        db.connection.execute('CREATE TABLE "Plain" ("order" INTEGER, v REAL); INSERT INTO "Plain" VALUES (0, 4)')
        assert db.tensor_from_table("P", "PLAIN", ["SRC"], "weight").relation == "main.plain"
        assert db.tensor_from_table("Q", '"Plain"', ["ORDER"], "v").relation == 'main."Plain"'
        np.testing.assert_array_equal(read_back(db, "P"), [0, 2.5])
        np.testing.assert_array_equal(read_back(db, "Q"), [4])

    def test_bare_names_follow_the_search_path(self, db: se.Database) -> None:
        connection = db.connection
        connection.execute("CREATE SCHEMA other; CREATE TABLE other.edges AS SELECT 0 AS i, 7.0::real AS v")
        try:
            with pytest.raises(se.CatalogueError, match="there is no table, view or file edges"):
                db.tensor_from_table("E", "edges", ["i"], "v")
            connection.execute("SET search_path = main, other, public")
            assert db.tensor_from_table("E", "edges", ["i"], "v").relation == "other.edges"
            connection.execute("CREATE TEMPORARY TABLE edges AS SELECT 0 AS i, 8.0::real AS v")
            assert db.tensor_from_table("F", "edges", ["i"], "v").relation == "pg_temp.edges"
            assert [read_back(db, name).tolist() for name in "EF"] == [[7], [8]]
        finally:
            connection.execute("DROP SCHEMA other CASCADE")

    def test_views_and_columns_without_values(self, db: se.Database) -> None:
        make_edges(db, "(0, 1, 5)", "(2, 0, 6)")
        db.connection.execute("CREATE VIEW pairs AS SELECT i, j FROM edges")
        db.tensor_from_table("E", "pairs", ["i", "j"])
        np.testing.assert_array_equal(read_back(db, "E"), [[0, 1], [0, 0], [1, 0]])

    def test_files_are_refused(self, db: se.Database) -> None:
        with pytest.raises(se.CatalogueError, match=r"PostgreSQL reads no files; load edges\.parquet with db\.tensor"):
            db.tensor_from_table("E", "edges.parquet", ["i"], "v")


class TestResults:
    def test_into_a_table_that_it_reads(self, operands: se.Database) -> None:
        db = operands
        db.run(PRODUCT, into={"C": "Scores"})
        db.tensor_from_table("S", "scores", ["i", "k"], "val", shape=(2, 2))
        db.run("D[i, k] = S[i, k] * 2", into={"D": "scores"})
        np.testing.assert_allclose(read_back(db, "S"), 2 * A @ B)

    def test_names_of_any_length_and_keywords(self, db: se.Database) -> None:
        rows, columns = "a" * 70 + "1", "a" * 70 + "2"
        db.tensor("user", A, axes=["order", "end"])
        results = db.run(f"T{'t' * 70}[{rows}, {columns}] = user[{rows}, {columns}] * 2")
        (result,) = results.values()
        np.testing.assert_array_equal(result.to_numpy(), 2 * A)
        assert result.df().columns.tolist() == [rows, columns, "val"]

    def test_python_functions_are_refused(self, operands: se.Database) -> None:
        @se.function
        def halved(u: float) -> float:
            return u / 2

        with pytest.raises(se.PlanError, match="halved is a Python function, and PostgreSQL has none of those yet"):
            operands.run("C[i] = sum(halved(A[i, j]))")

    def test_numbers_beyond_the_dtype_end_the_run(self, db: se.Database) -> None:
        db.tensor("A", np.array([1e200, 1.0]), promoted=["dim_0"])
        before = contents(db)
        with pytest.raises(se.EngineError, match=r"out of range|turned NaN or infinite"):
            db.run("C[i] = A[i] * A[i]")
        assert contents(db) == before
        assert_usable(db)

    @pytest.mark.parametrize("rows", [1, 5000])
    def test_failures_while_reading_leave_the_connection_usable(self, db: se.Database, rows: int) -> None:
        engine = engine_of(db)
        with pytest.raises(se.EngineError, match="division by zero"):
            engine.arrow(f"SELECT i, 1 / ({rows} - i) AS v FROM generate_series(1, 2 * {rows}) AS i")
        for least in (0, rows, rows + 1):
            assert engine.arrow(f"SELECT -i::SMALLINT AS i FROM generate_series({least}, {rows}) AS i").num_rows == (
                rows - least + 1
            )

    def test_rows_that_look_like_the_end_of_data(self, db: se.Database) -> None:
        ends = engine_of(db).arrow("SELECT (-1)::SMALLINT AS i FROM generate_series(1, 3000) AS t").column("i")
        np.testing.assert_array_equal(ends.to_numpy(), np.full(3000, -1))


class TestTransactions:
    def test_loading_and_running_are_part_of_the_users(self, operands: se.Database) -> None:
        db = operands
        before = contents(db)
        settings = db.connection.execute("SELECT current_setting('work_mem'), current_setting('jit')").fetchall()
        with pytest.raises(ZeroDivisionError), db.connection.transaction():
            db.tensor("N", np.eye(3))
            np.testing.assert_allclose(db.run(PRODUCT)["C"].to_numpy(), A @ B)
            db.run(PRODUCT, into={"C": "scores"})
            now = db.connection.execute("SELECT current_setting('work_mem'), current_setting('jit')").fetchall()
            assert now == settings
            _ = 1 / 0
        assert contents(db) == before

    def test_a_failure_undoes_no_more_than_itself(self, operands: se.Database) -> None:
        db = operands
        with db.connection.transaction():
            db.connection.execute("CREATE TABLE kept AS SELECT 1 AS i")
            with pytest.raises(se.DataError, match="is no int64"):
                db.tensor("N", np.array([0.5]), dtype="int64")
            with pytest.raises(se.EngineError):
                db.run("C[i, j] = sqrt(A[i, j])")
            np.testing.assert_allclose(db.run(PRODUCT)["C"].to_numpy(), A @ B)
        assert db.connection.execute("SELECT * FROM kept").fetchall() == [(1,)]

    def test_a_connection_without_autocommit(self, postgres_urls: dict[str, str], operands: se.Database) -> None:
        with psycopg.connect(postgres_urls["db"]) as connection:
            connection.execute("SET search_path = main, public")
            connection.commit()
            db = se.connect(connection)
            db.tensor("N", np.eye(2))  # in a transaction of its own
            connection.rollback()
            assert "N" in operands.tensors()
            db.run(PRODUCT, into={"C": "scores"})
            connection.rollback()
        assert operands.connection.execute("SELECT COUNT(*) FROM scores").fetchall() == [(4,)]

    def test_a_statement_that_is_cancelled_leaves_nothing(self, db: se.Database) -> None:
        db.tensor("A", np.ones((700, 700)), promoted=["dim_0", "dim_1"])
        before = contents(db)
        plan = db.plan("C[i, k] = sum(A[i, j] * A[j, k])", optimizer="relational")
        with cancelled(db.connection), pytest.raises(se.EngineError, match="canceling statement"):
            db.run(plan, into={"C": "scores"})
        assert contents(db) == before
        assert_usable(db)


def test_ctrl_c_before_commit_is_sent_rolls_back(db: se.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    session = postgresql_session(db)
    execute = psycopg.Connection._exec_command

    def interrupted(connection: psycopg.Connection, command: object, **options: object) -> object:
        if command == b"COMMIT":
            raise KeyboardInterrupt
        return execute(connection, command, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(psycopg.Connection, "_exec_command", interrupted)
        with pytest.raises(KeyboardInterrupt), session.transaction(Isolation.REPEATABLE_READ):
            session.write("CREATE TABLE lost (i INTEGER)")
    assert not session.is_in_transaction()
    assert db._engine.relations_named("lost") == []
    assert_usable(db)


class TestConnecting:
    def test_no_server(self) -> None:
        with pytest.raises(se.EngineError, match="cannot connect: "):
            se.connect("postgresql://nobody@/nothing?host=/nowhere")

    def test_connections_disable_jit(self, db: se.Database) -> None:
        assert db.connection.execute("SELECT current_setting('jit')").fetchone() == ("off",)

    def test_a_database_without_the_extension(self, postgres_urls: dict[str, str]) -> None:
        url = postgres_urls["db"].replace("/db?", "/template1?")
        with pytest.raises(se.EngineError, match="template1 lacks the functions of this package; run CREATE EXTENSION"):
            se.connect(url)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.integers(0, 5))
    columns = {}
    for place, dtype in enumerate(
        draw(st.lists(st.sampled_from(["i4", "i8", "f8", "f4", "?"]), min_size=1, max_size=3))
    ):
        values = draw(numpy_strategies.arrays(dtype, rows))
        columns[f"c{place}"] = pa.array(values)
    length = draw(st.integers(0, 4))
    numbers = draw(numpy_strategies.arrays("f8", rows * length))
    offsets = np.arange(rows + 1, dtype=np.int64) * length
    columns["v"] = pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(numbers))
    return pa.table(columns)


@given(table=tables())
def test_rows_are_read_as_they_were_written(table: pa.Table) -> None:
    data = b"".join(copy_format.encode(table))
    decoded = copy_format.decode(data, table.column_names, [copy_format.sql_type(kind) for kind in table.schema.types])
    for name in table.column_names:
        assert repr(decoded.column(name).to_pylist()) == repr(table.column(name).to_pylist())


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("VALUES (1, ARRAY[1.5, 2.5]::float8[]), (2, '{}'), (3, '{7}')", [[1.5, 2.5], [], [7.0]]),
        ("VALUES (1, '{}'::float8[]), (2, '{1}')", [[], [1.0]]),
        ("VALUES (1, '[0:1]={1,2}'::float8[]), (2, '{{3,4}}')", [[1.0, 2.0], [3.0, 4.0]]),
        ("SELECT 1, '{}'::float8[] WHERE FALSE", []),
    ],
)
@pytest.mark.parametrize("as_bytes", [False, True])
@pytest.mark.parametrize("sql_type", ["float8", "float4", "int8"])
def test_arrays_of_any_shape_are_read(
    db: se.Database, query: str, rows: list[list[float]], sql_type: str, as_bytes: bool
) -> None:
    whole = sql_type == "int8"
    text = query.replace(".5", "").replace("float8", sql_type) if whole else query.replace("float8", sql_type)
    read = postgresql_session(db).read(text, arrays_as_bytes=as_bytes)
    assert (
        read.schema.types[1].value_type
        == {"float8": pa.float64(), "float4": pa.float32(), "int8": pa.int64()}[sql_type]
    )
    assert read.column(1).to_pylist() == [[number // 1 if whole else number for number in row] for row in rows]


@pytest.mark.parametrize("sql_type", ["bool", "int4"])
def test_other_arrays_are_not_sent_as_bytes(db: se.Database, sql_type: str) -> None:
    query = f"SELECT 1 AS i, ARRAY[1, 0]::int4[]::{sql_type}[] AS val"
    assert postgresql_session(db).read(query, arrays_as_bytes=True).column(1).to_pylist() == [[1, 0]]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT NULL::float8", "a result holds NULL"),
        ("SELECT ARRAY[1, NULL]::float8[]", "an array of a result holds NULL"),
        ("SELECT '1 day'::interval AS name", "the column name of a result has the type INTERVAL, which no tensor has"),
    ],
)
@pytest.mark.parametrize("as_bytes", [False, True])
def test_values_that_are_no_numbers_are_refused(db: se.Database, query: str, message: str, as_bytes: bool) -> None:
    if as_bytes:
        message = message.replace("an array of a result holds NULL", "an array of 2 elements, holds NULL")
    with pytest.raises(se.EngineError, match=message):
        postgresql_session(db).read(query, arrays_as_bytes=as_bytes)
    assert_usable(db)


def test_a_server_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql_opening, "_TIMEOUT_SECONDS", 2)  # libpq's least
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / ".s.PGSQL.5432"))
        silent.listen()
        with pytest.raises(se.EngineError, match=r"cannot connect: .*timeout"):
            se.connect(f"postgresql://me@/db?host={tmp_path}")


def test_keys_of_all_types_beside_arrays_of_different_lengths() -> None:
    days = pa.array([dt.date(2026, 11, 23), dt.date(1969, 12, 31)])
    moments = pa.array([dt.datetime(2026, 11, 23, 12, 30), dt.datetime(1999, 1, 1)], pa.timestamp("us"))
    identifiers = pa.array([uuid.UUID(int=1), uuid.UUID(int=2**127)], pa.uuid())
    arrays = pa.array([[1.0, 2.0, 3.0], [4.0]], pa.large_list(pa.float64()))
    table = pa.table({"day": days, "moment": moments, "id": identifiers, "v": arrays})
    data = b"".join(copy_format.encode(table))
    types = [copy_format.sql_type(kind) for kind in table.schema.types]
    assert copy_format.decode(data, table.column_names, types).to_pylist() == table.to_pylist()

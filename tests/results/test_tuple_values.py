"""Results of many tuples that PostgreSQL sends in one value are those of rows, and numpy's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from indexing import compress_wherever_possible
from numpy.typing import NDArray
from program_cases import Case, check
from random_programs import FAMILIES, cases
from random_runs import random_runs

import sparseeinsum as se
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.algebra.translate import delivered_relation
from sparseeinsum.engines.postgresql import client_session, postgresql_engine, tuple_values, value_parts
from sparseeinsum.render.sql_statement import SqlStatement, ValueText

pytestmark = pytest.mark.engines("postgresql", reason="the memory of its server is not the client's")

NEVER = 1 << 62
SPECIAL = [0.5, -0.0, np.nan, np.inf, -np.inf, 1e300]
PROGRAMS = {
    "products": "Y[I, K] = sum(A[I, J] * B[J, K])",
    "whole numbers": "Y[I, J] = N[I, J] + 1",
    "float32": "Y[I, J] = F[I, J] * 2",
    "special numbers": "Y[I] = S[I]",
    "groups": "Y[J] = max(A[I, J])",
    "no entries": "Y[I, J] = A[I, J] * 0",
    "arrays": "Y[I, j] = A[I, j] * 2",
    "arrays of float32": "Y[J, i] = F[i, J] * 2",
}
PRODUCTS = {  # and whether all bytes of their entries come together
    "Y[i, k] = sum(A[i, j] * B[j, k])": True,
    "Y[h, i, k] = sum(T[h, i, j] * B[j, k])": True,
    "Y[i, k, l] = sum(A[i, j] * S[j, k, l])": True,
    "Y[i, k] = sum(A[i, j] * Z[j, k])": True,  # no entries
    "Y[k, i] = sum(A[i, j] * B[j, k])": False,  # keys of a row come last
}


@pytest.fixture
def count_values(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Returns how many results came in one value until now."""
    came: list[None] = []

    def counted(value: bytes | None, schema: Schema, row_keys: int | None) -> pa.Table:
        came.append(None)
        return tuple_values.table_of_value(value, schema, row_keys)

    monkeypatch.setattr(postgresql_engine, "table_of_value", counted)
    return lambda: len(came)


@pytest.fixture
def loaded(db: se.Database) -> se.Database:
    rng = np.random.default_rng(0)
    a, b, n = (rng.integers(1, 9, shape) * (rng.random(shape) < 0.1) for shape in ((60, 40), (40, 30), (20, 30)))
    arrays: dict[str, NDArray[Any]] = {
        "A": a / 3,
        "B": b / 7,
        "N": n * (1 << 60),
        "F": n.astype(np.float32),
        "S": np.array(SPECIAL),
    }
    for name, array in arrays.items():
        db.tensor(name, array, promoted=[f"dim_{axis}" for axis in range(array.ndim)])
    return db


@pytest.mark.parametrize("family", FAMILIES)
def test_random_programs(
    shared_db: se.Database, set_least: Callable[[int], None], count_values: Callable[[], int], family: str
) -> None:
    set_least(0)

    @random_runs(20)
    @given(st.sampled_from(["dp", "relational"]).flatmap(lambda optimizer: cases(family, optimizer)))
    def run(case: Case) -> None:
        check(shared_db, case)

    run()
    assert count_values() > 0 or family == "complex"  # whose numbers come otherwise


def test_tuples_are_those_of_rows(
    loaded: se.Database, set_least: Callable[[int], None], count_values: Callable[[], int]
) -> None:
    for number, (name, text) in enumerate(PROGRAMS.items()):
        set_least(NEVER)
        expected = loaded.run(text, optimizer="relational", layout="entries")["Y"]
        assert count_values() == number
        set_least(0)
        result = loaded.run(text, optimizer="relational", layout="entries")["Y"]
        assert count_values() == number + 1
        assert result.rows.schema.equals(expected.rows.schema), name
        assert sorted(map(repr, result.rows.to_pylist())) == sorted(map(repr, expected.rows.to_pylist()))
        np.testing.assert_array_equal(result.to_numpy(), expected.to_numpy())


def test_entries_that_come_as_bytes(
    db: se.Database,
    set_least: Callable[[int], None],
    count_values: Callable[[], int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compress_wherever_possible(monkeypatch)
    shapes = {"A": (60, 40), "B": (40, 30), "C": (40, 40), "T": (6, 10, 40), "S": (40, 5, 6), "Z": (40, 30)}
    rng = np.random.default_rng(0)
    for name, shape in shapes.items():
        entries = rng.integers(1, 9, shape) * (rng.random(shape) < 0.1) * (name != "Z")
        db.tensor(name, entries / 7, promoted=[f"dim_{axis}" for axis in range(len(shape))])
    for text, come_as_bytes in PRODUCTS.items():
        plan = db.plan(text, layout="entries")
        set_least(NEVER)
        expected = db.run(plan)["Y"].rows.to_pylist()
        set_least(0)
        assert sorted(map(repr, db.run(plan)["Y"].rows.to_pylist())) == sorted(map(repr, expected)), text
        schema = delivered_relation(plan.data.decomposed, "Y").schema
        assert count_values() > 0
        query = plan.data.statements.for_run[-1].value_text(schema)
        assert (query.row_keys is not None) == come_as_bytes, text


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_large_single_arrays(db: se.Database, count_values: Callable[[], int], dtype: str) -> None:
    array = np.random.default_rng(0).integers(-9, 9, (400, 700)).astype(dtype)
    db.tensor("X", array, dtype=dtype, fill=5)
    plan = db.plan("Y[j, i] = 3 * X[i, j]", layout="any", optimizer="dense")
    np.testing.assert_array_equal(db.run(plan)["Y"].to_numpy(), 3 * array.T)
    assert count_values() == 1


@pytest.mark.parametrize("size", [0, 1, 23, 24, 25, 48, 1000])
def test_values_come_in_parts(db: se.Database, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(value_parts, "_PART_BYTES", 24)
    session = session_of(db)
    value = bytes(number % 251 for number in range(size))
    received = session.read_bytes(f"SELECT decode('{value.hex()}', 'hex')")
    assert received is not None
    assert bytes(received) == value
    assert session.read_bytes(f"SELECT NULL::BYTEA FROM generate_series(1, {min(size, 1)})") is None


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 6, 7, 100])
@pytest.mark.parametrize("kind", ["float8", "float4", "int8"])
def test_arrays_come_in_parts(db: se.Database, monkeypatch: pytest.MonkeyPatch, kind: str, size: int) -> None:
    monkeypatch.setattr(value_parts, "_PART_BYTES", 24)
    array = np.arange(size, dtype={"float8": "f8", "float4": "f4", "int8": "i8"}[kind])
    session = session_of(db)
    value = f"SELECT '{{{', '.join(map(str, array))}}}'::{kind}[] FROM generate_series(1, 1)"
    received = session.read_bytes(value, array.itemsize)
    assert received is not None
    assert bytes(received) == array.tobytes()
    assert session.read_bytes(f"SELECT NULL::{kind}[] FROM generate_series(0, 0)", array.itemsize) is None
    assert session.read_bytes(f"{value} WHERE FALSE", array.itemsize) is None


def test_an_error_after_some_parts_leaves_the_connection_as_it_was(
    db: se.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_session, "parts_query", lambda query, item_bytes: query)
    session = session_of(db)
    parts = "SELECT i, 4, decode(repeat('00', (3 - i) / (3 - i)), 'hex') FROM generate_series(0, 3) AS i"
    with pytest.raises(se.EngineError, match="division by zero"):
        session.read_bytes(parts)
    received = session.read_bytes("SELECT 0, 4, decode('01020304', 'hex')")
    assert received is not None
    assert bytes(received) == bytes([1, 2, 3, 4])


def session_of(db: se.Database) -> client_session.ClientSession:
    engine = db._engine
    assert isinstance(engine, postgresql_engine.PostgreSQLEngine)
    assert isinstance(engine._session, client_session.ClientSession)
    return engine._session


def test_no_single_array(db: se.Database) -> None:
    """No row has a value if there is no tuple."""
    assert session_of(db).read_bytes("SELECT CAST('' AS BYTEA) WHERE FALSE") is None
    db.tensor("X", np.ones((400, 700)))
    (schema,) = [
        definition.relation.schema for definition in db.plan("Y[i, j] = X[i, j]", layout="any").data.definitions
    ]
    assert tuple_values.table_of_value(None, schema, None).num_rows == 0


# As many bytes as a value cannot have, in the state of the aggregate; and as many elements as an array cannot have.
TOO_LONG = {
    "tuples": "tensor_collected(0, array_fill(0::float8, ARRAY[60000000])) FROM generate_series(1, 3)",
    "elements": "tensor_bytes(array_fill(0::bigint, ARRAY[200000000]))",
}


@pytest.mark.parametrize("kind", TOO_LONG)
def test_more_tuples_than_fit_into_a_value_come_in_rows(
    loaded: se.Database,
    set_least: Callable[[int], None],
    count_values: Callable[[], int],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    set_least(0)
    monkeypatch.setattr(
        SqlStatement, "value_text", lambda *_: ValueText(f"SELECT {TOO_LONG[kind]}", None, is_array=False)
    )
    result = loaded.run("Y[I, K] = sum(A[I, J] * B[J, K])", optimizer="relational", layout="entries")["Y"]
    expected = loaded.run("Y[i, k] = sum(A[i, j] * B[j, k])", optimizer="dense", layout="any")["Y"]
    np.testing.assert_allclose(result.to_numpy(), expected.to_numpy())
    assert count_values() == 0

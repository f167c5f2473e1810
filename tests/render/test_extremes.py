"""relu, max and min of numbers are SQL that each engine computes fast."""

import numpy as np
import pytest

import sparseeinsum as se

# On DuckDB; PostgreSQL calls a function for every row, so that its GREATEST is fast.
OF_MANY_ROWS = {
    "relu(X[i])": "CASE WHEN u.val > 0 THEN u.val ELSE 0 END",
    "max(X[i], 0.5)": "CASE WHEN u.val > 0.5 THEN u.val ELSE 0.5 END",
    "min(X[i], Y[i])": "CASE WHEN -u.val > -v.val THEN u.val ELSE v.val END",
    "max(I[i], 3)": "CASE WHEN u.val > CAST(3 AS BIGINT) THEN u.val ELSE CAST(3 AS BIGINT) END",
    "min(I[i], 3)": "CASE WHEN u.val < CAST(3 AS BIGINT) THEN u.val ELSE CAST(3 AS BIGINT) END",
    "relu(X[i] * 2)": "tensor_map('relu(u * 2)', u.val)",
    "max(X[i] * 2, 1)": "tensor_map('max(u * 2, 1)', u.val)",
    "relu(X[i] + Y[i])": "tensor_map('relu', u.val + v.val)",
    "max(X[i] * 2, Y[i])": "GREATEST(u.val * 2.0, v.val)",
}
OF_ONE_ROW = {
    "relu(X[i])": "GREATEST(u.val, 0)",
    "max(X[i], 0.5)": "GREATEST(u.val, CAST(0.5 AS DOUBLE PRECISION))",
    "min(X[i], Y[i])": "-GREATEST(-u.val, -v.val)",
    "relu(I[i] + 1)": "GREATEST(u.val + CAST(1 AS BIGINT), 0)",
}


def load(database: se.Database) -> None:
    """Vectors with a tuple for each number."""
    rng = np.random.default_rng(0)
    for name, values in {"X": rng.random(5), "Y": rng.random(5), "I": np.arange(1, 6)}.items():
        database.tensor(name, values, layout=f"{name}[I]")


def sql_of(database: se.Database, function: str) -> str:
    """The SQL of a function of numbers, in one line."""
    load(database)
    return " ".join(database.plan(f"Z[i] = {function}", pin={"Z": "i"}).sql().split())


@pytest.mark.engines("duckdb", reason="its chunks")
@pytest.mark.parametrize("function", OF_MANY_ROWS)
def test_sql_of_an_engine_of_many_rows(db: se.Database, function: str) -> None:
    assert OF_MANY_ROWS[function] in sql_of(db, function)


@pytest.mark.engines("postgresql", reason="its rows")
@pytest.mark.parametrize("function", OF_ONE_ROW)
def test_sql_of_an_engine_of_one_row(db: se.Database, function: str) -> None:
    assert OF_ONE_ROW[function] in sql_of(db, function)

"""Small results of DuckDB, which are copied once more, are those that its threads convert to Arrow together."""

import numpy as np
import pyarrow as pa
import pytest

import sparseeinsum as se
from sparseeinsum.engines.duckdb import duckdb_engine

pytestmark = pytest.mark.engines("duckdb", reason="its queries return Arrow tables in two ways")

FILLED = np.arange(12.0).reshape(3, 4) - 5
DTYPES = ("float64", "float32", "int64", "bool", "complex128")
PROGRAMS = {"entries": "Y[I, J] = A[I, J]", "rows": "Y[I, j] = A[I, j]", "one array": "Y[i, j] = A[i, j]"}


@pytest.mark.parametrize("layout", PROGRAMS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_both_ways_return_the_same_table(
    db: se.Database, monkeypatch: pytest.MonkeyPatch, dtype: str, layout: str
) -> None:
    array = FILLED.astype(dtype)
    db.tensor("A", array)
    plan = db.plan(PROGRAMS[layout])
    tables: list[pa.Table] = []
    for most_rows in (-1, 1 << 40):
        monkeypatch.setattr(duckdb_engine, "MOST_FETCHED", most_rows)
        result = db.run(plan)["Y"]
        np.testing.assert_array_equal(result.to_numpy(), array)
        tables.append(result.rows)
    converted, fetched = tables
    assert fetched.schema.equals(converted.schema)
    assert sorted(map(repr, fetched.to_pylist())) == sorted(map(repr, converted.to_pylist()))


def test_a_result_without_rows(db: se.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    db.tensor("A", np.zeros((3, 4)), promoted=["dim_0", "dim_1"])
    for most_rows in (-1, 1 << 40):
        monkeypatch.setattr(duckdb_engine, "MOST_FETCHED", most_rows)
        result = db.run("Y[I, J] = 2 * A[I, J]")["Y"]
        assert result.rows.num_rows == 0
        np.testing.assert_array_equal(result.to_numpy(), np.zeros((3, 4)))

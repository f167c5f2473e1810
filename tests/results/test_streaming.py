"""Streams return batches while they are computed, and leave the database as it was however they end."""

import gc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psycopg
import pyarrow as pa
import pytest
from any_sql import run_sql
from numpy.typing import NDArray
from pyarrow import parquet
from reading import assert_usable, contents

import sparseeinsum as se
from sparseeinsum.engines.postgresql import copy_format
from sparseeinsum.results import entry_tables, results

pytestmark = pytest.mark.engines("duckdb", "postgresql")

A = np.array([[0.0, 1.5, 0.0], [2.0, 0.0, -3.0]])
OUTER = "Y[i, j] = exp(U[i] * V[j])\nZ[i] = U[i]"
SIZE = 80


@pytest.fixture
def wide(db: se.Database) -> se.Database:
    """A database whose results have some thousands of entries."""
    db.tensor("U", np.linspace(-1, 1, SIZE), promoted=["dim_0"])
    db.tensor("V", np.linspace(0.5, 1, SIZE), promoted=["dim_0"])
    db.tensor("A", A)
    return db


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches have a hundred numbers, so that results consist of several batches."""
    monkeypatch.setattr(results, "BATCH_NUMBERS", 100)
    monkeypatch.setattr(entry_tables, "BATCH_NUMBERS", 100)


def written(labels: str) -> str:
    """A program whose result has these labels, promoted or not."""
    i, j = labels.split(", ")
    return f"Y[{labels}] = exp(U[{i}] * V[{j}])"


def dense(batches: pa.RecordBatchReader | Iterator[pa.RecordBatch], shape: tuple[int, ...]) -> NDArray[np.float64]:
    """The dense array of batches, each of which is small enough; no index occurs twice."""
    array = np.zeros(shape)
    is_set = np.zeros(shape, bool)
    for batch in batches:
        assert 0 < batch.num_rows <= 102  # rows of a batch; the header or the end of the data counts as one more
        *places, values = (column.to_numpy() for column in batch.columns)
        assert not is_set[tuple(places)].any()
        is_set[tuple(places)] = True
        array[tuple(places)] = values
    return array


EXPECTED = np.exp(np.outer(np.linspace(-1, 1, SIZE), np.linspace(0.5, 1, SIZE)))


@pytest.mark.parametrize("labels", ["i, j", "I, j", "i, J", "I:7, J:33", "I:80, J:80"])
def test_entries_of_every_layout(wide: se.Database, labels: str) -> None:
    before = contents(wide)
    with wide.stream(written(labels)) as stream:
        assert list(stream) == ["Y"]
        reader = stream["Y"]
        assert reader.schema.names == ["i", "j", "val"]
        np.testing.assert_allclose(dense(reader, EXPECTED.shape), EXPECTED)
    assert contents(wide) == before
    assert_usable(wide)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex128"])
def test_batches_equal_results(wide: se.Database, dtype: str) -> None:
    wide.tensor("A", A.astype(dtype), fill=1)
    result = wide.run("Y[i, j] = A[i, j]")["Y"].arrow()
    with wide.stream("Y[i, j] = A[i, j]") as stream:
        table = stream["Y"].read_all()
    assert table.schema.equals(result.schema, check_metadata=True)
    assert sorted(table.to_pylist(), key=repr) == sorted(result.to_pylist(), key=repr)


def test_results_without_entries_or_axes(wide: se.Database) -> None:
    with wide.stream("Y[i] = sum(A[i, j] * 0)\nS[] = sum(A[i, j])") as stream:
        assert (len(stream), stream["S"].read_all().to_pydict()) == (2, {"val": [0.5]})
        empty = stream["Y"].read_all()
        assert empty.column_names == ["i", "val"]
        assert not any(empty["val"].to_pylist())


def test_results_are_read_in_any_order_and_again(wide: se.Database) -> None:
    plan = wide.plan(OUTER, outputs=["Y"])
    with wide.stream(plan) as stream:
        for name in ("Z", "Y", "Z"):
            expected = EXPECTED if name == "Y" else np.linspace(-1, 1, SIZE)
            np.testing.assert_allclose(dense(stream[name], expected.shape), expected)
        with pytest.raises(KeyError):
            stream["X"]


def test_one_reader_at_a_time(wide: se.Database) -> None:
    with wide.stream(OUTER) as stream:
        reader = stream["Y"]
        reader.read_next_batch()
        with pytest.raises(se.EngineError, match="Y is being read; read it to its end, or drop its reader, before Z"):
            stream["Z"]
        del reader
        np.testing.assert_allclose(dense(stream["Z"], (SIZE,)), np.linspace(-1, 1, SIZE))
    assert_usable(wide)


def test_a_reader_that_was_closed_early_raises_an_error(wide: se.Database) -> None:
    with wide.stream(OUTER) as stream:
        reader = stream["Y"]
        reader.read_next_batch()
    assert "closed" in repr(stream)
    with pytest.raises(se.EngineError, match="closed before the last entry of Y was read"):
        reader.read_all()
    with pytest.raises(se.EngineError, match="the stream that had Y is closed"):
        stream["Y"]
    assert_usable(wide)


def test_a_discarded_reader_ends_the_transaction(wide: se.Database) -> None:
    before = contents(wide)
    reader = wide.stream(OUTER)["Y"]
    reader.read_next_batch()
    del reader
    assert contents(wide) == before
    assert_usable(wide)
    np.testing.assert_allclose(dense(wide.stream(OUTER)["Y"], EXPECTED.shape), EXPECTED)
    gc.collect()
    assert_usable(wide)


def test_an_error_of_the_reader_ends_the_transaction(wide: se.Database) -> None:
    before = contents(wide)
    with pytest.raises(ZeroDivisionError), wide.stream(OUTER) as stream:
        stream["Y"].read_next_batch()
        _ = 1 / 0
    assert contents(wide) == before
    assert_usable(wide)


def test_errors_in_later_batches_are_raised(wide: se.Database) -> None:
    """Values become infinite in the last rows, after some batches were read."""
    wide.tensor("U", np.linspace(0, 800, SIZE), promoted=["dim_0"])
    before = contents(wide)
    with (
        pytest.raises(se.EngineError, match=r"turned NaN or infinite|out of range") as caught,
        wide.stream("Y[i, j] = exp(U[i] * V[j])") as stream,
    ):
        stream["Y"].read_all()
    assert "SELECT" in str(caught.value.statement)
    assert contents(wide) == before
    assert_usable(wide)


def test_errors_of_planning_leave_no_transaction(wide: se.Database) -> None:
    for program, error in (("Y[i] = sum(Nothing[i, j])", se.CatalogueError), ("Y[i] =", se.ParseError)):
        with pytest.raises(error):
            wide.stream(program)
    assert_usable(wide)


def test_the_connection_is_busy_until_the_end(wide: se.Database) -> None:
    with wide.stream(OUTER) as stream:
        reader = stream["Y"]
        reader.read_next_batch()
        with pytest.raises(se.EngineError):
            wide.run("S[] = sum(U[i])")
        del reader
    assert_usable(wide)


@pytest.mark.engines("duckdb", reason="no memory of a server is limited")
def test_results_larger_than_the_memory_limit(db: se.Database) -> None:
    size = 6000
    db.tensor("U", np.ones(size), promoted=["dim_0"])
    program, limit = "Y[i, j] = U[i] + U[j]", "150MB"  # 36 million entries of 24 bytes
    with pytest.raises(se.PlanError, match="results that are returned"):
        db.run(program, memory_limit=limit)
    with db.stream(program, memory_limit=limit) as stream:
        assert stream["Y"].read_next_batch().num_rows == 100
    assert_usable(db)


@pytest.mark.engines("postgresql", reason="DuckDB has no transactions within others")
def test_a_stream_in_a_transaction_of_the_users(wide: se.Database) -> None:
    connection = wide.connection
    assert isinstance(connection, psycopg.Connection)
    with connection.transaction():
        run_sql(wide, "CREATE TABLE kept AS SELECT 1 AS i")
        with wide.stream(OUTER) as stream:
            stream["Y"].read_next_batch()
        with wide.stream(OUTER) as stream:
            np.testing.assert_allclose(dense(stream["Y"], EXPECTED.shape), EXPECTED)
    assert run_sql(wide, "SELECT * FROM kept") == [(1,)]


@pytest.mark.parametrize("labels", ["i, j", "I, j"])
def test_into_a_file(wide: se.Database, tmp_path: Path, labels: str) -> None:
    path = tmp_path / "y.parquet"
    for target in (path, str(path)):
        assert wide.run(written(labels), into={"Y": target}) == {}
    assert list(tmp_path.iterdir()) == [path]
    stored = parquet.read_table(path)
    result = wide.run(written(labels))["Y"].arrow()
    assert stored.sort_by([("i", "ascending"), ("j", "ascending")]).to_pydict() == (
        result.sort_by([("i", "ascending"), ("j", "ascending")]).to_pydict()
    )
    assert stored.schema.types == result.schema.types
    assert stored.schema.metadata[b"sparseeinsum"] == result.schema.metadata[b"sparseeinsum"]


@pytest.mark.parametrize("places", [[0], [3], [10], [11], [0, 3, 11]])
@pytest.mark.engines("postgresql", reason="the format is PostgreSQL's")
def test_copied_rows_in_pieces(places: list[int]) -> None:
    """Each piece has whole rows, the header with the first rows or alone, the trailer with the last rows or alone."""
    table = pa.table({"i": pa.array(range(11), pa.int64()), "v": pa.array([[float(n), -1.0] for n in range(11)])})
    whole = b"".join(copy_format.encode(table))
    row = (len(whole) - 19 - 2) // 11
    cuts = [19 + row * place for place in places]
    pieces = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    tables = list(copy_format.decode_batches(pieces, ["i", "v"], ["BIGINT", "DOUBLE[]"], 1))
    assert pa.concat_tables(tables).to_pydict() == table.to_pydict()

"""Tables of results are made in parts, on several threads, and have every entry once."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.results import entry_tables

SHAPE = (4, 3, 5)
LAYOUTS = ["".join(labels) for count in range(4) for labels in itertools.combinations("ijk", count)]
PINS: list[Any] = [*LAYOUTS, {"i": 2}, {"i": 3, "k": 1}, {"k": 2}]


def numbers_of(table: pa.Table) -> NDArray[Any]:
    values = table.column("val").combine_chunks()
    if not pa.types.is_struct(values.type):
        return np.asarray(values)
    real, imaginary = (values.field(part).to_numpy() for part in ("re", "im"))
    return np.asarray(real + 1j * imaginary)


@pytest.mark.engines("duckdb", "postgresql")
@pytest.mark.parametrize("most_numbers", [1, 7, 10, 16, 1000])
@pytest.mark.parametrize("zeros", [0, 1, 20])
@pytest.mark.parametrize("dtype", ["float64", "complex128", "int64", "bool"])
def test_every_entry_is_there_once(
    shared_db: se.Database, monkeypatch: pytest.MonkeyPatch, most_numbers: int, zeros: int, dtype: str
) -> None:
    monkeypatch.setattr(entry_tables, "BATCH_NUMBERS", most_numbers)
    array = np.arange(1, 61).astype(dtype)
    array[np.random.default_rng(zeros).permutation(60)[:zeros]] = 0
    array = array.reshape(SHAPE)
    shared_db.tensor("P", array)
    text = "Y[i, j, k] = not (not P[i, j, k])" if dtype == "bool" else "Y[i, j, k] = P[i, j, k] * 2"
    tiles = sorted({tile for pin in PINS if isinstance(pin, dict) for tile in pin.values()} - {1})
    layouts = set()
    for pin in PINS:
        result = shared_db.run(shared_db.plan(text, layout="any", pin={"Y": pin}, tiles=tiles))["Y"]
        layouts.add(result.notation)
        table = result.arrow()
        indices = tuple(table.column(name).to_numpy() for name in "ijk")
        dense = np.zeros(SHAPE, dtype)
        dense[indices] = numbers_of(table)
        np.testing.assert_array_equal(dense, array if dtype == "bool" else 2 * array)
        assert len(set(zip(*indices, strict=True))) == table.num_rows
    assert len(layouts) == len(PINS)


@pytest.mark.parametrize("shape", [(12,), (3, 4), (2, 3, 2)])
@pytest.mark.parametrize("pin", ["", "i"])
def test_libraries_may_write_what_they_get(shared_db: se.Database, shape: tuple[int, ...], pin: str) -> None:
    array = np.arange(1.0, 13.0).reshape(shape)
    shared_db.tensor("Q", array)
    labels = ", ".join("ijk"[: len(shape)])
    result = shared_db.run(f"Y[{labels}] = Q[{labels}] * 2", layout="any", pin={"Y": pin})["Y"]
    matrix = result.to_sparse()
    matrix.data += 1
    np.testing.assert_array_equal(matrix.todense(), 2 * array + 1)
    scipy_matrix: Any = result.to_scipy()
    scipy_matrix.data += 1
    np.testing.assert_array_equal(scipy_matrix.toarray(), 2 * array + 1)
    if len(shape) != 2:
        for column in scipy_matrix.coords:
            column += 0
    np.testing.assert_array_equal(result.to_numpy(), 2 * array)


def test_files_have_no_empty_row_groups_but_of_empty_results(
    db: se.Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = np.arange(1.0, 6001.0).reshape(60, 100)
    db.tensor("R", array)
    monkeypatch.setattr(entry_tables, "BATCH_NUMBERS", 1000)
    result = db.run("Y[i, j] = R[i, j] * 2", layout="any", pin={"Y": ""})["Y"]
    tables = list(result.tables(1000))
    assert [table.num_rows for table in tables] == [1000] * 6
    empty = type(result)(result.schema, result.rows.slice(0, 0))
    assert [table.num_rows for table in empty.tables(1000)] == [0]
    result.to_parquet(tmp_path / "y.parquet")
    assert pq.read_table(tmp_path / "y.parquet").num_rows == 6000

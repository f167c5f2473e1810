"""Tables of results are made in parts, on several threads, and have every entry once."""

import itertools

import numpy as np
import pytest

import sparseeinsum as se
from sparseeinsum.results import results

SHAPE = (4, 3, 5)
LAYOUTS = ["".join(labels) for count in range(4) for labels in itertools.combinations("ijk", count)]


@pytest.mark.engines("duckdb", "postgresql")
@pytest.mark.parametrize("most_numbers", [1, 7, 10, 16, 1000])
@pytest.mark.parametrize("zeros", [0, 1, 20])
def test_every_entry_is_there_once(
    shared_db: se.Database, monkeypatch: pytest.MonkeyPatch, most_numbers: int, zeros: int
) -> None:
    monkeypatch.setattr(results, "_BATCH_NUMBERS", most_numbers)
    array = np.arange(1.0, 61.0)
    array[np.random.default_rng(zeros).permutation(60)[:zeros]] = 0
    array = array.reshape(SHAPE)
    shared_db.tensor("P", array)
    for labels in LAYOUTS:
        plan = shared_db.plan("Y[i, j, k] = P[i, j, k] * 2", layout="any", pin={"Y": labels})
        table = shared_db.run(plan)["Y"].arrow()
        indices = tuple(table.column(name).to_numpy() for name in "ijk")
        dense = np.zeros(SHAPE)
        dense[indices] = table.column("val").to_numpy()
        np.testing.assert_array_equal(dense, 2 * array)
        assert len(set(zip(*indices, strict=True))) == table.num_rows


@pytest.mark.parametrize("labels", ["", "i", "ij"])
def test_libraries_may_write_what_they_get(shared_db: se.Database, labels: str) -> None:
    array = np.arange(1.0, 13.0).reshape(3, 4)
    shared_db.tensor("Q", array)
    result = shared_db.run("Y[i, j] = Q[i, j] * 2", layout="any", pin={"Y": labels})["Y"]
    matrix = result.to_scipy()
    matrix.data += 1
    np.testing.assert_array_equal(matrix.toarray(), 2 * array + 1)
    np.testing.assert_array_equal(result.to_scipy().toarray(), 2 * array)

"""Single arrays that statements put together in memory from the arrays of rows, and read there."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from indexing import share_arrays_of_any_size
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.results import kept_operands

Array = NDArray[Any]
LARGE = 200  # rows and columns of a matrix of more than 256 kB
SQUARE = "Y[i, j] = A[i, j] * A[i, j]"


@pytest.fixture
def any_size(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Small arrays are put together in memory, too; queries of what runs keep are written again."""
    share_arrays_of_any_size(monkeypatch)
    kept_operands._written_text.cache_clear()
    yield
    kept_operands._written_text.cache_clear()


@st.composite
def stored_arrays(draw: st.DrawFn) -> tuple[Array, Any, dict[str, int]]:
    """An array, its fill, and the tiles of its promoted axes."""
    shape = draw(st.lists(st.integers(0, 5), min_size=1, max_size=3))
    tiles = draw(st.lists(st.sampled_from([0, 1, 1, 2, 3]), min_size=len(shape), max_size=len(shape)))
    dtype = draw(st.sampled_from(["float64", "float32", "int64", "bool", "complex128", "complex64"]))
    fill = draw(st.sampled_from([0, 1, 1 + 0.5j] if dtype.startswith("complex") else [0, 1]))
    rng = np.random.default_rng(draw(st.integers(0, 100)))
    array = np.full(shape, fill, dtype)
    is_set = rng.random(shape) < draw(st.sampled_from([0.0, 0.2, 1.0]))
    array[is_set] = rng.integers(0, 5, int(is_set.sum())).astype(dtype)
    return array, fill, {f"dim_{axis}": tile for axis, tile in enumerate(tiles) if tile}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stored=stored_arrays())
@example(stored=(np.array([[1 + 0.5j, 1 + 0.5j], [2, 3]]), 1 + 0.5j, {"dim_0": 1}))  # its first row is not stored
def test_arrays_are_numpys(any_size: None, db: se.Database, stored: tuple[Array, Any, dict[str, int]]) -> None:
    """Runs keep the array, but for one with a memory limit of its own, which makes it in its statement."""
    array, fill, promoted = stored
    labels = ", ".join("ijk"[: array.ndim])
    db.tensor("A", array, fill=fill, promoted=promoted)
    if "dim_0" in promoted and (array[: promoted["dim_0"]] == fill).all():
        db.connection.execute("DELETE FROM A WHERE dim_0 = 0")
    text = f"Y[{labels}] = A[{labels}] * A[{labels}]"
    for memory_limit in (None, None, "1GB"):
        plan = db.plan(text, pin={"Y": ()}, layout="any", memory_limit=memory_limit)
        result = db.run(plan, replan=False, progress=False)["Y"].to_numpy()
        np.testing.assert_array_equal(result, array * array)


@pytest.mark.engines("duckdb", reason="other engines pass arrays as values")
class TestSql:
    @pytest.mark.parametrize("promoted", [{"dim_0": 1}, {"dim_0": 1, "dim_1": 40}])
    def test_rows_in_order_are_read_in_memory(self, db: se.Database, promoted: dict[str, int]) -> None:
        db.tensor("A", np.ones((LARGE, LARGE)), promoted=promoted)
        text = db.plan(SQUARE, pin={"Y": ()}, layout="any").sql()
        assert "tensor_row(u.handle, 0, 40000, " in text
        assert "tensor_stack" not in text

    @pytest.mark.parametrize("promoted", [{"dim_1": 1}, {"dim_0": 1, "dim_1": 30}, {"dim_0": 1, "dim_1": 1}])
    def test_other_parts_are_aggregated(self, db: se.Database, promoted: dict[str, int]) -> None:
        """Columns, parts of which the last is shorter, and numbers."""
        db.tensor("A", np.ones((LARGE, LARGE)), promoted=promoted)
        assert "tensor_resident" not in db.plan(SQUARE, pin={"Y": ()}, layout="any").sql()

    def test_small_arrays_are_aggregated(self, db: se.Database) -> None:
        db.tensor("A", np.ones((100, 100)), promoted=["dim_0"])
        assert "tensor_stack" in db.plan(SQUARE, pin={"Y": ()}, layout="any").sql()

    def test_nothing_is_read_in_memory_without_indexes(self, db: se.Database) -> None:
        """Hosts that end memory early run such programs."""
        db.tensor("A", np.ones((LARGE, LARGE)), promoted=["dim_0"])
        text = db.plan(SQUARE, pin={"Y": ()}, layout="any", indexes=False).sql()
        assert "tensor_stack" in text
        assert "handle" not in text

    def test_computed_rows_are_put_together_in_memory(self, db: se.Database) -> None:
        db.tensor("A", np.eye(LARGE) + 1, promoted=["dim_0"])
        plan = db.plan(f"{SQUARE}\nZ[i, j] = exp(Y[i, j])", pin={"Y": ("i",), "Z": ()}, layout="any")
        assert "Y_resident" in plan.sql()
        np.testing.assert_allclose(db.run(plan)["Z"].to_numpy(), np.exp((np.eye(LARGE) + 1) ** 2))

    def test_rows_and_the_array_of_them_are_kept_once(self, db: se.Database) -> None:
        a = np.random.default_rng(0).random((LARGE, LARGE))
        db.tensor("A", a, promoted=["dim_0"])
        db.tensor("E", sp.eye_array(LARGE, format="coo"))
        text = "Y[i, k] = sum(E[i, j] * A[j, k])\nZ[i, j] = exp(A[i, j])"
        plan = db.plan(text, pin={"Y": ("i", "j"), "Z": ()}, outputs=["Y", "Z"], layout="any")
        assert plan.sql().count("A_resident AS (") == 1
        for _ in range(2):
            results = db.run(plan, replan=False, progress=False)
            np.testing.assert_allclose(results["Y"].to_numpy(), a)
            np.testing.assert_allclose(results["Z"].to_numpy(), np.exp(a))
        kept = db._engine.kept_memory
        assert kept is not None
        assert kept.size_bytes < 2 * a.nbytes  # of A and E


@pytest.mark.engines("postgresql", reason="threads of DuckDB share memory")
@pytest.mark.parametrize(("bound", "is_shared"), [(LARGE, False), (100, True)])
def test_workers_share_the_rows_of_small_arrays(db: se.Database, bound: int, is_shared: bool) -> None:
    """Each would return an array as large as the result."""
    a = np.random.default_rng(0).random((bound, bound))
    db.tensor("A", a, promoted=["dim_0"])
    plan = db.plan(SQUARE, pin={"Y": ()}, layout="any")
    assert ("LIMIT" not in plan.sql()) == is_shared
    np.testing.assert_array_equal(db.run(plan, progress=False)["Y"].to_numpy(), a * a)

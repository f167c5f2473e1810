"""Tiled keys work in programs, tables, plans and results."""

import numpy as np
import pytest
import scipy.sparse
from planned_memory import limit_for

import sparseeinsum as se

pytestmark = pytest.mark.engines("duckdb", "postgresql")

A = np.random.default_rng(0).random((100, 70))
PRODUCT = "C[i, k] = sum(A[i, j] * A[k, j])"


@pytest.fixture
def loaded(db: se.Database) -> se.Database:
    db.tensor("A", A)
    return db


class TestText:
    @pytest.mark.parametrize(
        "text",
        [
            "C[I:64, k] = sum(A[I:64, j] * A[k, j])",
            "C[I:64, K:32] = sum(A[I:64, J:16] * A[K:32, J:16])",
            "B[I, j] = 2 * A[I, j]\nC[I:30, K] = sum(B[I:30, j] * B[K, j])",
            "C[I:7] = sum(A[I:7, j] * index(j))",
        ],
    )
    def test_reads_back(self, text: str) -> None:
        program = se.program(text)
        assert str(program) == text.replace("index(j)", "index(j: bound(A, 1))")
        assert se.program(str(program)) == program

    def test_a_tile_of_one_is_a_promoted_label(self) -> None:
        assert se.program("C[I:1] = sum(A[I:1, j])") == se.program("C[I] = sum(A[I, j])")

    def test_promotes_and_delivers(self, loaded: se.Database) -> None:
        result = loaded.run("C[I:64, k] = sum(A[I:64, j] * A[k, j])")["C"]
        assert result.notation == "C[I:64, k]"
        assert [len(value) for value in result.rows.sort_by("i").column("val").to_pylist()] == [6400, 3600]
        np.testing.assert_allclose(result.to_numpy(), A @ A.T)
        np.testing.assert_allclose(result.df().set_index(["i", "k"])["val"].unstack().to_numpy(), A @ A.T)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("C[I:64] = sum(A[I:32, j])", "I:64 and I:32 are one label"),
            ("C[I:64] = sum(A[I, j])", "I:64 and I are one label"),
            ("C[i:64] = sum(A[i:64, j])", "i:64 gives a tile to a label that is not promoted"),
            ("C[I:0] = sum(A[I:0, j])", "I:0 is a tile without an index"),
            ("C[i] = sum[J:2](A[i, J:2])", r"sum\[J:2\] names a label; only references have tiles"),
        ],
    )
    def test_refused(self, text: str, message: str) -> None:
        with pytest.raises(se.ParseError, match=message):
            se.program(text)


class TestStored:
    @pytest.mark.parametrize("tiles", [{"dim_0": 32, "dim_1": 16}, {"dim_1": 16}, {"dim_0": 1, "dim_1": 30}], ids=str)
    @pytest.mark.parametrize("data", [A, scipy.sparse.csr_array(A)], ids=["dense", "sparse"])
    def test_any_data(self, db: se.Database, data: object, tiles: dict[str, int]) -> None:
        stored = db.tensor("A", data, promoted=tiles)
        assert stored.decomposition.tiles == (tiles.get("dim_0", 0), tiles.get("dim_1", 0))
        np.testing.assert_array_equal(db.run("Y[i, j] = A[i, j]")["Y"].to_numpy(), A)

    def test_blocks_of_the_fill_alone_are_absent(self, db: se.Database) -> None:
        array = np.zeros((100, 70))
        array[40:50, 3] = 1
        db.tensor("A", array, promoted={"dim_0": 32, "dim_1": 16})
        assert db.connection.execute("SELECT dim_0, dim_1, array_length(val, 1) FROM A").fetchall() == [(1, 0, 512)]
        statistics = db.statistics("A")
        assert (statistics.entries, statistics.distinct) == (10, (10, 1))
        assert statistics.tuples((32, 16)) == 1

    def test_duplicates_are_refused_or_added_up(self, db: se.Database) -> None:
        entries = (np.array([[3, 3, 1]]), np.array([1.0, 2.0, 5.0]))
        with pytest.raises(se.DataError, match=r"the coordinate \(3\) stands in an earlier row"):
            db.tensor("A", entries, shape=(5,), promoted={"dim_0": 2})
        db.tensor("A", entries, shape=(5,), promoted={"dim_0": 2}, duplicates="sum")
        np.testing.assert_array_equal(db.run("Y[i] = A[i]")["Y"].to_numpy(), [0, 5, 0, 3, 0])

    def test_rows_that_do_not_fit_are_named(self, db: se.Database) -> None:
        db.tensor("A", A, promoted={"dim_0": 32, "dim_1": 16})
        db.connection.execute("INSERT INTO A VALUES (9, 0, ARRAY[1.0])")
        with pytest.raises(se.DataError, match="the index dim_0 is 9, but axis dim_0 in tiles of 32 has the bound 4"):
            db.statistics("A")
        db.connection.execute("DELETE FROM A WHERE dim_0 = 9")
        db.connection.execute("UPDATE A SET val = ARRAY[1.0] WHERE dim_0 = 3 AND dim_1 = 4")
        with pytest.raises(se.DataError, match="the array val has 1 elements, but its axes inside multiply to 24"):
            db.statistics("A")

    def test_no_tile(self, db: se.Database) -> None:
        with pytest.raises(se.ShapeError, match="tiles of 0 on axis dim_0"):
            db.tensor("A", A, promoted={"dim_0": 0})

    def test_a_reopened_database_knows_them(self, tmp_path: object) -> None:
        file = f"{tmp_path}/tiles.duckdb"
        with se.connect(file) as db:
            db.tensor("A", A, promoted={"dim_0": 32, "dim_1": 16})
        with se.connect(file) as db:
            np.testing.assert_array_equal(db.run("Y[i, j] = A[i, j]")["Y"].to_numpy(), A)


class TestPlans:
    def test_pinned(self, loaded: se.Database) -> None:
        plan = loaded.plan(PRODUCT, pin={"C": {"I": 64, "J": 16}})
        assert plan.notation() == ["C[I:64, k] = sum(A[I:64, J:16] * A[k, J:16])"]
        np.testing.assert_allclose(loaded.run(plan)["C"].to_numpy(), A @ A.T)

    def test_blocks_are_read_as_stored(self, db: se.Database) -> None:
        blocks = np.kron(np.random.default_rng(0).random((32, 32)) < 0.05, np.ones((64, 64)))
        db.tensor("A", scipy.sparse.csr_array(blocks), promoted={"dim_0": 64, "dim_1": 64})
        db.tensor("B", np.ones((2048, 64)))
        plan = db.plan("C[i, k] = sum(A[i, j] * B[j, k])", layout="any")
        assert plan.notation() == ["C[I:64, k] = sum(A[I:64, J:64] * B[J:64, k])"]
        np.testing.assert_allclose(db.run(plan)["C"].to_numpy(), blocks @ np.ones((2048, 64)))

    def test_searched_if_asked(self, db: se.Database) -> None:
        blocks = np.kron(np.random.default_rng(0).random((32, 32)) < 0.05, np.ones((64, 64)))
        db.tensor("A", scipy.sparse.csr_array(blocks))
        db.tensor("B", np.ones((2048, 2048)))
        text = "C[i, k] = sum(A[i, j] * B[j, k])"
        whole = db.plan(text, layout="any", indexes=False)
        assert ":64" not in whole.notation()[0]
        tiled = db.plan(text, layout="any", indexes=False, tiles=[64])
        assert "A[I:64, J:64]" in tiled.notation()[0]
        assert tiled.cost < whole.cost
        assert "A[I:64, J:64]" in db.plan(text, layout="any", indexes=False, tiles="auto").notation()[0]

    def test_tiles_of_little_gain_are_not_chosen(self, db: se.Database, engine: str) -> None:
        # With fewer blocks than 0.17, rows take no longer than tiles on DuckDB, since both scan all of B.
        blocks = np.kron(np.random.default_rng(0).random((32, 32)) < 0.18, np.ones((64, 64)))
        db.tensor("A", scipy.sparse.csr_array(blocks))
        db.tensor("B", np.ones((2048, 512 if engine == "duckdb" else 16)))  # without an index, long rows are copied
        text = "C[i, k] = sum(A[i, j] * B[j, k])"
        whole, tiled = db.plan(text, layout="any", indexes=engine == "duckdb", tiles=[64], top=2)
        assert ":64" not in whole.notation()[0]
        assert ":64" in tiled.notation()[0]
        assert 0.8 * whole.cost < tiled.cost < whole.cost

    def test_where_whole_arrays_need_too_much_memory(self, db: se.Database) -> None:
        array = np.random.default_rng(0).random((1200, 1200))
        db.tensor("A", array)
        limited = db.plan(PRODUCT, layout="any", memory_limit=limit_for(db, 5.2e7))
        assert ":" not in db.plan(PRODUCT, layout="any").notation()[0]
        assert ":" in limited.notation()[0]
        np.testing.assert_allclose(db.run(limited)["C"].to_numpy(), array @ array.T)

    @pytest.mark.parametrize("tiles", ["big", [1], [64, 0.5], [-3]], ids=str)
    def test_invalid_tiles(self, loaded: se.Database, tiles: list[int]) -> None:
        with pytest.raises(se.PlanError, match="neither 'auto' nor whole numbers"):
            loaded.plan(PRODUCT, tiles=tiles)

    @pytest.mark.parametrize("tile", [0, -1, 2.5, "64"])
    def test_invalid_pins(self, loaded: se.Database, tile: int) -> None:
        with pytest.raises(se.PlanError, match="C pins i with the tile"):
            loaded.plan(PRODUCT, pin={"C": {"i": tile}})

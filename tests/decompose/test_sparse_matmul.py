"""Sparse operands times arrays in one array give numpy's results, and are chosen where they are small."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from half_filled_tensors import DTYPES, half_filled
from hypothesis import given
from numpy.typing import NDArray
from random_runs import random_runs
from test_compressed_access import BOUNDS, TENSORS, RandomProduct, checked_plan, random_products

import sparseeinsum as se
from sparseeinsum.decompose import alternatives, compressed_access, model, sparse_matmul
from sparseeinsum.decompose.cost import NO_WORK
from sparseeinsum.decompose.vertex_costs import VertexCost
from sparseeinsum.semantics.dense import evaluate_program

duckdb_alone = pytest.mark.engines("duckdb", reason="PostgreSQL has no such function, and other prices")

# EinSums, and the operands that can be multiplied by an array of the other one.
PROGRAMS = {
    "matrix product": ("T[i, m] = sum(A[i, j] * H[j, m])", {0, 1}),
    "a transposed result": ("T[m, i] = sum(A[i, j] * H[j, m])", {0, 1}),
    "a transposed array": ("T[i, m] = sum(A[j, i] * H[j, m])", {0, 1}),
    "a shared label": ("T[i, j, m] = sum(E[i, j, k] * D[k, j, m])", {0, 1}),
    "a label that only one has": ("T[i, m] = sum(E[i, j, k] * H[j, m])", {0}),
    "axes inside in another order": ("T[n, i, m] = sum(A[i, j] * F[j, m, n])", {0, 1}),
    "a matrix and a vector": ("T[i] = sum(A[i, j] * v[j])", {0}),
    "an outer product": ("T[i, j, m] = A[i, j] * H[j, m]", set()),
    "distances": ("T[i, m] = sum((A[i, j] - H[j, m]) ^ 2)", set()),
    "greatest": ("T[i, m] = max(A[i, j] * H[j, m])", set()),
    "a diagonal": ("T[i, m] = sum(B[i, i, j] * H[j, m])", set()),
}
PRODUCT = "T[i, m] = sum(A[i, j] * H[j, m])"


def multiply_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let plans multiply sparse operands by arrays wherever they can, as if that took no time."""

    def free(*arguments: Any) -> VertexCost:  # noqa: ANN401  # those of the function
        return replace(sparse_matmul.sparse_matmul_cost(*arguments), join=NO_WORK, seconds=0.0)

    monkeypatch.setattr(compressed_access, "_LARGEST_SHARE", math.inf)
    monkeypatch.setattr(model, "sparse_matmul_cost", free)


@pytest.fixture
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `multiply_everywhere`."""
    multiply_everywhere(monkeypatch)


def multiplied(plan: se.Plan) -> dict[str, int]:
    """The number of the sparse operand, for every result that is such a product."""
    steps = plan.data.decomposed.steps
    return {step.einsum.output.tensor: next(iter(step.orders)) for step in steps if step.cost.is_sparse_matmul}


def read(text: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays that a program reads."""
    chosen = arrays | {"v": arrays["H"][:, 0]}
    return {
        name: chosen[name][:9, :9] if name == "A" and "A[j" in text else chosen[name]
        for name in se.program(text).inputs
    }


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fill", [0, 1])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_numpys(shared_db: se.Database, name: str, fill: int, dtype: str, everywhere: None) -> None:
    text, sparse = PROGRAMS[name]
    if (dtype == "complex128" and "max" in text) or (dtype == "bool" and "-" in text):
        pytest.skip("numpy has no such operation")
    program = se.program(text)
    arrays = read(text, half_filled(TENSORS, BOUNDS, dtype, fill))
    if name == "a transposed array":
        arrays["H"] = arrays["H"][:7]
    for tensor, array in arrays.items():
        shared_db.tensor(tensor, array, fill=fill, dtype=dtype)
    plan = shared_db.plan(program, pin={"T": ()}, layout="any")
    if dtype == "float64" and fill == 0:
        assert set(multiplied(plan).values()) <= sparse
        assert bool(multiplied(plan)) == bool(sparse)
    if dtype == "complex128":
        assert multiplied(plan) == {}
    if multiplied(plan):
        assert "tensor_sparse_matmul(" in plan.sql()
    expected = evaluate_program(program, arrays)["T"]
    for _ in range(2):  # the entries stay in memory for the second run
        result = shared_db.run(plan, progress=False)["T"].to_numpy()
        np.testing.assert_allclose(result, expected, rtol=1e-5 if dtype == "float32" else 1e-12, atol=1e-12)


# EinSums in other semirings, and the fill with which what is absent contributes nothing.
SEMIRINGS = {
    "shortest paths": ("T[i] = min(A[i, j] + v[j])", math.inf),
    "operands the other way round": ("T[i] = min(v[j] + A[i, j])", math.inf),
    "longest paths": ("T[i] = max(A[i, j] + v[j])", -math.inf),
    "widest paths": ("T[i] = max(min(A[i, j], v[j]))", -math.inf),
    "bottlenecks": ("T[i] = min(max(A[i, j], v[j]))", math.inf),
    "rows of two axes": ("T[k, i] = min(E[i, j, k] + v[j])", math.inf),
    "positions of two axes": ("T[i] = min(E[i, j, k] + K[k, j])", math.inf),
    "the other axis": ("T[j] = min(A[i, j] + w[i])", math.inf),
}


@duckdb_alone
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("share", [0.5, 0.05, 0.0])
@pytest.mark.parametrize("name", SEMIRINGS)
def test_semirings(shared_db: se.Database, name: str, share: float, dtype: str, everywhere: None) -> None:
    """Rows without entries hold the fill."""
    text, fill = SEMIRINGS[name]
    rng, program = np.random.default_rng(len(name)), se.program(text)
    shapes = {"A": (7, 9), "E": (7, 9, 3), "K": (3, 9), "v": (9,), "w": (7,)}
    arrays = {tensor: rng.integers(-9, 9, shapes[tensor]).astype(dtype) for tensor in program.inputs}
    for tensor, array in arrays.items():
        if tensor in "AE":
            array[rng.random(array.shape) >= share] = fill
        shared_db.tensor(tensor, array, fill=fill if tensor in "AE" else 0, dtype=dtype)
    plan = shared_db.plan(program, pin={"T": ()}, layout="any")
    assert multiplied(plan) == {"T": next(at for at, tensor in enumerate(program.inputs) if tensor in "AE")}
    assert "tensor_sparse_matvec(" in plan.sql()
    for _ in range(3):
        result = shared_db.run(plan, progress=False)["T"].to_numpy()
        np.testing.assert_array_equal(result, evaluate_program(program, arrays)["T"])


@duckdb_alone
@pytest.mark.parametrize("threads", [1, 3])
def test_many_rows_in_a_semiring(threads: int, everywhere: None) -> None:
    """There are more products than a thread computes alone, and most entries are in few rows."""
    rng, bound = np.random.default_rng(0), 5000
    rows, columns = (rng.integers(0, bound, 300_000) ** 2 // bound for _ in range(2))
    lengths = scipy.sparse.coo_array((rng.random(300_000), (rows, columns)), (bound, bound))
    lengths.sum_duplicates()
    distances, nearest = rng.random(bound), np.full(bound, np.inf)
    np.minimum.at(nearest, lengths.row, lengths.data + distances[lengths.col])
    with se.connect() as database:
        database.connection.execute(f"SET threads = {threads}")
        database.tensor("A", lengths, fill=np.inf)
        database.tensor("D", distances)
        plan = database.plan("E[i] = min(A[i, j] + D[j])", layout="any")
        assert "tensor_sparse_matvec(" in plan.sql()
        np.testing.assert_array_equal(database.run(plan, progress=False)["E"].to_numpy(), nearest)


def test_random_products_are_numpys(shared_db: se.Database, everywhere: None) -> None:
    chosen = []

    @random_runs(60)
    @given(random_products())
    def run(product: RandomProduct) -> None:
        chosen.append(bool(multiplied(checked_plan(shared_db, product, ()))))

    run()
    assert sum(chosen) > len(chosen) / 5


@pytest.mark.parametrize("shape", [(0, 4), (5, 0), (5, 4)])
def test_empty_operands(db: se.Database, shape: tuple[int, int], everywhere: None) -> None:
    """All entries of an operand are absent, or an axis has bound 0."""
    a, h = np.zeros((3, shape[0])), np.ones(shape)
    db.tensor("A", scipy.sparse.coo_array(a))
    db.tensor("H", h)
    plan = db.plan(PRODUCT, pin={"T": ()})
    for _ in range(2):
        np.testing.assert_array_equal(db.run(plan, progress=False)["T"].to_numpy(), a @ h)


def test_values_that_turn_infinite_are_detected(db: se.Database, everywhere: None) -> None:
    db.tensor("A", np.full((3, 3), 10.0))
    db.tensor("H", np.full((3, 2), 1e308))
    plan = db.plan(PRODUCT, pin={"T": ()}, layout="any")
    assert multiplied(plan)
    with pytest.raises(se.EngineError, match="T turned NaN or infinite"):
        db.run(plan, progress=False)
    result = db.run(db.plan(PRODUCT, pin={"T": ()}, nonfinite="allow"), progress=False)
    np.testing.assert_array_equal(result["T"].to_numpy(), np.full((3, 2), np.inf))


def test_infinity_at_absent_entries_counts(db: se.Database, everywhere: None) -> None:
    """0 times infinity is no 0, so that entries that are absent matter."""
    h = np.array([[1.0, 2.0], [np.inf, 3.0]])
    db.tensor("A", np.eye(2))
    db.tensor("H", h)
    plan = db.plan(PRODUCT, pin={"T": ()}, nonfinite="allow")
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(db.run(plan, progress=False)["T"].to_numpy(), np.eye(2) @ h)


@duckdb_alone
def test_chosen_where_it_pays(db: se.Database) -> None:
    """A small graph is multiplied at once; a large one by rows, if its arrays leave the caches: not with 16 columns."""
    rng = np.random.default_rng(0)
    text = "Y[i, k] = sum(A[i, j] * X[j, k])\nR[i, k] = relu(Y[i, k])\nZ[i, k] = sum(A[i, j] * R[j, k])"
    for nodes, columns, chosen in ((2_000, 16, {"Y": 0, "Z": 0}), (100_000, 64, {})):
        a = scipy.sparse.random_array((nodes, nodes), density=5 / nodes, rng=rng)
        x = rng.random((nodes, columns))
        db.tensor("A", a)
        db.tensor("X", x)
        plan = db.plan(text, layout="any")
        assert multiplied(plan) == chosen
        by_rows = "Y: A is ordered by i in memory, without a hash table of groups"
        assert (by_rows in plan.explain()) == (chosen == {})
        result = db.run(plan, progress=False)["Z"].to_numpy()
        np.testing.assert_allclose(result, a @ np.maximum(np.asarray(a @ x), 0), rtol=1e-12)
    assert multiplied(db.plan(text, indexes=False)) == {}


@duckdb_alone
@pytest.mark.parametrize(("columns", "waiting"), [(1, lambda threads: threads), (256, lambda threads: 1)])
def test_threads_wait_for_a_small_product(db: se.Database, columns: int, waiting: Callable[[int], int]) -> None:
    """A large one is computed on all of them."""
    db.tensor("A", scipy.sparse.random_array((2_000, 2_000), density=0.005, rng=np.random.default_rng(0)))
    db.tensor("H", np.ones((2_000, columns)))
    for threads in (1, 2, 8):
        db.connection.execute(f"SET threads = {threads}")
        (step,) = db.plan(PRODUCT, pin={"T": ()}, layout="any").data.decomposed.steps
        assert step.cost.is_sparse_matmul
        assert step.cost.join.kernel_operations == pytest.approx(2 * 20_000 * columns * 0.6 * waiting(threads))


@duckdb_alone
def test_threads_write_many_rows_of_few_entries(db: se.Database) -> None:
    """As many threads compute a call as have 2^17 elements: here of rows, of which most are empty."""
    a = scipy.sparse.random_array((100_000, 2_000), density=1e-5, rng=np.random.default_rng(0))
    db.tensor("A", a)
    db.tensor("H", np.ones((2_000, 4)))
    db.connection.execute("SET threads = 8")
    (step,) = db.plan(PRODUCT, pin={"T": ()}, layout="any").data.decomposed.steps
    assert step.cost.join.kernel_operations == pytest.approx(2 * a.nnz * 4 * 0.6 * 8 / 3)


@pytest.mark.engines("postgresql", reason="its processes")
def test_a_call_is_expected_to_have_two_threads_at_most(db: se.Database) -> None:
    db.tensor("A", scipy.sparse.random_array((2_000, 2_000), density=0.005, rng=np.random.default_rng(0)))
    db.tensor("H", np.ones((2_000, 256)))
    for workers, expected in ((0, 1), (1, 2), (7, 2)):
        db.connection.execute(f"SET max_parallel_workers_per_gather = {workers}")
        (step,) = db.plan(PRODUCT, pin={"T": ()}, layout="any").data.decomposed.steps
        assert step.cost.is_sparse_matmul
        assert step.cost.join.kernel_operations == pytest.approx(2 * 20_000 * 256 * 0.6 / expected)


@duckdb_alone
@pytest.mark.parametrize(("threshold", "is_one_row"), [(0.0, True), (math.inf, False)])
def test_single_arrays_unless_rows_are_much_cheaper(
    db: se.Database, monkeypatch: pytest.MonkeyPatch, threshold: float, is_one_row: bool
) -> None:
    """R has few rows, so that Z is cheaper by rows; but then what Y and R pass gets a table."""
    monkeypatch.setattr(alternatives, "_ROWS_THRESHOLD", threshold)
    rng, nodes = np.random.default_rng(1), 3000
    a, x, m = (
        scipy.sparse.random_array((nodes, nodes), density=5 / nodes, rng=rng),
        rng.random((nodes, 64)),
        np.eye(nodes),
    )
    tensors = {"A": a, "X": x, "M": m[3] + m[5]}
    for name, tensor in tensors.items():
        db.tensor(name, tensor, promoted=["dim_0"] if name == "M" else None)
    text = """
        Y[i, k] = sum(A[i, j] * X[j, k])
        R[i, k] = M[i] * Y[i, k]
        Z[j, k] = sum(A[i, j] * R[i, k])
        G[k, l] = sum(X[i, k] * X[i, l])
        s[] = sum(Z[i, k] * Y[i, l] * G[k, l])"""
    plan = db.plan(text, layout="any", rewrite=False)
    assert all(not any(step.choice) for step in plan.data.decomposed.steps) == is_one_row
    y = a @ x
    expected = np.sum(a.T @ (tensors["M"][:, None] * y) @ (x.T @ x) * y)
    np.testing.assert_allclose(db.run(plan, progress=False)["s"].to_numpy(), expected, rtol=1e-12)


def test_the_dense_optimizer_makes_operands_dense(db: se.Database, everywhere: None) -> None:
    db.tensor("A", np.eye(3))
    db.tensor("H", np.ones((3, 2)))
    assert multiplied(db.plan(PRODUCT, pin={"T": ()})) == {"T": 0}
    assert multiplied(db.plan(PRODUCT, optimizer="dense")) == {}


def test_a_saved_plan_multiplies_again(db: se.Database, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    db.tensor("A", scipy.sparse.random_array((2_000, 2_000), density=0.01, rng=rng))
    db.tensor("H", rng.random((2_000, 16)))
    plan = db.plan(PRODUCT, pin={"T": ()}, layout="any")
    plan.save(tmp_path / "plan.json")
    again = db.load_plan(tmp_path / "plan.json")
    assert multiplied(again) == multiplied(plan) == {"T": 0}
    assert "A is ordered by i in memory, and multiplied by an array at once" in again.explain()
    assert again.sql() == plan.sql()

"""Products of tensors of numbers that are computed row by row are numpy's, and are chosen where that is cheaper."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from indexing import compress_wherever_possible, compressed_steps
from numpy.typing import NDArray
from random_runs import random_runs

import sparseeinsum as se
from sparseeinsum.semantics.dense import evaluate_program

Array = NDArray[Any]
BOUNDS = {"b": 3, "i": 6, "j": 5, "k": 7, "l": 3, "m": 2, "n": 4}
DTYPES = ("float64", "float32", "int64", "bool")
# EinSums, and whether they can be computed row by row.
PROGRAMS = {
    "sum": ("T[i, k] = sum(A[i, j] * B[j, k])", True),
    "the other way round": ("T[k, i] = sum(B[j, k] * A[i, j])", True),
    "by columns": ("T[i, k] = sum(C[j, i] * D[k, j])", True),
    "several labels of each kind": ("T[k, i, n, l] = sum(E[i, l, j, m] * F[m, k, j, n])", True),
    "a shared label of the result": ("T[b, i, k] = sum(G[b, i, j] * H[b, j, k])", True),
    "labels of one operand alone": ("T[i, k] = sum(E[i, l, j, m] * B[j, k])", True),
    "labels of the other one alone": ("T[i, k] = sum(A[i, j] * F[m, k, j, n])", True),
    "a matrix and a vector": ("T[i] = sum(A[i, j] * V[j])", True),
    "shortest paths": ("T[i, k] = min(A[i, j] + B[j, k])", True),
    "longest paths": ("T[i, k] = max(B[j, k] + A[i, j])", True),
    "widest paths": ("T[i, k] = max(min(A[i, j], B[j, k]))", True),
    "greatest products": ("T[i, k] = max(A[i, j] * B[j, k])", True),
    "reachable": ("T[i, k] = any(A[i, j] and B[j, k])", True),
    "differences": ("T[i, k] = sum(A[i, j] - B[j, k])", False),
    "no shared label": ("T[i, k] = sum(A[i, j] * W[k, n])", False),
    "nothing aggregated": ("T[i, j, k] = A[i, j] * B[j, k]", False),
    "one number": ("T[] = sum(A[i, j] * C[j, i])", False),
    "a diagonal": ("T[i, k] = sum(S[i, i, j] * B[j, k])", False),
}
TENSORS = {
    "A": "ij",
    "B": "jk",
    "C": "ji",
    "D": "kj",
    "E": "iljm",
    "F": "mkjn",
    "G": "bij",
    "H": "bjk",
    "S": "iij",
    "V": "j",
    "W": "kn",
}


@pytest.fixture
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans order operands by row wherever they can."""
    compress_wherever_possible(monkeypatch)


def sparse_array(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: str, fill: float, density: float = 0.4
) -> Array:
    """Small numbers, and elsewhere the fill."""
    values = rng.integers(-3, 4, shape).astype(dtype)
    values[rng.random(shape) >= density] = fill
    return values


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fill", [0, 1, math.inf, -math.inf])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_numpys(shared_db: se.Database, name: str, fill: float, dtype: str, everywhere: None) -> None:
    text, is_product = PROGRAMS[name]
    if (math.isinf(fill) and not dtype.startswith("float")) or (dtype == "bool" and "-" in text):
        pytest.skip("numpy has no such numbers, or no such operation")
    program, rng = se.program(text), np.random.default_rng(5)
    arrays = {}
    for tensor in program.inputs:
        arrays[tensor] = sparse_array(rng, tuple(BOUNDS[label] for label in TENSORS[tensor]), dtype, fill)
        promoted = [f"dim_{axis}" for axis in range(arrays[tensor].ndim)]
        shared_db.tensor(tensor, arrays[tensor], fill=fill, dtype=dtype, promoted=promoted)
    labels = tuple(dict.fromkeys("".join(TENSORS[tensor] for tensor in program.inputs)))
    plan = shared_db.plan(program, pin={"T": labels}, rewrite=False, nonfinite="allow")
    steps = compressed_steps(plan)
    assert is_product or not steps
    if fill == 0 and dtype == "float64" and is_product and "sum" in text:
        assert set(steps) == {"T"}
    with np.errstate(invalid="ignore"):
        expected = evaluate_program(program, arrays)["T"]
    result = shared_db.run(plan, progress=False)["T"].to_numpy()
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("text", "fill"),
    [(PROGRAMS["shortest paths"][0], math.inf), (PROGRAMS["longest paths"][0], -math.inf)]
    + [(PROGRAMS[name][0], 0) for name in ("sum", "reachable")],
)
def test_semirings_multiply_row_by_row(db: se.Database, text: str, fill: float, everywhere: None) -> None:
    rng = np.random.default_rng(6)
    dtype = "bool" if "and" in text else "float64"
    for name in "AB":
        shape = tuple(BOUNDS[label] for label in TENSORS[name])
        db.tensor(name, sparse_array(rng, shape, dtype, fill), fill=fill, promoted=["dim_0", "dim_1"])
    plan = db.plan(text, pin={"T": "ijk"})
    assert compressed_steps(plan) in ({"T": (0, 1)}, {"T": (1, 0)})
    assert "tensor_product_row(" in plan.sql()
    assert "GROUP BY" not in plan.sql()


@dataclass(frozen=True)
class RandomProduct:
    """A product in a semiring, its operands as dense arrays, and how they are stored.

    Attributes:
        text: The program.
        labels: All of its labels.
        arrays: The operands A and H.
        fill: Their fill.
        promoted: The promoted axes of their tables.
    """

    text: str
    labels: tuple[str, ...]
    arrays: dict[str, Array]
    fill: float
    promoted: dict[str, list[str]]


@st.composite
def random_products(draw: st.DrawFn) -> RandomProduct:
    """Labels of A alone, of both, and of H alone; some of each are aggregated."""
    alone, shared, other = (draw(st.sampled_from(choices)) for choices in (["i", "ip"], ["j", "jk"], ["l", "lm", ""]))
    operands = [tuple(draw(st.permutations(part))) for part in (alone + shared, shared + other)]
    kept = [label for label in alone + shared + other if label not in "pj" and draw(st.integers(0, 3))]
    output = draw(st.permutations(sorted({*kept, "i"})))
    aggregate, symbol, fill = draw(st.sampled_from([("sum", "*", 0), ("min", "+", math.inf), ("max", "+", -math.inf)]))
    bounds = {label: draw(st.integers(1, 6)) for label in "ijklmp"}
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    arrays, promoted = {}, {}
    for name, labels in zip("AH", operands, strict=True):
        density = draw(st.sampled_from([0.0, 0.2, 0.7, 1.0]))
        dtype = "float64" if fill else draw(st.sampled_from(["float64", "float32", "int64"]))
        arrays[name] = sparse_array(rng, tuple(bounds[label] for label in labels), dtype, fill, density)
        promoted[name] = [f"dim_{axis}" for axis in range(len(labels)) if draw(st.booleans())]
    left, right = (", ".join(labels) for labels in operands)
    text = f"T[{', '.join(output)}] = {aggregate}(A[{left}] {symbol} H[{right}])"
    return RandomProduct(text, tuple(dict.fromkeys(alone + shared + other)), arrays, fill, promoted)


def test_random_products_are_numpys(shared_db: se.Database, everywhere: None) -> None:
    compressed = []

    @random_runs(60)
    @given(random_products())
    def run(product: RandomProduct) -> None:
        for name, array in product.arrays.items():
            shared_db.tensor(name, array, fill=product.fill, promoted=product.promoted[name])
        program = se.program(product.text)
        plan = shared_db.plan(program, pin={"T": product.labels})
        compressed.append(bool(compressed_steps(plan)))
        expected = evaluate_program(program, product.arrays)["T"]
        result = shared_db.run(plan, progress=False)["T"].to_numpy()
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)

    run()
    assert sum(compressed) > len(compressed) / 4


SPARSE = "Y[i, k] = sum(A[i, j] * B[j, k])"


@pytest.fixture
def graph(db: se.Database) -> se.Database:
    """Two sparse matrices of 3,000 rows."""
    for name, matrix in zip("AB", sparse_matrices(), strict=True):
        db.tensor(name, matrix)
    return db


def sparse_matrices(density: float = 0.002) -> list[Any]:
    return [
        scipy.sparse.random_array((3000, 3000), density=density, rng=np.random.default_rng(seed)).tocsr()
        for seed in range(2)
    ]


def test_chosen_where_it_pays(graph: se.Database, tmp_path: Path) -> None:
    plan = graph.plan(SPARSE)
    assert compressed_steps(plan) == {"Y": (0, 1)}
    explained = " ".join(plan.explain().split())
    assert "A is ordered by i and B is ordered by j in memory, without a hash table of groups" in explained
    assert compressed_steps(graph.plan(SPARSE, optimizer="relational")) == {}
    left, right = sparse_matrices()
    result = graph.run(plan, progress=False)["Y"].to_scipy()
    np.testing.assert_allclose(result.toarray(), (left @ right).toarray(), rtol=1e-12)
    plan.save(tmp_path / "plan.json")
    assert graph.load_plan(tmp_path / "plan.json").sql() == plan.sql()


def test_chains_of_products(graph: se.Database) -> None:
    plan = graph.plan("Y[i, l] = sum(A[i, j] * B[j, k] * A[k, l])")
    assert len(compressed_steps(plan)) == 2
    left, right = sparse_matrices()
    result = graph.run(plan, progress=False)["Y"].to_scipy()
    np.testing.assert_allclose(result.toarray(), (left @ right @ left).toarray(), rtol=1e-12)


@pytest.mark.engines("duckdb", reason="its threads")
def test_results_are_computed_by_all_threads(db: se.Database) -> None:
    """DuckDB keeps the order of rows if they have one, and uses one thread for that."""
    for name, matrix in zip("AB", sparse_matrices(0.005), strict=True):
        db.tensor(name, matrix)
    plan = db.plan(SPARSE)
    db.connection.execute("SET threads = 4")
    assert "DISTINCT" in plan.sql()
    query = plan.sql().rstrip(";")
    results = (db.connection.execute(query).fetchnumpy()["i"] for _ in range(50))
    assert any(np.any(np.diff(rows) < 0) for rows in results)  # a thread may be so early that it computes all rows


@pytest.mark.engines("duckdb", reason="its memory limit")
def test_products_beyond_memory_are_joined(graph: se.Database) -> None:
    for limit, compressed in (("40MB", {"Y": (0, 1)}), ("3MB", {})):
        graph.connection.execute(f"SET memory_limit = '{limit}'")
        assert compressed_steps(graph.plan(SPARSE, pin={"Y": "ijk"})) == compressed


def test_a_product_that_turns_infinite_is_detected(db: se.Database, everywhere: None) -> None:
    for name in "AB":
        db.tensor(name, np.full((3, 3), 1e200), promoted=["dim_0", "dim_1"])
    plan = db.plan(SPARSE, pin={"Y": "ijk"})
    assert set(compressed_steps(plan)) == {"Y"}
    with pytest.raises(se.EngineError, match="Y turned NaN or infinite"):
        db.run(plan, progress=False)


@pytest.mark.parametrize("shape", [(4, 0), (0, 4)])
def test_empty_axes(db: se.Database, shape: tuple[int, int], everywhere: None) -> None:
    db.tensor("A", np.ones((3, shape[0])), promoted=["dim_0", "dim_1"])
    db.tensor("B", np.ones(shape), promoted=["dim_0", "dim_1"])
    result = db.run(SPARSE, pin={"Y": "ijk"}, progress=False)["Y"].to_numpy()
    np.testing.assert_array_equal(result, np.zeros((3, shape[1])))


@pytest.mark.engines("duckdb", reason="its types")
def test_users_keys_of_other_types(db: se.Database, everywhere: None) -> None:
    db.connection.execute(
        "CREATE TABLE edges AS SELECT (i % 5)::UTINYINT AS a, (i % 7)::BIGINT AS b, i::FLOAT AS val "
        "FROM range(35) AS t(i)"
    )
    db.tensor_from_table("A", "edges", ["a", "b"], "val", shape=(5, 7))
    dense = db.run("Z[i, j] = A[i, j]", progress=False)["Z"].to_numpy()
    plan = db.plan("Y[i, k] = sum(A[i, j] * A[k, j])", pin={"Y": "ijk"})
    assert set(compressed_steps(plan)) == {"Y"}
    result = db.run(plan, progress=False)["Y"].to_numpy()
    np.testing.assert_allclose(result, dense @ dense.T, rtol=1e-6)

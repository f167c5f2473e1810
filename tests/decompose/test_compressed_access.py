"""Operands ordered by row in memory give numpy's results, and are chosen where that is cheaper."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import scipy.sparse
from half_filled_tensors import DTYPES, half_filled, plan_with_numpys_result
from hypothesis import given
from hypothesis import strategies as st
from indexing import compress_wherever_possible, compressed_steps, indexed_steps
from numpy.typing import NDArray
from random_runs import random_runs

import sparseeinsum as se
from sparseeinsum.decompose import decomposed_graph
from sparseeinsum.decompose.compressed_access import MOST_POSITIONS
from sparseeinsum.kernels.compression import LARGEST
from sparseeinsum.operators.semirings import SEMIRINGS, Semiring
from sparseeinsum.render.sql_statement import SqlStatement
from sparseeinsum.semantics.dense import evaluate_program

ONLY_DUCKDB = pytest.mark.engines("duckdb", reason="PostgreSQL keeps one array a statement, and no rows of entries")

Array = NDArray[Any]


@pytest.fixture(params=[0.0, math.inf], ids=["shared by threads", "in one thread"])
def everywhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans order operands by row wherever they can."""
    monkeypatch.setattr(decomposed_graph, "_SHARED_SECONDS", request.param)
    compress_wherever_possible(monkeypatch)


# EinSums, the promoted labels, and the operand that can then be ordered by row.
PROGRAMS = {
    "matrix product": ("T[i, m] = sum(A[i, j] * H[j, m])", "ij", 0),
    "the other way round": ("T[i, m] = sum(H[j, m] * A[i, j])", "ij", 1),
    "by columns": ("T[j, m] = sum(A[i, j] * G[i, m])", "ij", 0),
    "two keys of rows": ("T[i, j, m] = sum(E[i, j, k] * K[k, m])", "ijk", 0),
    "keys in another order": ("T[j, i, m] = sum(E[i, j, k] * K[k, m])", "ijk", 0),
    "two keys of positions": ("T[i, m] = sum(E[i, j, k] * D[k, j, m])", "ijk", 0),
    "a shared key": ("T[i, j, m] = sum(E[i, j, k] * D[k, j, m])", "ijk", 0),
    "a key that only one has": ("T[i, m] = sum(E[i, j, k] * H[j, m])", "ijk", 0),
    "two axes inside": ("T[i, m, n] = sum(A[i, j] * F[j, m, n])", "ij", 0),
    "axes inside in another order": ("T[i, n, m] = sum(A[i, j] * F[j, m, n])", "ij", None),
    "an axis that is added up": ("T[i, m] = sum(A[i, j] * F[j, m, n])", "ij", None),
    "arrays on both sides": ("T[i, m] = sum(C[i, j, n] * H[j, m])", "ij", None),
    "greatest": ("T[i, m] = max(A[i, j] * H[j, m])", "ij", None),
    "distances": ("T[i, m] = sum((A[i, j] - H[j, m]) ^ 2)", "ij", None),
    "no groups": ("T[i, j, m] = A[i, j] * H[j, m]", "ij", None),
    "one group": ("T[m] = sum(A[i, j] * H[j, m])", "ij", None),
    "a diagonal": ("T[i, m] = sum(B[i, i, j] * H[j, m])", "ij", None),
}
BOUNDS = {"i": 7, "j": 9, "k": 3, "m": 4, "n": 2}
TENSORS = {"A": "ij", "B": "iij", "C": "ijn", "D": "kjm", "E": "ijk", "F": "jmn", "G": "im", "H": "jm", "K": "km"}
NODES = 800


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fill", [0, 1])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_numpys(shared_db: se.Database, name: str, fill: int, dtype: str, everywhere: None) -> None:
    text, keys, compressed = PROGRAMS[name]
    plan = plan_with_numpys_result(shared_db, text, keys, half_filled(TENSORS, BOUNDS, dtype, fill), fill)
    if dtype in ("float64", "float32") and fill == 0:
        assert compressed_steps(plan) == ({} if compressed is None else {"T": (compressed,)})
    if dtype == "complex128":
        assert compressed_steps(plan) == {}
    if compressed_steps(plan):
        assert "tensor_gather_sum(" in plan.sql()
        assert "GROUP BY" not in plan.sql().partition("tensor_gather_sum")[2]


@pytest.mark.parametrize("left", DTYPES)
@pytest.mark.parametrize("right", DTYPES)
def test_operands_of_different_dtypes(shared_db: se.Database, left: str, right: str, everywhere: None) -> None:
    program = se.program("T[i, m] = sum(A[i, j] * H[j, m])")
    arrays = {name: half_filled(TENSORS, BOUNDS, dtype, 0)[name] for name, dtype in (("A", left), ("H", right))}
    for name, array in arrays.items():
        shared_db.tensor(name, array, promoted=["dim_0"] if name == "H" else ["dim_0", "dim_1"])
    plan = shared_db.plan(program, pin={"T": ("i", "j")}, layout="any")
    if (left, right) in (("int64", "float64"), ("float32", "float64"), ("bool", "float64")):
        assert compressed_steps(plan) == {"T": (0,)}
    result = shared_db.run(plan, progress=False)["T"]
    expected = evaluate_program(program, arrays)["T"]
    assert result.to_numpy().dtype == expected.dtype
    np.testing.assert_allclose(result.to_numpy(), expected, rtol=1e-5)


@dataclass(frozen=True)
class RandomProduct:
    """A product in a semiring, its operands as dense arrays, and what they are stored with.

    Attributes:
        semiring: The semiring.
        labels: The labels of the operands and of the result.
        arrays: The operands.
        fills: Their fills.
        promoted: The promoted axes of their tables.
    """

    semiring: Semiring
    labels: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
    arrays: tuple[Array, Array]
    fills: tuple[float, float]
    promoted: tuple[list[str], list[str]]

    @property
    def text(self) -> str:
        left, right, output = (", ".join(labels) for labels in self.labels)
        operands = {"u": f"A[{left}]", "v": f"H[{right}]"}
        product = re.sub(r"\b[uv]\b", lambda name: operands[name[0]], self.semiring.text)
        return f"T[{output}] = {product}"


@st.composite
def random_products(draw: st.DrawFn, semirings: Sequence[Semiring] = SEMIRINGS[:1]) -> RandomProduct:
    """Labels of rows i, j; of positions k, l, q, the last of which the result has, too; and inside arrays m, p."""
    semiring = draw(st.sampled_from(semirings))
    rows, shared = draw(st.sampled_from(["i", "ij"])), draw(st.sampled_from(["k", "kl"]))
    both, inside = draw(st.sampled_from(["", "q"])), draw(st.sampled_from(["m", "mp"]))
    alone = draw(st.sampled_from(["", "n"]))
    order = [draw(st.permutations(part)) for part in (rows + shared + both + alone, shared + both, rows + both)]
    labels = (tuple(order[0]), (*order[1], *inside), (*order[2], *inside))
    bounds = {label: draw(st.integers(1, 5)) for label in "ijklmnpq"}
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    arrays, fills, promoted = [], [], []
    is_logical, has_infinite = semiring.aggregate == "any", semiring.function in ("add", "min", "max")
    for axes in labels[:2]:
        dtype = "bool" if is_logical else draw(st.sampled_from(["float64", "float32", "int64"]))
        infinite = [math.inf, -math.inf] if has_infinite and dtype.startswith("float") else []
        fill, density = draw(st.sampled_from([*infinite, 0, 0, 1])), draw(st.sampled_from([0.0, 0.2, 0.7, 1.0]))
        shape = tuple(bounds[label] for label in axes)
        values = rng.integers(-4, 5, shape).astype(dtype)
        values[rng.random(shape) >= density] = fill
        arrays.append(values)
        fills.append(fill)
        promoted.append([f"dim_{axis}" for axis in range(len(axes)) if draw(st.booleans())])
    return RandomProduct(semiring, labels, (arrays[0], arrays[1]), (fills[0], fills[1]), (promoted[0], promoted[1]))


def checked_plan(db: se.Database, product: RandomProduct, promoted_labels: tuple[str, ...]) -> se.Plan:
    """Store the operands, and compare the result with numpy's; return the plan that promotes some labels."""
    for name, array, fill, promoted in zip("AH", product.arrays, product.fills, product.promoted, strict=True):
        db.tensor(name, array, fill=fill, promoted=promoted)
    plan = db.plan(product.text, pin={"T": promoted_labels}, layout="any")
    expected = evaluate_program(se.program(product.text), dict(zip("AH", product.arrays, strict=True)))["T"]
    result = db.run(plan, progress=False)["T"].to_numpy()
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)
    return plan


def test_random_products_are_numpys(shared_db: se.Database, everywhere: None) -> None:
    compressed = []

    @random_runs(120)
    @given(random_products())
    def run(product: RandomProduct) -> None:
        compressed.append(bool(compressed_steps(checked_plan(shared_db, product, product.labels[0]))))

    run()
    assert sum(compressed) > len(compressed) / 4


def test_random_products_in_semirings_are_numpys(shared_db: se.Database, everywhere: None) -> None:
    gathered = []

    @random_runs(60)
    @given(random_products(SEMIRINGS[1:]))
    def run(product: RandomProduct) -> None:
        gathered.append("tensor_gather_reduce(" in checked_plan(shared_db, product, product.labels[0]).sql())

    run()
    assert any(gathered)


@ONLY_DUCKDB
@pytest.mark.parametrize("semiring", SEMIRINGS[1:], ids=lambda semiring: semiring.text)
def test_semirings(db: se.Database, semiring: Semiring, everywhere: None) -> None:
    """What is absent holds a number that changes no aggregate."""
    rng = np.random.default_rng(0)
    dtype = "bool" if semiring.aggregate == "any" else "float64"
    absent = {"min": math.inf, "max": -math.inf, "any": False}[semiring.aggregate]
    a, h = rng.integers(1, 9, (12, 30)).astype(dtype), rng.integers(1, 9, (30, 5)).astype(dtype)
    a[rng.random(a.shape) < 0.7] = absent
    db.tensor("A", a, fill=absent, promoted=["dim_0", "dim_1"])
    db.tensor("H", h, promoted=["dim_0"])
    text = RandomProduct(semiring, (("i", "j"), ("j", "m"), ("i", "m")), (a, h), (absent, 0), ([], [])).text
    plan = db.plan(text, pin={"T": "ij"}, layout="any", nonfinite="allow")
    assert f"tensor_gather_reduce('{semiring.text}'" in plan.sql()
    expected = evaluate_program(se.program(text), {"A": a, "H": h})["T"]
    np.testing.assert_array_equal(db.run(plan, progress=False)["T"].to_numpy(), expected)


@pytest.mark.parametrize("shape", [(0, 4), (5, 0), (5, 4)])
def test_empty_operands(db: se.Database, shape: tuple[int, int], everywhere: None) -> None:
    """All entries of an operand are absent, or an axis has bound 0."""
    a, h = np.ones((3, shape[0])), np.zeros(shape)
    db.tensor("A", a)
    db.tensor("H", scipy.sparse.coo_array(h), promoted=("dim_0",))
    plan = db.plan("T[i, m] = sum(A[i, j] * H[j, m])", pin={"T": "ij"})
    np.testing.assert_array_equal(db.run(plan, progress=False)["T"].to_numpy(), a @ h)


def test_a_row_that_turns_infinite_is_detected(db: se.Database, everywhere: None) -> None:
    db.tensor("A", np.full((3, 3), 10.0), promoted=["dim_0", "dim_1"])
    db.tensor("H", np.full((3, 2), 1e308), promoted=["dim_0"])
    plan = db.plan("T[i, m] = sum(A[i, j] * H[j, m])", pin={"T": "ij"}, layout="any")
    assert compressed_steps(plan) == {"T": (0,)}
    with pytest.raises(se.EngineError, match="T turned NaN or infinite"):
        db.run(plan, progress=False)
    result = db.run(db.plan("T[i, m] = sum(A[i, j] * H[j, m])", pin={"T": "ij"}, nonfinite="allow"), progress=False)
    np.testing.assert_array_equal(result["T"].to_numpy(), np.full((3, 2), np.inf))


def test_several_steps_read_the_results_of_others(db: se.Database, everywhere: None) -> None:
    rng = np.random.default_rng(1)
    a, x = scipy.sparse.random_array((40, 40), density=0.1, rng=rng).toarray(), rng.random((40, 3))
    db.tensor("A", a)
    db.tensor("X", x)
    text = """
        Y[i, k] = sum(A[i, j] * X[j, k])
        R[i, k] = relu(Y[i, k] - 0.2)
        Z[i, k] = sum(A[i, j] * R[j, k])"""
    plan = db.plan(text, rewrite=False, pin={"Y": "ij", "Z": "ij"})
    assert len(compressed_steps(plan)) == 2
    result = db.run(plan, progress=False)["Z"].to_numpy()
    np.testing.assert_allclose(result, a @ np.maximum(a @ x - 0.2, 0), rtol=1e-12)


@pytest.fixture
def graph(db: se.Database) -> se.Database:
    """A sparse matrix A of 800 nodes and dense rows X."""
    rng = np.random.default_rng(0)
    db.tensor("A", scipy.sparse.random_array((NODES, NODES), density=0.2, rng=rng))
    db.tensor("X", rng.random((NODES, 64)))
    return db


PRODUCT = "T[i, m] = sum(A[i, j] * X[j, m])"


def test_chosen_where_it_pays(graph: se.Database) -> None:
    plan = graph.plan(PRODUCT)
    assert compressed_steps(plan) == {"T": (0,)}
    assert "T: A is ordered by i in memory, and multiplied by an array at once" in plan.explain()
    if isinstance(graph.connection, duckdb.DuckDBPyConnection):
        by_rows = graph.plan(PRODUCT, pin={"T": "ij"}).explain()
        assert "T: A is ordered by i in memory, without a hash table of groups" in by_rows
    assert compressed_steps(graph.plan(PRODUCT, optimizer="relational")) == {}


def test_as_many_rows_as_kernels_take() -> None:
    assert MOST_POSITIONS == LARGEST


@ONLY_DUCKDB
def test_few_rows_are_grouped_by_hash(db: se.Database) -> None:
    rng = np.random.default_rng(0)
    db.tensor("A", scipy.sparse.random_array((200, NODES), density=0.2, rng=rng))
    db.tensor("X", rng.random((NODES, 64)))
    plan = db.plan(PRODUCT, pin={"T": "ij"})
    assert compressed_steps(plan) == {}
    assert indexed_steps(plan) == {"T": 1}


@ONLY_DUCKDB
def test_entries_beyond_memory_are_joined(graph: se.Database) -> None:
    """Entries of 3.6 MB, and an array of 0.4 MB, may take a quarter of the memory."""
    graph.connection.execute("SET threads = 2")
    for limit, compressed in (("40MB", {"T": (0,)}), ("8MB", {})):
        graph.connection.execute(f"SET memory_limit = '{limit}'")
        assert compressed_steps(graph.plan(PRODUCT, pin={"T": "ij"})) == compressed


@ONLY_DUCKDB
def test_entries_beyond_a_memory_limit_are_ordered_in_passes(
    db: se.Database, staged_statements: list[SqlStatement]
) -> None:
    """Entries take 57 MB while they are ordered; each pass orders those of its rows, and all read one array."""
    rng = np.random.default_rng(0)
    a, x = scipy.sparse.random_array((3200, 3200), density=0.2, rng=rng), rng.random((3200, 64))
    db.tensor("A", a)
    db.tensor("X", x)
    for limit, comment in (("300MB", ""), ("150MB", "  # in 2 passes over i")):
        plan = db.plan(PRODUCT, pin={"T": "ij"}, memory_limit=limit)
        assert plan.notation() == [f"T[I, m] = sum(A[I, J] * X[J, m]){comment}"]
        assert compressed_steps(plan) == {"T": (0,)}
        np.testing.assert_allclose(db.run(plan, progress=False)["T"].to_numpy(), np.asarray(a @ x), rtol=1e-12)
    (statement,) = staged_statements
    assert len(statement.passes) == 1
    assert statement.tables_read.intersection({"A", "X"}) == {"A"}


def test_a_saved_plan_compresses_again(graph: se.Database, tmp_path: Path) -> None:
    plan = graph.plan(PRODUCT)
    plan.save(tmp_path / "plan.json")
    again = graph.load_plan(tmp_path / "plan.json")
    assert compressed_steps(again) == compressed_steps(plan) == {"T": (0,)}
    assert again.sql() == plan.sql()


@ONLY_DUCKDB
def test_large_results_are_computed_in_small_vectors(db: se.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless they take so little time that one thread computes them."""
    compress_wherever_possible(monkeypatch)
    monkeypatch.setattr(decomposed_graph, "_SHARED_SECONDS", 0.0)
    rng = np.random.default_rng(2)
    a, x = scipy.sparse.random_array((4001, 300), density=0.01, rng=rng).toarray(), rng.random((300, 100))
    db.tensor("A", a)
    db.tensor("X", x, promoted=["dim_0"])
    plan = db.plan(PRODUCT, pin={"T": "ij"})
    assert "tensor_row_numbers(4001, 655)" in plan.sql()
    np.testing.assert_allclose(db.run(plan, progress=False)["T"].to_numpy(), a @ x, rtol=1e-12)

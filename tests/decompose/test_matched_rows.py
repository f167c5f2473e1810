"""Operands that are matched row by row give numpy's results, and are matched where that is cheaper than a join."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from indexing import match_wherever_possible, matched_results
from numpy.typing import NDArray
from random_runs import random_runs

import sparseeinsum as se
from sparseeinsum.algebra.translate import delivered_relation
from sparseeinsum.semantics.dense import evaluate_program

Array = NDArray[Any]
LEAST = (1 << 62, 0)  # of the tuples that PostgreSQL sends in one value: all results come in rows, then none
BOUNDS = {"i": 6, "j": 5, "k": 3, "l": 4}
TENSORS = {"A": "ij", "B": "ij", "C": "ji", "E": "ijkl", "F": "ljik", "V": "i", "W": "i", "U": "jk", "S": "ii"}
# EinSums, and whether their operands can be matched.
PROGRAMS = {
    "product": ("T[i, j] = A[i, j] * B[i, j]", True),
    "sum": ("T[i, j] = A[i, j] + B[i, j]", True),
    "difference": ("T[j, i] = A[i, j] - C[j, i]", True),
    "greater": ("T[i, j] = max(A[i, j], B[i, j])", True),
    "one side": ("T[i, j] = where(A[i, j] != 0, B[i, j], 0)", True),
    "the other side": ("T[i, j] = where(A[i, j] > 0, A[i, j], B[i, j] + 1)", True),
    "four axes": ("T[k, i, l, j] = E[i, j, k, l] * F[l, j, i, k]", True),
    "four axes, a sum": ("T[k, i, l, j] = E[i, j, k, l] + F[l, j, i, k]", True),
    "vectors": ("T[i] = V[i] + W[i]", True),
    "inner product": ("T[] = sum(A[i, j] * B[i, j])", True),
    "sums of rows": ("T[i] = sum(A[i, j] * C[j, i])", True),
    "greatest sums of columns": ("T[j] = max(A[i, j] + B[i, j])", True),
    "distance": ("T[j] = sum(abs(A[i, j] - B[i, j]))", True),
    "other labels": ("T[i, j, k] = A[i, j] * U[j, k]", False),
    "a diagonal": ("T[i] = S[i, i] * V[i]", False),
    "labels of one operand": ("T[i, j] = A[i, j] * V[i]", False),
}


@pytest.fixture
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans match operands wherever they can."""
    match_wherever_possible(monkeypatch)


def sparse_array(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, fill: float, density: float) -> Array:
    """Small numbers, and elsewhere the fill."""
    values = rng.integers(-3, 4, shape).astype(dtype)
    values[rng.random(shape) >= density] = fill
    return values


def load(db: se.Database, arrays: dict[str, Array], fill: float) -> None:
    """Store arrays as entries."""
    for name, array in arrays.items():
        promoted = [f"dim_{axis}" for axis in range(array.ndim)]
        db.tensor(name, array, fill=fill, dtype=str(array.dtype), promoted=promoted)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool"])
@pytest.mark.parametrize("fill", [0, 1, math.inf])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_numpys(
    shared_db: se.Database,
    name: str,
    fill: float,
    dtype: str,
    everywhere: None,
    set_least: Callable[[int], None],
) -> None:
    text, can_match = PROGRAMS[name]
    if (math.isinf(fill) and not dtype.startswith("float")) or (dtype == "bool" and ("-" in text or "abs" in text)):
        pytest.skip("numpy has no such numbers, or no such operation")
    program, rng = se.program(text), np.random.default_rng(3)
    arrays = {
        tensor: sparse_array(rng, tuple(BOUNDS[label] for label in TENSORS[tensor]), dtype, fill, 0.4)
        for tensor in program.inputs
    }
    load(shared_db, arrays, fill)
    (einsum,) = program.einsums
    plan = shared_db.plan(program, pin={"T": einsum.labels}, rewrite=False, nonfinite="allow")
    assert can_match or not matched_results(plan)
    if can_match and dtype == "float64" and fill == 0 and "A[i, j] != 0" not in text:
        assert matched_results(plan) == {"T"}
        assert "tensor_matched" in plan.sql()
        assert not re.search(r" JOIN (main|public)", plan.sql())
    with np.errstate(invalid="ignore"):
        expected = evaluate_program(program, arrays)["T"]
    for least in LEAST:
        set_least(least)
        result = shared_db.run(plan, progress=False)["T"].to_numpy()
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)


@dataclass(frozen=True)
class RandomPair:
    """An EinSum of two operands with the same labels, the operands as dense arrays, and their fill."""

    text: str
    labels: str
    arrays: dict[str, Array]
    fill: float


@st.composite
def random_pairs(draw: st.DrawFn) -> RandomPair:
    """One to four axes in any order; some labels may be aggregated."""
    labels = "ijkl"[: draw(st.integers(1, 4))]
    orders = [", ".join(draw(st.permutations(labels))) for _ in "AB"]
    join = draw(
        st.sampled_from(
            ["{} * {}", "{} + {}", "{} - {}", "min({}, {})", "where({} > 0, {}, 2)", "abs({} - {})", "{} * ({} + 1)"]
        )
    ).format(f"A[{orders[0]}]", f"B[{orders[1]}]")
    some = st.lists(st.sampled_from(labels), unique=True)
    kept = draw(st.one_of(some, st.permutations(labels)))
    aggregate = draw(st.sampled_from(["sum", "max", "min"]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    bounds, fill = {label: draw(st.integers(1, 6)) for label in labels}, draw(st.sampled_from([0.0, 0.0, 1.0]))
    dtype = draw(st.sampled_from(["float64", "float32", "int64"]))
    arrays = {
        name: sparse_array(
            rng,
            tuple(bounds[label] for label in order.split(", ")),
            dtype,
            fill,
            draw(st.sampled_from([0.0, 0.2, 0.7, 1.0])),
        )
        for name, order in zip("AB", orders, strict=True)
    }
    joined = join if set(kept) == set(labels) else f"{aggregate}({join})"
    return RandomPair(f"T[{', '.join(kept)}] = {joined}", labels, arrays, fill)


def test_random_pairs_are_numpys(shared_db: se.Database, everywhere: None, set_least: Callable[[int], None]) -> None:
    matched = []

    @random_runs(60)
    @given(random_pairs())
    def run(pair: RandomPair) -> None:
        load(shared_db, pair.arrays, pair.fill)
        program = se.program(pair.text)
        plan = shared_db.plan(program, pin={"T": pair.labels}, rewrite=False)
        matched.append(bool(matched_results(plan)))
        expected = evaluate_program(program, pair.arrays)["T"]
        for least in LEAST:
            set_least(least)
            result = shared_db.run(plan, progress=False)["T"].to_numpy()
            assert result.dtype == expected.dtype
            np.testing.assert_array_equal(result, expected)

    run()
    assert sum(matched) > len(matched) / 4


def entries(seed: int, count: int, bounds: tuple[int, ...]) -> tuple[Array, Array]:
    """Random indices, each once, in no order, and a number for each."""
    rng = np.random.default_rng(seed)
    places = rng.permutation(np.unique(rng.integers(0, math.prod(bounds), count)))
    return np.stack(np.unravel_index(places, bounds)), rng.random(len(places))


def test_chosen_where_it_pays(db: se.Database, tmp_path: Path) -> None:
    bounds = (80, 80, 80, 80)
    loaded = {name: entries(seed, 400_000, bounds) for seed, name in enumerate("AB")}
    dense, present = {}, {}
    for name, (indices, values) in loaded.items():
        db.tensor(name, (indices, values), shape=bounds)
        places = np.ravel_multi_index(tuple(indices), bounds)
        dense[name], present[name] = np.zeros(math.prod(bounds)), np.zeros(math.prod(bounds), bool)
        dense[name][places], present[name][places] = values, True
    for operator in "+*":
        plan = db.plan(f"Y[i, j, k, l] = A[i, j, k, l] {operator} B[i, j, k, l]")
        assert matched_results(plan) == {"Y"}
        explained = " ".join(plan.explain().split())
        assert "B is ordered by i, j in memory, and matched row by row, without a join" in explained
        table = db.run(plan, progress=False)["Y"].arrow()
        *axes, values = (column.to_numpy() for column in table.columns)
        places = np.ravel_multi_index(tuple(axes), bounds)
        has_value, expected = (
            (present["A"] & present["B"], dense["A"] * dense["B"])
            if operator == "*"
            else (present["A"] | present["B"], dense["A"] + dense["B"])
        )
        order = np.argsort(places)
        np.testing.assert_array_equal(places[order], np.flatnonzero(has_value))
        np.testing.assert_allclose(values[order], expected[has_value])
    plan.save(tmp_path / "plan.json")
    assert db.load_plan(tmp_path / "plan.json").sql() == plan.sql()
    assert not matched_results(db.plan(plan.notation()[0], indexes=False))


def test_few_entries_in_many_rows_are_joined(db: se.Database) -> None:
    for seed, name in enumerate("AB"):
        db.tensor(name, entries(seed, 1000, (1_000_000, 10)), shape=(1_000_000, 10))
    assert not matched_results(db.plan("Y[i, j] = A[i, j] + B[i, j]"))


@pytest.mark.engines("postgresql", reason="the memory of its server is not the client's")
@pytest.mark.parametrize("text", ["T[i, j] = A[i, j] + B[i, j]", "T[j, i] = A[i, j] - B[i, j]", "T[i] = V[i] + W[i]"])
def test_no_row_is_made_of_a_match(db: se.Database, everywhere: None, text: str) -> None:
    load(db, {"A": np.eye(6, 5), "B": np.eye(6, 5), "V": np.eye(1, 6)[0], "W": np.eye(1, 6)[0]}, 0)
    plan = db.plan(text, pin={"T": "ij" if "j" in text else "i"}, rewrite=False)
    assert matched_results(plan) == {"T"}
    schema = delivered_relation(plan.data.decomposed, "T").schema
    sent = plan.data.statements.for_run[-1].value_text(schema).text
    assert "tensor_matched" in sent
    assert "UNNEST" not in sent.upper()


@pytest.mark.parametrize("least", LEAST)
def test_a_sum_that_turns_infinite_is_detected(
    db: se.Database, everywhere: None, set_least: Callable[[int], None], least: int
) -> None:
    set_least(least)
    for name in "AB":
        db.tensor(name, np.full((3, 3), 1.5e308), promoted=["dim_0", "dim_1"])
    plan = db.plan("Y[i, j] = A[i, j] + B[i, j]", pin={"Y": "ij"})
    assert matched_results(plan) == {"Y"}
    with pytest.raises(se.EngineError, match="Y turned NaN or infinite"):
        db.run(plan, progress=False)


@pytest.mark.parametrize("layout", ["{}[I, ~j]", "{}[I:8, ~i, ~j]", "{}[I, J:16, ~j]"])
def test_tensors_in_lists(db: se.Database, layout: str, everywhere: None) -> None:
    rng = np.random.default_rng(4)
    arrays = {name: sparse_array(rng, (30, 40), "float64", 0, 0.2) for name in "AB"}
    for name, array in arrays.items():
        db.tensor(name, scipy.sparse.coo_array(array), axes=["i", "j"], layout=layout.format(name))
    plan = db.plan("Y[i, j] = A[i, j] - B[i, j]", pin={"Y": "ij"})
    assert matched_results(plan) == {"Y"}
    np.testing.assert_array_equal(db.run(plan, progress=False)["Y"].to_numpy(), arrays["A"] - arrays["B"])

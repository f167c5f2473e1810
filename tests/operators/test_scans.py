"""Scans, `first` and `last` give numpy's results in every dtype."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.operators.scans import SCANS

Array = NDArray[Any]

ORACLES: dict[str, Callable[..., Array]] = {
    "cumsum": np.cumsum,
    "cumprod": np.cumprod,
    "cummax": np.maximum.accumulate,
    "cummin": np.minimum.accumulate,
    "logcumsumexp": np.logaddexp.accumulate,
}
OF_COMPLEX = ("cumsum", "cumprod")


def values(dtype: str, fill: Any) -> Array:  # noqa: ANN401  # a number
    rng = np.random.default_rng(7)
    numbers: Array = rng.integers(-2, 3, (4, 5, 3)) + (0.5 if np.dtype(dtype).kind in "fc" else 0)
    if np.dtype(dtype).kind == "c":
        numbers = numbers * 1j
    array: Array = np.where(rng.random((4, 5, 3)) < 0.3, numbers, fill).astype(dtype)
    array[1] = fill  # a slice of nothing else
    array[:, 2] = fill
    return array


@pytest.mark.parametrize("fill", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool", "complex128", "complex64"])
def test_scans_are_numpys(db: se.Database, dtype: str, fill: int) -> None:
    array = values(dtype, fill)
    db.tensor("A", array, fill=array.dtype.type(fill).item())
    names = OF_COMPLEX if array.dtype.kind == "c" else tuple(SCANS)
    text = "".join(f"{name}_{label}[i, j, k] = {name}[{label}](A[i, j, k])\n" for name in names for label in "ijk")
    for name, result in db.run(text).items():
        scan, label = name.split("_")
        wanted = array.astype(np.float64) if scan == "logcumsumexp" and array.dtype.kind in "ib" else array
        expected = ORACLES[scan](wanted, axis="ijk".index(label))
        actual = result.to_numpy()
        assert actual.dtype == expected.dtype, name
        np.testing.assert_allclose(actual, expected, rtol=1e-4 if array.dtype.itemsize == 4 else 1e-12, err_msg=name)


@pytest.mark.parametrize("promoted", [{}, {"dim_0": 1}, {"dim_1": 2}, {"dim_0": 3, "dim_2": 2}])
@pytest.mark.parametrize("optimizer", ["dp", "relational", "dense"])
def test_storage_and_plans_do_not_matter(db: se.Database, promoted: dict[str, int], optimizer: str) -> None:
    array = values("float64", 0)
    db.tensor("A", array, promoted=promoted)
    text = "P[k] = sum(cumsum[j](A[i, j, k] * A[i, j, k]))\nQ[j, i, l] = cummax[j](A[i, j, l]) - 1"
    results = db.run(text, optimizer=optimizer, tiles=(2,))
    np.testing.assert_allclose(results["P"].to_numpy(), np.cumsum(array * array, axis=1).sum(axis=(0, 1)))
    np.testing.assert_allclose(results["Q"].to_numpy(), np.maximum.accumulate(array, axis=1).transpose(1, 0, 2) - 1)


def test_absent_entries_before_the_first_stay_absent(db: se.Database) -> None:
    db.tensor("A", ([[0, 900], [3, 5]], [2.0, 7.0]), shape=(1000, 10))
    plan = db.plan("C[i, j] = cumsum[j](A[i, j])")
    result = db.run(plan)["C"]
    assert "every tuple present" not in plan.sql()
    assert result.fill == 0
    assert len(result.df()) == 7 + 5
    assert result.to_numpy()[900].tolist() == [0] * 5 + [7] * 5


def test_absent_entries_count_where_they_change_the_result(db: se.Database) -> None:
    db.tensor("A", ([[1], [3]], [5.0]), shape=(3, 4), fill=1)
    expected = np.ones((3, 4))
    expected[1, 3] = 5
    results = db.run("C[i, j] = cumsum[j](A[i, j])\nD[i, j] = cumprod[j](A[i, j])")
    assert results["C"].to_numpy().tolist() == np.cumsum(expected, axis=1).tolist()
    assert results["D"].fill == 1
    assert results["D"].to_numpy().tolist() == expected.tolist()


def test_nan_and_infinity(db: se.Database) -> None:
    array = np.array([1.0, -np.inf, 2.0, np.nan, 3.0])
    db.tensor("A", array)
    for name, oracle in ORACLES.items():
        result = db.run(f"C[i] = {name}[i](A[i])", nonfinite="allow")["C"].to_numpy()
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(result, oracle(array), err_msg=name)


def test_values_that_turn_infinite_are_refused(db: se.Database) -> None:
    db.tensor("A", np.full(3, 1e200))
    with pytest.raises(se.SparseEinsumError, match="C turned NaN or infinite"):
        db.run("C[i] = cumprod[i](A[i])")


def test_int64_that_overflows_is_refused(db: se.Database) -> None:
    db.tensor("A", np.array([2**62, 2**62, -1]))
    with pytest.raises(se.SparseEinsumError, match="int64 overflow"):
        db.run("C[i] = cumsum[i](A[i])")


def test_booleans_are_counted(db: se.Database) -> None:
    db.tensor("A", np.array([3.0, 0.0, 2.0, 5.0]))
    result = db.run("C[i] = cumsum[i](A[i] > 2)")["C"].to_numpy()
    assert result.dtype == np.int64
    assert result.tolist() == [1, 1, 1, 2]


def test_empty_tensors(db: se.Database) -> None:
    db.tensor("A", np.zeros((0, 3)))
    results = db.run("C[i, j] = cumsum[i](A[i, j])\nD[i, j] = cumprod[j](A[i, j])\nE[j] = max(cumsum[i](A[i, j]))")
    assert results["C"].to_numpy().shape == results["D"].to_numpy().shape == (0, 3)
    assert results["E"].to_numpy().tolist() == [-np.inf] * 3


def test_scans_in_expressions_and_of_scans(db: se.Database) -> None:
    array = np.arange(1.0, 7).reshape(2, 3)
    db.tensor("A", array)
    text = "C[i, j] = A[i, j] / cumsum[j](A[i, j]) + cumsum[i](cumsum[j](A[i, j]))"
    sums = np.cumsum(array, axis=1)
    np.testing.assert_allclose(db.run(text)["C"].to_numpy(), array / sums + np.cumsum(sums, axis=0))
    assert str(se.program(text)).count("cumsum[j](A[i, j])") == 1  # computed once


def test_a_diagonal_and_a_broadcast(db: se.Database) -> None:
    array = np.arange(9.0).reshape(3, 3)
    db.tensor("A", array)
    results = db.run("C[i] = cumsum[i](A[i, i])\ntensor D[k: 2, i: 3]\nD[k, i] = cumsum[i](A[i, i])")
    expected = np.cumsum(np.diagonal(array))
    assert results["C"].to_numpy().tolist() == expected.tolist()
    assert results["D"].to_numpy().tolist() == [expected.tolist()] * 2


def test_python_writes_them_as_text_does() -> None:
    a = se.tensor("A")["i", "j"]
    written = se.program({"C": a.cumsum("j")["i", "j"]})
    assert str(written) == str(se.program("C[i, j] = cumsum[j](A[i, j])")) == "C[i, j] = cumsum[j](A[i, j])"


def test_a_plan_comes_back_from_its_file(db: se.Database, tmp_path: Any) -> None:  # noqa: ANN401  # a path
    db.tensor("A", np.arange(6.0).reshape(2, 3))
    db.plan("C[i, j] = cummax[i](A[i, j] - 2)").save(tmp_path / "plan.json")
    result = db.run(db.load_plan(tmp_path / "plan.json"))["C"].to_numpy()
    assert result.tolist() == (np.arange(6.0).reshape(2, 3) - 2).tolist()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("C[i, j] = cumsum(A[i, j])", "cumsum needs its labels in brackets, as in cumsum[j](...)"),
        ("C[i, j] = cumsum[i, j](A[i, j])", "cumsum takes one label, not i, j"),
        ("C[i, j] = cumsum[k](A[i, j])", "cumsum[k]"),
        ("C[i] = cumsum[j](A[i, j])", "label j must be aggregated"),
        ("C[i, J] = cumsum[J](A[i, J])", "cumsum goes along j inside arrays"),
        ("C[i, j] = cumsum[j](A[i, j], 2)", "the scan cumsum takes one expression, not 2"),
        ("C[i, j] = cumsums[j](A[i, j])", "did you mean cumsum?"),
        ("C = cumsum(A)", "cumsum needs to know a label"),
    ],
)
def test_invalid_scans_are_refused(text: str, message: str) -> None:
    with pytest.raises(se.ParseError, match=re.escape(message)):
        se.program(text)


@pytest.mark.parametrize("fill", [0, 1])
@pytest.mark.parametrize("optimizer", ["dp", "relational", "dense"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool", "complex128", "complex64"])
def test_first_and_last(db: se.Database, dtype: str, optimizer: str, fill: int) -> None:
    array = values(dtype, fill)
    db.tensor("A", array, fill=array.dtype.type(fill).item())
    text = """
    F[i, k] = first[j](A[i, j, k])
    L[k, j] = last(A[i, j, k])
    Z[i] = first[k](last[j](A[i, j, k]))
    S[j] = sum[i](last[k](A[i, j, k]) * 2)
    """
    program = se.program(text)
    assert se.program(str(program)) == program
    results = db.run(program, optimizer=optimizer)
    expected = {"F": array[:, 0], "L": array[-1].T, "Z": array[:, -1, 0], "S": (array[..., -1] * 2).sum(axis=0)}
    for name, wanted in expected.items():
        result = results[name].to_numpy()
        assert result.dtype == wanted.dtype, name
        np.testing.assert_allclose(result, wanted, err_msg=name)


def test_the_first_of_an_empty_axis_is_refused(db: se.Database) -> None:
    db.tensor("A", np.zeros((2, 0)))
    with pytest.raises(se.SemanticsError, match="Y: first of no values is not defined"):
        db.run("Y[i] = first[j](A[i, j])")
    db.tensor("B", np.zeros((0, 2)))
    assert db.run("Y[i] = first[j](B[i, j])")["Y"].shape == (0,)
    db.tensor("C", np.zeros(0))
    for optimizer in ("dp", "relational", "dense"):
        assert db.run("Y[j] = last[i](C[i] * C[j])", optimizer=optimizer)["Y"].to_numpy().shape == (0,)


def test_the_label_of_a_scan_is_not_promoted(db: se.Database) -> None:
    db.tensor("A", np.ones((2, 3)))
    with pytest.raises(se.PlanError, match="C has j inside arrays, so j cannot be promoted"):
        db.plan("C[i, j] = cumsum[j](A[i, j])", pin={"C": {"j": 1}})
    plan = db.plan("C[i, j] = cumsum[j](A[i, j])", workers=2)
    assert plan.partitioned is not None
    assert db.run(plan)["C"].to_numpy().tolist() == [[1, 2, 3]] * 2


def test_complex_numbers_have_no_cumulative_maximum(db: se.Database) -> None:
    db.tensor("A", np.ones(3, complex))
    with pytest.raises(se.SemanticsError, match="order"):
        db.run("C[i] = cummax[i](A[i])")

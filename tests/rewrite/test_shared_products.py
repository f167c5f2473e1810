"""Products that several statements share are reordered where that is cheaper, with the same results."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from random_runs import random_runs

import sparseeinsum as se
from sparseeinsum.cli import main

SAMPLED = "S[i, j] = A[i, j] * sum(U[i, k] * V[k, j])"
CHAIN = "T[i, k] = sum(B[i, j] * C[j, k])\ny[i] = sum(T[i, k] * x[k])"


def load_sampled(db: se.Database, dtype: str = "float64") -> dict[str, NDArray[np.float64]]:
    rng = np.random.default_rng(0)
    arrays = {
        "A": sp.random_array((1200, 1000), density=0.002, rng=rng).toarray() * 10,
        "U": rng.uniform(1, 9, (1200, 60)),
        "V": rng.uniform(1, 9, (60, 1000)),
    }
    arrays = {name: array.astype(dtype) for name, array in arrays.items()}
    for name, array in arrays.items():
        db.tensor(name, sp.coo_array(array) if name == "A" else array)
    return arrays


def load_chain(db: se.Database) -> dict[str, NDArray[np.float64]]:
    rng = np.random.default_rng(1)
    arrays = {"B": rng.normal(size=(600, 500)), "C": rng.normal(size=(500, 700)), "x": rng.normal(size=700)}
    for name, array in arrays.items():
        db.tensor(name, array)
    return arrays


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.engines("duckdb", "postgresql")
def test_a_product_of_which_few_entries_are_read_is_not_computed_whole(db: se.Database, dtype: str) -> None:
    arrays = load_sampled(db, dtype)
    plan = db.plan(SAMPLED)
    assert plan.data.rewriting.inlined == {"S_sum": "S"}
    expected = arrays["A"] * (arrays["U"] @ arrays["V"])
    np.testing.assert_allclose(db.run(plan)["S"].to_numpy(), expected, rtol=1e-4 if dtype == "float32" else 1e-9)
    assert "without S_sum (rewrite=False keeps to what is written)" in plan.explain()


@pytest.mark.engines("duckdb", "postgresql")
def test_statements_are_one_product(db: se.Database) -> None:
    arrays = load_chain(db)
    plan = db.plan(CHAIN)
    assert plan.data.rewriting.inlined == {"T": "y"}
    assert plan.cost < 0.8 * db.plan(CHAIN, rewrite=False).cost
    np.testing.assert_allclose(
        db.run(plan)["y"].to_numpy(), arrays["B"] @ arrays["C"] @ arrays["x"], rtol=1e-9, atol=1e-9
    )


def test_requested_results_are_computed(db: se.Database) -> None:
    arrays = load_chain(db)
    assert db.plan(CHAIN, rewrite=False).data.rewriting.inlined == {}
    assert db.plan(CHAIN, outputs=["T"]).data.rewriting.inlined == {}
    assert db.plan(CHAIN, pin={"T": "i"}).data.rewriting.inlined == {}
    assert db.plan(CHAIN, pin={"y": "k"}).data.rewriting.inlined == {}
    assert db.plan(CHAIN.replace("i", "I")).data.rewriting.inlined == {}
    assert db.plan(CHAIN + "\nz[k] = max(T[i, k])").data.rewriting.inlined == {}
    assert db.plan(CHAIN, nonfinite="allow").data.rewriting.inlined == {}
    np.testing.assert_allclose(
        db.run(CHAIN, outputs=["T"])["T"].to_numpy(), arrays["B"] @ arrays["C"], rtol=1e-9, atol=1e-9
    )


def test_integers_overflow_as_written(db: se.Database) -> None:
    """(1 - 1) x 2 ^ 62 is 0, but 2 ^ 62 x 2 is no int64."""
    db.tensor("B", np.array([[2, -2]]))
    db.tensor("C", np.array([[1], [1]]))
    db.tensor("x", np.array([2**62]))
    assert db.plan(CHAIN).data.rewriting.inlined == {}
    assert db.run(CHAIN)["y"].to_numpy().tolist() == [0]


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_nonfinite_values_are_multiplied_as_written(db: se.Database, value: float) -> None:
    arrays = load_chain(db)
    arrays["C"][3, 4] = value
    db.tensor("C", arrays["C"])
    assert db.plan(CHAIN).data.rewriting.inlined == {}
    expected = arrays["B"] @ arrays["C"] @ arrays["x"]
    np.testing.assert_allclose(db.run(CHAIN)["y"].to_numpy(), expected, rtol=1e-9, atol=1e-9)


def test_dtypes_that_differ_stay_apart(db: se.Database) -> None:
    arrays = load_chain(db)
    db.tensor("x", arrays["x"].astype("float32"))
    assert db.plan(CHAIN).data.rewriting.inlined == {}


def test_equal_labels_of_two_sums_are_distinct(db: se.Database) -> None:
    rng = np.random.default_rng(2)
    arrays = {name: rng.normal(size=(500, 500)) for name in "ABCD"}
    mask = sp.random_array((500, 500), density=0.002, rng=rng)
    db.tensor("M", mask)
    for name, array in arrays.items():
        db.tensor(name, array)
    text = "Y[i, j] = M[i, j] * sum[k](A[i, k] * B[k, j]) * sum[k](C[i, k] * D[k, j])"
    plan = db.plan(text)
    assert len(plan.data.rewriting.inlined) == 2
    expected = mask.toarray() * (arrays["A"] @ arrays["B"]) * (arrays["C"] @ arrays["D"])
    np.testing.assert_allclose(db.run(plan)["Y"].to_numpy(), expected, rtol=1e-9, atol=1e-9)


def test_other_names_of_labels_in_the_statement_that_reads(db: se.Database) -> None:
    arrays = load_chain(db)
    text = "T[j, i] = sum(B[j, k] * C[k, i])\ny[k] = sum(T[k, j] * x[j])"
    assert db.plan(text).data.rewriting.inlined == {"T": "y"}
    np.testing.assert_allclose(
        db.run(text)["y"].to_numpy(), arrays["B"] @ arrays["C"] @ arrays["x"], rtol=1e-9, atol=1e-9
    )


def test_a_diagonal_is_taken_of_the_product(db: se.Database) -> None:
    rng = np.random.default_rng(3)
    first, second = rng.normal(size=(2, 40, 40))
    db.tensor("B", first)
    db.tensor("C", second)
    text = "T[i, k] = sum(B[i, j] * C[j, k])\nz[] = sum(T[i, i])"
    np.testing.assert_allclose(db.run(text)["z"].to_numpy(), np.trace(first @ second), rtol=1e-9, atol=1e-9)


def test_a_sum_of_all_entries_of_a_product_needs_no_product(db: se.Database) -> None:
    arrays = load_chain(db)
    text = "s[] = sum(B[i, j] * C[j, k])"
    lines = db.plan(text).notation()
    assert len(lines) == 3  # sums of the columns of B, of the rows of C, and their product
    np.testing.assert_allclose(db.run(text)["s"].to_numpy(), (arrays["B"] @ arrays["C"]).sum(), rtol=1e-9, atol=1e-9)


def test_saved_plans_check_their_assumptions(db: se.Database, tmp_path: Path) -> None:
    arrays = load_chain(db)
    db.plan(CHAIN).save(tmp_path / "plan.json")
    db.tensor("C", arrays["C"] * 2)
    loaded = db.load_plan(tmp_path / "plan.json")
    assert loaded.data.rewriting.inlined == {"T": "y"}
    np.testing.assert_allclose(
        db.run(loaded)["y"].to_numpy(), 2 * arrays["B"] @ arrays["C"] @ arrays["x"], rtol=1e-9, atol=1e-9
    )
    arrays["C"][0, 0] = np.inf
    db.tensor("C", arrays["C"])
    with pytest.raises(se.PlanError, match="tensor C has NaN or infinity now"):
        db.load_plan(tmp_path / "plan.json")


def test_the_command_line_can_turn_rewriting_off(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with se.connect(str(tmp_path / "chain.duckdb")) as db:
        load_chain(db)
    arguments = ["explain", "--database", str(tmp_path / "chain.duckdb"), "--text", CHAIN]
    main(arguments)
    assert "without T (rewrite=False" in capsys.readouterr().out
    main([*arguments, "--no-rewrite"])
    assert "without T" not in capsys.readouterr().out


def test_products_of_statements_are_numpys(shared_db: se.Database, engine: str) -> None:
    @random_runs(60, engine)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        check_products(shared_db, data)

    run()


def check_products(db: se.Database, data: st.DataObject) -> None:
    """A chain of matrices, some sparse, with some products masked, summed or transposed."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    count = data.draw(st.integers(2, 5))
    bounds = [data.draw(st.sampled_from((1, 2, 7, 40))) for _ in range(count + 1)]
    lines, value = [], np.empty(0)
    for number in range(count):
        shape = bounds[number : number + 2]
        matrix = rng.normal(size=shape) * (rng.random(shape) < data.draw(st.sampled_from((0.05, 1))))
        db.tensor(f"M{number}", sp.coo_array(matrix))
        product = f"sum(T{number - 1}[i, k] * M{number}[k, j])" if number else f"M{number}[i, j]"
        value = value @ matrix if number else matrix
        if data.draw(st.booleans()):
            mask = rng.normal(size=value.shape) * (rng.random(value.shape) < 0.1)
            db.tensor(f"N{number}", sp.coo_array(mask))
            product, value = f"N{number}[i, j] * {product}", mask * value
        lines.append(f"T{number}[i, j] = {product}")
    if data.draw(st.booleans()):
        lines.append(f"Y[] = sum(T{count - 1}[i, j])")
        value = value.sum()
    else:
        lines.append(f"Y[j, i] = T{count - 1}[i, j]")
        value = value.T
    results = db.run("\n".join(lines), optimizer=data.draw(st.sampled_from(("dp", "greedy", "relational"))))
    np.testing.assert_allclose(results["Y"].to_numpy(), value, rtol=1e-9, atol=1e-9)


def work_seconds(plan: se.Plan) -> float:
    """Expected seconds of a run, without those of a run that does nothing."""
    return plan.data.decomposed.work_seconds


@pytest.mark.parametrize(
    "text",
    [
        "S[i, j] = A[i, j] * sum(U[i, k] * V[k, j]) / sqrt(bound(U, 1))",
        "S[i, j] = A[i, j] * (sum(U[i, k] * V[k, j] * 3) / (3 * sqrt(bound(U, 1))))",
        "P[i, j] = sum(U[i, k] * V[k, j]) / sqrt(bound(U, 1))\nS[i, j] = A[i, j] * P[i, j]",
    ],
)
def test_constants_keep_no_product_apart(db: se.Database, text: str) -> None:
    arrays = load_sampled(db)
    plan = db.plan(text)
    assert work_seconds(plan) < 0.3 * work_seconds(db.plan(text, rewrite=False))
    expected = arrays["A"] * (arrays["U"] @ arrays["V"]) / np.sqrt(60)
    np.testing.assert_allclose(db.run(plan)["S"].to_numpy(), expected, rtol=1e-9)


def test_constants_are_multiplied_with_sums_not_with_their_terms(db: se.Database) -> None:
    arrays = load_chain(db)
    plan = db.plan("T[i, k] = sum(B[i, j] * C[j, k] / -4)", layout="any")
    assert [step.einsum.is_multilinear for step in plan.data.decomposed.steps] == [True, False]
    np.testing.assert_allclose(db.run(plan)["T"].to_numpy(), arrays["B"] @ arrays["C"] / -4, rtol=1e-9, atol=1e-9)


def test_sums_that_may_overflow_keep_their_constants(db: se.Database) -> None:
    db.tensor("B", np.full((2, 3), 1e200))
    db.tensor("C", np.full((3, 2), 1e108))
    result = db.run("T[i, k] = sum(B[i, j] * 1e-200 * C[j, k])")["T"].to_numpy()
    np.testing.assert_allclose(result, np.full((2, 2), 3e108), rtol=1e-9)

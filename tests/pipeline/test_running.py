"""Runs return results in every form, and the plans that computed them."""

import re
from collections.abc import Mapping

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import two_matrices
from planned_memory import limit_for
from reading import read_back
from two_matrices import PRODUCT, SHARED, A, B

import sparseeinsum as se


@pytest.fixture
def unchanging(shared_db: se.Database) -> se.Database:
    """A database with both matrices, for tests that change no table."""
    return two_matrices.load(shared_db)


LAYOUTS = {
    "entries": (PRODUCT, {}),
    "any": (PRODUCT, {"layout": "any"}),
    "dense": (PRODUCT, {"layout": "any", "optimizer": "dense"}),
    "promoted by hand": ("Y[i, K] = sum(A[i, j] * B[j, K])", {}),
}


@pytest.mark.parametrize(("program", "options"), LAYOUTS.values(), ids=LAYOUTS.keys())
def test_forms_of_a_result(unchanging: se.Database, program: str, options: Mapping[str, str]) -> None:
    result = unchanging.run(program, **options)["Y"]  # type: ignore[arg-type]  # options by name
    rows = [(0, 0, 5.0), (1, 0, 6.0), (1, 1, 24.0)]  # entries that differ from the fill
    np.testing.assert_array_equal(result.to_numpy(), A @ B)
    assert isinstance(result.to_scipy(), sp.csr_array)
    np.testing.assert_array_equal(result.to_scipy().toarray(), A @ B)
    assert result.to_scipy().nnz == 3
    assert list(result.df().columns) == ["i", "k", "val"]
    assert sorted(result.df().itertuples(index=False, name=None)) == rows
    assert isinstance(result.arrow(), pa.Table)
    assert result.arrow().column_names == ["i", "k", "val"]
    assert isinstance(result.pl(), pl.DataFrame)
    assert sorted(result.pl().rows()) == rows
    assert (result.name, result.shape, result.fill) == ("Y", (2, 2), 0)


def test_columns_are_labels_in_the_order_of_the_left_side(unchanging: se.Database) -> None:
    frame = unchanging.run("Y[target, Source] = sum(A[Source, j] * B[j, target])")["Y"].df()
    assert list(frame.columns) == ["target", "source", "val"]
    assert sorted(frame.itertuples(index=False, name=None)) == [(0, 0, 5.0), (0, 1, 6.0), (1, 1, 24.0)]


@pytest.mark.parametrize(
    ("program", "options", "expected"),
    [
        (PRODUCT, {}, "<Y[I, K] i: 2 x k: 2 float64, "),
        (PRODUCT, {"layout": "any", "optimizer": "dense"}, "<Y[i, k] i: 2 x k: 2 float64, 1 row>"),
        ("Y[i, K] = sum(A[i, j] * B[j, K])", {}, "<Y[i, K] i: 2 x k: 2 float64, 2 rows>"),
        ("Y[] = sum(A[i, j])", {}, "<Y[] scalar float64, 1 row>"),
    ],
)
def test_repr_of_results(unchanging: se.Database, program: str, options: Mapping[str, str], expected: str) -> None:
    result = unchanging.run(program, **options)["Y"]  # type: ignore[arg-type]  # options by name
    assert repr(result).startswith(expected)
    assert result.notation == expected[1 : expected.index("]") + 1]


def test_rows_of_a_result_promoted_by_hand_hold_arrays(unchanging: se.Database) -> None:
    rows = unchanging.run("Y[I, k] = sum(A[I, j] * B[j, k])")["Y"].rows
    assert rows.column_names == ["i", "val"]
    assert sorted(rows.to_pylist(), key=lambda row: row["i"]) == [{"i": 0, "val": [5, 0]}, {"i": 1, "val": [6, 24]}]


def test_scalar_result(unchanging: se.Database) -> None:
    result = unchanging.run("Y[] = sum(A[i, j])")["Y"]
    assert result.to_numpy().shape == ()
    assert result.to_numpy() == 10
    assert result.df().to_dict("list") == {"val": [10]}
    assert result.arrow().to_pylist() == result.pl().to_dicts() == [{"val": 10}]


def test_arrays_of_scipy_have_any_number_of_axes(unchanging: se.Database) -> None:
    for program in ("Y[i] = sum(A[i, j])", "Y[i, j, k] = A[i, j] * B[j, k]"):
        result = unchanging.run(program)["Y"]
        assert isinstance(result.to_scipy(), sp.coo_array)
        np.testing.assert_array_equal(result.to_scipy().toarray(), result.to_numpy())
    with pytest.raises(se.ShapeError, match="Y has no axes; a sparse array of scipy has some"):
        unchanging.run("Y[] = sum(A[i, j])")["Y"].to_scipy()


def test_result_without_entries(unchanging: se.Database) -> None:
    result = unchanging.run("Y[i, k] = 0 * sum(A[i, j] * B[j, k])", optimizer="dense")["Y"]  # which leaves fills out
    assert (len(result.df()), list(result.df().columns), result.to_scipy().nnz) == (0, ["i", "k", "val"], 0)
    np.testing.assert_array_equal(result.to_numpy(), np.zeros((2, 2)))


def test_outputs_are_results_that_no_statement_reads(unchanging: se.Database) -> None:
    assert list(unchanging.run(SHARED)) == ["Y", "Z"]


def test_outputs_are_returned_too(unchanging: se.Database) -> None:
    results = unchanging.run(SHARED, outputs=["T", "Y"])
    assert list(results) == ["T", "Y", "Z"]
    np.testing.assert_array_equal(results["T"].to_numpy(), A @ B)
    assert list(unchanging.run(unchanging.plan(SHARED, outputs=["T"]))) == ["T", "Y", "Z"]


@pytest.mark.parametrize(
    ("name", "hint"), [("X", "it computes T, Y, Z"), ("A", "it computes T, Y, Z"), ("t", "did you mean T?")]
)
def test_unknown_outputs(unchanging: se.Database, name: str, hint: str) -> None:
    with pytest.raises(se.PlanError, match=f"the program computes no {name}; {hint}"):
        unchanging.plan(SHARED, outputs=[name])


def test_result_may_have_the_name_of_a_tensor_that_is_not_read(unchanging: se.Database) -> None:
    np.testing.assert_array_equal(unchanging.run("B[i] = sum(A[i, j])")["B"].to_numpy(), A.sum(axis=1))
    np.testing.assert_array_equal(read_back(unchanging, "B"), B)


def test_progress_goes_to_standard_error(unchanging: se.Database, capfd: pytest.CaptureFixture[str]) -> None:
    unchanging.run(SHARED, progress=True)
    unchanging.run(SHARED)
    assert capfd.readouterr().out == ""


def test_plan_runs_again(unchanging: se.Database) -> None:
    plan = unchanging.plan(SHARED)
    for _ in range(2):
        np.testing.assert_array_equal(unchanging.run(plan)["Z"].to_numpy(), (A @ B).max(axis=0))


def test_pinned_labels_are_promoted(unchanging: se.Database) -> None:
    plan = unchanging.plan(SHARED, pin={"T": ["I"], "Y": []})
    assert plan.notation()[:2] == ["T[I, k] = sum(A[I, j] * B[j, k])", "Y[i] = sum(T[i, k])"]
    np.testing.assert_array_equal(unchanging.run(plan)["Y"].to_numpy(), (A @ B).sum(axis=1))


def test_best_plans_come_first(unchanging: se.Database) -> None:
    plans = unchanging.plan(PRODUCT, top=5)
    assert [plan.cost for plan in plans] == sorted(plan.cost for plan in plans)
    assert len({tuple(plan.notation()) for plan in plans}) == 5
    assert plans[0].notation() == unchanging.plan(PRODUCT).notation()
    for plan in plans:
        np.testing.assert_array_equal(unchanging.run(plan)["Y"].to_numpy(), A @ B)
    assert len(unchanging.plan(PRODUCT, top=1)) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"optimizer": "exact"}, "no optimizer 'exact'; choose one of dp, cover, greedy, relational, dense"),
        ({"optimizer": "gredy"}, "no optimizer 'gredy'; did you mean greedy"),
        ({"layout": "rows"}, "layout 'rows' is neither 'entries' nor 'any'"),
        ({"pin": {"X": ["i"]}}, "the program computes no X; it computes Y"),
        ({"pin": {"A": ["i"]}}, "the program computes no A; it computes Y"),
        ({"pin": {"Y": ["i", "z"]}}, "Y has no label z to promote; it has i, k, j"),
        ({"memory_limit": "plenty"}, "memory_limit: 'plenty' is no size; write it as in 4GB"),
        ({"memory_limit": 0}, r"needs a memory_limit of at least [\d,]+ bytes, more than the 0 given"),
        ({"memory_limit": "-1GB"}, "more than the -1,000,000,000 given"),
    ],
)
def test_invalid_options_of_plans(unchanging: se.Database, options: Mapping[str, object], message: str) -> None:
    with pytest.raises(se.PlanError, match=message):
        unchanging.plan(PRODUCT, **options)  # type: ignore[call-overload]  # options by name
    with pytest.raises(se.PlanError, match=message):
        unchanging.run(PRODUCT, **options)  # type: ignore[arg-type]  # options by name


@pytest.mark.parametrize("top", [0, -1])
def test_at_least_one_plan(unchanging: se.Database, top: int) -> None:
    with pytest.raises(se.PlanError, match=f"top is {top}; ask for at least one plan"):
        unchanging.plan(PRODUCT, top=top)


def test_memory_limit_is_sufficient(shared_db: se.Database) -> None:
    """The limits that errors suggest end in a sufficient one, and a byte less is not sufficient."""
    square = np.ones((64, 64))
    shared_db.tensor("A", square)
    program = "Y[i, k] = sum(A[i, j] * A[j, k])"
    asked: int | None = limit_for(shared_db, 100_000)
    while asked is not None:
        needed, asked = asked, _asked_limit(shared_db, program, asked)
        assert asked is None or asked > needed
    assert needed >= 2 * square.nbytes
    assert _asked_limit(shared_db, program, needed - 1) == needed
    assert shared_db.plan(program, optimizer="dense", memory_limit=needed).notation() == [program]


def _asked_limit(db: se.Database, program: str, limit: int) -> int | None:
    """The sufficient limit that errors suggest for a plan of whole arrays; None if the limit suffices."""
    try:
        db.plan(program, optimizer="dense", memory_limit=limit)
    except se.PlanError as error:
        match = re.search(
            r"a memory_limit of (?:at least )?([\d,]+) bytes.*raise memory_limit or promote more", str(error)
        )
        assert match is not None
        return int(match[1].replace(",", ""))
    return None


@pytest.mark.parametrize("limit", ["100MB", "0.5 GiB", 10**8, 1e8])
def test_sizes_are_texts_or_numbers(unchanging: se.Database, limit: str) -> None:
    expected = unchanging.plan(PRODUCT, memory_limit="512 MiB").notation()
    assert unchanging.plan(PRODUCT, memory_limit=limit).notation() == expected

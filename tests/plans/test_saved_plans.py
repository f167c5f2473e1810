"""A saved plan reads back as the same plan, and fits other data or says why it does not."""

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from planned_memory import limit_for
from planning_problems import promoted
from program_cases import Array, Case, scale_of
from random_programs import FAMILIES, LARGEST, arrays, cases
from random_runs import random_runs

import sparseeinsum as se
from sparseeinsum.errors import CatalogueError, PlanError
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.semantics.dense import evaluate_program

CHAIN = "T[i, k] = sum(A[i, j] * B[j, k] * C[k])\nY[i] = relu(sum(T[i, k] * index(k)))"


def load_chain(db: se.Database, seed: int, density: float = 0.1) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    inputs: dict[str, Array] = {
        "A": rng.uniform(-1, 1, (30, 20)) * (rng.random((30, 20)) < density),
        "B": rng.uniform(-1, 1, (20, 10)),
        "C": rng.uniform(-1, 1, 10),
    }
    for name, array in inputs.items():
        db.tensor(name, array, promoted=["dim_0", "dim_1"] if name == "A" else None)
    return inputs


@pytest.fixture
def chain(db: se.Database) -> se.Database:
    load_chain(db, 0)
    return db


@pytest.mark.parametrize("family", FAMILIES)
def test_random_plans_are_read_back(shared_db: se.Database, engine: str, family: str) -> None:
    @random_runs(24, engine)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        case = data.draw(cases(family, data.draw(st.sampled_from(["dp", "relational", "dense"]))))
        others = {
            name: data.draw(arrays(array.shape, str(array.dtype), case.fills[name]))
            for name, array in case.inputs.items()
        }
        check(shared_db, case, others)

    run()


def check(db: se.Database, case: Case, others: dict[str, Array]) -> None:
    """The loaded plan equals the plan on the same data; on other data it gives numpy's result or is refused."""
    case.load(db)
    try:
        plan = db.plan(
            case.text,
            case.optimizer,
            pin=case.pin,
            layout=case.layout,
            outputs=case.outputs,
            nonfinite=case.nonfinite,
        )
    except se.SparseEinsumError:
        return
    text = plan.to_json()
    again = db.load_plan(text)
    assert again.notation() == plan.notation()
    assert again.cost == pytest.approx(plan.cost, rel=1e-12)
    assert again.to_json() == text
    for name, array in others.items():
        case.store(db, name, array)
    try:
        results = db.run(db.load_plan(text))
    except se.SparseEinsumError as error:
        assert "plan the program again" in str(error) or "turned NaN" in str(error), str(error)
        return
    with np.errstate(all="ignore"):
        expected = evaluate_program(se.program(case.text), others)
    scale = scale_of((*others.values(), *expected.values()))
    for name, result in results.items():
        if scale <= LARGEST:
            np.testing.assert_allclose(result.to_numpy(), expected[name], rtol=0, atol=scale * 2e-4, err_msg=name)


def test_a_file_is_the_plan(chain: se.Database, tmp_path: Path) -> None:
    plan = chain.plan(CHAIN, pin={"Y": "i"}, outputs=["T"], layout="any", memory_limit="1GB")
    plan.save(tmp_path / "chain.plan.json")
    loaded = chain.load_plan(tmp_path / "chain.plan.json")
    assert loaded.notation() == plan.notation()
    assert loaded.sql() == plan.sql()
    assert (loaded.outputs, loaded.data.options.memory_limit) == (("T", "Y"), 10**9)
    assert loaded.data.program == plan.data.program == se.program(CHAIN)
    for name, result in chain.run(loaded).items():
        np.testing.assert_array_equal(result.to_numpy(), chain.run(plan)[name].to_numpy())
    assert chain.load_plan(str(tmp_path / "chain.plan.json")).notation() == plan.notation()


def test_saved_text_is_readable(chain: se.Database) -> None:
    content = json.loads(chain.plan(CHAIN, optimizer="relational").to_json())
    assert content["program"][0] == "T[i, k] = sum(A[i, j] * B[j, k] * C[k])"
    (last,) = [entry for entry in content["einsums"] if entry["einsum"].startswith("Y[")]
    assert last["tiles"] == {"i": 1}
    assert last["notation"].startswith("Y[I] = ")
    assert content["options"]["optimizer"] == "relational"
    assert content["layouts"] == {"Y": {"i": 1}}


def test_new_data_of_the_same_shapes_are_priced_again(db: se.Database) -> None:
    load_chain(db, 0, density=0.01)
    plan = db.plan(CHAIN)
    inputs = load_chain(db, 1, density=0.9)
    loaded = db.load_plan(plan.to_json())
    assert loaded.notation() == plan.notation()
    assert loaded.cost > plan.cost
    assert loaded.cost >= db.plan(CHAIN).cost
    expected = evaluate_program(se.program(CHAIN), inputs)["Y"]
    np.testing.assert_allclose(db.run(loaded)["Y"].to_numpy(), expected, rtol=1e-9)


def test_other_storage_is_repartitioned(chain: se.Database) -> None:
    plan = chain.plan(CHAIN)
    before = chain.run(plan)["Y"].to_numpy()
    chain.tensor("B", chain.run("Copy[j, k] = B[j, k]")["Copy"].to_numpy(), promoted=[])
    loaded = chain.load_plan(plan.to_json())
    assert loaded.notation() == plan.notation()
    np.testing.assert_allclose(chain.run(loaded)["Y"].to_numpy(), before, rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"data": np.ones((30, 21))}, r"shape \(30, 20\) of tensor A, which has shape \(30, 21\)"),
        ({"data": np.ones((30, 20), "float32")}, "dtype float64 of tensor A, which has dtype float32"),
        ({"data": np.ones((30, 20)), "fill": 1.0}, "fill 0.0 of tensor A, which has fill 1.0"),
    ],
)
def test_another_tensor_is_refused(chain: se.Database, arguments: dict[str, Any], message: str) -> None:
    text = chain.plan("Y[i] = sum(A[i, j])").to_json()
    chain.tensor("A", **arguments)
    with pytest.raises(PlanError, match=f"{message}; plan the program again"):
        chain.load_plan(text)


def test_tensors_must_exist(chain: se.Database) -> None:
    text = chain.plan(CHAIN).to_json()
    with se.connect() as other, pytest.raises(CatalogueError, match="there is no tensor A"):
        other.load_plan(text)


@pytest.mark.engines("duckdb", reason="PostgreSQL has no functions of Python's")
def test_functions_must_exist(chain: se.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def doubled(x: float) -> float:
        return 2 * x

    def trebled(x: float) -> float:
        return 3 * x

    se.function(doubled)
    se.function(trebled)
    text = chain.plan("Y[i] = doubled(sum(A[i, j]))").to_json()
    twice, thrice = (
        chain.run(chain.load_plan(saved))["Y"].to_numpy() for saved in (text, text.replace("doubl", "trebl"))
    )
    np.testing.assert_allclose(thrice, 1.5 * twice)
    monkeypatch.delitem(FUNCTIONS, "doubled")
    with pytest.raises(PlanError, match="there is no function 'doubled'"):
        chain.load_plan(text)


# Rewritten programs, and values for which the rewrite is not exact.
REWRITTEN = "D[i, k] = sum((A[i, j] - B[j, k]) ^ 2)"


def sparse_pair(db: se.Database, scale: float = 1.0, value: float | None = None) -> None:
    rng = np.random.default_rng(0)
    for name in "AB":
        matrix = sp.random_array((200, 200), density=0.01, rng=rng, format="coo") * scale
        if value is not None:
            matrix.data[0] = value
        db.tensor(name, matrix)


@pytest.mark.parametrize(
    ("scale", "value", "nonfinite", "text", "reason"),
    [
        (1.0, np.inf, "error", REWRITTEN, "A has NaN or infinity now, and the plan computes D_1"),
        (1.0, np.nan, "error", REWRITTEN, "A has NaN or infinity now"),
        (1e200, None, "error", REWRITTEN, "the current values of the inputs D_1 may become infinite"),
        (2.0, None, "allow", "D[i, l] = sum(A[i, j] * B[j, k] * A[k, l])", "A has values outside the range"),
    ],
)
def test_values_for_which_rewriting_is_not_exact_are_refused(
    db: se.Database, scale: float, value: float | None, nonfinite: str, text: str, reason: str
) -> None:
    sparse_pair(db)
    saved = db.plan(text, nonfinite=nonfinite).to_json()
    assert len(json.loads(saved)["einsums"]) > 1
    sparse_pair(db, scale, value)
    with pytest.raises(PlanError, match=reason):
        db.load_plan(saved)


@pytest.mark.parametrize(("scale", "value"), [(2.0, None), (0.5, None), (1.0, 0.0)])
def test_values_for_which_it_is_exact_are_not(db: se.Database, scale: float, value: float | None) -> None:
    sparse_pair(db)
    plan = db.plan(REWRITTEN)
    sparse_pair(db, scale, value)
    np.testing.assert_allclose(
        db.run(db.load_plan(plan.to_json()))["D"].to_numpy(), db.run(REWRITTEN, optimizer="dense")["D"].to_numpy()
    )


def test_nonfinite_values_are_allowed_without_rewriting(db: se.Database) -> None:
    """A join that leaves out absent tuples beside finite values is planned again for other values."""
    text = "Y[i, k] = sum(A[i, j] * B[j, k])"
    sparse_pair(db)
    saved = db.plan(text).to_json()
    sparse_pair(db, value=np.inf)
    result = db.run(db.load_plan(saved))["Y"].to_numpy()
    np.testing.assert_allclose(result, db.run(text, optimizer="dense")["Y"].to_numpy())
    assert np.isnan(result).any()


def test_plans_that_need_more_memory_are_refused(db: se.Database) -> None:
    db.tensor("A", np.ones((64, 64)))
    text = db.plan("C[i, k] = sum(A[i, j] * A[j, k])", optimizer="dense").to_json()
    content = json.loads(text)
    content["options"]["memory_limit"] = limit_for(db, 200_000)
    with pytest.raises(PlanError, match=r"needs a memory_limit of .*; or plan the program again"):
        db.load_plan(json.dumps(content))


def without(*keys: str) -> Callable[[dict[str, Any]], None]:
    def remove(content: dict[str, Any]) -> None:
        for key in keys[:-1]:
            content = content[key]
        del content[keys[-1]]

    return remove


def with_value(value: object, *keys: str | int) -> Callable[[Any], None]:
    def put(content: Any) -> None:  # noqa: ANN401  # as JSON has it
        for key in keys[:-1]:
            content = content[key]
        content[keys[-1]] = value

    return put


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without("format"), "is no plan; plan.save writes one"),
        (with_value(9, "version"), "has version 9 of the format, but this package reads version 1"),
        (without("options", "optimizer"), "lacks 'optimizer'"),
        (without("options", "estimator"), "lacks 'estimator'"),
        (with_value("guess", "options", "estimator"), "there is no estimator 'guess'"),
        (with_value([1.5, "x"], "options", "tiles"), "cannot be read"),
        (without("einsums"), "lacks 'einsums'"),
        (without("inputs", "A"), "says nothing of tensor A"),
        (with_value(["Y[i = A[i]"], "program"), "cannot be read: line 1, column 5"),
        (with_value({"i": 1}, "einsums", 0, "tiles"), "has the labels i, j, but tiles of"),
        (with_value({"i": 1, "j": -1}, "einsums", 0, "tiles"), "-1 is no tile of j"),
        (with_value("Y[i] = sum(Z[i, j])", "einsums", 0, "einsum"), "reads Z, which nothing in the plan computes"),
        (with_value("Y[i] = A[i, j]", "einsums", 0, "einsum"), "cannot be read"),
        (with_value("Y[j] = sum(A[i, j])", "einsums", 0, "einsum"), "do not compute Y as its program does"),
        (with_value("Y[i] = sum(A[i, j]) + 1", "einsums", 0, "einsum"), "1 EinSums are written as 2"),
        (with_value(["Z"], "options", "outputs"), "the program computes no Z"),
        (with_value({}, "layouts"), "has no layout for Y with the axes i"),
        (with_value("never", "options", "nonfinite"), "neither 'error' nor 'allow'"),
        (with_value([], "inputs"), "cannot be read"),
    ],
)
def test_texts_that_are_no_plans_are_refused(
    chain: se.Database, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    content = json.loads(chain.plan("Y[i] = sum(A[i, j])").to_json())
    change(content)
    with pytest.raises(PlanError, match=message):
        chain.load_plan(json.dumps(content))


def test_files_that_are_no_plans_are_refused(db: se.Database, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"there is no plan file .*absent\.json"):
        db.load_plan(tmp_path / "absent.json")
    (tmp_path / "text.json").write_text("Y[i] = A[i]")
    with pytest.raises(PlanError, match=r"text\.json is no plan: it is no JSON"):
        db.load_plan(tmp_path / "text.json")
    with pytest.raises(PlanError, match="the text is no plan: it is no JSON"):
        db.load_plan("{not JSON")


def test_edited_choices_are_used(chain: se.Database) -> None:
    """Users may edit the tiles."""
    content = json.loads(chain.plan("Y[i] = sum(A[i, j])").to_json())
    content["einsums"][0]["tiles"] = {"i": 0, "j": 1}
    loaded = chain.load_plan(json.dumps(content))
    assert promoted(loaded, "Y") == {"j"}
    np.testing.assert_allclose(
        chain.run(loaded)["Y"].to_numpy(), chain.run("Y[i] = sum(A[i, j])")["Y"].to_numpy(), rtol=1e-12
    )


def test_options_are_saved(chain: se.Database) -> None:
    plan = chain.plan(CHAIN, tiles=[2, 4], estimator="uniform")
    again = chain.load_plan(plan.to_json())
    assert (again.data.estimator.name, again.data.alternatives.tiles) == ("uniform", (2, 4))
    assert again.cost == pytest.approx(plan.cost)


def test_tiles_are_saved(chain: se.Database) -> None:
    plan = chain.plan(CHAIN, pin={"Y": {"i": 2}})
    again = chain.load_plan(plan.to_json())
    assert again.notation() == plan.notation()
    np.testing.assert_allclose(chain.run(again)["Y"].to_numpy(), chain.run(CHAIN)["Y"].to_numpy(), rtol=1e-12)


def test_plans_are_pickled_and_copied(chain: se.Database) -> None:
    """A pickled plan runs on any database; a copy is of the same one."""
    plan = chain.plan(CHAIN)
    result = chain.run(plan)["Y"]
    expected = result.to_numpy()
    pickled = pickle.loads(pickle.dumps(plan))
    assert isinstance(pickled, se.DetachedPlan)
    assert repr(pickled) == f"{plan!r}\n(of no database; db.run runs it)"
    np.testing.assert_allclose(chain.run(pickled)["Y"], expected)
    assert chain.load_plan(pickled).notation() == plan.notation()
    with chain.stream(pickled) as results:
        assert results["Y"].read_all().num_rows == result.rows.num_rows
    for copied in (copy.copy(plan), copy.deepcopy(plan)):
        assert copied.notation() == plan.notation()
        np.testing.assert_allclose(chain.run(copied)["Y"], expected)

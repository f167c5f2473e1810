"""EinSums in one SELECT over one join of what they read give the results of numpy, and detect the same infinities."""

import re

import numpy as np
import pytest
from elementwise_programs import elementwise_inputs, elementwise_program

import sparseeinsum as se
from sparseeinsum.errors import EngineError
from sparseeinsum.semantics.dense import evaluate_program

PINS = ("ij", "i", "j", "")


@pytest.fixture(scope="module")
def loaded(shared_db: se.Database) -> se.Database:
    for name, array in elementwise_inputs().items():
        shared_db.tensor(name, array, fill=2.5 if name == "F" else 0)
    return shared_db


def run_texts(db: se.Database, plan: se.Plan) -> str:
    """The SQL that a run of a plan executes."""
    return "\n".join(statement.text for statement in plan.data.statements.for_run)


@pytest.mark.parametrize("seed", range(12))
def test_random_chains(loaded: se.Database, seed: int) -> None:
    rng = np.random.default_rng(seed)
    chained = 0
    for _ in range(8):
        text = elementwise_program(rng)
        program = se.program(text)
        names = [einsum.output.tensor for einsum in program.einsums]
        expected = evaluate_program(program, elementwise_inputs())
        pin = {name: tuple(str(rng.choice(PINS[:2]))) for name in names}
        for pins in (dict.fromkeys(names, pin[names[0]]), pin):
            plan = loaded.plan(program, pin=pins, layout="any", rewrite=False)
            chained += "value_" in run_texts(loaded, plan)
            results = loaded.run(plan, progress=False)
            for name in results:
                array = results[name].to_numpy()
                np.testing.assert_allclose(array, expected[name], rtol=1e-12, atol=1e-12, err_msg=f"{text}\n{pins}")
    assert chained


def test_every_relation_is_joined_once(loaded: se.Database) -> None:
    text = "T[i, j] = A[i, j] * c[i]\nU[i, j] = T[i, j] * D[i, j]\nV[i, j] = U[i, j] * A[i, j] * c[i]"
    plan = loaded.plan(text, pin=dict.fromkeys("TUV", ("i", "j")), layout="any", rewrite=False)
    sql = run_texts(loaded, plan)
    assert len(re.findall("JOIN", sql)) == 2, sql  # A, c and D
    expected = evaluate_program(se.program(text), elementwise_inputs())["V"]
    np.testing.assert_allclose(loaded.run(plan, progress=False)["V"].to_numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("promoted", ["ij", "i"])
def test_infinity_in_a_branch_that_is_not_taken_ends_the_run(loaded: se.Database, promoted: str) -> None:
    """As it does where the intermediate result is computed on its own."""
    text = "T[i, j] = D[i, j] / A[i, j]\nU[i, j] = where(A[i, j] == 0, D[i, j], T[i, j])"
    text += "\nV[i, j] = U[i, j] * c[i]"
    plan = loaded.plan(text, pin=dict.fromkeys("TUV", tuple(promoted)), layout="any", rewrite=False)
    assert "value_" in run_texts(loaded, plan)
    with pytest.raises(EngineError, match="T"):
        loaded.run(plan, progress=False)


def test_infinity_that_no_join_reads_ends_the_run(loaded: se.Database) -> None:
    text = "T[i, j] = 1 / (D[i, j] - D[i, j] * s[])\nU[i, j] = T[i, j] * B[i, j]\nV[i, j] = U[i, j] * A[i, j]"
    loaded.tensor("D", np.where(elementwise_inputs()["B"] == 0, 0, elementwise_inputs()["D"]))
    try:
        with pytest.raises(EngineError, match="T"):
            loaded.run(text, pin=dict.fromkeys("TUV", ("i", "j")), rewrite=False, progress=False)
    finally:
        loaded.tensor("D", elementwise_inputs()["D"])


@pytest.mark.engines("duckdb", reason="PostgreSQL's processes read tables")
def test_softmax_of_rows_is_one_statement(loaded: se.Database) -> None:
    """Its exponentials are read twice, but need no table."""
    text = (
        "m[i] = max(D[i, j])\nE[i, j] = exp(D[i, j] - m[i])\ntotal[i] = sum(E[i, j])\n"
        "P[i, j] = E[i, j] / total[i]\nY[i] = sum(P[i, j] * w[j])"
    )
    plan = loaded.plan(text, pin=dict.fromkeys(("m", "E", "total", "P", "Y"), ("i",)), layout="any", rewrite=False)
    assert len(plan.data.statements.for_run) == 1
    exponentials = np.exp(elementwise_inputs()["D"])
    expected = (exponentials / exponentials.sum(axis=1, keepdims=True)) @ elementwise_inputs()["w"]
    np.testing.assert_allclose(loaded.run(plan, progress=False)["Y"].to_numpy(), expected, rtol=1e-12)

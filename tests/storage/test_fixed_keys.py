"""Programs fix natural keys, as in A['ann', j]: the results are those of the indices of the keys, on both engines."""

import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sparseeinsum as se
from sparseeinsum.language.syntax import SourceText

pytestmark = pytest.mark.engines("duckdb", "postgresql")

PEOPLE = ["ann", "bob", "cid"]
TRUST = np.array([[0, 1.0, 0], [0.5, 0, 0.25], [2.0, 0, 0]])


def load(db: se.Database, people: list[str] = PEOPLE) -> None:
    who, whom = np.nonzero(TRUST)
    names = np.array(people)
    frame = pd.DataFrame({"who": names[who], "whom": names[whom], "weight": TRUST[who, whom]})
    db.tensor("T", frame, keys={"who": "person", "whom": "person"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Y[j] = T['bob', j]", TRUST[1]),
        ("Y[i] = T[i, \"ann\"] * T['bob', i]", TRUST[:, 0] * TRUST[1]),
        ("Y[] = T['cid', 'ann']", TRUST[2, 0]),
        ("Y[] = sum(T['bob', j] * T[j, 'ann']) - T['ann', 'ann']", TRUST[1] @ TRUST[:, 0]),
        ("S[i, j] = T[i, j] + T[j, i]\nY[j] = exp(S['cid', j])", np.exp(TRUST[2] + TRUST[:, 2])),
        ("def of(A)[j] = A['bob', j] * 2\nY[j] = of(T)[j]", 2 * TRUST[1]),
        ("Y[j] = max(T['bob', j], T[0, j])", np.maximum(TRUST[1], TRUST[0])),
    ],
)
@pytest.mark.parametrize("optimizer", ["dp", "relational", "dense"])
def test_keys_are_indices(shared_db: se.Database, text: str, expected: np.ndarray, optimizer: str) -> None:
    load(shared_db)
    np.testing.assert_allclose(shared_db.run(text, optimizer=optimizer)["Y"].to_numpy(), expected)
    read_again = se.program(str(se.program(text)))
    np.testing.assert_allclose(shared_db.run(read_again, optimizer=optimizer)["Y"].to_numpy(), expected)


def test_keys_of_other_types(db: se.Database) -> None:
    days = [datetime.date(2026, 3, 1), datetime.date(2026, 3, 2)]
    frame = pd.DataFrame({"day": days, "number": [70012, 70344], "v": [1.0, 2.0]})
    db.tensor("R", frame, keys={"number": "number"})
    np.testing.assert_array_equal(db.run("Y[n] = R['2026-03-02', n]")["Y"].to_numpy(), [0, 2])
    np.testing.assert_array_equal(db.run("Y[d] = R[d, '70012']")["Y"].to_numpy(), [1, 0])
    with pytest.raises(se.DataError, match=r"the key '2026-03-03', which the dictionary day lacks; did you mean 2026-"):
        db.run("Y[n] = R['2026-03-03', n]")


def test_python_expressions_and_gradients(db: se.Database) -> None:
    load(db)
    trust = se.tensor("T")
    expression = trust["'bob'", "j"]
    assert repr(expression) == "T['bob', j]"
    np.testing.assert_array_equal(db.run(se.program({"Y": expression["j"]}))["Y"].to_numpy(), TRUST[1])
    gradient = se.gradient("L[] = sum(T['bob', j] * T['bob', j])", of="L", by="T")
    expected = np.zeros((3, 3))
    expected[1] = 2 * TRUST[1]
    np.testing.assert_array_equal(db.run(gradient)["d_T"].to_numpy(), expected)
    with pytest.raises(se.ParseError, match="'bob'"):  # of text that only shows what the gradient reads
        se.program(str(gradient))


@pytest.mark.parametrize(
    ("text", "error", "problem"),
    [
        (
            "Y[j] = T['bop', j]",
            se.DataError,
            r"Y: T is read at the key 'bop', which .* lacks; did you mean bob",
        ),
        ("Y[j] = T['bob', j] * V['bob']", se.ShapeError, r"V is read at the key 'bob', but its axis 0 has no natural"),
        ("Y[j] = T['bob' + 1, j]", se.ParseError, r"found '\+'"),
    ],
)
def test_wrong_keys(db: se.Database, text: str, error: type[Exception], problem: str) -> None:
    load(db)
    db.tensor("V", np.ones(3))
    with pytest.raises(error, match=problem):
        db.run(text)


def test_a_dictionary_that_was_made_anew(db: se.Database, tmp_path: Path) -> None:
    """The same key has another index then, in tensors of the same name and shape."""
    text = "Y[j] = T['bob', j]"
    load(db)
    program, plan = se.program(text), db.plan(text)
    plan.save(tmp_path / "plan.json")
    with db.prepare(text, inputs=[]) as step:
        for people in (PEOPLE, ["bob", "cid", "dan"]):
            db.drop_tensor("T")
            db.drop_dictionary("person")
            load(db, people)
            expected = TRUST[people.index("bob")]
            np.testing.assert_array_equal(step.run()["Y"].to_numpy(), expected)
            np.testing.assert_array_equal(db.run(program)["Y"].to_numpy(), expected)
            np.testing.assert_array_equal(db.run(text)["Y"].to_numpy(), expected)
            np.testing.assert_array_equal(db.run(db.load_plan(tmp_path / "plan.json"))["Y"].to_numpy(), expected)
    with pytest.raises(se.OutdatedPlanError, match="the key 'bob' of the dictionary person has another index"):
        db.run(plan)


def test_a_check_looks_keys_up(db: se.Database) -> None:
    load(db)
    text = "Y[j] = T['bob', j]\nZ[j] = T['bop', j]"
    (finding,) = db.check(SourceText(text), None, {})
    assert (finding.line, finding.severity) == (2, "error")
    assert "did you mean bob?" in finding.message

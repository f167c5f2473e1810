"""What ends a loop leaves the state of a whole step; a loop goes on later; requests that make no sense are refused."""

from typing import Any

import numpy as np
import pytest

import sparseeinsum as se
from sparseeinsum.engines import retries
from sparseeinsum.errors import CatalogueError, ParseError, PlanError, SemanticsError, ShapeError, StepError
from sparseeinsum.pipeline.loops import loop
from sparseeinsum.pipeline.loops.state_tables import StateTables

Patch = pytest.MonkeyPatch

pytestmark = pytest.mark.engines("duckdb", "postgresql")

HALVING = "state x\nnext_x[i] = x[i] / 2\nloss[] = sum(next_x[i])"
SQUARING = "state x\nnext_x[i] = x[i] ^ 2"
START = np.array([8.0, 16.0])


def value(db: se.Database, name: str) -> list[float]:
    """The present values of a vector, by a program that copies them."""
    copied: list[float] = db.run(f"copy[i] = {name}[i]")["copy"].to_numpy().tolist()
    return copied


def load(db: se.Database, promoted: Any = ()) -> None:  # noqa: ANN401
    db.tensor("x", START, axes=["i"], promoted=promoted)


@pytest.mark.parametrize("commit", [0, np.inf])
def test_a_loop_goes_on_where_it_ended(db: se.Database, commit: float) -> None:
    load(db)
    first = db.iterate(HALVING, steps=2, history=["loss"], commit_seconds=commit)
    assert (first.steps, first.reason, first.df()["loss"].tolist()) == (2, "steps", [12, 6])
    again = db.iterate(HALVING, steps=4, history=["loss"], resume=True, commit_seconds=commit)
    assert (again.steps, again.df()["loss"].tolist()) == (4, [12, 6, 3, 1.5])
    assert again.df()["step"].tolist() == [0, 1, 2, 3]
    assert value(db, "x") == [0.5, 1]
    rows = db.connection.execute("SELECT step, loss FROM x_history ORDER BY step").fetchall()
    assert rows == [(0, 12), (1, 6), (2, 3), (3, 1.5)]
    assert db.iterate(HALVING, steps=4, history=["loss"], resume=True).steps == 4  # all were done
    ended = db.iterate(HALVING, steps=9, history=["loss"], until="previous.loss < 4", resume=True)
    assert (ended.steps, ended.reason) == (4, "condition")  # which held already
    assert db.iterate(HALVING, steps=1).steps == 1  # another loop begins
    assert value(db, "x") == [0.25, 0.5]


def test_the_state_is_kept_elsewhere(db: se.Database) -> None:
    load(db, ["i"])
    result = db.iterate(HALVING, steps=2, into={"x": "halved"})
    assert (value(db, "x"), value(db, "halved")) == ([8, 16], [2, 4])
    assert dict(result.kept) == {"x": "halved"}
    db.iterate(HALVING, steps=3, into={"x": "halved"}, resume=True)
    assert value(db, "halved") == [1, 2]


@pytest.mark.parametrize(("commit", "expected"), [(0, 6), (1e-9, 2), (np.inf, 1)])
def test_writing_the_state_takes_little_of_the_time(
    db: se.Database, monkeypatch: Patch, commit: float, expected: int
) -> None:
    """With a pause that is much longer than a loop, the state is written after the first step, and when it ends."""
    load(db, ["i"])
    written, keep = [], StateTables.keep

    def count(self: StateTables, *arguments: Any) -> None:  # noqa: ANN401
        written.append(self.name)
        keep(self, *arguments)

    monkeypatch.setattr(StateTables, "keep", count)
    monkeypatch.setattr(loop, "_KEEPING_PAUSE", 1e9)
    db.iterate(HALVING, steps=6, commit_seconds=commit)
    assert (len(written), value(db, "x")) == (expected, [0.125, 0.25])


def test_no_steps_change_nothing(db: se.Database) -> None:
    load(db)
    result = db.iterate(HALVING, steps=0, history=["loss"])
    assert (result.steps, result.reason, result.history.num_rows) == (0, "steps", 0)
    assert repr(result).startswith("<0 steps in ")
    assert value(db, "x") == [8, 16]


def test_a_condition_that_never_holds_is_reported(db: se.Database) -> None:
    load(db)
    assert db.iterate(HALVING, steps=3, until="loss < 0").reason == "steps"


@pytest.mark.parametrize("commit", [0, np.inf])
@pytest.mark.parametrize("promoted", [[], ["i"]], ids=["array", "entries"])
def test_infinity_ends_a_loop_before_the_step(db: se.Database, promoted: list[str], commit: float) -> None:
    db.tensor("x", np.array([10.0, 2.0]), axes=["i"], promoted=promoted)
    with pytest.raises(StepError, match=r"(?s)step 8 failed.*next_x.* turned NaN or infinite") as caught:
        db.iterate(SQUARING, steps=20, commit_seconds=commit)
    assert caught.value.step == 8
    np.testing.assert_allclose(value(db, "x"), [10.0**256, 2.0**256])
    with pytest.raises(StepError, match="step 8 failed"):
        db.iterate(SQUARING, steps=20, commit_seconds=commit, resume=True)


@pytest.mark.parametrize("promoted", [[], ["i"]], ids=["array", "entries"])
def test_infinity_is_allowed_on_request(db: se.Database, promoted: list[str]) -> None:
    db.tensor("x", np.array([10.0, 0.5]), axes=["i"], promoted=promoted)
    db.iterate("state x\nnext_x[i] = x[i] ^ 2 - x[i]", steps=12, nonfinite="allow")
    expected = np.array([10.0, 0.5])
    with np.errstate(all="ignore"):
        for _ in range(12):
            expected = expected**2 - expected
    np.testing.assert_allclose(value(db, "x"), expected)


@pytest.mark.parametrize("commit", [0, np.inf])
def test_an_interrupt_keeps_the_last_whole_step(db: se.Database, commit: float, monkeypatch: Patch) -> None:
    load(db)
    run = loop._Loop._step

    def interrupted(self: Any, step: int) -> Any:  # noqa: ANN401
        result = run(self, step)
        if step == 2:
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(loop._Loop, "_step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        db.iterate(HALVING, steps=9, commit_seconds=commit)
    assert value(db, "x") == [2, 4]
    monkeypatch.undo()
    assert db.iterate(HALVING, steps=3, resume=True).steps == 3
    assert value(db, "x") == [1, 2]


def test_an_interrupt_after_a_step_was_committed(db: se.Database, monkeypatch: Patch) -> None:
    load(db)
    run = retries.in_own_snapshot
    steps = []

    def interrupted(engine: Any, work: Any) -> Any:  # noqa: ANN401
        result = run(engine, work)
        steps.append(work)
        if len(steps) == 3:
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(loop, "in_own_snapshot", interrupted)
    with pytest.raises(KeyboardInterrupt):
        db.iterate(HALVING, steps=9, history=["loss"], commit_seconds=np.inf)
    assert value(db, "x") == [1, 2]
    monkeypatch.undo()
    result = db.iterate(HALVING, steps=4, history=["loss"], resume=True)
    assert result.df()["loss"].tolist() == [12, 6, 3, 1.5]
    assert value(db, "x") == [0.5, 1]


def test_a_second_loop_over_a_state_is_refused(db: se.Database, monkeypatch: Patch) -> None:
    load(db)
    run = loop._Loop._step
    errors = []

    def step(self: Any, number: int) -> Any:  # noqa: ANN401
        monkeypatch.setattr(loop._Loop, "_step", run)
        with db._engine.another_connection() as engine:
            other = se.Database(engine)
            with pytest.raises(PlanError, match="another loop replaces x at the moment") as caught:
                other.iterate(HALVING, steps=1)
            errors.append(caught.value)
            other.iterate(HALVING, steps=1, into={"x": "z"})
        return run(self, number)

    monkeypatch.setattr(loop._Loop, "_step", step)
    assert db.iterate(HALVING, steps=2).steps == 2
    assert len(errors) == 1
    assert (value(db, "x"), value(db, "z")) == ([2, 4], [4, 8])


def test_inputs_may_change_between_steps(db: se.Database, monkeypatch: Patch) -> None:
    """The plan is made again where it would not be exact."""
    load(db, ["i"])
    db.tensor("A", np.array([[0, 1.0], [2, 0]]), axes=["i", "j"], promoted=["i", "j"])
    run = retries.in_own_snapshot
    counts = []

    def changing(engine: Any, work: Any) -> Any:  # noqa: ANN401
        result = run(engine, work)
        counts.append(1)
        if len(counts) == 1:  # after the first step
            db.connection.execute("UPDATE A SET val = -3 WHERE i = 0")
        return result

    monkeypatch.setattr(loop, "in_own_snapshot", changing)
    db.iterate("state x\nnext_x[i] = max(A[i, j] * x[j])", steps=2)
    first = (np.array([[0, 1.0], [2, 0]]) * START).max(axis=1)
    np.testing.assert_allclose(value(db, "x"), (np.array([[0, -3.0], [2, 0]]) * first).max(axis=1))


@pytest.mark.parametrize("promoted", [[], ["i"]], ids=["array", "entries"])
def test_signs_may_change_between_steps(db: se.Database, promoted: list[str]) -> None:
    """The maximum leaves out absent entries as long as all others are positive."""
    matrix = np.array([[0, 1.0, 0], [2, 0, 0], [0, 3, 0]])
    vector = np.array([1.0, 2.0, 0.5])
    db.tensor("A", matrix, axes=["i", "j"], promoted=["i", "j"])
    db.tensor("x", vector, axes=["i"], promoted=promoted)
    db.iterate("state x\nnext_x[i] = 1 - max(A[i, j] * x[j])", steps=4)
    for _ in range(4):
        vector = 1 - (matrix * vector).max(axis=1)
    np.testing.assert_allclose(value(db, "x"), vector)


REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "no state": ({"program": "next_x[i] = x[i]"}, PlanError, "the loop has no state"),
    "no next value": (
        {"program": "y[i] = x[i]", "state": {"x": "next_x"}},
        PlanError,
        "does not compute next_x, the next value of the state x",
    ),
    "computed state": ({"program": "x[i] = A[i]\ny[i] = x[i]", "state": {"x": "y"}}, PlanError, "computes the state x"),
    "other rank": ({"program": "state x\nnext_x[] = sum(x[i])"}, ShapeError, "has 1 axes, and its next value next_x"),
    "other bound": (
        {"program": "state x\nnext_x[j] = sum(B[i, j] * x[i])"},
        ShapeError,
        "axis i of the state x has the bound 2, and label j of its next value next_x has 3",
    ),
    "other dtype": ({"program": "state x\nnext_x[i] = x[i] > 0"}, ShapeError, "dtype float64.*next_x has bool"),
    "other fill": (
        {"program": "state s\nnext_s[i] = s[i] + 1"},
        ShapeError,
        "the state s has the fill 0.*, and its next value next_s has 1",
    ),
    "unknown in condition": ({"program": HALVING, "until": "lss < 1"}, ParseError, "there is no operand lss"),
    "axes in condition": ({"program": HALVING, "until": "next_x < 1"}, SemanticsError, "next_x, which has the axes i"),
    "labels in condition": ({"program": HALVING, "until": "next_x[i] < 1"}, SemanticsError, "compares numbers"),
    "aggregate in condition": ({"program": HALVING, "until": "sum(next_x) < 1"}, SemanticsError, "calls sum, but comp"),
    "element in condition": ({"program": HALVING, "until": "next_x[0] < 1"}, SemanticsError, "an element of next_x"),
    "number as condition": ({"program": HALVING, "until": "loss"}, SemanticsError, "neither true nor false"),
    "unknown in history": ({"program": HALVING, "history": ["lss"]}, PlanError, "did you mean loss"),
    "axes in history": ({"program": HALVING, "history": ["next_x"]}, SemanticsError, "which has the axes i"),
    "steps": ({"program": HALVING, "steps": -1}, PlanError, "steps is -1"),
    "commit": ({"program": HALVING, "commit_seconds": -1}, PlanError, "commit_seconds is -1"),
    "into": ({"program": HALVING, "into": {"y": "z"}}, PlanError, "into names y, which is no state"),
    "memory_limit": ({"program": HALVING, "memory_limit": "1GB"}, PlanError, "memory limit of the database"),
    "nothing to resume": ({"program": HALVING, "resume": True}, PlanError, "no table .*x_history"),
    "no tensor": ({"program": "state w\nnext_w[i] = w[i]"}, CatalogueError, "there is no tensor w"),
    "own table": ({"program": "state t\nnext_t[i] = t[i]"}, CatalogueError, "state t is read from .*rows_of_t"),
    "other history": ({"program": "state h\nnext_h[i] = h[i]"}, CatalogueError, "h_history that holds no steps"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(db: se.Database, case: str) -> None:
    load(db)
    db.tensor("B", np.ones((2, 3)))
    db.tensor("h", START, axes=["i"])
    db.tensor("s", ([[1]], [2.0]), axes=["i"], shape=(3,))
    db.connection.execute("CREATE TABLE rows_of_t AS SELECT 0 AS i, CAST(1 AS DOUBLE PRECISION) AS val")
    db.connection.execute("CREATE TABLE h_history AS SELECT 0 AS i")
    db.tensor_from_table("t", "rows_of_t", ["i"], "val")
    arguments, error, message = REFUSED[case]
    with pytest.raises(error, match=message):
        db.iterate(**arguments)
    assert value(db, "x") in ([8, 16], [4, 8])


def test_other_records_are_refused(db: se.Database) -> None:
    load(db)
    db.iterate(HALVING, steps=1, history=["loss"])
    with pytest.raises(PlanError, match="has the columns step, loss, but this loop records step, changed"):
        db.iterate(HALVING, steps=2, history=["changed"], resume=True)


def test_a_state_from_a_table_of_the_user(db: se.Database) -> None:
    """Its columns may have other names and types, and rows may count as 1."""
    columns = "CAST(1 AS SMALLINT) AS who, CAST(2.5 AS DECIMAL(3, 1)) AS score"
    db.connection.execute(f"CREATE TABLE scores AS SELECT {columns}")
    db.tensor_from_table("s", "scores", ["who"], "score", shape=(3,))
    db.iterate("state s\nnext_s[i] = s[i] * 3", steps=2, into={"s": "tripled"})
    assert value(db, "tripled") == [0, 22.5, 0]
    db.tensor_from_table("t", "scores", ["who"], shape=(3,))
    db.iterate("state t\nnext_t[i] = t[i] * 3", steps=2, into={"t": "counted"})
    assert value(db, "counted") == [0, 9, 0]


def test_a_state_that_is_read_in_place(db: se.Database) -> None:
    """A table of the right columns needs no declaration; the state is kept elsewhere, and the table stays as it is."""
    db.connection.execute("CREATE TABLE start AS SELECT 1 AS i, CAST(4 AS DOUBLE PRECISION) AS val")
    halving = "next_{0}[i] = {0}[i] / 2"
    for _ in range(2):
        db.iterate(halving.format("start"), {"start": "next_start"}, steps=2, into={"start": "quarter"})
        assert value(db, "quarter") == [0, 1]
    declared = 'tensor s[i] from "start" index i value val\n'
    db.iterate(declared + halving.format("s"), {"s": "next_s"}, steps=1, into={"s": "half"})
    assert value(db, "half") == [0, 2]
    with pytest.raises(CatalogueError, match=r"the state start is read from .*start, which is no table"):
        db.iterate(halving.format("start"), {"start": "next_start"})

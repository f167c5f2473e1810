"""A loop that is interrupted or killed leaves the state of a whole step, and goes on from there."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import sparseeinsum as se
from sparseeinsum.errors import PlanError

pytestmark = pytest.mark.engines("duckdb", "postgresql")

SIZE = 200
COUNTING = "state x\nnext_x[i] = x[i] + 1\nlargest[] = max(next_x[i])"
CHILD = f"""
import signal, sys
import numpy as np
import sparseeinsum as se
from sparseeinsum.pipeline.loops import loop

signal.signal(signal.SIGINT, signal.default_int_handler)  # background processes of a shell ignore it
run = loop._Loop._step

def step(self, number):
    result = run(self, number)
    if number == 2:
        print("running", flush=True)
    return result

loop._Loop._step = step
with se.connect(sys.argv[1]) as db:
    if sys.argv[1].startswith("postgresql"):
        db.connection.execute("SET search_path = main, public")
    db.tensor("x", np.ones({SIZE}), axes=["i"], promoted=["i"])
    try:
        db.iterate({COUNTING!r}, steps=10**6, history=["largest"], commit_seconds=float(sys.argv[2]), progress=False)
    except KeyboardInterrupt:
        print("interrupted")
"""


@contextmanager
def stopped_child(where: str, commit: float, number: signal.Signals, delay: float) -> Iterator[str]:
    """Run the loop in a process that gets a signal some seconds after its first steps; yields what it printed then."""
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, where, str(commit)], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        try:
            assert child.stdout.readline() == "running\n"
            time.sleep(delay)
            os.kill(child.pid, number)
            printed, _ = child.communicate(timeout=300)
            yield printed
        finally:
            child.kill()


def resume(db: se.Database, steps: int) -> se.IterationResult:
    """Go on for some steps, as soon as a server has noticed that the process is gone."""
    for _ in range(100):
        try:
            return db.iterate(COUNTING, steps=steps, history=["largest"], resume=True)
        except PlanError as error:
            assert "another loop replaces x" in str(error)
            time.sleep(0.1)
    raise TimeoutError


def check_whole_step(db: se.Database) -> int:
    """Check that the state and the history are those after some step, and that the loop goes on; return its number."""
    values = db.run("copy[i] = x[i]")["copy"].to_numpy()
    done = int(values[0]) - 1  # the vector begins as ones
    assert values.tolist() == [done + 1] * SIZE
    rows = db.connection.execute("SELECT step, largest FROM x_history ORDER BY step").fetchall()
    assert rows == [(step, step + 2) for step in range(done)]
    again = resume(db, done + 2)
    assert again.df()["largest"].tolist() == list(range(2, done + 4))
    return done


@pytest.fixture
def place(engine: str, db: se.Database, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A database for a process: a file, or that of `db`."""
    if engine == "duckdb":
        return str(tmp_path / "loop.duckdb")
    assert db is not None
    url: str = request.getfixturevalue("postgres_urls")["db"]
    return url


@contextmanager
def opened(place: str, db: se.Database) -> Iterator[se.Database]:
    """The database at a place, which is a file or that of `db`."""
    if place.startswith("postgresql"):
        yield db
        return
    with se.connect(place) as database:
        yield database


@pytest.mark.parametrize("delay", [0.0, 0.37])
@pytest.mark.parametrize("commit", [0, np.inf])
def test_ctrl_c_keeps_the_last_whole_step(place: str, db: se.Database, commit: float, delay: float) -> None:
    with stopped_child(place, commit, signal.SIGINT, delay) as printed:
        assert printed == "interrupted\n"
    with opened(place, db) as database:
        assert check_whole_step(database) >= 2


@pytest.mark.parametrize("delay", [0.0, 0.37])
def test_a_killed_loop_keeps_a_whole_step(place: str, db: se.Database, delay: float) -> None:
    with stopped_child(place, 0, signal.SIGKILL, delay) as printed:
        assert printed == ""
    with opened(place, db) as database:
        assert check_whole_step(database) >= 2


def test_a_killed_loop_that_kept_nothing_has_its_first_state(place: str, db: se.Database) -> None:
    with stopped_child(place, np.inf, signal.SIGKILL, 0.1):
        pass
    with opened(place, db) as database:
        assert check_whole_step(database) == 0

"""A PostgreSQL run that is killed halfway leaves no table behind and changes none."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
import psycopg
import pytest
from postgres_server import PostgresServer
from reading import contents

import sparseeinsum as se

SIZE = 300
A = np.random.default_rng(0).integers(-3, 4, (SIZE, SIZE)).astype(float)
# Two results read one product, which is materialised: millions of pairs, so that there is time to kill the process.
PROGRAM = "C[i, k] = sum(A[i, j] * A[j, k])\nR[i] = sum(C[i, k])\nS[k] = sum(C[i, k])"
RUN = f"""import sys, sparseeinsum as se
se.connect(sys.argv[1]).run({PROGRAM!r}, optimizer="relational", into={{"R": "r"}})"""
PATIENCE_SECONDS = 120


@pytest.fixture(scope="module")
def url(postgres: PostgresServer) -> str:
    """A database of the module that holds A, and a table that runs are to replace."""
    with postgres.connect() as maintenance:
        maintenance.execute("CREATE DATABASE crashes")
    with postgres.connect("crashes") as connection:
        connection.execute("CREATE EXTENSION sparseeinsum")
        connection.execute("CREATE TABLE r AS SELECT 7 AS before")
    with se.connect(postgres.url("crashes")) as db:
        db.tensor("A", A, promoted=["dim_0", "dim_1"])
    return postgres.url("crashes")


@pytest.fixture
def run(url: str) -> Iterator[subprocess.Popen[str]]:
    """A process whose run has begun to fill a table."""
    process = subprocess.Popen([sys.executable, "-c", RUN, url], stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: bool(processes_filling_a_table(url)))
        yield process
    finally:
        process.kill()
        process.communicate()


def processes_filling_a_table(url: str) -> list[int]:
    """Server processes that run such a statement."""
    with psycopg.connect(url) as connection:
        sessions = "SELECT pid FROM pg_stat_activity WHERE datname = 'crashes' AND backend_type = 'client backend'"
        return [pid for (pid,) in connection.execute(f"{sessions} AND query LIKE 'CREATE %TABLE%'").fetchall()]


def wait_until(holds: Callable[[], bool]) -> None:
    """Poll a condition until it holds or time is over."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def is_up(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:  # it recovers
        return False
    return True


def found_in(url: str) -> dict[str, list[tuple[object, ...]]]:
    with se.connect(url) as db:
        return contents(db)


def check_goes_on(url: str, before: dict[str, list[tuple[object, ...]]]) -> None:
    """Assert that the database is as before and that another run is right."""
    assert found_in(url) == before
    with se.connect(url) as db:
        results = db.run(PROGRAM)
    np.testing.assert_array_equal(results["R"].to_numpy(), (A @ A).sum(axis=1))


def test_client_killed(url: str, run: subprocess.Popen[str]) -> None:
    before = found_in(url)
    assert set(before) > {'"public"."r"'}
    run.kill()
    wait_until(lambda: not processes_filling_a_table(url))
    check_goes_on(url, before)


def test_server_process_killed(url: str, run: subprocess.Popen[str]) -> None:
    """All sessions end, and the server recovers; clients are told."""
    before = found_in(url)
    with se.connect(url) as other:
        (pid,) = processes_filling_a_table(url)
        os.kill(pid, signal.SIGKILL)
        _, errors = run.communicate(timeout=PATIENCE_SECONDS)
        assert "EngineError: the connection to the server is lost; connect again: " in errors
        assert "in the statement:\nCREATE " in errors
        with pytest.raises(se.EngineError, match="the connection to the server is lost; connect again: "):
            other.run(PROGRAM)
    wait_until(lambda: is_up(url))
    check_goes_on(url, before)

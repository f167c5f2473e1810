"""Kills at random moments: a database holds each tensor in one of its states, and goes on."""

import random
import subprocess
import sys
import time
from pathlib import Path

import psycopg

import sparseeinsum as se
from fuzzing.targets import Target

LONGEST_SECONDS = 1.5
# Every state of a tensor has equal values.
WRITES = """
import sys
import numpy as np
import sparseeinsum as se

with se.connect(sys.argv[1]) as db:
    if db.connection.__module__.startswith("psycopg"):
        db.connection.execute("SET search_path = main, public")
    print("begun", flush=True)
    for number in range(1, 10_000):
        db.tensor("A", np.full((20, 30), float(number)), promoted=["dim_0", "dim_1"])
        db.tensor("B", np.full(50, float(number)))
        db.run("Y[i, k] = A[i, k] * 2", into={"Y": "y"})
        db.run("Z[i] = B[i] * 2", into={"Z": "z"})
"""


def attack(number: int, target: Target) -> int:
    """Kill a process that writes; returns 1.

    Raises:
        AssertionError: A tensor or table is of several states, or cannot be read or written.
    """
    chance = random.Random(number)
    place = target.place if target.engine == "postgresql" else str(Path(target.place) / f"{number}.duckdb")
    if target.engine == "postgresql":
        with target.database():
            pass
    with subprocess.Popen([sys.executable, "-c", WRITES, place], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(chance.uniform(0, LONGEST_SECONDS))
        if target.engine == "postgresql" and chance.random() < 0.5:
            with psycopg.connect(place, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                    "AND backend_type = 'client backend'"
                )
        writer.kill()
    with se.connect(place) as db:
        if target.engine == "postgresql":
            db.connection.execute("SET search_path = main, public")
        _check(db)
    return 1


def _check(db: se.Database) -> None:
    tables = db.connection.execute("SELECT table_name FROM information_schema.tables").fetchall()
    names = [*db.tensors(), *(name for (name,) in tables if name in ("y", "z"))]
    for name in names:
        rank = 2 if name in ("A", "y") else 1
        labels = ", ".join("ij"[:rank])
        extremes = db.run(f"Most[] = max({name}[{labels}])\nLeast[] = min({name}[{labels}])")
        assert extremes["Most"].to_numpy() == extremes["Least"].to_numpy(), name
    db.tensor("A", [[1.0, 2.0]])
    assert db.run("S[] = sum(A[i, j])")["S"].to_numpy() == 3
    temporary = [name for (name,) in tables if str(name).startswith("sparseeinsum_")]
    assert not temporary, temporary

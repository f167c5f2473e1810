"""Ctrl-C while DuckDB computes: Python's own error, and the database is as it was."""

import subprocess
import sys

INTERRUPTED = """
import os, signal, threading
import sparseeinsum as se

with se.connect() as db:
    db.connection.execute("CREATE TABLE big AS SELECT range AS i, 1.0 AS v FROM range(30000)")
    db.tensor_from_table("X", "big", index=["i"], value="v")
    db.run("Y[] = sum(X[i])")
    for into in ({}, {"Y": "total"}):
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            db.run("Y[] = sum(sqrt(X[i] * X[j] + X[k]))", optimizer="relational", into=into)
        except KeyboardInterrupt:
            tables = [name for name, in db.connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
            print(list(db.tensors()), "total" in tables, db.run("Y[] = sum(X[i])")["Y"].to_numpy())
"""


def test_a_run_is_interrupted() -> None:
    finished = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=60, check=False
    )
    assert (finished.stdout, finished.stderr) == ("['X'] False 30000.0\n" * 2, "")

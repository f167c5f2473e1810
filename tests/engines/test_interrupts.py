"""Ctrl-C stops statements and kernels soon, raises KeyboardInterrupt, and leaves the database unchanged."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import errors

import sparseeinsum as se
from sparseeinsum.engines.duckdb.interrupts import interruptible

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


@pytest.fixture(autouse=True)
def interrupted_as_in_the_foreground() -> Iterator[None]:
    """Restore SIGINT's default handler, as background processes of a shell ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_run_is_interrupted() -> None:
    finished = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=300, check=False
    )
    assert (finished.stdout, finished.stderr) == ("['X'] False 30000.0\n" * 2, "")


def test_a_signal_does_not_stop_later_work() -> None:
    """Also if the thread that handles the signal runs only afterwards."""
    signals: list[bool] = []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(100)  # other threads wait until this one does
    try:
        with pytest.raises(KeyboardInterrupt), interruptible(lambda interrupt: None):
            os.kill(os.getpid(), signal.SIGINT)
            while True:
                pass
        with interruptible(signals.append):
            time.sleep(0.2)
    finally:
        sys.setswitchinterval(interval)
    assert signals == [False]


# DuckDB handles signals only if the main thread takes part in the work, which is not certain.
SCANS = """
import os, signal, threading, time
import sparseeinsum as se

COUNT = 10_000_000_000
with se.connect() as db:
    db.connection.execute(f"SET threads = 2; CREATE VIEW long AS SELECT range AS i, 1.0 AS v FROM range({COUNT})")
    calls = {
        "run": lambda: db.run(f"S[] = sum(index(i: {COUNT}))"),
        "plan": lambda: db.plan("S[] = sum(X[i])"),
        "statistics": lambda: db.statistics("X"),
        "table": lambda: db.tensor_from_table("Y", "long", index=["i"], value="v"),
    }
    db.connection.execute("CREATE OR REPLACE VIEW short AS SELECT range AS i, 1.0 AS v FROM range(3)")
    db.tensor_from_table("X", "short", index=["i"], value="v", shape=(COUNT,))
    db.connection.execute("CREATE OR REPLACE VIEW short AS FROM long")
    for name, call in [*calls.items()] * 2:
        start = time.perf_counter()
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            call()
        except KeyboardInterrupt:
            print(name, round(time.perf_counter() - start - 0.5))
"""


def test_scans_are_interrupted() -> None:
    finished = subprocess.run([sys.executable, "-c", SCANS], capture_output=True, text=True, timeout=300, check=False)
    assert finished.stderr == ""
    seconds_of = dict(line.split() for line in finished.stdout.splitlines())
    assert list(seconds_of) == ["run", "plan", "statistics", "table"]
    assert all(int(seconds) <= AT_MOST_SECONDS for seconds in seconds_of.values()), seconds_of


# Single calls that take from 20 s to minutes, in the SQL of both engines.
LONG_CALLS = {
    "expression": "tensor_reduce('sum', 'exp(u * v)', 'i,j->', {vector}, {vector}, {extents})",
    "lines": "tensor_einsum('ij,jk->ik', {whole}, {whole}, {edges})",
    "gemm": "tensor_einsum('ij,jk->ik', {matrix}, {matrix}, {long_edges})",
}
AT_MOST_SECONDS = 3  # after Ctrl-C; the kernels need a twentieth of it, but the machine may be busy


def written(call: str, dialect: str) -> str:
    """A call in the SQL of an engine."""
    array, number = ("[{}]", "DOUBLE") if dialect == "duckdb" else ("ARRAY[{}]", "FLOAT8")
    return call.format(
        vector=f"tensor_fill(200000, 0.5::{number})",
        extents=array.format("200000, 200000"),
        whole="tensor_fill(9000000, 1::BIGINT)",
        edges=array.format("3000, 3000, 3000"),
        # Not a constant: to fold one of so many elements takes DuckDB seconds, in which nothing stops it.
        matrix=f"tensor_fill(64000000 + (random() * 0)::INT, 1::{number})",
        long_edges=array.format("8000, 8000, 8000"),
    )


IN_KERNELS = """
import os, signal, sys, threading, time
import sparseeinsum as se

pressed = [0.0]

def press():
    pressed[0] = time.perf_counter()
    os.kill(os.getpid(), signal.SIGINT)

with se.connect() as db:
    db.connection.execute(f"CREATE VIEW long AS SELECT 0 AS i, ({sys.argv[1]})[1]::DOUBLE AS v")
    threading.Timer(1.0, press).start()
    try:
        db.tensor("Long", "long", index=["i"], value="v")
    except KeyboardInterrupt:
        print("interrupted", time.perf_counter() - pressed[0], file=sys.stderr)
        db.tensor("A", [1.0, 2.0])
        print(list(db.tensors()), db.run("Y[] = sum(A[i])")["Y"].to_numpy(), time.perf_counter() - pressed[0] < 3)
"""


@pytest.mark.parametrize("call", LONG_CALLS)
def test_a_kernel_is_interrupted_in_duckdb(call: str) -> None:
    finished = subprocess.run(
        [sys.executable, "-c", IN_KERNELS, written(LONG_CALLS[call], "duckdb")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert finished.stdout == "['A'] 3.0 True\n", finished.stderr


@pytest.mark.parametrize("call", LONG_CALLS)
def test_a_kernel_is_interrupted_in_postgresql(postgres_urls: dict[str, str], call: str) -> None:
    with psycopg.connect(postgres_urls["db"], autocommit=True) as connection:
        connection.execute("SET statement_timeout = '1s'")
        start = time.perf_counter()
        with pytest.raises(errors.QueryCanceled, match="statement timeout"):
            connection.execute(f"SELECT ({written(LONG_CALLS[call], 'postgresql')})[1]")
        assert time.perf_counter() - start < 1 + AT_MOST_SECONDS
        assert connection.execute("SELECT tensor_sum(ARRAY[1.0::FLOAT8])").fetchall() == [([1.0],)]


@pytest.mark.parametrize("statement", [b"SELECT pg_sleep(30)", b"COMMIT"])
def test_a_connection_works_after_an_interrupt_that_left_a_statement(
    postgres_urls: dict[str, str], statement: bytes
) -> None:
    """As if Ctrl-C came after the driver had sent a statement, and before it waited for the results."""
    with se.connect(postgres_urls["shared_db"]) as db:
        engine = db._engine
        with pytest.raises(KeyboardInterrupt), engine.transaction():
            engine.execute("CREATE TEMP TABLE interrupted (i int)")
            db.connection.pgconn.send_query(statement)
            raise KeyboardInterrupt
        assert db.connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        db.tensor("A", [[1.0, 2.0], [3.0, 4.0]])
        assert db.run("Y[i] = sum(A[i, j])")["Y"].to_numpy().tolist() == [3.0, 7.0]


def test_other_signal_handlers_are_restored() -> None:
    """An event loop's wakeup descriptor gets signals during a run and is restored after it."""
    reader, writer = socket.socketpair()
    reader.setblocking(False)
    before = signal.set_wakeup_fd(reader.fileno())
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        with interruptible(lambda _: None), pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
            time.sleep(1)  # the handler runs before it ends
        assert writer.recv(8) == bytes([signal.SIGINT])
        assert signal.set_wakeup_fd(reader.fileno()) == reader.fileno()
    finally:
        signal.signal(signal.SIGINT, handler)
        signal.set_wakeup_fd(before)
        reader.close()
        writer.close()

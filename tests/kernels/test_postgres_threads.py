"""Threads of a process of PostgreSQL compute what one does, are as many as the session allows, and can be stopped."""

import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psycopg
import pytest
from psycopg import errors
from test_slices import CALLS, SIZE

LONG = """SELECT (tensor_matmul(a, a, ARRAY[{0}, {0}, {0}]))[1:3]
    FROM (SELECT tensor_fill({0} * {0}, 1::float8) AS a) AS t"""


@pytest.fixture(scope="module")
def connection(postgres_connection: psycopg.Connection) -> Iterator[psycopg.Connection]:
    """One connection for this module, with two large arrays; its process survives all errors."""
    rng = np.random.default_rng(5)
    u, v = (rng.integers(-50, 50, SIZE).astype(float).tolist() for _ in range(2))
    postgres_connection.execute("CREATE TABLE numbers AS SELECT %s::float8[] AS u, %s::float8[] AS v", [u, v])
    before = postgres_connection.execute("SELECT pg_backend_pid()").fetchall()
    yield postgres_connection
    assert postgres_connection.execute("SELECT pg_backend_pid()").fetchall() == before


@contextmanager
def processes(connection: psycopg.Connection, workers: int) -> Iterator[None]:
    """Let the session's statements have so many processes beside the first one."""
    connection.execute(f"SET max_parallel_workers_per_gather = {workers}")
    try:
        yield
    finally:
        connection.execute("RESET max_parallel_workers_per_gather")


@pytest.mark.parametrize("call", CALLS)
def test_results_are_numpys(connection: psycopg.Connection, call: str) -> None:
    spelled = re.sub(r"\[:(\d+)\]", r"[1:\1]", call)
    spelled = re.sub(r"(?<![\w\]])\[", "ARRAY[", spelled)
    ((u, v),) = connection.execute("SELECT u, v FROM numbers").fetchall()
    expected = CALLS[call](np.array(u), np.array(v))
    for workers in (0, 3):
        with processes(connection, workers):
            ((array,),) = connection.execute(f"SELECT {spelled} FROM numbers").fetchall()
        np.testing.assert_array_equal(array, expected)


def threads_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


@pytest.mark.parametrize("workers", [0, 3])
def test_as_many_threads_as_processes(connection: psycopg.Connection, workers: int) -> None:
    """They end with the call, and no more of them are started than there are processors."""
    ((pid,),) = connection.execute("SELECT pg_backend_pid()").fetchall()
    counts, done = list[int](), threading.Event()

    def count() -> None:
        while not done.wait(0.005):
            counts.append(threads_of(pid))

    counting = threading.Thread(target=count)
    counting.start()
    with processes(connection, workers):
        connection.execute(LONG.format(1500)).fetchall()
    done.set()
    counting.join()
    assert max(counts) == min(workers + 1, os.cpu_count() or 1)
    assert threads_of(pid) == 1


def test_parallel_workers_have_one(connection: psycopg.Connection) -> None:
    """Processes that share a statement start no threads, so that it has no more of both together."""
    connection.execute(
        "CREATE TABLE several AS SELECT i, tensor_fill(250000, 2::float8) AS a FROM generate_series(1, 40) AS i"
    )
    settings = "parallel_setup_cost = 0", "parallel_tuple_cost = 0", "min_parallel_table_scan_size = 0"
    with processes(connection, 2), connection.transaction():
        for setting in settings:
            connection.execute(f"SET LOCAL {setting}")
        query = "SELECT sum((tensor_matmul(a, a, ARRAY[500, 500, 500]))[1]) FROM several"
        plan = "\n".join(line for (line,) in connection.execute(f"EXPLAIN {query}"))
        ((total,),) = connection.execute(query).fetchall()
    assert "Gather" in plan
    assert total == 40 * 500 * 4


@pytest.mark.parametrize("workers", [0, 3])
def test_products_can_be_stopped(connection: psycopg.Connection, workers: int) -> None:
    with processes(connection, workers):
        for _ in range(3):
            connection.execute("SET statement_timeout = '300ms'")
            with pytest.raises(errors.QueryCanceled):
                connection.execute(LONG.format(4000))
            connection.execute("RESET statement_timeout")
            ((array,),) = connection.execute(LONG.format(700)).fetchall()
            assert array == [700.0] * 3


def test_interrupts_that_stop_nothing(connection: psycopg.Connection, postgres_url: str) -> None:
    """The server may interrupt a process for its own needs; the product is computed again, by one thread."""
    ((pid,),) = connection.execute("SELECT pg_backend_pid()").fetchall()
    results: list[list[float]] = []

    def compute() -> None:
        ((array,),) = connection.execute(LONG.format(2500)).fetchall()
        results.append(array)

    with processes(connection, 3), psycopg.connect(postgres_url, autocommit=True) as other:
        computing = threading.Thread(target=compute)
        computing.start()
        time.sleep(0.3)
        while computing.is_alive():
            other.execute("SELECT pg_log_backend_memory_contexts(%s)", [pid])
            time.sleep(0.05)
        computing.join()
    assert results == [[2500.0] * 3]


@pytest.mark.parametrize(
    ("call", "of_row"),
    [
        ("tensor_scaled_dot_rows(e, u, u, 64)", "tensor_scaled_dot_row(e, r, u, u, 64)"),
        ("tensor_product_rows('sum(u * v)', e, e, 0::float8)", "tensor_product_row('sum(u * v)', e, r, e, 0::float8)"),
        (
            "tensor_masked_product_rows('sum(u * v)', e, e, 0::float8, e)",
            "tensor_masked_product_row('sum(u * v)', e, r, e, 0::float8, e)",
        ),
    ],
)
def test_entries_of_all_rows(connection: psycopg.Connection, postgres_url: str, call: str, of_row: str) -> None:
    """Threads compute those of single rows, also while the server interrupts the process; some rows at a time."""
    rows, entries = 3000, 60
    connection.execute("DROP TABLE IF EXISTS entries")
    connection.execute(
        f"""CREATE TABLE entries AS
        SELECT tensor_compressed((k % 7 - 3)::float8, row, (k * 31 + row * 17) % {rows}, {rows}) AS e,
        (SELECT array_agg((i % 13 - 6)::float8) FROM generate_series(1, {rows} * 64) AS i) AS u
        FROM generate_series(0, {rows - 1}) AS row, generate_series(0, {entries - 1}) AS k"""
    )
    query, results = f"SELECT {call} = expected FROM entries, expected_entries", list[object]()
    ((pid,),) = connection.execute("SELECT pg_backend_pid()").fetchall()
    plain = "(SELECT e || ARRAY[]::bigint[] AS e, u || ARRAY[]::float8[] AS u FROM entries OFFSET 0) AS entries"
    of_rows = f"SELECT r, {of_row} AS of_row FROM {plain}, generate_series(0, {rows - 1}) AS r OFFSET 0"
    single = f"SELECT tensor_compressed_rows(of_row, r, {rows}, 0::float8) FROM ({of_rows}) AS t"
    connection.execute("DROP TABLE IF EXISTS expected_entries")
    connection.execute(f"CREATE TABLE expected_entries AS {single.replace(' FROM', ' AS expected FROM', 1)}")

    def compute() -> None:
        for _ in range(5):
            results.extend(connection.execute(query).fetchall())

    with processes(connection, 3), psycopg.connect(postgres_url, autocommit=True) as other:
        computing = threading.Thread(target=compute)
        computing.start()
        while computing.is_alive():
            other.execute("SELECT pg_log_backend_memory_contexts(%s)", [pid])
            time.sleep(0.01)
        computing.join()
    with processes(connection, 0):
        results.extend(connection.execute(query).fetchall())
    assert results == [(True,)] * 6


def test_errors_of_threads_are_raised(connection: psycopg.Connection) -> None:
    """Whichever thread finds a sum that overflows."""
    for row in (1, 999):
        ones, large = row * 1000, (1000 - row) * 1000
        matrix = f"array_fill(1::bigint, ARRAY[{ones}]) || array_fill((4e18)::bigint, ARRAY[{large}])"
        query = f"SELECT tensor_matmul(a, a, ARRAY[1000, 1000, 1000]) FROM (SELECT {matrix} AS a) AS t"
        with processes(connection, 3), pytest.raises(psycopg.Error, match="overflow"):
            connection.execute(query)

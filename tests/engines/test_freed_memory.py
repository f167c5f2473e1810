"""A process of PostgreSQL keeps some of the memory that statements free for the next ones, and returns the rest."""

from pathlib import Path

import psycopg
import pytest

import sparseeinsum as se

pytestmark = pytest.mark.engines("postgresql", reason="DuckDB has an allocator of its own")

KEPT_BYTES = 512 << 20
ARRAY_BYTES = 8 * 25_000_000
SLACK_BYTES = 64 << 20
# The planner would compute the array of a constant.
FILL = f"tensor_fill({ARRAY_BYTES // 8}, x::FLOAT8)"
ONE_ROW = "FROM generate_series(1, 1) AS x"
THREE = f"(SELECT {FILL} AS u, {FILL} AS v, {FILL} AS w {ONE_ROW} OFFSET 0) AS t"


def resident_bytes(connection: psycopg.Connection) -> int:
    """The memory that the process of a session has for itself."""
    status = Path(f"/proc/{connection.info.backend_pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("RssAnon"))
    return int(line.split()[1]) * 1024


def page_faults(connection: psycopg.Connection) -> int:
    """How many pages the process of a session was given without reading them from a disk."""
    fields = Path(f"/proc/{connection.info.backend_pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[7])


@pytest.fixture
def connection(db: se.Database) -> psycopg.Connection:
    """A session that has loaded the library."""
    db.connection.execute("SELECT tensor_fill(1, 1.5::FLOAT8)")
    connection: psycopg.Connection = db.connection
    return connection


def test_all_but_some_is_returned(connection: psycopg.Connection) -> None:
    before = resident_bytes(connection)
    for _ in range(3):
        connection.execute(f"SELECT cardinality(u), cardinality(v), cardinality(w) FROM {THREE}")
        assert resident_bytes(connection) <= before + KEPT_BYTES + SLACK_BYTES
    with pytest.raises(psycopg.errors.DivisionByZero):
        connection.execute(f"SELECT cardinality(u) / (cardinality(v) - cardinality(w)) FROM {THREE}")
    assert resident_bytes(connection) <= before + KEPT_BYTES + SLACK_BYTES


def test_memory_below_what_is_kept_is_returned(connection: psycopg.Connection) -> None:
    """Arrays that a statement frees between others, which the session keeps."""
    before = resident_bytes(connection)
    keep = "tensor_keep(tensor_fill(100000, x::FLOAT8))"
    columns = ", ".join(f"cardinality({FILL}), {keep}" for _ in range(4))
    row = connection.execute(f"SELECT {columns} {ONE_ROW}").fetchone()
    assert row is not None
    assert resident_bytes(connection) <= before + KEPT_BYTES + SLACK_BYTES
    for handle in row[1::2]:
        connection.execute(f"SELECT tensor_release({handle})")


def test_some_memory_stays(connection: psycopg.Connection) -> None:
    """The second statement finds the pages of the first."""
    statement = f"SELECT cardinality({FILL}) {ONE_ROW}"
    connection.execute(statement)
    before = page_faults(connection)
    connection.execute(statement)
    assert page_faults(connection) - before < ARRAY_BYTES / 4096 / 10

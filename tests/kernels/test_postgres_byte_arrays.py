"""Arrays stored as bytes on a cluster read back unchanged, and malformed bytes are refused."""

import itertools
from collections.abc import Iterator

import numpy as np
import psycopg
import pytest
from psycopg import errors

TYPES = {"float8": "<f8", "float4": "<f4", "int8": "<i8"}
SIZES = (0, 1, 13, 1_000, 100_000)


@pytest.fixture(scope="module")
def connection(postgres_connection: psycopg.Connection) -> Iterator[psycopg.Connection]:
    """One connection; its process survives every error."""
    ((before,),) = postgres_connection.execute("SELECT pg_backend_pid()").fetchall()
    yield postgres_connection
    assert postgres_connection.execute("SELECT pg_backend_pid()").fetchall() == [(before,)]


def random_bytes(size: int, dtype: str) -> bytes:
    """Elements of random bits, some of them NaN."""
    return np.random.default_rng(size).bytes(size * np.dtype(dtype).itemsize)


@pytest.mark.parametrize("storage", ["PLAIN", "MAIN", "EXTERNAL", "EXTENDED"])
@pytest.mark.parametrize("kind", TYPES)
def test_every_bit_comes_back(connection: psycopg.Connection, kind: str, storage: str) -> None:
    """Arrays of any length, from tables with every kind of storage."""
    sizes = [size for size in SIZES if storage != "PLAIN" or size < 1_000]
    connection.execute(f"CREATE TEMP TABLE kept (size int, u bytea, v {kind}[])")
    connection.execute(f"ALTER TABLE kept ALTER u SET STORAGE {storage}, ALTER v SET STORAGE {storage}")
    for size in sizes:
        data = random_bytes(size, TYPES[kind])
        connection.execute(f"INSERT INTO kept VALUES (%s, %s, tensor_of_bytes(%s, 0::{kind}))", [size, data, data])
    rows = connection.execute(
        f"SELECT size, u, tensor_bytes(v), tensor_bytes(tensor_of_bytes(u, 1::{kind})), cardinality(v), "
        f"array_send(v) = array_send(tensor_of_bytes(u, 1::{kind})) FROM kept ORDER BY size"
    ).fetchall()
    assert [size for size, *_ in rows] == sizes
    for size, *values, elements, is_same in rows:
        assert set(values) == {random_bytes(size, TYPES[kind])}
        assert (elements, is_same) == (size, True)
    connection.execute("DROP TABLE kept")


@pytest.mark.parametrize("kind", TYPES)
def test_bytes_are_those_of_memory(connection: psycopg.Connection, kind: str) -> None:
    numbers = np.array([0, -1, 3, 1 << 20], TYPES[kind])
    query = f"SELECT tensor_bytes(%s::{kind}[]), tensor_of_bytes(%s, 5::{kind})"
    assert connection.execute(query, [numbers.tolist(), numbers.tobytes()]).fetchone() == (
        numbers.tobytes(),
        numbers.tolist(),
    )


@pytest.mark.parametrize("kind", TYPES)
def test_parts_of_arrays(connection: psycopg.Connection, kind: str) -> None:
    """What an array lacks is left out."""
    numbers = np.arange(10).astype(TYPES[kind])
    far = 1 << 62
    for first, count in itertools.product((-far, -1, 0, 3, 9, 10, 11, far), (-far, -1, 0, 1, 4, 10, far)):
        query = f"SELECT tensor_bytes(%s::{kind}[], %s::bigint, %s::bigint)"
        (part,) = connection.execute(query, [numbers.tolist(), first, count]).fetchone() or (None,)
        assert part == numbers[max(first, 0) :][: max(count, 0)].tobytes()
    for arguments in (f"NULL::{kind}[], 0, 1", f"'{{1}}'::{kind}[], NULL, 1", f"'{{1}}'::{kind}[], 0, NULL"):
        assert connection.execute(f"SELECT tensor_bytes({arguments})").fetchone() == (None,)


def test_bytes_of_arrays(connection: psycopg.Connection) -> None:
    """Literals are read as elsewhere, dimensions are dropped, and NULL gives NULL."""
    for array, expected in (
        ("ARRAY[1.5, 2]", np.array([1.5, 2.0]).tobytes()),
        ("ARRAY[1, 2]", np.array([1, 2]).tobytes()),
        ("'{{1,2},{3,4}}'::float8[]", np.arange(1.0, 5.0).tobytes()),
        ("('{0,1,2,3}'::float4[])[2:3]", np.array([1, 2], np.float32).tobytes()),
        ("NULL::float8[]", None),
    ):
        assert connection.execute(f"SELECT tensor_bytes({array})").fetchone() == (expected,)
    for call in ("tensor_of_bytes(NULL, 0.0)", "tensor_of_bytes('\\x00', NULL::float8)"):
        assert connection.execute(f"SELECT {call}").fetchone() == (None,)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        ("tensor_bytes(ARRAY[1.0, NULL])", errors.NullValueNotAllowed, "tensor_bytes: argument 1, .*holds NULL"),
        ("tensor_bytes(ARRAY['a'])", errors.UndefinedFunction, "tensor_bytes"),
        ("tensor_of_bytes('\\x0000000000', 0.0)", errors.InvalidParameterValue, "tensor_of_bytes: 5 bytes .* 8 bytes"),
        ("tensor_of_bytes('\\x00', 0)", errors.InvalidParameterValue, "tensor_of_bytes: 1 bytes .* 8 bytes each"),
        ("tensor_of_bytes('\\x000000', 0::real)", errors.InvalidParameterValue, "tensor_of_bytes: 3 bytes .* 4 bytes"),
        ("tensor_of_bytes('\\x0000', 'x'::text)", errors.UndefinedFunction, "tensor_of_bytes"),
    ],
)
def test_malformed_calls_are_refused(
    connection: psycopg.Connection, call: str, kind: type[psycopg.Error], words: str
) -> None:
    with pytest.raises(kind, match=words):
        connection.execute(f"SELECT {call}")


def test_wrong_declarations_of_superusers(connection: psycopg.Connection) -> None:
    """The library checks the types of its arguments itself."""
    query = "SELECT probin, prosrc FROM pg_proc WHERE oid = '{}'::regprocedure"
    for signature, name, arguments, returns, call, kind in (
        ("tensor_bytes(float8[])", "no_array", "float4[]", "bytea", "'{1}'", errors.DatatypeMismatch),
        ("tensor_of_bytes(bytea, float8)", "few", "bytea", "float8[]", "''", errors.InvalidFunctionDefinition),
    ):
        ((library, symbol),) = connection.execute(query.format(signature)).fetchall()
        connection.execute(
            f"CREATE FUNCTION {name}({arguments}) RETURNS {returns} AS '{library}', '{symbol}' LANGUAGE C STRICT"
        )
        with pytest.raises(kind):
            connection.execute(f"SELECT {name}({call})")


def test_parallel_workers_read_them(connection: psycopg.Connection) -> None:
    connection.execute(
        "CREATE TABLE many AS SELECT tensor_bytes(ARRAY[i, 0.5]) AS u FROM generate_series(1, 20000) AS i"
    )
    connection.execute("SET min_parallel_table_scan_size = 0; SET parallel_setup_cost = 0")
    query = "SELECT tensor_sum(tensor_of_bytes(u, 0.0)) FROM many"
    plan = "\n".join(line for (line,) in connection.execute(f"EXPLAIN {query}").fetchall())
    assert "Parallel Seq Scan" in plan
    assert connection.execute(query).fetchone() == ([20_000 * 20_001 / 2, 10_000.0],)
    connection.execute("RESET ALL; DROP TABLE many")

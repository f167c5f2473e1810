"""PostgreSQL's type tensor computes with operators what numpy computes, and is stored, sorted, cast and copied."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from postgres_server import PostgresServer
from psycopg import errors

Array = NDArray[np.float64]
U, V = np.array([1.5, -2.0, 0.0]), np.array([0.5, 4.0, -1.0])


def text(array: Array) -> str:
    """An array as pgvector writes it."""
    return f"[{','.join(map(str, array.tolist()))}]"


def value(connection: psycopg.Connection, expression: str, *arrays: Array) -> Any:  # noqa: ANN401
    ((result,),) = connection.execute(f"SELECT {expression}", [text(array) for array in arrays]).fetchall()
    return result


ARITHMETIC: dict[str, Callable[[Array, Array], Array]] = {
    "u + v": lambda u, v: u + v,
    "u - v": lambda u, v: u - v,
    "u * v": lambda u, v: u * v,
    "u / v": lambda u, v: u / v,
    "u + 2": lambda u, v: u + 2,
    "2.5 - u": lambda u, v: 2.5 - u,
    "3 * u": lambda u, v: 3 * u,
    "u / 4::real": lambda u, v: u / 4,
    "-u": lambda u, v: -u,
    "(u + v) * 2 - v / 0.5": lambda u, v: (u + v) * 2 - v / 0.5,
}
NUMBERS: dict[str, Callable[[Array, Array], float]] = {
    "u <-> v": lambda u, v: float(np.linalg.norm(u - v)),
    "u <#> v": lambda u, v: float(-u @ v),
    "u <=> v": lambda u, v: float(1 - u @ v / np.linalg.norm(u) / np.linalg.norm(v)),
    "tensor_dot(u, v)": lambda u, v: float(u @ v),
    "tensor_norm(u * 2)": lambda u, v: float(2 * np.linalg.norm(u)),
}
_ROW = "FROM (SELECT %s::tensor AS u, %s::tensor AS v) AS t"


@pytest.mark.parametrize("expression", ARITHMETIC)
def test_arithmetic(postgres_connection: psycopg.Connection, expression: str) -> None:
    result = value(postgres_connection, f"({expression})::float8[] {_ROW}", U, V)
    np.testing.assert_array_equal(np.array(result), ARITHMETIC[expression](U, V))


@pytest.mark.parametrize("expression", NUMBERS)
def test_distances(postgres_connection: psycopg.Connection, expression: str) -> None:
    assert value(postgres_connection, f"{expression} {_ROW}", U, V) == pytest.approx(NUMBERS[expression](U, V))


def test_cosine_distance_of_zero_is_nan(postgres_connection: psycopg.Connection) -> None:
    assert np.isnan(value(postgres_connection, f"u <=> v {_ROW}", 0 * U, V))


def test_numbers_survive_text_and_bytes(postgres_connection: psycopg.Connection) -> None:
    @settings(max_examples=30)
    @given(arrays(np.float64, st.integers(0, 5), elements=st.floats(width=64)))
    def check(array: Array) -> None:
        text_form = value(postgres_connection, "%s::tensor::text", array)
        ((again,),) = postgres_connection.execute("SELECT %s::tensor::float8[]", [text_form]).fetchall()
        np.testing.assert_array_equal(again, array)
        as_bytes = "tensor_send(%s::tensor) = array_send(%s::float8[])"
        assert postgres_connection.execute(f"SELECT {as_bytes}", [text(array), array.tolist()]).fetchall() == [(True,)]

    check()


@pytest.mark.parametrize("literal", ["[1, 2]", "{1,2}", " [1,2] ", "[0:1]={1,2}"])
def test_brackets_and_braces_are_read(postgres_connection: psycopg.Connection, literal: str) -> None:
    ((result,),) = postgres_connection.execute("SELECT %s::tensor + '[0, 0]'", [literal]).fetchall()
    assert result == "{1,2}"


@pytest.mark.parametrize("element", ["float8", "real", "numeric", "bigint", "integer"])
def test_arrays_are_cast(postgres_connection: psycopg.Connection, element: str) -> None:
    ((result,),) = postgres_connection.execute(f"SELECT (ARRAY[1, 2]::{element}[]::tensor * 2)::text").fetchall()
    assert result == "{2,4}"


def test_columns_are_assigned_sorted_grouped_joined_and_copied(
    postgres: PostgresServer, postgres_connection: psycopg.Connection, tmp_path: Path
) -> None:
    postgres_connection.execute("CREATE TABLE items (id int, e tensor); CREATE INDEX ON items (e)")
    postgres_connection.execute("INSERT INTO items SELECT i, ARRAY[i % 3, 1]::float8[] FROM generate_series(1, 6) AS i")
    nearest = "SELECT id FROM items ORDER BY e <-> '[2, 1]', id LIMIT 2"
    assert postgres_connection.execute(nearest).fetchall() == [(2,), (5,)]
    assert postgres_connection.execute("SELECT e, count(*) FROM items GROUP BY e ORDER BY e").fetchall() == [
        (f"{{{number},1}}", 2) for number in range(3)
    ]
    joined = "SELECT count(*) FROM items AS a JOIN items AS b USING (e)"
    assert postgres_connection.execute(joined).fetchall() == [(12,)]
    assert postgres_connection.execute("SELECT tensor_sum(e) FROM items").fetchall() == [([6.0, 6.0],)]
    postgres_connection.execute("CREATE TABLE copied (LIKE items)")
    with postgres_connection.cursor() as cursor:
        with cursor.copy("COPY items TO STDOUT (FORMAT BINARY)") as out:
            data = b"".join(out)
        with cursor.copy("COPY copied FROM STDIN (FORMAT BINARY)") as into:
            into.write(data)
    assert postgres_connection.execute("TABLE items EXCEPT ALL TABLE copied").fetchall() == []
    program = Path(postgres.pg_config).with_name("pg_dump")
    name = postgres_connection.info.dbname
    where = ["-h", str(postgres.folder), "-U", "postgres", "-d", name, "--file", str(tmp_path / "dump")]
    subprocess.run([program, *where], check=True, stdout=subprocess.DEVNULL)
    with postgres.connect() as maintenance:
        maintenance.execute("CREATE DATABASE restored_items")
        postgres.psql("restored_items", (tmp_path / "dump").read_text())
        with postgres.connect("restored_items") as restored:
            assert restored.execute(nearest).fetchall() == [(2,), (5,)]
        maintenance.execute("DROP DATABASE restored_items")


@pytest.mark.parametrize(
    ("expression", "kind", "message"),
    [
        ("'[1, 2]'::tensor + '[1, 2, 3]'", psycopg.Error, "tensor_add: u has 2 elements, v has 3"),
        ("'[1, 2]'::tensor <-> '[1]'", psycopg.Error, "tensor_sub: u has 2 elements, v has 1"),
        ("'[1, NULL]'::tensor * 2", psycopg.Error, "holds NULL"),
        ("'[1, 2'::tensor", errors.InvalidTextRepresentation, "malformed array literal"),
        ("'[1, a]'::tensor", errors.InvalidTextRepresentation, 'invalid input syntax for type double precision: "a"'),
        ("'[1]'::tensor + ARRAY[1::float8]", errors.UndefinedFunction, "operator does not exist"),
    ],
)
def test_errors(
    postgres_connection: psycopg.Connection, expression: str, kind: type[psycopg.Error], message: str
) -> None:
    with pytest.raises(kind) as caught:
        postgres_connection.execute(f"SELECT {expression}")
    assert message in str(caught.value)


def test_functions_are_found_whatever_the_search_path(postgres_connection: psycopg.Connection) -> None:
    with postgres_connection.transaction():
        postgres_connection.execute("SET LOCAL search_path = pg_catalog")
        query = "SELECT '[1, 2]'::public.tensor OPERATOR(public.<->) '[4, 6]'"
        assert postgres_connection.execute(query).fetchall() == [(5.0,)]

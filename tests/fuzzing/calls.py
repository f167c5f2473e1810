"""Malformed calls of all functions: a result, or an error of the user's; the database lives on."""

import random

import duckdb
import psycopg

from fuzzing.targets import Target, is_refusal
from sparseeinsum.kernels.array_functions import (
    ArrayFunction,
    ValueType,
    array_functions,
    postgresql_functions,
)

CALLS = 40  # per number
# Either small, or too large to be allocated: sizes in between would take all memory.
INTEGERS = (*range(6), 17, -1, (1 << 40) + 1, (1 << 62), (1 << 63) - 1, -(1 << 63))
NUMBERS = ("0", "1", "-1.5", "'NaN'", "'Infinity'", "'-Infinity'", "1e300", "5e-324", "NULL")
TEXTS = (
    *("i,i->", "ij,jk->ik", "ij->ji", "->", ",->", "ii->i", "ij->i", "ab,bc,cd->ad", "é->", "i" * 5000),
    *("u", "v", "u * v", "exp(u) + v ^ 2", "where(u > 0, u, v)", "f(u)", "((((((((((u))))))))))", "1e999", "2i", ""),
    *(
        "sum(u * v)",
        "min(u + v)",
        "sum",
        "prod",
        "max",
        "min",
        "any",
        "all",
        "logsumexp",
        "SUM",
        "avg",
        "\x01",
        "%s%n%lld",
        "'; DROP TABLE x; --",
    ),
)
_TYPES = {"f64": ("DOUBLE", "FLOAT8"), "f32": ("FLOAT", "FLOAT4"), "i64": ("BIGINT", "BIGINT")}


_OF_HANDLES = {ValueType.RESIDENT: ValueType.TENSOR}  # what PostgreSQL's functions take in place of handles


def attack(number: int, target: Target) -> int:
    """Make some calls, the same for the same number; returns how many.

    Raises:
        AssertionError: The database broke, or said so.
    """
    chance = random.Random(number)
    is_duckdb = target.engine == "duckdb"
    functions = (*array_functions(), *(() if is_duckdb else postgresql_functions()))
    with target.database() as db:
        for _ in range(CALLS):
            call = _call(chance, chance.choice(functions), is_duckdb)
            query = f"SELECT {call} FROM {_rows(chance, target)}"
            try:
                db.connection.execute(query).fetchall()
            except (duckdb.Error, psycopg.Error, UnicodeError) as error:
                assert is_refusal(error) or isinstance(error, UnicodeError), f"{query}\n{error}"
            assert db.connection.execute("SELECT 1").fetchall() == [(1,)], query
    return CALLS


def _rows(chance: random.Random, target: Target) -> str:
    count = chance.choice((0, 1, 1, 1, 3, 2500))
    return f"range({count}) AS t(i)" if target.engine == "duckdb" else f"generate_series(1, {count}) AS t(i)"


def _call(chance: random.Random, function: ArrayFunction, is_duckdb: bool) -> str:
    suffix = chance.choice(function.dtypes).replace("c128", "f64").replace("c64", "f32")
    kind = _TYPES[suffix][0 if is_duckdb else 1]
    arguments = [_argument(chance, argument.type, kind, is_duckdb) for argument in function.arguments]
    if chance.random() < 0.03:
        arguments = arguments[:-1]
    return f"{function.name}({', '.join(arguments)})"


def _argument(chance: random.Random, of: ValueType, kind: str, is_duckdb: bool) -> str:
    if chance.random() < 0.03:
        return "NULL"
    match of if is_duckdb else _OF_HANDLES.get(of, of):
        case ValueType.TEXT:
            text = chance.choice(TEXTS).replace("'", "''")
            return f"'{text}'"
        case ValueType.COMPRESSED if not is_duckdb:
            words = [str(chance.choice((0, 0, 1, 2, 20, 701, 2**40))) for _ in range(chance.choice((0, 7, 9, 12)))]
            return _array("BIGINT", ["701", "1", "1", "2", "1", "0", "1", *words], is_duckdb)
        case ValueType.INTEGER | ValueType.RESIDENT | ValueType.COMPRESSED:
            return f"CAST({chance.choice(INTEGERS)} AS BIGINT)"
        case ValueType.INTEGERS:
            values = [str(chance.choice(INTEGERS)) for _ in range(chance.randrange(5))]
            return _array("BIGINT", values, is_duckdb)
        case ValueType.POSITIONS:
            return _array("INTEGER", [str(chance.randrange(-2, 9)) for _ in range(chance.randrange(5))], is_duckdb)
        case ValueType.NUMBER:
            return f"CAST({_number(chance, kind)} AS {kind})"
        case ValueType.BYTES | ValueType.ENTRIES:
            digits = chance.randbytes(chance.choice((0, 3, 8, 64))).hex()
            return f"unhex('{digits}')" if is_duckdb else f"'\\x{digits}'::bytea"
        case ValueType.TENSORS | ValueType.COMPLEX_TENSORS:
            parts = [_numbers(chance, kind, is_duckdb) for _ in range(chance.randrange(3))]
            return f"CAST([{', '.join(parts)}] AS {kind}[][])" if is_duckdb else _numbers(chance, kind, is_duckdb)
        case _:
            return _numbers(chance, kind, is_duckdb)


def _numbers(chance: random.Random, kind: str, is_duckdb: bool) -> str:
    size = chance.choice((0, 1, 2, 4, 4, 6, 9, 16, 700))
    return _array(kind, [_number(chance, kind) for _ in range(size)], is_duckdb)


def _number(chance: random.Random, kind: str) -> str:
    if kind == "BIGINT":
        return str(chance.choice(INTEGERS))
    usual = str(chance.randrange(-4, 5))
    number = usual if chance.random() < 0.9 else chance.choice(NUMBERS)
    return "1e30" if kind in ("FLOAT", "FLOAT4") and number in ("1e300", "5e-324") else number


def _array(kind: str, values: list[str], is_duckdb: bool) -> str:
    listed = ", ".join(values)
    return f"CAST([{listed}] AS {kind}[])" if is_duckdb else f"CAST(ARRAY[{listed}] AS {kind}[])"

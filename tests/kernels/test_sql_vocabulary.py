"""The database lists every function of functions.toml with its description and a working example."""

import ast
import math
import re

import duckdb
import pytest
import test_sql_aggregates
import test_sql_functions
from sql_rows import Connection

import sparseeinsum as se
from sparseeinsum.kernels.array_functions import ArrayFunction, FunctionKind, ValueType, array_functions
from sparseeinsum.kernels.user_function_table import require_aggregate
from sparseeinsum.operators.user_aggregates import USER_AGGREGATES

pytestmark = pytest.mark.engines("duckdb", reason="test_postgres_extension.py asks PostgreSQL")


@pytest.fixture(scope="module")
def connection(shared_db: se.Database) -> Connection:
    """A connection to an empty database."""
    return shared_db.connection


def test_every_function_is_tested() -> None:
    called = {re.split(r"\W", call)[0] for call in (*test_sql_functions.SCALARS, *test_sql_aggregates.AGGREGATES)}
    others = [
        function for function in array_functions() if "f64" in function.dtypes and not function.uses_resident_arrays
    ]
    # test_resident_arrays.py, test_user_aggregates.py and test_duckdb_byte_arrays.py test the rest
    tested = [f for f in others if not f.is_embedded and f.kind != FunctionKind.CONVERSION]
    assert called == {function.name for function in tested}


# Inputs and results of the examples of aggregates.
_GATHERED = (
    "(SELECT tensor_compressed(1.5::DOUBLE, 1, 0, 2) AS entries), "
    "(SELECT tensor_resident([2.0, 3.0]::DOUBLE[], 0, 1, 0::DOUBLE) AS handle), range(2) AS t(i)"
)
_RESERVED = "(SELECT tensor_reserved(1, {size}, 0::DOUBLE, uuid()::VARCHAR) AS reserved)"
_PLACED = {
    f"{call[:-1]}, reserved, 0)": _RESERVED.format(size=len(ast.literal_eval(array)))
    for call, _, array in (f.example.partition(" = ") for f in array_functions() if f.is_placed)
}
ROWS_OF_HANDLES = {
    **_PLACED,
    "tensor_resident(reserved)": _RESERVED.format(size=2),
    "tensor_collected(entries, i, handle, 2, 0.0, i)": _GATHERED,
    "tensor_resident(entries, i, handle, 2, 0.0, reserved, i)": (
        f"(SELECT tensor_reserved(2, 2, 0::DOUBLE, uuid()::VARCHAR) AS reserved), {_GATHERED}"
    ),
    "tensor_resident(val, i, 3, 0.0)": "(VALUES ([1, 2, 3, 4], 2), ([5, 6, 7, 8], 0)) AS t(val, i)",
    "tensor_reserved(3, 2, fill, uuid()::VARCHAR)": "(VALUES (0.5::DOUBLE)) AS t(fill)",
    "tensor_resident(reserved, val, i)": (
        "(SELECT tensor_reserved(3, 2, 0::DOUBLE, uuid()::VARCHAR) AS reserved), "
        "(VALUES (2, [1.5, 2.5]::DOUBLE[]), (0, [3.0, 4.0])) AS t(i, val)"
    ),
    "tensor_collected(i, val)": "(VALUES (2, [1.5, 2.5]::DOUBLE[]), (0, [3.0])) AS t(i, val)",
    "tensor_compressed(val, i, j, 3)": "(VALUES (1.5::DOUBLE, 2, 0), (2.5, 0, 7)) AS t(val, i, j)",
    "tensor_compressed(val, i, [], 0, j, 3)": "(VALUES ([1.5, 2.5]::DOUBLE[], 2, [0, 7]::INTEGER[])) AS t(val, i, j)",
}
EXAMPLE_ROWS = {
    "tensor_sum(u)": ("(VALUES ([1, 2]), ([3, 4])) AS t(u)", [4.0, 6.0]),
    "tensor_prod(u)": ("(VALUES ([1, 2]), ([3, 4])) AS t(u)", [3.0, 8.0]),
    "tensor_max(u)": ("(VALUES ([1, 5]), ([3, 4])) AS t(u)", [3.0, 5.0]),
    "tensor_min(u)": ("(VALUES ([1, 5]), ([3, 4])) AS t(u)", [1.0, 4.0]),
    "tensor_any(u)": ("(VALUES ([0, 5, 0]), ([3, 4, 0])) AS t(u)", [1.0, 1.0, 0.0]),
    "tensor_all(u)": ("(VALUES ([0, 5, 0]), ([3, 4, 0])) AS t(u)", [0.0, 1.0, 0.0]),
    "tensor_logsumexp(u)": ("(VALUES ([0, 1]), ([0, '-inf'::DOUBLE])) AS t(u)", [math.log(2), 1.0]),
    "tensor_avg(u)": ("(VALUES ([1, 2]), (NULL), ([3, 6])) AS t(u)", [2.0, 4.0]),
    "tensor_count(u)": ("(VALUES ([1, 0]), (NULL), ([3, 'nan'::DOUBLE])) AS t(u)", [2, 1]),
    "tensor_sum_scaled(w, v)": ("(VALUES (2, [1, 5]), (10, [3, 4])) AS t(w, v)", [32.0, 50.0]),
    "tensor_einsum_sum('i,j->ij', u, v, [2, 3])": (
        "(VALUES ([1, 2], [1, 1, 2]), ([0, 1], [1, 2, 3])) AS t(u, v)",
        [1.0, 1.0, 2.0, 3.0, 4.0, 7.0],
    ),
    "tensor_stack(val, i, 3, 2, 0.0)": (
        "(VALUES ([1, 2, 3, 4], 2), ([5, 6, 7, 8], 0)) AS t(val, i)",
        [5.0, 6.0, 0.0, 0.0, 1.0, 2.0, 7.0, 8.0, 0.0, 0.0, 3.0, 4.0],
    ),
    "tensor_stack(val, i, 3, 0.0)": ("(VALUES (7, 2), (8, 0)) AS t(val, i)", [8.0, 0.0, 7.0]),
    "tensor_place(val, [0, i], [2, 1], [2, 3], 0.0)": (
        "(VALUES ([1, 2], 2), ([5, 6], 0)) AS t(val, i)",
        [5.0, 0.0, 1.0, 6.0, 0.0, 2.0],
    ),
    "tensor_place(val, [i], [1], [3], 0.0)": ("(VALUES (7, 2), (8, 0)) AS t(val, i)", [8.0, 0.0, 7.0]),
    "tensor_merge('top2', u)": ("(VALUES ([1, 0]), ([3, -4])) AS t(u)", [3.0, 1.0]),
    "tensor_nnz_along(u, 0, [2, 2], 0.0)": ("(VALUES ([1, 0, 0, 0]), ([1, 5, 0, 3])) AS t(u)", [3, 1]),
    "tensor_complex_sum(u)": ("(VALUES ([1, 2]), ([3, 4])) AS t(u)", [4.0, 6.0]),
    "tensor_complex_prod(u)": ("(VALUES ([0, 1]), ([0, 1])) AS t(u)", [-1.0, 0.0]),
    "tensor_complex_any(u)": ("(VALUES ([0, 0, 0, 1]), ([0, 0, 0, 0])) AS t(u)", [0.0, 0.0, 1.0, 0.0]),
    "tensor_complex_all(u)": ("(VALUES ([0, 0, 0, 1]), ([0, 1, 1, 0])) AS t(u)", [0.0, 0.0, 1.0, 0.0]),
    "tensor_complex_sum_scaled(w, v)": ("(VALUES ([0, 1], [1, 5]), ([1, 0], [3, 4])) AS t(w, v)", [-2.0, 5.0]),
    "tensor_complex_einsum_sum('i,i->', u, v, [2])": (
        "(VALUES ([1, 0, 0, 1], [1, 0, 0, 1]), ([1, 0, 0, 0], [5, 1, 0, 0])) AS t(u, v)",
        [5.0, 1.0],
    ),
    "tensor_complex_stack(val, i, 3, 1, [0.0, 0.0])": (
        "(VALUES ([1, 2], 2), ([5, 6], 0)) AS t(val, i)",
        [5.0, 6.0, 0.0, 0.0, 1.0, 2.0],
    ),
    "tensor_complex_place(val, [i], [1], [3], [0.0, 0.0])": (
        "(VALUES ([1, 2], 2), ([5, 6], 0)) AS t(val, i)",
        [5.0, 6.0, 0.0, 0.0, 1.0, 2.0],
    ),
    "tensor_complex_nnz_along(u, 0, [2], [0.0, 0.0])": ("(VALUES ([1, 0, 0, 0]), ([1, 5, 0, 3])) AS t(u)", [2, 1]),
}


Pair = tuple[float, float]


def lesser(state: Pair, other: Pair) -> Pair:
    return other if other < state else state


def least(state: Pair, value: float, place: float) -> Pair:
    return lesser(state, (value, place))


def two_greatest(state: Pair, value: float) -> Pair:
    return max(state[0], value), max(state[1], min(state[0], value))


def merged(state: Pair, other: Pair) -> Pair:
    return two_greatest(two_greatest(state, other[0]), other[1])


@pytest.mark.parametrize("function", array_functions(), ids=lambda function: function.example)
def test_examples_run(connection: Connection, function: ArrayFunction) -> None:
    if function.is_embedded:
        se.aggregate("least", least, (math.inf, math.inf), lesser)
        se.aggregate("top2", two_greatest, (-math.inf, -math.inf), merged)
        for record in USER_AGGREGATES.values():
            require_aggregate(record)
    assert function.example.startswith(f"{function.name}(")
    if function.example in ROWS_OF_HANDLES:
        query = f"SELECT {function.example} > 0 FROM {ROWS_OF_HANDLES[function.example]}"
        assert connection.execute(query).fetchall() == [(True,)]
    elif function.is_aggregate:
        relation, expected = EXAMPLE_ROWS[function.example]
        assert connection.execute(f"SELECT {function.example} FROM {relation}").fetchall() == [(expected,)]
    else:
        assert connection.execute(f"SELECT {function.example}").fetchall() == [(True,)]


@pytest.mark.parametrize("function", array_functions(), ids=lambda function: function.example)
def test_descriptions_are_sentences(function: ArrayFunction) -> None:
    assert re.fullmatch(r"[A-Z1].*\.", function.description)
    named = re.findall(r"`(\w+)`", function.description)
    assert set(named) <= {argument.name for argument in function.arguments}


# SQL types of the elements of arrays, by dtype.
ELEMENTS = {"f64": "DOUBLE", "f32": "FLOAT", "i64": "BIGINT", "c128": "DOUBLE", "c64": "FLOAT"}


def signature(function: ArrayFunction, dtype: str) -> tuple[list[str], str]:
    """The SQL types of the arguments of a function for one dtype, and of what it returns."""
    element = ELEMENTS[dtype]
    written = {
        ValueType.NUMBER: element,
        ValueType.TENSOR: f"{element}[]",
        ValueType.TENSORS: f"{element}[][]",
        ValueType.INTEGER: "BIGINT",
        ValueType.INTEGERS: "BIGINT[]",
        ValueType.POSITIONS: "INTEGER[]",
        ValueType.TEXT: "VARCHAR",
        ValueType.BYTES: "BLOB",
        ValueType.RESIDENT: "BIGINT",
        ValueType.RESERVED: "BIGINT",
        ValueType.COLLECTED: "BIGINT",
        ValueType.COMPRESSED: "BIGINT",
        ValueType.ENTRIES: f'STRUCT("position" INTEGER, val {element})[]',
        ValueType.MATCHES: f'STRUCT("position" INTEGER, u {element}, v {element})[]',
        ValueType.COMPLEX: f"{element}[]",
        ValueType.COMPLEX_TENSOR: f"{element}[]",
        ValueType.COMPLEX_TENSORS: f"{element}[][]",
    }
    return [written[argument.type] for argument in function.arguments], written[function.returns]


@pytest.mark.parametrize("function", array_functions(), ids=lambda function: function.example)
@pytest.mark.parametrize("dtype", ELEMENTS)
def test_duckdb_lists_every_function(connection: Connection, function: ArrayFunction, dtype: str) -> None:
    arguments, returns = signature(function, dtype)
    listed = connection.execute(
        "SELECT count(*) FROM duckdb_functions() WHERE function_name = ? AND parameter_types = ?::VARCHAR[] "
        "AND return_type = ? AND function_type = ?",
        [function.name, arguments, returns, "aggregate" if function.is_aggregate else "scalar"],
    ).fetchall()
    is_made = (arguments, returns) in [signature(function, made) for made in function.dtypes]
    assert listed == [(int(is_made),)]


def test_a_second_connection_has_the_functions(connection: Connection) -> None:
    with duckdb.connect() as other:
        assert other.execute("SELECT tensor_add([1], [2])").fetchall() == [([3],)]
    cursor = connection.cursor()
    assert cursor.execute("SELECT tensor_add([1], [2])").fetchall() == [([3],)]

"""Value columns of users' tables keep their dtype, and are read without a change of value."""

from decimal import Decimal

import numpy as np
import pytest
from any_sql import run_sql
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from reading import assert_usable, contents, engine_of, stored_result

import sparseeinsum as se
from sparseeinsum.operators.dtypes import Number

pytestmark = pytest.mark.engines("duckdb", "postgresql")


def make_table(db: se.Database, sql_type: str, *values: object) -> None:
    """A table t of indices i from 0, and values v."""
    run_sql(db, f"CREATE OR REPLACE TABLE t (i INTEGER, v {sql_type})")
    for number, value in enumerate(values):
        held = [None if element is None else float(element) for element in value] if isinstance(value, list) else value
        run_sql(db, "INSERT INTO t VALUES (?, ?)", [number, bool(value) if sql_type == "BOOLEAN" else held])


def read(db: se.Database, dtype: str | None = None, fill: Number = 0) -> NDArray[np.generic]:
    """The table t as a tensor."""
    stored = db.tensor_from_table("A", "t", ["i"], "v", dtype=dtype, fill=fill)
    assert stored == db.tensors()["A"]
    result = stored_result(db, "A").to_numpy()
    assert stored.tensor.dtype == result.dtype.name
    return result


@pytest.mark.parametrize(
    ("sql_type", "dtype"),
    [
        *((sql_type, "int64") for sql_type in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")),
        *((sql_type, "int64") for sql_type in ("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")),
        *((sql_type, "int64") for sql_type in ("HUGEINT", "UHUGEINT", "DECIMAL(9, 0)", "DECIMAL(38, 0)")),
        ("DECIMAL(9, 2)", "float64"),
        ("BOOLEAN", "bool"),
        ("FLOAT", "float32"),
        ("DOUBLE", "float64"),
    ],
)
def test_dtype_is_that_of_the_column_or_the_argument(shared_db: se.Database, sql_type: str, dtype: str) -> None:
    make_table(shared_db, sql_type, 0, 1, 1, 0)
    is_truth_alone = sql_type == "BOOLEAN" and not engine_of(shared_db).dialect.casts_truth
    for expected in (None, "bool") if is_truth_alone else (None, "float64", "float32", "int64", "bool"):
        result = read(shared_db, expected)
        assert result.dtype == (expected or dtype)
        np.testing.assert_array_equal(result, [0, 1, 1, 0])


@pytest.mark.parametrize(
    ("sql_type", "value", "dtype"),
    [
        ("BIGINT", 2**63 - 1, None),
        ("BIGINT", 2**53 + 1, None),
        ("HUGEINT", -(2**63), None),
        ("UBIGINT", 2**63 - 1, "int64"),
        ("DECIMAL(38, 0)", Decimal(2**62 + 1), None),
        ("DECIMAL(18, 2)", Decimal("1.25"), None),
        ("DECIMAL(18, 2)", Decimal("125.00"), "int64"),
        ("DECIMAL(18, 2)", Decimal("0.10"), "float64"),
        ("DOUBLE", -(2.0**63), "int64"),
        ("DOUBLE", float("inf"), "float32"),
        ("DOUBLE", float("nan"), "float32"),
        ("BOOLEAN", True, None),
    ],
)
def test_values_are_exact(shared_db: se.Database, sql_type: str, value: Number, dtype: str | None) -> None:
    make_table(shared_db, sql_type, 0, value)
    result = read(shared_db, dtype)
    np.testing.assert_array_equal(result, np.array([0, value]).astype(result.dtype))


@pytest.mark.engines("duckdb", reason="PostgreSQL takes no whole number beyond 64 bits for exact")
@pytest.mark.parametrize(("sql_type", "value"), [("UBIGINT", 2**63), ("HUGEINT", 2**100)])
def test_wide_values_are_exact(shared_db: se.Database, sql_type: str, value: int) -> None:
    test_values_are_exact(shared_db, sql_type, value, "float64")


WHOLE = [0, 1, 2, -1, 2**24, 2**24 + 1, 2**31 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**62 + 2**9, 2**63 - 1, -(2**63)]
WIDE = [*WHOLE, 2**63, 2**64 - 1, 2**100, 2**100 + 1]


@given(
    st.sampled_from([("BIGINT", WHOLE), ("HUGEINT", WIDE), ("DECIMAL(38, 0)", WIDE)]),
    st.data(),
    st.sampled_from(["float64", "float32", "int64", "bool"]),
)
def test_whole_numbers_are_exact_or_refused(
    shared_db: se.Database, column: tuple[str, list[int]], data: st.DataObject, dtype: str
) -> None:
    sql_type, numbers = column
    values = data.draw(st.lists(st.sampled_from(numbers), min_size=1, max_size=3))
    make_table(shared_db, sql_type, *values)
    greatest = {"float64": 2**1023, "float32": 2**127, "int64": 2**63 - 1, "bool": 1}[dtype]
    bits = {"float64": 53, "float32": 24, "int64": 64, "bool": 1}[dtype]
    least = {"int64": -(2**63), "bool": 0}.get(dtype, -greatest)
    # An integer is exact if it has few significant bits, whatever zeros follow them.
    is_exact = [least <= n <= greatest and (abs(n) // (n & -n or 1)).bit_length() <= bits for n in values]
    if engine_of(shared_db).dialect_name == "postgresql":  # no number beyond 64 bits counts as exact
        is_exact = [exact and -(2**63) <= n < 2**63 for exact, n in zip(is_exact, values, strict=True)]
    if all(is_exact):
        assert [int(value) for value in read(shared_db, dtype)] == values
    else:
        row = is_exact.index(False)
        with pytest.raises(se.DataError, match=rf"tensor A, row {row} .*: the value v is {values[row]}, which is no"):
            read(shared_db, dtype)


def test_floating_point_numbers_are_rounded_to_fewer_digits(shared_db: se.Database) -> None:
    make_table(shared_db, "DOUBLE", 0.1)
    np.testing.assert_array_equal(read(shared_db, "float32"), np.array([0.1], np.float32))
    make_table(shared_db, "DECIMAL(18, 4)", Decimal("1234567.8912"))
    np.testing.assert_array_equal(read(shared_db, "float32"), np.array([1234567.8912], np.float32))


@pytest.mark.parametrize(
    ("sql_type", "value", "dtype", "message"),
    [
        ("UBIGINT", 2**63, None, rf"{2**63}, which is no int64; pass dtype='float64'"),
        ("HUGEINT", -(2**63) - 1, None, r"no int64; pass dtype='float64', or round it in a view"),
        ("UHUGEINT", 2**64, "int64", "no int64"),
        ("DECIMAL(38, 0)", Decimal(2**63), None, "no int64"),
        ("BIGINT", 2**53 + 1, "float64", rf"{2**53 + 1}, which is no float64; .*a view, CAST\(v AS DOUBLE\)"),
        ("BIGINT", 2**63 - 1, "float64", "no float64"),
        ("HUGEINT", 2**127 - 1, "float64", "no float64"),
        ("INTEGER", 2**24 + 1, "float32", "no float32; pass dtype='float64'"),
        ("DOUBLE", 1e300, "float32", r"1e\+300, which is no float32; pass dtype='float64'"),
        ("DOUBLE", 2.5, "int64", "2.5, which is no int64; pass dtype='float64'"),
        ("DOUBLE", 2.0**63, "int64", "no int64"),
        ("DOUBLE", float("nan"), "int64", "nan, which is no int64"),
        ("FLOAT", float("inf"), "int64", "inf, which is no int64"),
        ("DECIMAL(9, 2)", Decimal("0.25"), "int64", "0.25, which is no int64"),
        ("DECIMAL(9, 2)", Decimal("0.25"), "bool", "0.25, which is no bool"),
        ("BIGINT", 2, "bool", "2, which is no bool"),
        ("DOUBLE", float("nan"), "bool", "nan, which is no bool"),
    ],
)
def test_value_that_the_dtype_lacks_is_named(
    shared_db: se.Database, sql_type: str, value: Number, dtype: str | None, message: str
) -> None:
    make_table(shared_db, sql_type, 0, 1, value, value)
    before = repr(contents(shared_db))  # NaN differs from NaN
    with pytest.raises(se.DataError, match=r"tensor A, row 2 \(counted from 0\): the value v is .*" + message):
        read(shared_db, dtype)
    assert repr(contents(shared_db)) == before
    assert_usable(shared_db)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool", "complex128", "complex64"])
def test_every_row_counts_as_1_without_a_value(shared_db: se.Database, dtype: str) -> None:
    make_table(shared_db, "VARCHAR", "a", "b")
    shared_db.tensor_from_table("A", "t", ["i"], shape=(3,), dtype=dtype, fill=0)
    result = stored_result(shared_db, "A").to_numpy()
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, [1, 1, 0])
    assert shared_db.tensor_from_table("A", "t", ["i"]).tensor.dtype == "float64"


@pytest.mark.parametrize("fill", [7, float("inf"), -2.5])
def test_fill(shared_db: se.Database, fill: float) -> None:
    """Rows may hold the fill; NaN is a value like others."""
    run_sql(
        shared_db,
        f"CREATE OR REPLACE TABLE t AS FROM (VALUES (1, 2.5), (3, {fill!r}::DOUBLE), (4, 'nan'::DOUBLE)) AS t(i, v)"
        if np.isfinite(fill)
        else "CREATE OR REPLACE TABLE t AS FROM (VALUES (1, 2.5), (3, 'inf'::DOUBLE), (4, 'nan')) AS t(i, v)",
    )
    shared_db.tensor_from_table("A", "t", ["i"], "v", fill=fill, shape=(6,))
    np.testing.assert_array_equal(stored_result(shared_db, "A").to_numpy(), [fill, 2.5, fill, fill, np.nan, fill])


def test_fill_that_the_column_lacks(shared_db: se.Database) -> None:
    make_table(shared_db, "BIGINT", 1)
    with pytest.raises(se.DataError, match="tensor A has dtype int64, which does not hold the fill inf; choose"):
        read(shared_db, fill=float("inf"))
    assert read(shared_db, "float64", fill=float("inf")).dtype == "float64"


@pytest.mark.parametrize("sql_type", ["DOUBLE[]", "FLOAT[]", "DOUBLE[2]", "FLOAT[2]"])
@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_complex_values_are_pairs(shared_db: se.Database, sql_type: str, dtype: str) -> None:
    make_table(shared_db, sql_type, [1.5, -2], [0, float("inf")])
    stored = shared_db.tensor_from_table("A", "t", ["i"], "v", dtype=dtype, shape=(3,), fill=1j)
    result = stored_result(shared_db, "A").to_numpy()
    assert stored.tensor.dtype == result.dtype.name == dtype
    np.testing.assert_array_equal(result, [1.5 - 2j, complex(0, np.inf), 1j])


@pytest.mark.parametrize(
    ("values", "dtype", "message"),
    [
        ([[1, 2], [1, 2, 3]], "complex128", r"row 1 .*v is \[1.0, 2.0, 3.0\], which is no complex128; .*\[real, imag"),
        ([[1, 2], []], "complex64", "row 1 .*no complex64"),
        ([[1, 2], [1, None]], "complex128", "row 1 .*no complex128"),
        ([[1, 2], None], "complex128", "row 1 .*value v is NULL"),
    ],
)
def test_arrays_that_are_no_pairs(shared_db: se.Database, values: list[object], dtype: str, message: str) -> None:
    make_table(shared_db, "DOUBLE[]", *values)
    with pytest.raises(se.DataError, match="tensor A, " + message):
        read(shared_db, dtype)
    assert_usable(shared_db)


@pytest.mark.engines("duckdb", reason="a cast of PostgreSQL's is refused before the row is known")
def test_parts_beyond_float32_are_named(shared_db: se.Database) -> None:
    test_arrays_that_are_no_pairs(shared_db, [[1, 2], [1, 1e300]], "complex64", "row 1 .*no complex64")


@pytest.mark.parametrize("value", ["'1.5'", "DATE '2020-01-01'", "[1.5::DECIMAL(2, 1)]", "[true]"])
@pytest.mark.parametrize("dtype", [None, "float64", "int64"])
def test_value_columns_of_wrong_types(shared_db: se.Database, value: str, dtype: str | None) -> None:
    run_sql(shared_db, f"CREATE OR REPLACE TABLE t AS SELECT 0 AS i, {value} AS v")
    with pytest.raises(se.DataError, match=r"tensor A: the value column v of t has type .*must be numbers"):
        read(shared_db, dtype)
    assert_usable(shared_db)


@pytest.mark.engines("duckdb", reason="no table of PostgreSQL's has a struct of no type")
def test_structs_are_no_values(shared_db: se.Database) -> None:
    test_value_columns_of_wrong_types(shared_db, "{'x': 1}", None)


def test_complex_values_must_be_requested_and_be_pairs(shared_db: se.Database) -> None:
    make_table(shared_db, "DOUBLE[]", [1, 2])
    with pytest.raises(se.DataError, match=r"column v of t has type DOUBLE\[\]; .*pass dtype='complex128'"):
        read(shared_db)
    make_table(shared_db, "DOUBLE", 1)
    with pytest.raises(se.DataError, match=r"has type DOUBLE; values of dtype complex128 must be arrays .*a view"):
        read(shared_db, "complex128")


def test_booleans_read_as_floats_are_numbers(shared_db: se.Database) -> None:
    make_table(shared_db, "FLOAT", 0, 1)
    shared_db.tensor_from_table("A", "t", ["i"], "v", dtype="bool")
    np.testing.assert_array_equal(shared_db.run("B[i] = A[i] or A[i]")["B"].to_numpy(), [False, True])

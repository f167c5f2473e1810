"""Estimated bytes of tuples between servers are those that a server writes and a cluster counted."""

import psycopg
import pytest

from sparseeinsum.decompose.clusters.wire import keys_bytes, part_bytes, row_bytes
from sparseeinsum.language.tensors import DEMOTED, Axis, Decomposition, Tensor
from sparseeinsum.statistics.columns import computed_type

TYPES = {"DOUBLE": "float8", "FLOAT": "float4", "BIGINT": "int8"}
DTYPES = ("float64", "float32", "int64", "bool", "complex128", "complex64")


def relation(dtype: str, keys: int, extent: int | None) -> tuple[Tensor, Decomposition]:
    """A relation with this number of keys, and numbers, or arrays of an extent."""
    axes = tuple(Axis(f"axis_{number}", 1000) for number in range(keys))
    inside = () if extent is None else (Axis("inside", extent),)
    return Tensor("T", (*axes, *inside), dtype, 0), Decomposition((1,) * keys + (DEMOTED,) * len(inside))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("extent", [None, 1, 300])
def test_row_bytes_equal_what_a_server_writes(
    postgres_connection: psycopg.Connection, dtype: str, extent: int | None
) -> None:
    """A row is seven bytes, then the length and the value of every column."""
    type_name = computed_type(dtype, extent is None)
    number = TYPES[type_name.removesuffix("[]")]
    length = (extent or 1) * (2 if dtype.startswith("complex") else 1)
    array = f"byteasend(tensor_bytes(array_fill(1::{number}, ARRAY[{length}])))"
    value = array if type_name.endswith("[]") else f"{number}send(1)"
    query = f"SELECT 7 + 2 * (4 + octet_length(int8send(1))) + 4 + octet_length({value})"
    assert postgres_connection.execute(query).fetchone() == (row_bytes(*relation(dtype, 2, extent)),)


# Bytes a row that arrived at the coordinator's network interface, headers included: 2 workers, 8 shards, two keys.
@pytest.mark.parametrize(
    ("dtype", "extent", "counted"),
    [
        ("float64", None, 43.5),
        ("float64", 16, 164.6),
        ("float64", 256, 2095.7),
        ("float64", 2048, 16452.6),
        ("float32", 256, 1062.3),
        ("int64", 256, 2090.4),
        ("complex128", 100, 1638.5),
    ],
)
def test_bytes_of_gathered_rows(dtype: str, extent: int | None, counted: float) -> None:
    assert row_bytes(*relation(dtype, 2, extent)) == pytest.approx(counted, rel=0.02)


# 97 groups in each of 8 shards, of about 20 numbers below 1,000, then of normally distributed numbers.
@pytest.mark.parametrize(
    ("dtype", "extent", "counted"),
    [("float64", 256, 4481.9), ("float32", 256, 2380.7), ("float64", 80, 1007326 / 640)],
)
def test_bytes_of_partial_results(dtype: str, extent: int, counted: float) -> None:
    assert part_bytes(*relation(dtype, 1, extent)) == pytest.approx(counted, rel=0.1)


def test_keys_alone_take_fewer_bytes() -> None:
    tensor, decomposition = relation("float64", 2, 10)
    assert keys_bytes(decomposition) == row_bytes(tensor, decomposition) - 4 - 80

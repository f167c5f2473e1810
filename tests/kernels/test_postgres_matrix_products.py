"""PostgreSQL's matrix products, which no BLAS computes, are numpy's for all shapes of tiles and panels."""

import numpy as np
import psycopg
import pytest

pytestmark = pytest.mark.engines("postgresql", reason="DuckDB has a BLAS")

# Rows, columns and summed indices: less than a tile, one, half of one, and more than a panel has.
SHAPES = [
    (1, 1, 1),
    (5, 3, 2),
    (6, 8, 3),
    (6, 16, 64),
    (7, 9, 65),
    (12, 16, 63),
    (13, 17, 5),
    (18, 40, 256),
    (97, 33, 257),
    (96, 512, 256),
    (101, 2070, 259),
]
TYPES = {"float8": np.float64, "float4": np.float32}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("spec", ["ij,jk->ik", "ji,jk->ik", "ij,kj->ik", "ji,kj->ik"])
def test_products_of_any_shape(postgres_connection: psycopg.Connection, kind: str, spec: str) -> None:
    rng = np.random.default_rng(0)
    for rows, columns, inner in SHAPES:
        extents = {"i": rows, "j": inner, "k": columns}
        left, right = (
            rng.integers(-4, 5, [extents[label] for label in labels]).astype(TYPES[kind])
            for labels in spec.split("->")[0].split(",")
        )
        sizes = [extents[label] for label in dict.fromkeys(spec.split("->")[0].replace(",", ""))]
        text = f"SELECT tensor_einsum(%s, %s::{kind}[], %s::{kind}[], %s::int8[])"
        arguments = spec, left.ravel().tolist(), right.ravel().tolist(), sizes
        row = postgres_connection.execute(text, arguments).fetchone()
        assert row is not None
        np.testing.assert_array_equal(np.reshape(row[0], (rows, columns)), np.einsum(spec, left, right))

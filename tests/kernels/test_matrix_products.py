"""Contractions are split into BLAS matrix products, alone and batched, with numpy's results."""

import ctypes

import numpy as np
import pytest
from sql_rows import Connection

import sparseeinsum as se
from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels.blas import find_blas

pytestmark = pytest.mark.engines("duckdb", reason="PostgreSQL has no BLAS")

contraction, contraction_plan = load_kernels("contraction"), load_kernels("contraction_plan")


@pytest.fixture(scope="module")
def connection(shared_db: se.Database) -> Connection:
    return shared_db.connection


@pytest.mark.parametrize(
    ("spec", "extents", "batch", "expected"),
    [
        ("ij,jk->ik", (16, 32, 64), None, [16, 64, 32]),
        ("ij,kj->ki", (16, 32, 64), None, [16, 64, 32]),
        ("ij,jk->ik", (8, 8, 8), None, None),  # too small
        ("i,j->ij", (64, 64), None, None),  # has no summed label
        ("aij,ajk->aik", (99, 16, 32, 64), None, [16, 64, 32]),
        ("aij,ajk->ik", (99, 16, 32, 64), None, [16, 64, 32]),  # a is longest, but its elements lie far apart
        # Batches: the rows of a table are one label more.
        ("ij,jk->ik", (16, 32, 64), (512, 2048, 0), [16, 64, 32]),  # summed over the rows
        ("i,j->ij", (16, 64), (16, 64, 0), [16, 64, 2048]),  # where the rows are summed over
        ("ij,jk->ik", (1, 32, 64), (32, 0, 64), [2048, 64, 32]),  # one matrix by all rows of the other
        ("ij,jk->ik", (16, 32, 64), (512, 2048, 1024), [16, 64, 32]),
    ],
)
def test_labels(
    spec: str, extents: tuple[int, ...], batch: tuple[int, int, int] | None, expected: list[int] | None
) -> None:
    """Extents of rows, columns and the summed label; batch: the strides of the batch in u, v and w."""
    plan = np.zeros(contraction_plan.PLAN_SIZE, np.int64)
    letters = np.frombuffer(spec.encode(), np.uint8)
    assert contraction_plan.plan_contraction(letters, np.array(extents), 2, plan) == 0
    contraction_plan.simplify_plan(plan)
    if batch is not None:
        contraction_plan.add_label(plan, 2048, *batch)
        contraction_plan.simplify_plan(plan)
    labels = contraction._matrix_labels(plan)
    indices = [int(plan[contraction_plan.PLAN_HEADER + 4 * label]) for label in labels]
    assert (None if labels == (-1, -1, -1) else indices) == expected


@pytest.mark.parametrize("spec", ["ij,jk->ik", "ij,jk->ki", "ji,kj->ik", "ij,kj->ik", "i,k->ik", "aij,ajk->ik"])
def test_sums_over_rows(connection: Connection, spec: str) -> None:
    rng, bounds = np.random.default_rng(0), {"i": 12, "j": 20, "k": 16, "a": 3}
    terms = spec.split("->")[0].split(",")
    u, v = (rng.integers(-9, 10, (300, *(bounds[label] for label in term))).astype(float) for term in terms)
    extents = [bounds[label] for label in dict.fromkeys("".join(terms))]
    columns = "unnest($1::DOUBLE[][]) AS u, unnest($2::DOUBLE[][]) AS v"
    query = f"SELECT tensor_einsum_sum('{spec}', u, v, {extents}) FROM (SELECT {columns})"
    ((result,),) = connection.execute(query, [u.reshape(300, -1).tolist(), v.reshape(300, -1).tolist()]).fetchall()
    batched = "r" + spec.replace(",", ",r")
    np.testing.assert_array_equal(result, np.einsum(batched, u, v).ravel())


def blas_threads() -> int:
    """The number of threads that BLAS is set to in this process."""
    blas = find_blas()
    if blas is None or blas.addresses[-1] == 0:
        pytest.skip("the BLAS of numpy has no number of threads")
    set_threads = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(blas.addresses[-1])
    threads = set_threads(1)
    set_threads(threads)
    return threads


def test_products_leave_the_threads_of_blas_as_they_were() -> None:
    before = blas_threads()
    if before == 1:
        pytest.skip("BLAS has one thread")
    with se.connect() as db:
        db.connection.execute("SET threads = 4")
        db.connection.execute("CREATE TABLE t AS SELECT i::DOUBLE AS i FROM range(400000) r(i)")  # several row groups
        product = "tensor_einsum('ij,jk->ik', tensor_fill(256, i), tensor_fill(256, 1.0), [16, 16, 16])"
        ((total,),) = db.connection.execute(f"SELECT sum(({product})[256]) FROM t").fetchall()
        assert total == 16 * sum(range(400000))
    assert blas_threads() == before

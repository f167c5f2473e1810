"""`se.einsum` takes every format of scipy's sparse matrices, with any fill."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from numpy_einsum import Array, assert_same, check, einsum_in, filled, planned

import sparseeinsum as se
from sparseeinsum.api.einsum_operands import as_dense

FORMATS: list[Callable[[Array], Any]] = [
    scipy.sparse.csr_array,
    scipy.sparse.csc_array,
    scipy.sparse.coo_array,
    scipy.sparse.dok_array,
    scipy.sparse.lil_array,
    scipy.sparse.dia_array,
    scipy.sparse.bsr_array,
    scipy.sparse.csr_matrix,
    scipy.sparse.csc_matrix,
    scipy.sparse.coo_matrix,
]


@pytest.mark.parametrize("sparse", FORMATS)
def test_formats(sparse: Callable[[Array], Any]) -> None:
    left, right = sparse(filled(5, 6)), sparse(filled(6, 4))
    check("ij,jk->ik", left, right)
    check("ij,jk->ki", left, right)
    check("ij,jk", left, filled(6, 4))
    check("ij,j->i", left, filled(6))
    check("ij->ji", left)
    check("ij->", left)
    check("ij,ij->ij", sparse(filled(1, 6)), left)
    check("ij,ij,jk->ik", left, filled(5, 6, seed=1), right)
    check("ij,jk->ik", sparse(np.zeros((5, 6))), right)


@pytest.mark.parametrize(
    "subscripts", ["ij,jk->ik", "ij,kj->ik", "ij,jk->", "ij,jk->ijk", "ij,kl->", "ij,jk,kl->il", "ij,jk,ki->", "ij->ji"]
)
@pytest.mark.parametrize("optimizer", ["dp", "relational", "dense"])
def test_sparse_products(shared_db: se.Database, subscripts: str, optimizer: str) -> None:
    count = subscripts.count(",") + 1
    matrices: list[Any] = [
        scipy.sparse.random_array((30, 30), density=0.05, rng=at, format="csr") for at in range(count)
    ]
    expected = np.asarray(np.einsum(subscripts, *(matrix.toarray() for matrix in matrices)))
    assert_same(einsum_in(shared_db, subscripts, *matrices, optimizer=optimizer), expected)


def test_sparse_operands_beside_dense_ones_of_more_axes() -> None:
    graph = scipy.sparse.random_array((20, 20), density=0.1, rng=0)
    check("ij,jbc->ibc", graph, filled(20, 3, 4))
    check("ij,bjc,c->bi", graph, filled(2, 20, 4), filled(4))
    check("ij,i,j->", graph, filled(20), filled(20, seed=1))


def test_matrices_without_entries() -> None:
    check("ij,jk->ik", scipy.sparse.csr_array((3, 4)), filled(4, 2))
    check("ij,jk->ik", scipy.sparse.csr_array((0, 4)), scipy.sparse.csr_array((4, 2)))


def test_sparse_vectors() -> None:
    check("i,ij->j", scipy.sparse.coo_array(filled(5)), scipy.sparse.csr_array(filled(5, 3)))


def test_entries_that_a_sparse_matrix_holds_twice_are_added() -> None:
    matrix = scipy.sparse.coo_array(([1.0, 2.0, 4.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    check("ij->ij", matrix)
    assert matrix.nnz == 3


def test_entries_that_a_sparse_matrix_lacks_are_zero_also_beside_infinity() -> None:
    check("ij,ij->ij", scipy.sparse.csr_array(np.eye(2)), np.array([[1.0, np.inf], [2.0, np.nan]]))
    check("ij,j->i", scipy.sparse.csr_array(np.eye(2)), np.array([1.0, np.inf]))


def test_sparse_operands_whose_axis_stretches_keep_their_fill() -> None:
    matrix = scipy.sparse.coo_array(([1.0, 2.0, 4.0], ([0, 0, 0], [1, 1, 2])), shape=(1, 4))
    call = planned("ij,ij->ij", matrix, np.zeros((2, 4)), join="+", agg="min", fill=np.inf)
    np.testing.assert_array_equal(as_dense(call.operands["u"]), [np.inf, 3, 4, np.inf])

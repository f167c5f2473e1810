"""opt_einsum computes with this package as its backend, by `einsum`, `tensordot` and `transpose`."""

import re
from typing import Any

import numpy as np
import opt_einsum
import pytest
import scipy.sparse
from numpy_einsum import assert_same, filled
from opt_einsum.testing import build_views

import sparseeinsum as se


@pytest.mark.parametrize(
    "subscripts", ["ab,bc,cd->da", "abc,bcd->da", "ea,fb,abcd,gc,hd->efgh", "aab,bc->ac", "ab,ab->", "ab,cd->dcba"]
)
def test_backend(subscripts: str) -> None:
    views = build_views(subscripts)
    expected = np.einsum(subscripts, *views, optimize=True)
    for use_blas in (True, False):
        result = opt_einsum.contract(subscripts, *views, backend="sparseeinsum", use_blas=use_blas)
        assert_same(result, expected)
    out = np.zeros(expected.shape)
    if out.ndim:
        opt_einsum.contract(subscripts, *views, backend="sparseeinsum", out=out)
        assert_same(out, expected)


def test_backend_with_sparse_arrays() -> None:
    matrix = filled(20, 20)
    sparse = scipy.sparse.csr_array(matrix)
    result = opt_einsum.contract("ij,jk,k->i", sparse, sparse, filled(20), backend="sparseeinsum")
    assert_same(result, matrix @ matrix @ filled(20))
    expression = opt_einsum.contract_expression("ij,jk->ik", matrix, (20, 20), constants=[0])
    assert_same(expression(matrix, backend="sparseeinsum"), matrix @ matrix)


@pytest.mark.parametrize("axes", [0, 1, 2, (0, 1), ([0, 1], [1, 0]), ([-1], [-2]), ([], [])])
def test_tensordot(axes: Any) -> None:  # noqa: ANN401  # what numpy takes
    left, right = filled(3, 3), filled(3, 3, seed=1)
    assert_same(np.asarray(se.tensordot(left, right, axes)), np.tensordot(left, right, axes))


@pytest.mark.parametrize("axes", [None, (1, 2, 0), (-1, 0, 1)])
def test_transpose(axes: Any) -> None:  # noqa: ANN401  # what numpy takes
    cube = filled(2, 3, 4)
    assert_same(se.transpose(cube, axes), np.transpose(cube, axes))
    assert_same(se.transpose(scipy.sparse.coo_array(cube), axes), np.transpose(cube, axes))


def test_errors() -> None:
    for axes, problem in (
        (1, "axis 1 of the first array has the size 3, and axis 0 of the second one 2; tensordot needs equal sizes"),
        (((0, 1), (0,)), "it must be a number, or as many axes of the first array as of the second"),
        ((2, 0), "axes is (2, 0); an array with 2 axes lacks one of them"),
        (((0, 0), (0, 1)), "an array with 2 axes lacks one of them, or has one of them twice"),
    ):
        with pytest.raises(se.ShapeError, match=re.escape(problem)):
            se.tensordot(np.ones((2, 3)), np.ones((2, 3)), axes)
    with pytest.raises(se.ShapeError, match=r"axes is \(0, 0\); it must have each of the 2 axes of the array once"):
        se.transpose(np.ones((2, 3)), (0, 0))

"""`se.einsum` takes the arrays of every library, mixed, and returns sparse results of the library of its operands."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import sparse
from hypothesis import given
from hypothesis import strategies as st
from numpy_einsum import DTYPES, Array, assert_same, calls, dense, filled

import sparseeinsum as se

MATRIX = filled(4, 5)
IMAGE = np.einsum("ij,kj->ik", MATRIX, MATRIX)


def as_xarray(array: Any) -> Any:  # noqa: ANN401  # of xarray
    xarray = pytest.importorskip("xarray")
    return xarray.DataArray(array, dims=["i", "j"])


def as_torch(array: Array) -> Any:  # noqa: ANN401  # of torch
    torch = pytest.importorskip("torch")
    return torch.from_numpy(array).requires_grad_()


def as_frame(array: Array) -> Any:  # noqa: ANN401  # of pandas
    return pytest.importorskip("pandas").DataFrame(array)


KINDS: dict[str, Any] = {
    "list": np.ndarray.tolist,
    "subclass": lambda array: array.view(np.recarray),
    "unmasked": np.ma.array,
    "xarray": as_xarray,
    "xarray of sparse": lambda array: as_xarray(sparse.COO.from_numpy(array)),
    "torch": as_torch,
    "torch, sparse": lambda array: as_torch(array).to_sparse(),
    "pandas": as_frame,
    "sparse COO": sparse.COO.from_numpy,
    "sparse GCXS": sparse.GCXS.from_numpy,
    "sparse DOK": sparse.DOK.from_numpy,
    "scipy csr": scipy.sparse.csr_array,
    "scipy dok matrix": scipy.sparse.dok_matrix,
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_operands(kind: str) -> None:
    operand = KINDS[kind](MATRIX)
    assert_same(se.einsum("ij,kj->ik", operand, MATRIX), IMAGE)
    assert_same(se.einsum("ij,kj->ik", operand, scipy.sparse.coo_array(MATRIX)), IMAGE)
    assert_same(se.einsum(operand, [0, 1], [0]), MATRIX.sum(axis=1))


def test_numbers_and_scalars_of_libraries() -> None:
    assert_same(se.einsum(",ij,->ij", 2, MATRIX, np.float32(0.5)), MATRIX)
    number = sparse.COO(np.empty((0, 1), int), np.array([3.0]), shape=())
    assert_same(se.einsum(",ij->ij", number, MATRIX), 3 * MATRIX)
    assert_same(se.einsum(",->", number, sparse.COO(np.empty((0, 0), int), np.array([]), shape=())), np.float64(0))


def test_masked_values_are_refused() -> None:
    with pytest.raises(se.DataError, match=r"operand 2 of einsum, element \(0, 0\): the value is masked; fill masked"):
        se.einsum("ij,jk", np.eye(2), np.ma.masked_equal(np.eye(2), 1))


@pytest.mark.parametrize("optimizer", [None, "dp"])
def test_arrays_of_sparse_have_a_fill_of_their_own(optimizer: str | None) -> None:
    places = np.nonzero(MATRIX)
    left = sparse.COO(np.array(places), MATRIX[places], shape=MATRIX.shape, fill_value=2.0)
    expected = np.where(MATRIX == 0, 2, MATRIX) @ MATRIX.T
    assert_same(se.einsum("ij,kj", left, sparse.COO.from_numpy(MATRIX), fill=7, optimizer=optimizer), expected)
    lengths = sparse.COO(np.array([[0, 1], [1, 2]]), np.array([1.0, 2.0]), shape=(3, 3), fill_value=np.inf)
    paths = se.einsum("ij,jk->ik", lengths, lengths, join="+", agg="min", optimizer=optimizer, sparse=True)
    assert (paths.fill_value, paths.coords.tolist(), paths.data.tolist()) == (np.inf, [[0], [2]], [3.0])


@pytest.mark.parametrize("fill", [np.inf, 1j])
def test_a_fill_that_the_dtype_lacks_is_refused(fill: complex) -> None:
    with pytest.raises(se.DataError, match="operand 1 of einsum has dtype int64, which lacks the fill"):
        se.einsum("ij->ij", scipy.sparse.csr_array(np.eye(2, dtype=int)), fill=fill)


def test_arrays_of_scipy_with_any_number_of_axes() -> None:
    cube = filled(3, 4, 5)
    assert_same(
        se.einsum("ijk,k->ij", scipy.sparse.coo_array(cube), scipy.sparse.coo_array(filled(5))), cube @ filled(5)
    )
    result = se.einsum("ijk,k->kij", scipy.sparse.coo_array(cube), filled(5), sparse=True)
    assert isinstance(result, scipy.sparse.coo_array)
    assert_same(result.toarray(), np.einsum("ijk,k->kij", cube, filled(5)))


def test_the_library_of_the_operands_is_that_of_sparse_results() -> None:
    of_scipy, of_sparse = scipy.sparse.coo_array(MATRIX), sparse.COO.from_numpy(MATRIX)
    for optimizer in (None, "dp"):
        kinds = ((of_scipy, scipy.sparse.csr_array), (of_sparse, sparse.COO), (MATRIX, scipy.sparse.csr_array))
        for operand, kind in kinds:
            result = se.einsum("ij,kj->ik", operand, MATRIX, sparse=True, optimizer=optimizer)
            assert isinstance(result, kind)
            assert_same(result.todense(), IMAGE)
        assert isinstance(se.einsum("ij,kj->ik", of_scipy, of_sparse, sparse=True, optimizer=optimizer), sparse.COO)
        assert isinstance(se.einsum("ij->i", of_scipy, sparse=True, optimizer=optimizer), scipy.sparse.coo_array)
        total = se.einsum("ij->", of_scipy, sparse=True, optimizer=optimizer)
        assert isinstance(total, np.float64)
        assert total == pytest.approx(MATRIX.sum())


@given(st.data())
def test_sparse_results_of_random_calls(data: st.DataObject) -> None:
    subscripts, operands = data.draw(calls("ijkIJ", (*DTYPES, "int8", "uint16"), sparse=True))
    as_dense = [dense(operand) for operand in operands]
    try:
        expected = np.asarray(np.einsum(subscripts, *as_dense))
    except ValueError:
        return
    library = data.draw(st.sampled_from([scipy.sparse.coo_array, sparse.COO.from_numpy]))
    first = library(as_dense[0]) if as_dense[0].ndim else as_dense[0]
    result = se.einsum(subscripts, first, *operands[1:], sparse=True)
    assert_same(result.todense() if hasattr(result, "todense") else result, expected)


def test_scipy_has_no_float16() -> None:
    with pytest.raises(se.DataError, match="scipy has no sparse arrays of float16; ask for another dtype"):
        se.einsum("ij->ji", np.eye(2, dtype=np.float16), sparse=True)


@given(st.data())
def test_products_of_larger_sparse_arrays(data: st.DataObject) -> None:
    """So large that scipy multiplies them."""
    subscripts = data.draw(
        st.sampled_from(["ij,jk->ik", "bij,bjk->bik", "bij,bjk->ki", "ij,ij->ij", "iij,jk->ik", "ij,jk,kl->il",
                         "ij,kl->",
                         "ij,ji->", "ijk->ki", "ii->i", "bij,jkb->b", "ij,j->i", "ij,jk,kl,li->", "...ij,...j->...i"])
    )  # fmt: skip
    dtype = data.draw(st.sampled_from(["float64", "float32", "int64", "int8", "bool", "complex128", "uint64"]))
    optimize = data.draw(st.sampled_from([True, False, "greedy"]))
    operands = []
    for number, term in enumerate(subscripts.replace("...", "b").split("->")[0].split(",")):
        numbers = np.random.default_rng(data.draw(st.integers(0, 99)) + number).integers(-3, 4, (30,) * len(term))
        numbers[numbers < 2] = 0
        array = (numbers * (1 + 1j) if dtype == "complex128" else numbers).astype(dtype)
        operands.append(
            (array, data.draw(st.sampled_from([np.asarray, scipy.sparse.coo_array, sparse.COO.from_numpy])))
        )
    if all(library is np.asarray for _, library in operands):
        operands[0] = operands[0][0], scipy.sparse.coo_array
    expected = np.asarray(np.einsum(subscripts, *(array for array, _ in operands), optimize=True))
    arrays = [library(array) for array, library in operands]
    assert_same(se.einsum(subscripts, *arrays, optimize=optimize), expected)
    result = se.einsum(subscripts, *arrays, optimize=optimize, sparse=True)
    assert_same(result.todense() if expected.ndim else result, expected)


def test_large_products_have_sparse_results() -> None:
    rng = np.random.default_rng(0)
    left, right = (scipy.sparse.random_array((10**6, 10**6), density=1e-9, rng=rng, format="coo") for _ in range(2))
    right = scipy.sparse.coo_array((left.data, (left.coords[1], right.coords[0])), shape=left.shape)
    expected = (left @ right).tocoo()
    for optimizer in (None, "dp"):
        result = se.einsum("ij,jk->ik", left, right, sparse=True, optimizer=optimizer)
        assert abs(result - expected).max() < 1e-12
        assert result.nnz == expected.nnz
        with pytest.raises(se.ResultSizeError, match=r"takes 8,000,000,000,000 bytes, .* sparse=True returns"):
            se.einsum("ij,jk->ik", left, right, optimizer=optimizer)
    outer = se.einsum("ij,kl->ijkl", left, left, sparse=True)
    assert outer.shape == (10**6,) * 4
    assert outer.nnz == left.nnz**2


def test_infinite_values_meet_absent_zeros_as_in_numpy() -> None:
    matrix = np.zeros((400, 400))
    matrix[:9, 0], matrix[9, 1] = 1, 1e200
    values = np.ones(400)
    values[1] = np.inf
    with np.errstate(all="ignore"):
        assert_same(se.einsum("ij,j->i", scipy.sparse.csr_array(matrix), values), matrix @ values)
        squares = scipy.sparse.csr_array(matrix)
        expected = np.einsum("ij,ij,jk->ik", matrix, matrix, matrix, optimize=["einsum_path", (0, 1), (0, 1)])
        assert_same(se.einsum("ij,ij,jk->ik", squares, squares, squares, optimize=[(0, 1), (0, 1)]), expected)


def test_sums_of_int64_of_sparse_arrays_do_not_overflow() -> None:
    large = scipy.sparse.csr_array(np.diag(np.full(400, 2**62)))
    with pytest.raises(se.SparseEinsumError):
        se.einsum("ij->", large, sparse=True)
    assert se.einsum("ij,jk->", large, scipy.sparse.csr_array(([1], ([0], [0])), shape=(400, 400))) == 2**62

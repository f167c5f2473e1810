"""`se.einsum` multiplies dense arrays and small sparse ones in memory, to numpy's result and dtype."""

import itertools
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import opt_einsum
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from numpy_einsum import DTYPES, FORMS, assert_same, calls, dense, filled
from opt_einsum.testing import rand_equation

import sparseeinsum as se
from sparseeinsum.api import process_database

NARROW_DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "float16")


@contextmanager
def no_database() -> Iterator[None]:
    """Products that reach a database fail."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(process_database, "process_database")
        yield


@pytest.fixture
def in_memory() -> Iterator[None]:
    """As `no_database`."""
    with no_database():
        yield


@pytest.mark.usefixtures("in_memory")
@pytest.mark.parametrize("dtype", [*DTYPES, *NARROW_DTYPES])
@pytest.mark.parametrize("subscripts, shapes", FORMS)
def test_forms(subscripts: str, shapes: list[tuple[int, ...]], dtype: str) -> None:
    arrays = [filled(*shape, seed=at, dtype=dtype) for at, shape in enumerate(shapes)]
    assert_same(se.einsum(subscripts, *arrays), np.asarray(np.einsum(subscripts, *arrays)))


@given(st.data())
def test_random_calls(data: st.DataObject) -> None:
    subscripts, operands = data.draw(calls("ijkIJ", (*DTYPES, *NARROW_DTYPES), sparse=True))
    with no_database():
        try:
            expected = np.asarray(np.einsum(subscripts, *map(dense, operands)))
        except ValueError:
            with pytest.raises((se.ParseError, se.ShapeError)):
                se.einsum(subscripts, *operands)
            return
        assert_same(se.einsum(subscripts, *operands), expected)


@pytest.mark.usefixtures("in_memory")
@pytest.mark.parametrize("factors", [20, 60])
def test_networks(factors: int) -> None:
    for seed in range(5):
        subscripts, shapes, _ = rand_equation(factors, 3, n_out=2, d_max=3, seed=seed, return_size_dict=True)
        arrays = [np.random.default_rng(at).random(shape) for at, shape in enumerate(shapes)]
        assert_same(se.einsum(subscripts, *arrays), opt_einsum.contract(subscripts, *arrays))


@pytest.mark.usefixtures("in_memory")
def test_labels_of_lists() -> None:
    matrix, vector = filled(3, 4), filled(4)
    assert_same(se.einsum(matrix, [0, 1], vector, [1], [0]), matrix @ vector)


@pytest.mark.usefixtures("in_memory")
def test_nan_and_infinity_are_values() -> None:
    values = np.array([[np.inf, 0.0], [np.nan, 1.0]])
    with np.errstate(all="ignore"):
        assert_same(se.einsum("ij,jk", values, values), values @ values)


@pytest.mark.usefixtures("in_memory")
@pytest.mark.parametrize("subscripts", ["ij->ij", "ij->ji", "ij"])
def test_results_do_not_share_memory_with_operands(subscripts: str) -> None:
    matrix = filled(3, 3)
    result = se.einsum(subscripts, matrix)
    result[:] = 7
    assert not (matrix == 7).any()


@pytest.mark.usefixtures("in_memory")
def test_absent_entries_of_a_sparse_operand_have_the_fill() -> None:
    matrix = scipy.sparse.coo_array(([1.0, 2.0, 3.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    full = np.array([[5.0, 3.0], [3.0, 5.0]])
    assert_same(se.einsum("ij,jk->ik", matrix, np.eye(2), fill=5), full)


def test_errors_are_those_of_a_database() -> None:
    for operands in (("ij,jk", np.eye(2), np.eye(3)), ("ij,j?", np.eye(2), np.eye(2)), ("i", np.array(["a"]))):
        with pytest.raises(se.SparseEinsumError) as memory_error:
            se.einsum(*operands)
        with pytest.raises(type(memory_error.value)) as database_error:
            se.einsum(*operands, optimizer="dp")
        assert str(memory_error.value) == str(database_error.value)


def test_a_sum_of_int64_that_overflows_is_an_error() -> None:
    large = np.full(4, 2**62)
    assert se.einsum("i,->", large[:1], np.int64(1)) == 2**62
    with pytest.raises(se.SparseEinsumError):
        se.einsum("i->", large)
    assert se.einsum("i->", large // 4) == 2**62


def test_large_sparse_operands_stay_sparse() -> None:
    rows, columns = np.random.default_rng(0).integers(0, 60_000, (2, 500))
    matrix = scipy.sparse.coo_array((np.ones(500), (rows, columns)), shape=(60_000, 60_000))
    vector = filled(60_000)
    assert_same(se.einsum("ij,j->i", matrix, vector), matrix @ vector)
    assert_same(se.einsum("ij,jk,k->i", matrix, matrix, vector), matrix @ (matrix @ vector))


def test_threads_share_a_database() -> None:
    def shortest(seed: int) -> Any:  # noqa: ANN401  # an array
        lengths = filled(4, 4, seed=seed)
        result = se.einsum("ij,jk->ik", lengths, lengths, join="+", agg="min")
        return result, (lengths[:, :, None] + lengths[None]).min(axis=1)

    with ThreadPoolExecutor(4) as threads:
        for actual, expected in threads.map(shortest, range(12)):
            assert_same(actual, expected)


def test_an_error_leaves_nothing_behind() -> None:
    with pytest.raises(se.SparseEinsumError):
        se.einsum("ij,jk->ik", np.full((2, 2), 2**62), np.full((2, 2), 2**62), join="*", agg="sum", optimizer="dp")
    lengths = np.zeros((2, 2))
    assert_same(se.einsum("ij,jk->ik", lengths, lengths, join="+", agg="min"), lengths)
    with process_database.process_database() as database:
        assert not database.tensors()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_process_has_a_database_of_its_own() -> None:
    lengths = filled(3, 3)
    expected = se.einsum("ij,jk->ik", lengths, lengths, join="+", agg="min")
    for _ in itertools.repeat(None, 2):
        child = os.fork()
        if not child:
            try:
                same = np.array_equal(se.einsum("ij,jk->ik", lengths, lengths, join="+", agg="min"), expected)
                os._exit(0 if same else 1)
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0

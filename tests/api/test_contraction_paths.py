"""`se.contract_path` reports opt_einsum's path and the work that sparse operands leave."""

import itertools
from typing import Any

import numpy as np
import opt_einsum
import pytest
import scipy.sparse

import sparseeinsum as se


def test_the_path_is_one_that_numpy_takes() -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.random((4, 5)), rng.random((5, 6)), rng.random((6, 3)), rng.random(3)]
    subscripts = "ij,jk,kl,l->i"
    path, info = se.contract_path(subscripts, *arrays)
    product = np.einsum(subscripts, *arrays, optimize=["einsum_path", *path])
    np.testing.assert_allclose(product, np.linalg.multi_dot(arrays))
    assert info.path == path
    assert [step.remaining for step in info.steps][-1] == "i->i"


def test_dense_columns_are_those_of_opt_einsum() -> None:
    shapes = [(40, 50), (50, 60), (60, 3)]
    _, expected = opt_einsum.contract_path("ij,jk,kl->il", *shapes, shapes=True)
    path, info = se.contract_path("ij,jk,kl->il", *(np.ones(shape) for shape in shapes))
    assert path == expected.path
    assert info.naive.dense_flops == expected.naive_cost
    assert info.chosen.dense_flops == info.dense_optimal.dense_flops == expected.opt_cost
    assert sum(step.dense_flops for step in info.steps) == expected.opt_cost
    assert [step.scaling for step in info.steps] == expected.scale_list
    assert info.chosen.multiplications == 50 * 60 * 3 + 40 * 50 * 3
    assert info.naive.multiplications == 2 * 40 * 50 * 60 * 3


def test_entries_decide_the_order() -> None:
    dense = se.contract_path("ij,jk,kl->il", np.ones((9, 10)), np.ones((10, 10)), np.ones((10, 10)))
    assert dense[0] == [(0, 1), (0, 1)]
    path, info = se.contract_path("ij,jk,kl->il", np.ones((9, 10)), scipy.sparse.eye(10), scipy.sparse.eye(10).tocsr())
    assert path == [(1, 2), (0, 1)]
    assert info.chosen.multiplications == 10 + 90
    assert info.chosen.multiplications < info.dense_optimal.multiplications
    assert info.chosen.dense_flops > info.dense_optimal.dense_flops


def test_expected_multiplications_are_about_those_there_are() -> None:
    rng = np.random.default_rng(1)
    first, second = ((rng.random((200, 200)) < share).astype(float) for share in (0.02, 0.1))
    _, info = se.contract_path("ij,jk->ik", first, second)
    assert info.steps[0].multiplications == pytest.approx((first @ second).sum(), rel=0.1)
    assert info.steps[0].entries == pytest.approx(np.count_nonzero(first @ second), rel=0.1)


def test_shapes_with_counts_stand_for_operands() -> None:
    rng = np.random.default_rng(2)
    array = (rng.permutation(10_000) < 3000).reshape(100, 100)
    described = se.contract_path("ij,jk,k->i", ((100, 100), 3000), ((100, 100), 3000), ((100,), 100))
    from_operands = se.contract_path("ij,jk,k->i", array, scipy.sparse.coo_array(array), np.ones(100))
    assert described == from_operands


def test_the_table() -> None:
    _, info = se.contract_path("ij,jk,kl->il", ((900, 1000), 900_000), ((1000, 1000), 2000), ((1000, 1000), 2000))
    lines = str(info).splitlines()
    assert lines[0] == "  Complete contraction:  ij,jk,kl->il"
    assert lines[1].split() == ["dense", "FLOP", "sparse", "multiplications"]
    assert [line.split(":")[0].strip() for line in lines[2:5]] == ["Naive", "Best for dense arrays", "This path"]
    assert lines[6].split()[:4] == ["scaling", "BLAS", "current", "remaining"]
    assert [line.split()[:2] for line in lines[8:]] == [["3", "GEMM"], ["3", "GEMM"]]
    assert repr(info) == str(info)


@pytest.mark.parametrize("subscripts", ["ii->i", "ij->", "ij"])
def test_one_operand(subscripts: str) -> None:
    path, info = se.contract_path(subscripts, np.eye(3))
    assert path == [(0,)]
    assert len(info.steps) == 1
    assert info.chosen.multiplications == 0


def test_scalars_ellipses_and_repeated_labels() -> None:
    path, info = se.contract_path("...i,ij,,jj->...", np.ones((2, 3, 4)), np.ones((4, 5)), np.float64(2), np.eye(5))
    assert sorted(map(len, path)) == [2, 2, 2]
    assert info.subscripts.endswith("->bc")


def test_hundreds_of_operands() -> None:
    labels = [chr(0x4E00 + number) for number in range(201)]
    subscripts = ",".join(map("".join, itertools.pairwise(labels))) + "->"
    path, info = se.contract_path(subscripts, *[((2, 2), 2)] * 200)
    assert len(path) == len(info.steps) == 199
    assert max(map(len, str(info).splitlines()[5:])) < 110


def test_lists_of_labels() -> None:
    graph, dense = ((1000, 1000), 2000), ((1000, 64), 64_000)
    path, info = se.contract_path(graph, [0, 1], graph, [1, 2], dense, [2, 3], [0, 3])
    assert path == se.contract_path("ij,jk,kl->il", graph, graph, dense)[0]
    assert info.steps[-1].remaining.count(",") == 0


@pytest.mark.parametrize(
    ("subscripts", "operands", "error", "message"),
    [
        ("ij,jk", (np.eye(3),), se.ParseError, "the subscripts describe 2 operands, but 1 were given"),
        ("ij,jk", (np.eye(3), np.eye(4)), se.ShapeError, "label j of 'ij,jk' has two sizes: 3 in operand 1, 4 in"),
        ("ij->k", (np.eye(3),), se.ParseError, "label k of the result is in no operand"),
        ("ij", (((3,), 2),), se.ShapeError, "operand 1 of 'ij' has 2 labels, but 1 axis"),
    ],
)
def test_subscripts_that_do_not_fit(
    subscripts: str, operands: tuple[object, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        se.contract_path(subscripts, *operands)


@pytest.mark.parametrize(
    ("operand", "message"),
    [
        ((3, 3), r"operand 1 is the tuple \(3, 3\); write a shape and a number of entries"),
        (((3, 3), 10), r"operand 1 cannot have 10 entries in the shape \(3, 3\), which has at most 9"),
        (((3, 3), -1), "cannot have -1 entries"),
    ],
)
def test_tuples_that_are_no_shape_with_a_count(operand: object, message: str) -> None:
    with pytest.raises(se.DataError, match=message):
        se.contract_path("ij->i", operand)


def test_shapes_stand_for_arrays_without_zeros() -> None:
    shapes = [(40, 50), (50, 60), (60, 3)]
    path, info = se.contract_path("ij,jk,kl->il", *shapes, shapes=True)
    assert (path, info) == se.contract_path("ij,jk,kl->il", *map(np.ones, shapes))
    assert (
        info.largest_intermediate
        == opt_einsum.contract_path("ij,jk,kl->il", *shapes, shapes=True)[1].largest_intermediate
    )
    with pytest.raises(se.DataError, match="operand 1 is of type ndarray; write a shape and a number of entries"):
        se.contract_path("ij->i", np.eye(2), shapes=True)


@pytest.mark.parametrize(
    "optimize", ["greedy", "optimal", "dp", False, [(0, 1), (0, 1)], [(0, 1, 2)], [(2,), (0, 1, 2)]]
)
def test_searches_of_opt_einsum_and_paths(optimize: Any) -> None:  # noqa: ANN401  # what opt_einsum takes
    operands = [np.ones((9, 10)), scipy.sparse.eye_array(10).toarray(), np.eye(10)]
    path, info = se.contract_path("ij,jk,kl->il", *operands, optimize=optimize)
    expected = opt_einsum.contract_path("ij,jk,kl->il", *operands, optimize=optimize)
    assert path == [tuple(step) for step in expected[0]]
    assert info.chosen.dense_flops == expected[1].opt_cost
    assert [step.current for step in info.steps] == [contraction[2] for contraction in expected[1].contraction_list]
    assert 0 < info.chosen.multiplications < info.chosen.dense_flops


def test_memory_limit() -> None:
    shapes = [(2, 30), (30, 3), (30, 4), (2, 3, 4)]
    subscripts = "ab,bc,bd,acd->"
    free = se.contract_path(subscripts, *shapes, shapes=True)
    limits: list[Any] = [free[1].largest_intermediate, -1, None, 10**9]
    for limit in limits:
        assert se.contract_path(subscripts, *shapes, shapes=True, memory_limit=limit) == free
    lower = free[1].largest_intermediate - 1
    path, _ = se.contract_path(subscripts, *shapes, shapes=True, memory_limit=lower)
    assert path == opt_einsum.contract_path(subscripts, *shapes, shapes=True, memory_limit=lower)[0]
    _, info = se.contract_path("a,b->ab", (20,), (30,), shapes=True, memory_limit="max_input")
    assert info.largest_intermediate == 600
    for limit in (0, -2, "all"):
        with pytest.raises(se.ArgumentError, match=r"memory_limit is .*; it must be the most elements"):
            se.contract_path(subscripts, *shapes, shapes=True, memory_limit=limit)
    assert not any(
        step.blas for step in se.contract_path("ij,jk", (2, 3), (3, 4), shapes=True, use_blas=False)[1].steps
    )


def test_operands_of_other_libraries() -> None:
    sparse = pytest.importorskip("sparse")
    matrix = np.eye(30)
    expected = se.contract_path("ij,jk,kl->il", matrix, matrix, np.ones((30, 2)))
    assert (
        se.contract_path("ij,jk,kl->il", sparse.COO.from_numpy(matrix), matrix.tolist(), np.ones((30, 2))) == expected
    )
    filled = sparse.COO(np.array([[0], [0]]), np.array([1.0]), shape=(30, 30), fill_value=1.0)
    _, info = se.contract_path("ij,jk", filled, matrix)
    assert info.chosen.multiplications == 900

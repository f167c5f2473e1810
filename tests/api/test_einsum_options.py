"""`se.einsum` gives `out`, `dtype`, `casting`, `order` and `optimize` numpy's meaning, for every dtype of numpy."""

import itertools
from typing import Any

import numpy as np
import opt_einsum
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy_einsum import Array, assert_same, filled
from opt_einsum.paths import PathOptimizer

import sparseeinsum as se

INTEGERS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
DTYPES = (*INTEGERS, "float16", "float32", "float64", "longdouble", "complex64", "complex128", "object")
CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")
CHAIN = "ij,jk,kl->il"


def numbers(*shape: int, dtype: str) -> Array:
    """Small whole numbers, which all dtypes have."""
    return np.random.default_rng(shape).integers(0, 5, shape).astype(dtype)


@pytest.mark.parametrize("left", DTYPES)
def test_dtypes_of_products_are_numpys(left: str) -> None:
    for right in DTYPES:
        operands = numbers(3, 4, dtype=left), numbers(4, 2, dtype=right)
        actual, expected = se.einsum("ij,jk->ik", *operands), np.einsum("ij,jk->ik", *operands)
        assert actual.dtype == expected.dtype
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("dtype", [dtype for dtype in INTEGERS if dtype not in ("bool", "int64")])
def test_integers_other_than_int64_wrap_around_as_numpys(dtype: str) -> None:
    operands = np.full((2, 3), np.iinfo(dtype).max, dtype), np.full((3, 2), np.iinfo(dtype).max // 2, dtype)
    for optimizer in (None,) if dtype in ("uint64", "uint32", "int32") else (None, "dp"):
        actual = se.einsum("ij,jk->ik", *operands, optimizer=optimizer)
        assert_same(actual, np.einsum("ij,jk->ik", *operands))


def test_objects_are_added_and_multiplied_as_they_are() -> None:
    large = np.array([[2**70, 1], [3, 2**80]], dtype=object)
    np.testing.assert_array_equal(se.einsum("ij,jk->ik", large, large), large @ large)
    assert se.einsum("ii->", large) == 2**70 + 2**80


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@given(st.data())
def test_dtype_casting_and_out(data: st.DataObject) -> None:
    """Numpy's result or, where it refuses a conversion, an error that is a TypeError, too."""
    dtypes = st.sampled_from([dtype for dtype in DTYPES if dtype != "object"])
    options: dict[str, Any] = {"casting": data.draw(st.sampled_from(CASTINGS))}
    if data.draw(st.booleans()):
        options["dtype"] = data.draw(dtypes)
    operands = [numbers(3, 4, dtype=data.draw(dtypes)), numbers(4, 2, dtype=data.draw(dtypes))]
    out = np.zeros((3, 2), data.draw(dtypes)) if data.draw(st.booleans()) else None
    try:
        expected = np.einsum("ij,jk->ik", *operands, **options, out=None if out is None else out.copy())
    except TypeError:
        with pytest.raises(TypeError) as caught:
            se.einsum("ij,jk->ik", *operands, **options, out=out)
        assert isinstance(caught.value, se.SparseEinsumError)
        assert out is None or not out.any()
        return
    actual = se.einsum("ij,jk->ik", *operands, **options, out=out)
    assert out is None or actual is out
    assert_same(actual, expected)


def test_out_may_share_memory_with_operands() -> None:
    matrix = filled(4, 4)
    expected = matrix @ matrix.T
    assert se.einsum("ij,kj->ik", matrix, matrix, out=matrix) is matrix
    assert_same(matrix, expected)
    line = filled(9)
    expected = line[:-1] + 0.0
    assert_same(se.einsum("i->i", line[:-1], out=line[1:]), expected)
    square = filled(3, 3)
    assert_same(se.einsum("ij->ji", square, out=square), filled(3, 3).T)


def test_out_of_every_layout_and_of_no_axes() -> None:
    left, right = filled(3, 4), filled(4, 2)
    for out in (np.zeros((3, 2), order="F"), np.zeros((6, 4))[::2, ::2], np.zeros((2, 3)).T):
        assert se.einsum("ij,jk", left, right, out=out) is out
        assert_same(out, left @ right)
    number = np.zeros(())
    assert se.einsum("ij,jk->", left, right, out=number) is number
    assert_same(number, (left @ right).sum())


def test_out_and_dtype_of_joins_and_of_a_database() -> None:
    lengths = numbers(3, 3, dtype="float32")
    expected = (lengths[:, :, None] + lengths[None]).min(axis=1)
    out = np.zeros((3, 3))
    assert se.einsum("ij,jk->ik", lengths, lengths, join="+", agg="min", out=out) is out
    np.testing.assert_array_equal(out, expected)
    result = se.einsum("ij,jk->ik", lengths, lengths, join="+", agg="min", dtype="float64", order="F")
    assert result.flags.f_contiguous
    assert_same(result, expected.astype("float64"))
    assert_same(
        se.einsum("ij,jk->ik", lengths, lengths, dtype="int16", casting="unsafe", optimizer="dp"),
        np.einsum("ij,jk->ik", lengths, lengths, dtype="int16", casting="unsafe"),
    )
    for sparse in (False, True):
        with pytest.raises(se.ArgumentError, match="the result has dtype float64, which does not convert to int64"):
            se.einsum("i->", np.arange(3), agg="logsumexp", dtype=int, sparse=sparse)
    with pytest.raises(se.ArgumentError, match="the result has dtype float32, which does not convert to int64"):
        se.einsum("ij->i", lengths, agg="max", out=np.zeros(3, int))


def test_results_without_axes_are_numbers_of_numpy() -> None:
    for optimizer in (None, "dp"):
        result = se.einsum("i,i->", np.arange(3.0), np.arange(3.0), optimizer=optimizer)
        assert type(result) is np.float64
        assert f"{result:.1f}" == "5.0"


@pytest.mark.parametrize("order", ["C", "F", "A", "K", "c", None])
def test_order(order: Any) -> None:  # noqa: ANN401  # what numpy takes
    for matrix in (filled(3, 4), np.asfortranarray(filled(3, 4))):
        result = se.einsum("ij,jk->ik", matrix, np.asarray(filled(4, 5), order="F"), order=order)
        expected = np.einsum("ij,jk->ik", matrix, np.asarray(filled(4, 5), order="F"), order=order)
        if order not in ("K", None):
            assert result.flags.c_contiguous == expected.flags.c_contiguous
        assert_same(result, expected)


class Backwards(PathOptimizer):  # type: ignore[misc]  # of opt_einsum, which is of type Any
    """Contracts the last operands first."""

    def __call__(self, inputs: list[Any], output: Any, size_dict: Any, memory_limit: Any = None) -> Any:  # noqa: ANN401
        return [(count - 2, count - 1) for count in range(len(inputs), 1, -1)]


@pytest.mark.parametrize(
    "optimize",
    [True, False, None, "greedy", "optimal", "auto", "auto-hq", "dp", "branch-2", "random-greedy", "eager",
     ("greedy", 100), ("optimal", 1e6), ["einsum_path", (0, 1), (0, 1)], [(1, 2), (0, 1)], [(0, 1, 2)],
     ((0, 2), (0, 1)), [(0,), (0, 1), (0, 1)], Backwards(), opt_einsum.RandomGreedy(max_repeats=2)],
)  # fmt: skip
def test_optimize(optimize: Any) -> None:  # noqa: ANN401
    operands = [filled(3, 4), filled(4, 5), filled(5, 2)]
    assert_same(se.einsum(CHAIN, *operands, optimize=optimize), np.einsum(CHAIN, *operands))


def test_paths_of_numpy_and_opt_einsum_are_taken() -> None:
    operands = [filled(3, 4), filled(4, 5), filled(5, 2)]
    for path in (np.einsum_path(CHAIN, *operands)[0], opt_einsum.contract_path(CHAIN, *operands)[0]):
        assert_same(se.einsum(CHAIN, *operands, optimize=path), np.einsum(CHAIN, *operands))
    assert_same(se.einsum("ii->i", filled(3, 3), optimize=[]), np.diag(filled(3, 3)))


def test_a_path_is_followed() -> None:
    """Underflow shows the order."""
    operands = [np.array([1e-200]), np.array([1e-200]), np.array([1e200])]
    assert se.einsum("i,i,i->", *operands, optimize=[(0, 1), (0, 1)]) == 0
    assert se.einsum("i,i,i->", *operands, optimize=[(1, 2), (0, 1)]) == 1e-200


def test_many_operands_in_one_contraction() -> None:
    vectors = [np.full(2, 2.0)] * 40
    assert se.einsum(",".join(["i"] * 40), *vectors, optimize=False) == 2.0**41


def test_labels_of_any_kind() -> None:
    x, y, z = filled(2, 3), filled(3, 4), filled(4, 5)
    for labels in (
        ("left", "bond1", "bond2", "right"), "ijkl", ((0, 1), (1, 0), (1, 2), (2, 0)), (-3, 10**9, 10**9 + 1, 10**20),
        (0.5, 0.25, 0.75, 1.5), tuple(np.arange(4)),
    ):  # fmt: skip
        pairs = list(itertools.pairwise(labels))
        ordered = x @ y @ z if sorted([labels[0], labels[3]])[0] == labels[0] else (x @ y @ z).T
        assert_same(se.einsum(x, pairs[0], y, pairs[1], z, pairs[2]), ordered)
        assert_same(se.einsum(x, pairs[0], y, pairs[1], z, pairs[2], [labels[3], labels[0]]), (x @ y @ z).T)
    things = [int, None, "text", 3]
    first, second = list(itertools.pairwise(things))[:2]
    assert_same(se.einsum(x, first, y, second, [things[0], things[2]]), x @ y)
    assert_same(se.einsum(x, "ij", y, "jk", "ki"), (x @ y).T)
    assert_same(se.einsum(filled(2, 3, 3), [..., "a"], filled(3), ["a"]), filled(2, 3, 3) @ filled(3))

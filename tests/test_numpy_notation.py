"""`se.einsum` is numpy's einsum: the same subscripts on the same arrays give the same result, or an error."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import sparseeinsum as se

Array = NDArray[Any]


def filled(*shape: int, dtype: str = "float64") -> Array:
    """Values of both signs, a third of them 0."""
    rng = np.random.default_rng(shape)
    values = rng.uniform(-2, 2, shape)
    return np.asarray(np.where(rng.random(shape) < 1 / 3, 0, values), dtype=dtype)


def check(subscripts: str, *operands: Any) -> None:  # noqa: ANN401  # arrays and sparse matrices
    expected = np.einsum(subscripts, *(o.toarray() if hasattr(o, "toarray") else o for o in operands))
    computed = se.einsum(subscripts, *operands)
    assert computed.shape == np.shape(expected)
    assert computed.dtype == expected.dtype
    tolerance = 1e-5 if expected.dtype == np.float32 else 1e-13
    np.testing.assert_allclose(computed, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        # Products
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,jk->ki", [(2, 3), (3, 4)]),
        ("ij,kj->ik", [(2, 3), (4, 3)]),
        ("ij,ij->", [(2, 3), (2, 3)]),
        ("ij,ij->ij", [(2, 3), (2, 3)]),
        ("i,j->ij", [(2,), (3,)]),
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
        ("ijk,kl->lji", [(2, 3, 4), (4, 2)]),
        ("ij,kl->", [(2, 3), (3, 2)]),
        # Implicit results: labels that stand once, sorted, capitals first
        ("ij,jk", [(2, 3), (3, 4)]),
        ("ba", [(2, 3)]),
        ("kj,ik", [(2, 3), (4, 2)]),
        ("ij,ij", [(2, 3), (2, 3)]),
        ("aB,Bc", [(2, 3), (3, 4)]),
        ("bA", [(2, 3)]),
        # Upper and lower case are two labels
        ("ij,Jk->ik", [(2, 3), (4, 5)]),
        ("iI->Ii", [(2, 3)]),
        ("iI,Ii->", [(2, 3), (3, 2)]),
        ("i,I->iI", [(2,), (3,)]),
        # One operand
        ("ij->ji", [(2, 3)]),
        ("ijk->kij", [(2, 3, 4)]),
        ("ij->i", [(2, 3)]),
        ("ij->j", [(2, 3)]),
        ("ij->", [(2, 3)]),
        ("ij->ij", [(2, 3)]),
        # Diagonals and traces
        ("ii->i", [(3, 3)]),
        ("ii->", [(3, 3)]),
        ("ii", [(3, 3)]),
        ("iij->ij", [(3, 3, 2)]),
        ("iji->j", [(3, 2, 3)]),
        ("iii", [(3, 3, 3)]),
        ("ii,i->i", [(3, 3), (3,)]),
        ("ii,jj->ij", [(3, 3), (2, 2)]),
        # Scalars
        ("", [()]),
        ("->", [()]),
        (",", [(), ()]),
        (",ij->ji", [(), (2, 3)]),
        ("i,->", [(3,), ()]),
        # Spaces
        (" i j , jk -> i k ", [(2, 3), (3, 4)]),
        # Size 0
        ("i->", [(0,)]),
        ("i->i", [(0,)]),
        ("ij->j", [(0, 3)]),
        ("ij->i", [(0, 3)]),
        ("ij,jk->ik", [(2, 0), (0, 3)]),
        ("ij,jk->ik", [(0, 3), (3, 2)]),
        ("ii", [(0, 0)]),
        # Size 1, of the label or stretched to that of the other operand
        ("ij,jk->ik", [(1, 1), (1, 1)]),
        ("i,i->", [(1,), (1,)]),
        ("ij,jk->ik", [(2, 1), (3, 4)]),
        ("ij,jk->ik", [(2, 3), (1, 4)]),
        ("ij,ij->ij", [(2, 1), (1, 3)]),
        ("ij,ij->j", [(2, 1), (1, 3)]),
        ("ij,ij->", [(1, 1), (2, 3)]),
        ("ii,i->i", [(1, 1), (3,)]),
        ("ii,i->i", [(3, 3), (1,)]),
        ("i,i->i", [(1,), (0,)]),
    ],
)
def test_as_numpy(subscripts: str, shapes: list[tuple[int, ...]]) -> None:
    check(subscripts, *(filled(*shape) for shape in shapes))


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, list[Array]]:
    """Subscripts and operands that fit, sizes 0 and 1 and stretched axes among them."""
    sizes = {label: draw(st.integers(0, 3)) for label in "abAB"}
    terms = [draw(st.lists(st.sampled_from("abAB"), max_size=3)) for _ in range(draw(st.integers(1, 2)))]
    operands = []
    for term in terms:
        own = {label: 1 if len(terms) == 2 and draw(st.integers(0, 4)) == 0 else sizes[label] for label in term}
        operands.append(filled(*(own[label] for label in term)))
    subscripts = ",".join(map("".join, terms))
    if draw(st.booleans()):
        used = sorted({label for term in terms for label in term})
        kept = [label for label in draw(st.permutations(used)) if draw(st.booleans())]
        subscripts += "->" + "".join(kept)
    return subscripts, operands


@settings(max_examples=40)
@given(calls())
def test_any_call_as_numpy(call: tuple[str, list[Array]]) -> None:
    subscripts, operands = call
    check(subscripts, *operands)


@pytest.mark.parametrize("left", ["float64", "float32"])
@pytest.mark.parametrize("right", ["float64", "float32"])
def test_dtypes_widen(left: str, right: str) -> None:
    check("ij,jk->ik", filled(2, 3, dtype=left), filled(3, 4, dtype=right))
    check("i,i->", filled(5, dtype=left), filled(5, dtype=right))


def test_layouts_of_memory_do_not_matter() -> None:
    array = filled(4, 6)
    for view in (array.T, array[::-1, ::2], np.asfortranarray(array), array.astype(">f8").astype("f8")):
        check("ij->i", view)
        check("ij->ji", view)
    np.testing.assert_array_equal(se.einsum("ij->ji", array.astype(">f8")), array.T)


def test_numbers_and_lists_are_arrays() -> None:
    check("i,->i", [1.0, 2.5], 2.0)
    check(",", np.float64(3), 0.5)
    check("ij->i", [[1.0, 2.0], [3.0, 4.0]])
    check("i,i->", (1.0, 2.0), (3.0, 4.0))


MATRICES: list[type] = [
    scipy.sparse.csr_array,
    scipy.sparse.csc_array,
    scipy.sparse.coo_array,
    scipy.sparse.dok_array,
    scipy.sparse.csr_matrix,
    scipy.sparse.coo_matrix,
]


@pytest.mark.parametrize("matrix", MATRICES)
def test_sparse_operands(matrix: Any) -> None:  # noqa: ANN401  # classes without a common type
    left, right = matrix(filled(5, 6)), matrix(filled(6, 4))
    check("ij,jk->ik", left, right)
    check("ij,jk", left, filled(6, 4))
    check("ij,j->i", left, filled(6))
    check("ij->ji", left)
    check("ij->", left)
    check("ij,ij->ij", matrix(filled(1, 6)), left)
    check("ij,jk->ik", matrix((5, 6)), right)


def test_sparse_vectors() -> None:
    check("i,ij->j", scipy.sparse.coo_array(filled(5)), scipy.sparse.csr_array(filled(5, 3)))


def test_entries_that_a_sparse_matrix_holds_twice_are_added() -> None:
    matrix = scipy.sparse.coo_array(([1.0, 2.0, 4.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    check("ij->ij", matrix)
    assert matrix.nnz == 3


def test_entries_that_a_sparse_matrix_lacks_are_zero_also_beside_infinity() -> None:
    check("ij,ij->ij", scipy.sparse.csr_array(np.eye(2)), np.array([[1.0, np.inf], [2.0, np.nan]]))
    check("ij,j->i", scipy.sparse.csr_array(np.eye(2)), np.array([1.0, np.inf]))


def test_other_joins_and_aggregates() -> None:
    u, v = filled(3, 4), filled(4, 5)
    spread_u, spread_v = u[:, :, None], v[None]
    for left, right in [(u, v), (scipy.sparse.csr_array(u), scipy.sparse.csr_array(v))]:
        np.testing.assert_allclose(
            se.einsum("ij,jk->ik", left, right, join="+", agg="min"), (spread_u + spread_v).min(axis=1)
        )
        np.testing.assert_allclose(
            se.einsum("ij,jk->ik", left, right, join="-", agg="max"), (spread_u - spread_v).max(axis=1)
        )
        np.testing.assert_allclose(
            se.einsum("ij,jk->ijk", left, right, join="+"), np.broadcast_to(spread_u + spread_v, (3, 4, 5))
        )
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(se.einsum("ij,jk->ijk", left, right, join="/"), spread_u / spread_v)
            np.testing.assert_allclose(
                se.einsum("ij,jk->ijk", left, right, join="^"), np.broadcast_to(spread_u**spread_v, (3, 4, 5))
            )
        np.testing.assert_allclose(se.einsum("ij->i", left, agg="prod"), u.prod(axis=1))
        np.testing.assert_allclose(se.einsum("ij->j", left, agg="max"), u.max(axis=0))


@pytest.mark.parametrize("optimizer", ["dp", "greedy", "relational", "dense"])
def test_optimizers_agree(optimizer: str) -> None:
    u, v = filled(5, 6), filled(6, 4)
    np.testing.assert_allclose(se.einsum("ij,jk->ik", u, v, optimizer=optimizer), u @ v, rtol=1e-13)


EXAMPLE = "write subscripts as in 'ij,jk->ik'"

UNREADABLE = [
    ("ij,jk->ik->i", 2, 10, f"'-' makes no sense here; {EXAMPLE}"),
    ("i-j,j->i", 2, 2, f"'-' makes no sense here; {EXAMPLE}"),
    ("i>j", 1, 2, f"'>' makes no sense here; {EXAMPLE}"),
    ("i - > i", 1, 3, f"'-' makes no sense here; {EXAMPLE}"),
    ("ij->i,j", 1, 6, f"',' makes no sense here; {EXAMPLE}"),
    ("i1->i", 1, 2, "'1' is no label; labels are letters from a to Z"),
    ("ij;jk", 2, 3, "';' is no label; labels are letters from a to Z"),
    ("i\tj", 1, 2, "'\\t' is no label; labels are letters from a to Z"),
    ("é->é", 1, 1, "'é' is no label; labels are letters from a to Z"),
    ("ij -> j j", 1, 9, "label j stands twice in the result"),
    ("ij -> ik", 1, 8, "label k of the result is in no operand"),
    ("ij -> I", 1, 7, "label I of the result is in no operand"),
    ("ij,jk->ik", 1, 1, "the subscripts describe 2 operands, but 1 were given"),
    ("ij", 2, 1, "the subscripts describe 1 operand, but 2 were given"),
    ("", 0, 1, "the subscripts describe 1 operand, but 0 were given"),
]


@pytest.mark.parametrize(("subscripts", "operands", "column", "problem"), UNREADABLE)
def test_unreadable_subscripts(subscripts: str, operands: int, column: int, problem: str) -> None:
    with pytest.raises(se.ParseError) as caught:
        se.einsum(subscripts, *[np.eye(2)] * operands)
    assert str(caught.value) == f"line 1, column {column}: {problem}\n  {subscripts}\n  {' ' * (column - 1)}^"


@pytest.mark.parametrize(
    ("subscripts", "shapes", "problem"),
    [
        ("ij,jk->ik", [(2, 3), (4, 5)], "label j of 'ij,jk->ik' has two sizes: 3 in operand 1, 4 in operand 2"),
        ("iI,I->i", [(2, 3), (2,)], "label I of 'iI,I->i' has two sizes: 3 in operand 1, 2 in operand 2"),
        ("ii->i", [(2, 3)], "label i of 'ii->i' has two sizes: 2 in operand 1, 3 in operand 1"),
        ("ii->i", [(1, 3)], "label i of 'ii->i' has two sizes: 1 in operand 1, 3 in operand 1"),
        ("i,ii->i", [(3,), (1, 3)], "label i of 'i,ii->i' has two sizes: 1 in operand 2, 3 in operand 2"),
        ("i,i->i", [(0,), (2,)], "label i of 'i,i->i' has two sizes: 0 in operand 1, 2 in operand 2"),
        ("ij", [(3,)], "operand 1 of 'ij' has 2 labels, but the shape (3,)"),
        ("ij,i", [(2, 3), (2, 1)], "operand 2 of 'ij,i' has 1 label, but the shape (2, 1)"),
    ],
)
def test_sizes_that_do_not_fit(subscripts: str, shapes: list[tuple[int, ...]], problem: str) -> None:
    operands = [np.ones(shape) for shape in shapes]
    with pytest.raises(ValueError, match="operand"):
        np.einsum(subscripts, *operands)
    with pytest.raises(se.ShapeError) as caught:
        se.einsum(subscripts, *operands)
    assert str(caught.value) == problem


@pytest.mark.parametrize("dtype", ["int64", "bool", "complex128", "float16"])
def test_dtypes_that_are_not_supported(dtype: str) -> None:
    problem = (
        f"operand 2 of einsum has dtype {dtype}; supported are float64, float32: convert it, as in "
        "operand.astype('float64')"
    )
    with pytest.raises(se.DataError) as caught:
        se.einsum("ij,jk->ik", np.eye(2), np.eye(2).astype(dtype))
    assert str(caught.value) == problem


@pytest.mark.parametrize(
    ("subscripts", "operands", "keywords", "problem"),
    [
        ("...i->i", 1, {}, "an ellipsis in subscripts is not supported yet; write every label"),
        ("ij,jk,kl", 3, {}, "einsum of 3 operands is not supported yet; contract two at a time"),
        ("ij,jk", 2, {"fill": 1}, "fill 1 is not supported yet; only 0 is"),
        ("ij,jk", 2, {"join": "and"}, "join 'and' is none of + - * / ^"),
        ("ij,jk", 2, {"join": ""}, "join '' is none of + - * / ^"),
        ("ij", 1, {"join": "and"}, "join 'and' is none of + - * / ^"),
        ("ij->i", 1, {"agg": "mean"}, "agg 'mean' is none of sum, prod, max, min"),
        ("ij", 1, {"agg": "mean"}, "agg 'mean' is none of sum, prod, max, min"),
    ],
)
def test_what_is_not_supported(subscripts: str, operands: int, keywords: dict[str, Any], problem: str) -> None:
    with pytest.raises(se.SemanticsError) as caught:
        se.einsum(subscripts, *[np.eye(2)] * operands, **keywords)
    assert str(caught.value) == problem


def test_subscripts_must_be_text() -> None:
    with pytest.raises(se.ParseError, match="the subscripts are no text; write subscripts as in 'ij,jk->ik'"):
        se.einsum(np.eye(2), [0, 1])  # type: ignore[arg-type]  # numpy takes lists of labels, too

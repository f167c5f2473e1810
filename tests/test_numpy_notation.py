"""`se.einsum` is numpy's einsum: the same subscripts on the same arrays give the same result, or an error."""

import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from reference import evaluate_program

import sparseeinsum as se
from sparseeinsum.arrays import read_call
from sparseeinsum.language.binding import bind
from sparseeinsum.language.numpy_notation import RESULT_NAME
from sparseeinsum.language.tensors import Axis, Tensor

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
    ("i1->i", 1, 2, "'1' is no label; labels are letters"),
    ("ij;jk", 2, 3, "';' is no label; labels are letters"),
    ("i\tj", 1, 2, "'\\t' is no label; labels are letters"),
    ("é²->é", 1, 2, "'²' is no label; labels are letters"),
    ("i..j", 1, 2, "a single '.' makes no sense; an ellipsis is '...'"),
    (". ..ij", 1, 1, "a single '.' makes no sense; an ellipsis is '...'"),
    ("......", 1, 4, "there is an ellipsis already; one is enough"),
    ("...i->...i...", 1, 11, "there is an ellipsis already; one is enough"),
    ("...i->i", 1, 7, "the ellipsis stands for 1 axis, which the result lacks; write ... there, too"),
    ("...->", 1, 6, "the ellipsis stands for 2 axes, which the result lacks; write ... there, too"),
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
        ("ij", [(3,)], "operand 1 of 'ij' has 2 labels, but 1 axis"),
        ("ij,i", [(2, 3), (2, 1)], "operand 2 of 'ij,i' has 1 label, but 2 axes"),
        ("...ij", [(3,)], "operand 1 of '...ij' has 2 labels, but 1 axis"),
        (
            "...i,...i->...i",
            [(2, 3, 4), (3, 3, 4)],
            "axis -2 of the ellipsis of '...i,...i->...i' has two sizes: 2 in operand 1, 3 in operand 2",
        ),
        ("i,j,i->j", [(2,), (3,), (4,)], "label i of 'i,j,i->j' has two sizes: 2 in operand 1, 4 in operand 3"),
    ],
)
def test_sizes_that_do_not_fit(subscripts: str, shapes: list[tuple[int, ...]], problem: str) -> None:
    operands = [np.ones(shape) for shape in shapes]
    with pytest.raises(ValueError, match="operand"):
        np.einsum(subscripts, *operands)
    with pytest.raises(se.ShapeError) as caught:
        se.einsum(subscripts, *operands)
    assert str(caught.value) == problem


@pytest.mark.parametrize("dtype", ["uint64", "longdouble", "object", "datetime64[s]", "U3"])
def test_dtypes_that_are_not_supported(dtype: str) -> None:
    array = np.eye(2).astype(dtype)
    problem = f"operand 2 of einsum has dtype {array.dtype.name}; supported are float64, float32, int64, bool, "
    with pytest.raises(se.DataError, match=f"^{re.escape(problem)}.* convert it, as in operand.astype"):
        se.einsum("ij,jk->ik", np.eye(2), array)


JOIN_LACKS = "the join 'u + 1' lacks v; every operand must stand in it"


@pytest.mark.parametrize(
    ("keywords", "error", "problem"),
    [
        ({"agg": "mean"}, se.SemanticsError, "agg 'mean' is none of sum, prod, max, min, any, all, logsumexp"),
        ({"join": "u + 1"}, se.SemanticsError, JOIN_LACKS),
        ({"join": "u + w"}, se.ParseError, "line 1, column 5: there is no operand w; there are u, v"),
        ({"join": "sum(u) * v"}, se.ParseError, "line 1, column 1: a join has operands, numbers, operators and"),
        ({"join": "u[i] * v"}, se.ParseError, "line 1, column 1: a join has operands, numbers, operators and"),
        ({"join": "u * v / bound(i)"}, se.ParseError, "line 1, column 9: a join has operands, numbers, operators and"),
        ({"join": "frob(u, v)"}, se.ParseError, "line 1, column 1: a join has operands, numbers, operators and"),
        ({"join": "u $ v"}, se.ParseError, "line 1, column 3: the character '$' has no meaning here"),
    ],
)
def test_joins_and_aggregates_that_make_no_sense(
    keywords: dict[str, Any], error: type[Exception], problem: str
) -> None:
    with pytest.raises(error, match=f"^{re.escape(problem)}"):
        se.einsum("ij,jk", np.eye(2), np.eye(2), **keywords)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((np.eye(2),), "the subscripts are no text; write subscripts as in 'ij,jk->ik'"),
        ((), "the subscripts describe 1 operand, but 0 were given"),
        ((np.eye(2), 3), "labels beside an operand are a list of whole numbers and Ellipsis"),
        ((np.eye(2), ["i", "j"]), "labels beside an operand are a list of whole numbers and Ellipsis"),
        ((np.eye(2), [True, False]), "labels beside an operand are a list of whole numbers and Ellipsis"),
        ((np.eye(2), [0, -1]), "label -1 is not from 0 to"),
        ((np.eye(2), [0, 1], [2]), "label C of the result is in no operand"),
    ],
)
def test_arguments_that_make_no_sense(arguments: tuple[Any, ...], problem: str) -> None:
    with pytest.raises(se.ParseError, match=re.escape(problem)):
        se.einsum(*arguments)


def evaluated(*arguments: Any, **keywords: Any) -> Array:  # noqa: ANN401  # whatever einsum takes
    """What the program of a call means; its dtype is also what later stages are told."""
    call = read_call(arguments, **keywords)
    result = evaluate_program(call.program, call.operands)[RESULT_NAME]
    inputs = {
        name: Tensor(name, tuple(Axis(f"a{axis}", bound) for axis, bound in enumerate(array.shape)), array.dtype.name)
        for name, array in call.operands.items()
    }
    assert bind(call.program, inputs).tensors[RESULT_NAME].dtype == result.dtype
    return call.convert(result)


def check_meaning(*arguments: Any) -> None:  # noqa: ANN401  # whatever einsum takes
    expected, computed = np.asarray(np.einsum(*arguments)), evaluated(*arguments)
    assert (computed.shape, computed.dtype) == (expected.shape, expected.dtype)
    tolerance = {"float16": 1e-2, "float32": 1e-5, "complex64": 1e-5}.get(expected.dtype.name, 1e-12)
    np.testing.assert_allclose(computed, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
        ("ij,jk,kl", [(2, 3), (3, 4), (4, 5)]),
        ("i,i,i,i->i", [(3,), (1,), (3,), (3,)]),
        ("i,j,k,ijk->", [(2,), (3,), (4,), (2, 3, 4)]),
        (",,i->i", [(), (), (3,)]),
        ("...", [(2, 3)]),
        ("...->...", [()]),
        ("...i->...", [(2, 3, 4)]),
        ("i...->...i", [(2, 3, 4)]),
        ("ij...,jk...->ik...", [(2, 3, 4), (3, 2, 4)]),
        ("...ij,...jk->...ik", [(4, 2, 3), (3, 5)]),
        ("...ij,...jk", [(5, 4, 2, 3), (4, 3, 2)]),
        ("...,...", [(4, 1, 3), (2, 3)]),
        ("...i,...i", [(4, 1, 3), (2, 3)]),
        ("...a,...b", [(3, 2), (3, 4)]),
        ("b...,a...", [(3, 2), (4, 2)]),
        ("...ii->...i", [(2, 3, 3)]),
        ("i...i", [(2, 5, 2)]),
        ("ij->i...j", [(2, 3)]),
        ("...ij->ij", [(2, 3)]),
        ("->...", [()]),
        ("i...,i->...", [(2, 0), (2,)]),
        ("...i,...i->...", [(0, 3), (1, 3)]),
    ],
)
def test_meaning_of_any_number_of_operands_and_of_ellipses(subscripts: str, shapes: list[tuple[int, ...]]) -> None:
    check_meaning(subscripts, *(filled(*shape) for shape in shapes))


def test_lists_of_labels() -> None:
    a, b, c = filled(2, 3), filled(3, 4), filled(5, 2, 3)
    check_meaning(a, [0, 1], b, [1, 2])
    check_meaning(a, [0, 1], b, [1, 2], [2, 0])
    check_meaning(a, (30, 1))
    check_meaning(a, np.array([1, 0]), [])
    check_meaning(c, [..., 0, 1], a, [..., 0, 1], [..., 1])
    check_meaning(c, [Ellipsis, 0])
    np.testing.assert_array_equal(evaluated(a, [1000, 999]), a.T)  # beyond numpy's 52 labels


def test_labels_are_letters_of_any_alphabet() -> None:
    a, b = filled(2, 3), filled(3, 4)
    np.testing.assert_allclose(evaluated("αβ,βé->αé", a, b), a @ b)
    np.testing.assert_allclose(evaluated("ça", a), a.T)
    letters = "".join(chr(0x4E00 + number) for number in range(60))
    np.testing.assert_array_equal(evaluated(f"{letters}->{letters[::-1]}", np.ones((1,) * 60)), np.ones((1,) * 60))


DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


@pytest.mark.parametrize("left", DTYPES)
@pytest.mark.parametrize("right", DTYPES)
def test_meaning_of_dtypes(left: str, right: str) -> None:
    a, b = (10 * filled(2, 3)).astype(left), (10 * filled(3, 4)).astype(right)
    check_meaning("ij,jk->ik", a, b)
    check_meaning("ij,jk->ijk", a, b)
    check_meaning("ij->", a)


def test_whole_numbers_wrap_as_numpys() -> None:
    check_meaning("i->", np.array([200, 100], dtype="uint8"))
    check_meaning("i,i->i", np.array([100, -100], dtype="int8"), np.array([100, 50], dtype="int8"))
    check_meaning("i,j->", np.array([2**31 - 1], dtype="int32"), np.array([2, 3], dtype="int32"))


@st.composite
def any_calls(draw: st.DrawFn) -> tuple[str, list[Array]]:
    """Subscripts with ellipses and operands that fit, of any number and dtype."""
    sizes = {label: draw(st.integers(0, 3)) for label in "aBé0123"}
    operands, terms = [], []
    for _ in range(draw(st.integers(1, 4))):
        labels = draw(st.lists(st.sampled_from("aBé"), max_size=3))
        if draw(st.booleans()):
            count = draw(st.integers(0, 2))
            at = draw(st.integers(0, len(labels)))
            axes = [*labels[:at], *"0123"[4 - count :], *labels[at:]]
            terms.append("".join(labels[:at]) + "..." + "".join(labels[at:]))
        else:
            axes = labels
            terms.append("".join(labels))
        stretched = {label for label in axes if draw(st.integers(0, 4)) == 0}
        shape = [1 if label in stretched else sizes[label] for label in axes]
        operands.append((3 * filled(*shape)).astype(draw(st.sampled_from(DTYPES))))
    subscripts = ",".join(terms)
    if draw(st.booleans()):
        used = sorted({label for term in terms for label in term if label != "."})
        kept = [label for label in draw(st.permutations(used)) if draw(st.booleans())]
        subscripts += "->" + "..." * draw(st.booleans()) + "".join(kept)
    return subscripts, operands


@settings(max_examples=200)
@given(any_calls())
def test_meaning_of_any_call(call: tuple[str, list[Array]]) -> None:
    """Numpy has no letters beyond ASCII, so that it gets another one, which sorts the same."""
    subscripts, operands = call
    try:
        expected = np.einsum(subscripts.replace("é", "z"), *operands)
    except ValueError:
        with pytest.raises((se.ParseError, se.ShapeError)):
            evaluated(subscripts, *operands)
        return
    computed = evaluated(subscripts, *operands)
    assert (computed.shape, computed.dtype) == (np.shape(expected), expected.dtype)
    tolerance = {"float16": 3e-2, "float32": 1e-4, "complex64": 1e-4}.get(expected.dtype.name, 1e-11)
    np.testing.assert_allclose(computed, expected, rtol=tolerance, atol=tolerance)


def test_meaning_of_joins() -> None:
    u, v, w = filled(3), filled(3) + 1, filled(3) * 2
    np.testing.assert_allclose(evaluated("i,i,i->", u, v, w, join="-", agg="max"), (u - v - w).max())
    np.testing.assert_allclose(evaluated("i,i->i", u, v, join="(v - u) ^ 2"), (v - u) ** 2)
    np.testing.assert_allclose(evaluated("i,i,i->i", u, v, w, join="where(u < v, w, 2)"), np.where(u < v, w, 2))
    np.testing.assert_array_equal(evaluated("i,j->ij", u, v, join="<="), u[:, None] <= v)
    np.testing.assert_array_equal(evaluated("i,i->", u, v, join="<=", agg="all"), (u <= v).all())
    np.testing.assert_allclose(evaluated("i,i->i", u, v, join="max"), np.maximum(u, v))
    np.testing.assert_allclose(evaluated("i->i", u, join="exp"), np.exp(u))
    np.testing.assert_allclose(evaluated("i->", u, agg="logsumexp"), np.log(np.exp(u).sum()))
    np.testing.assert_array_equal(evaluated("i->", u > 0, agg="sum"), (u > 0).any())  # einsum of booleans
    np.testing.assert_array_equal(evaluated("i->", u > 0, join="u"), (u > 0).sum())


def test_sparse_operands_whose_axis_stretches_keep_their_fill() -> None:
    matrix = scipy.sparse.coo_array(([1.0, 2.0, 4.0], ([0, 0, 0], [1, 1, 2])), shape=(1, 4))
    call = read_call(["ij,ij->ij", matrix, np.zeros((2, 4))], join="+", agg="min", fill=np.inf)
    np.testing.assert_array_equal(call.operands["u"], [np.inf, 3, 4, np.inf])


def test_many_operands() -> None:
    vectors = [filled(2) for _ in range(40)]
    subscripts = ",".join(["i"] * 40)
    check_meaning(subscripts, *vectors)

"""`se.einsum` explains what is wrong with a malformed call."""

import re
from typing import Any

import numpy as np
import pytest

import sparseeinsum as se

EXAMPLE = "write subscripts as in 'ij,jk->ik'"

UNREADABLE = [
    ("ij,jk->ik->i", 2, 10, f"'-' has no meaning here; {EXAMPLE}"),
    ("i-j,j->i", 2, 2, f"'-' has no meaning here; {EXAMPLE}"),
    ("i>j", 1, 2, f"'>' has no meaning here; {EXAMPLE}"),
    ("i - > i", 1, 3, f"'-' has no meaning here; {EXAMPLE}"),
    ("ij->i,j", 1, 6, f"',' has no meaning here; {EXAMPLE}"),
    ("i1->i", 1, 2, "'1' is not a label; labels are letters"),
    ("ij;jk", 2, 3, "';' is not a label; labels are letters"),
    ("i\tj", 1, 2, "'\\t' is not a label; labels are letters"),
    ("é²->é", 1, 2, "'²' is not a label; labels are letters"),
    ("i..j", 1, 2, "a single '.' has no meaning; an ellipsis is '...'"),
    (". ..ij", 1, 1, "a single '.' has no meaning; an ellipsis is '...'"),
    ("......", 1, 4, "there is an ellipsis already; one is enough"),
    ("...i->...i...", 1, 11, "there is an ellipsis already; one is enough"),
    ("...i->i", 1, 7, "the ellipsis stands for 1 axis, which the result lacks; write ... there, too"),
    ("...->", 1, 6, "the ellipsis stands for 2 axes, which the result lacks; write ... there, too"),
    ("ij -> j j", 1, 9, "label j occurs twice in the result"),
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
    array = np.eye(2).astype(int).astype(dtype)
    problem = f"operand 2 of einsum has dtype {array.dtype.name}"
    if array.dtype.kind in "MU":
        problem += ", which is not of numbers"
        with pytest.raises(se.DataError, match=f"^{re.escape(problem)}: convert it, as in operand.astype"):
            se.einsum("ij,jk->ik", np.eye(2), array)
    else:
        problem += "; the database that computes this call supports float64, float32"
    with pytest.raises(se.DataError, match=f"^{re.escape(problem)}.*: convert it, as in operand.astype"):
        se.einsum("ij,jk->ik", np.eye(2), array, optimizer="dp")


JOIN_LACKS = "the join 'u + 1' lacks v; it must have every operand"


@pytest.mark.parametrize(
    ("keywords", "error", "problem"),
    [
        (
            {"agg": "mean"},
            se.SemanticsError,
            "agg 'mean' is unknown; it must be one of sum, prod, max, min, any, all, logsumexp",
        ),
        ({"join": "u + 1"}, se.SemanticsError, JOIN_LACKS),
        ({"join": "u + w"}, se.ParseError, "line 1, column 5: there is no operand w; there are u, v"),
        (
            {"join": "sum(u) * v"},
            se.ParseError,
            "line 1, column 1: a join can only have operands, numbers, operators and",
        ),
        (
            {"join": "u[i] * v"},
            se.ParseError,
            "line 1, column 1: a join can only have operands, numbers, operators and",
        ),
        (
            {"join": "u * v / bound(i)"},
            se.ParseError,
            "line 1, column 9: a join can only have operands, numbers, operators and",
        ),
        (
            {"join": "frob(u, v)"},
            se.ParseError,
            "line 1, column 1: a join can only have operands, numbers, operators and",
        ),
        ({"join": "u $ v"}, se.ParseError, "line 1, column 3: the character '$' has no meaning here"),
    ],
)
def test_invalid_joins_and_aggregates(keywords: dict[str, Any], error: type[Exception], problem: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(problem)}"):
        se.einsum("ij,jk", np.eye(2), np.eye(2), **keywords)


@pytest.mark.parametrize(
    ("arguments", "error", "problem"),
    [
        ((np.eye(2),), se.ArgumentError, "the subscripts are of type ndarray, not a text; write them as in"),
        ((), se.ParseError, "the subscripts describe 1 operand, but 0 were given"),
        ((np.eye(2), 3), se.ArgumentError, "the labels of an operand are a list, as in einsum(A, [0, 1], [1,"),
        ((np.eye(2), [True, False]), se.ArgumentError, "True is no label; labels are whole numbers, letters,"),
        ((np.eye(2), [0, [1]]), se.ArgumentError, "[1] is no label, because it has no hash"),
        ((np.eye(2), ["b", 0]), se.ArgumentError, "the labels 'b', 0 cannot be sorted, so the result has no"),
        ((np.eye(2), [0, 1], [2]), se.ParseError, "label C of the result is in no operand"),
    ],
)
def test_invalid_arguments(arguments: tuple[Any, ...], error: type[Exception], problem: str) -> None:
    with pytest.raises(error, match=re.escape(problem)):
        se.einsum(*arguments)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"out": "text"}, "out is of type str; it must be an array of numpy"),
        ({"out": (np.zeros((2, 2)),)}, "out is of type tuple; it must be an array of numpy"),
        ({"out": np.broadcast_to(0.0, (2, 2))}, "out is read-only; give an array that can be written"),
        ({"out": np.zeros((2, 2)), "sparse": True}, "out is given with sparse=True"),
        ({"out": np.zeros(4)}, "out has the shape (4,), but the result has (2, 2)"),
        ({"out": np.zeros((2, 2), "float32")}, "the result has dtype float64, which does not convert to float32 with"),
        ({"order": "W"}, "order is 'W'; it must be one of C, F, A, K"),
        ({"casting": "some"}, "casting is 'some'; it must be one of no, equiv, safe, same_kind, unsafe"),
        ({"dtype": "bad"}, "dtype is 'bad'"),
        ({"dtype": int}, "operand 1 of einsum has dtype float64, which does not convert to int64 with casting='safe'"),
        ({"optimize": "frob"}, "optimize: Path optimizer 'frob' not found"),
        ({"optimize": 3}, "optimize is 3; it must be a bool, the name of a search, or a path"),
        ({"optimize": ["einsum_path", "ab"]}, "optimize is ['ab'], which is no path"),
        ({"optimize": [(0, 1), (0, 1)]}, "step (0, 1) of the path [(0, 1), (0, 1)] needs distinct positions from"),
        ({"optimize": []}, "the path [] leaves 2 of 2 operands"),
    ],
)
def test_invalid_options(options: dict[str, Any], problem: str) -> None:
    for error in (se.SparseEinsumError, ValueError):
        with pytest.raises(error, match=re.escape(problem)):
            se.einsum("ij,jk->ik", np.eye(2), np.eye(2), **options)

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
    ("arguments", "problem"),
    [
        ((np.eye(2),), "the subscripts are not a text; write subscripts as in 'ij,jk->ik'"),
        ((), "the subscripts describe 1 operand, but 0 were given"),
        ((np.eye(2), 3), "the labels of an operand are a list of whole numbers and Ellipsis"),
        ((np.eye(2), ["i", "j"]), "the labels of an operand are a list of whole numbers and Ellipsis"),
        ((np.eye(2), [True, False]), "the labels of an operand are a list of whole numbers and Ellipsis"),
        ((np.eye(2), [0, -1]), "label -1 is not from 0 to"),
        ((np.eye(2), [0, 1], [2]), "label C of the result is in no operand"),
    ],
)
def test_invalid_arguments(arguments: tuple[Any, ...], problem: str) -> None:
    with pytest.raises(se.ParseError, match=re.escape(problem)):
        se.einsum(*arguments)

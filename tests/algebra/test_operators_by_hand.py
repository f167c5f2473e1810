"""Operators that users write by hand refuse arguments that make no sense; errors name the operator and the way out."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sparseeinsum as se
from sparseeinsum.algebra.relational.relational_expressions import Input
from sparseeinsum.algebra.relational.types import RelationType

X = se.TensorRelation(Input("X", RelationType((4, 4), (5, 5))))
XY = X.join(se.TensorRelation(Input("Y", RelationType((4, 4), (5, 5)))), on=[(0, 0), (1, 1)], kernel="add")

Make = Callable[[Any], Any]  # takes X; `Any`, since the calls are wrong

REFUSED: list[tuple[Make, str]] = [
    (lambda x: x.transform("inv"), "transform of X: .* of 1 operands, which 'inv' is not; did you mean sin?"),
    (lambda x: x.transform("add"), "of 1 operands, which 'add' is not; known are .*relu"),
    (lambda x: x.transform(np.linalg.inv), "transform of X: the kernel is <function inv .*; write an EinSum"),
    (lambda x: x.transform("w[i] = u[i]"), r"transform of X: w\[i\] = u\[i\]: u has 1 labels, and an array \(5, 5\)"),
    (lambda x: x.transform("w[i, j] = u[i, j, k]"), "transform of X: "),
    (lambda x: x.join(x, on=[(0, 0)], kernel="relu"), "join of X: .* of 2 operands, which 'relu' is not"),
    (lambda x: x.join("Y", on=[(0, 0)], kernel="add"), "the other side is str; open a tensor by db.relation"),
    (lambda x: x.join(x, on=[0, 1], kernel="add"), r"on is \[0, 1\]; give pairs of positions .* as in \[\(1, 0\)\]"),
    (lambda x: x.join(x, on=[(0, 0, 0)], kernel="add"), "give pairs of positions"),
    (lambda x: x.join(x, on="ij", kernel="add"), "on is 'ij'; give pairs of positions"),
    (lambda x: x.join(x, on=[("i", "j")], kernel="add"), "a position in on is 'i'; give a whole number"),
    (lambda x: x.join(x, on=[(0, 2)], kernel="add"), "join of X: right_keys names the part 2 of keys that have 2"),
    (lambda x: x.aggregate(0), r"aggregate of X: by is 0; give positions in the key, as in \[0, 2\]"),
    (lambda x: x.aggregate("ij"), "aggregate of X: by is 'ij'; give positions in the key"),
    (lambda x: x.aggregate([0.5]), "aggregate of X: a position in by is 0.5; give a whole number"),
    (lambda x: x.aggregate([0], fold="mean"), "aggregate of X: 'mean' is no aggregate; there are sum"),
    (
        lambda x: x.aggregate([0], fold=np.sum),
        "aggregate of X: the fold is .*; give the name of an aggregate: sum, prod",
    ),
    (lambda x: x.rekey((1, 0)), r"rekey of X: \(1, 0\) is no function of keys; write one, as in lambda i, j"),
    (lambda x: x.rekey(lambda i: i), r"rekey of X: keys have 2 parts; write a function of 2, not of \(i\)"),
    (lambda x: x.rekey(lambda i, j: (i / 2, j)), "rekey of X: a function of keys has .* and nothing else: .* for /"),
    (lambda x: x.rekey(lambda i, j: i.parent), "rekey of X: a function of keys has .* and nothing else: .*'parent'"),
    (lambda x: x.rekey(lambda i, j: (i, j), copies=2), "write a function of 2 and the number of the copy, not of"),
    (lambda x: x.rekey(lambda i, j, c: (i, j, c), copies="2"), "rekey of X: copies is '2'; give a whole number"),
    (lambda x: x.rekey(lambda i, j, c: (i, j, c), copies=0), "rekey of X: a key becomes 1 key or more, not 0"),
    (lambda x: x.rekey(lambda i, j, c: (i, j), copies=2), "makes the key <0, 0> of several; keys must be unique"),
    (lambda x: x.filter("i == j"), "filter of X: 'i == j' is no function of keys"),
    (lambda x: x.filter(lambda i, j: abs(i) < 1), r"filter of X: .* nothing else: bad operand type for abs\(\)"),
    (lambda x: x.tile("rows", 2), "tile of X: axis is 'rows'; give a whole number"),
    (lambda x: x.tile(0, 2.5), "tile of X: size is 2.5; give a whole number"),
    (lambda x: x.concat("k", 0), "concat of X: key is 'k'; give a whole number"),
    (lambda x: x.concat(0, 0, fill="0"), "concat of X: fill is '0'; give a number, or None"),
    (lambda x: x.evaluate(np.ones((4, 4))), "relations are a dict by name, .* and not ndarray"),
    (lambda x: x.evaluate({"X": {0: np.ones((5, 5))}}), "the relation X must be a dict of arrays by tuples"),
    (lambda x: x.evaluate({}), "no relation X is given"),
    (lambda x: x.distributed(2.5), "there are 2.5 sites; give a whole number of 1 or more"),
    (lambda x: x.distributed(2).moved(sites=0), "there are 0 sites; give a whole number of 1 or more"),
    (
        lambda x: x.distributed(2, {"X": (2,)}),
        r"X is placed \(2,\); give the positions of keys .* of which there are 2",
    ),
    (lambda x: x.distributed(2, {"X": 0}), "X is placed 0; give the positions"),
    (lambda x: x.distributed(2, {"X": (0, 0)}), r"X is placed \(0, 0\); give the positions"),
    (lambda x: x.distributed(2, {"Z": (0,)}), "Z is placed, and not read; inputs are X"),
    (lambda x: x.distributed(2, [("X", (0,))]), "stored is .*; give distributions by name"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_wrong_arguments_are_refused(make: Make, message: str) -> None:
    with pytest.raises(se.AlgebraError, match=message):
        make(X)


def test_errors_name_all_tensors_below() -> None:
    with pytest.raises(se.AlgebraError, match=r"^tile of X, Y: arrays of 2 axes have no axis 7"):
        XY.tile(7, 2)


def test_numpys_whole_numbers_are_positions() -> None:
    axis: Any = np.flatnonzero([False, True])[0]
    assert X.aggregate([axis]).tile(axis, 2) == X.aggregate([1]).tile(1, 2)

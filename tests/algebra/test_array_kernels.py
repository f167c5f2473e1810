"""Kernels of whole arrays and folds that return positions compute what numpy computes, in expressions and in SQL."""

import itertools
from typing import Any

import numpy as np
import pytest

import sparseeinsum as se
from sparseeinsum.algebra.relational.array_kernels import ARRAY_KERNELS
from sparseeinsum.algebra.relational.evaluate import RelationTuples

BOTH = pytest.mark.engines("duckdb", "postgresql")
REFUSED = [
    ("invert", "transform of A: .* of 1 operands, which 'invert' is not; did you mean inverse"),
    ("inverse", r"transform of A: a matrix that is inverted is square, and arrays have the bound \[2, 3\]"),
    ("inverse(1)", r"the kernel 'inverse\(1\)' is not inverse\(\), whose arguments are whole numbers"),
    ("largest", r"the kernel 'largest' is not largest\(count, axis=-1\)"),
    ("largest(1.5)", r"is not largest\(count, axis=-1\), whose arguments are whole numbers"),
    ("largest(4)", "transform of A: 4 elements are wanted of an axis of 3"),
    ("sort(2)", "transform of A: arrays of 2 axes have no axis 2"),
    ("sort(0, 1)", r"is not sort\(axis=-1\)"),
]


@BOTH
def test_whole_arrays(db: se.Database) -> None:
    rng = np.random.default_rng(0)
    blocks = rng.normal(size=(3, 2, 4, 4))
    blocks[1, 1] = np.eye(4)[[2, 0, 3, 1]]  # rows must be exchanged
    db.tensor("A", blocks, promoted=["dim_0", "dim_1"])
    relation = db.relation("A")
    arrays: RelationTuples = {(i, j): blocks[i, j] for i in range(3) for j in range(2)}
    descending = np.flip(np.sort(blocks, axis=2), axis=2)
    expected = {
        "inverse": np.linalg.inv(blocks),
        "sort": np.sort(blocks, axis=3),
        "sort(0)": np.sort(blocks, axis=2),
        "largest(3)": np.flip(np.sort(blocks, axis=3), axis=3)[..., :3],
        "largest(1, 0)": descending[:, :, :1],
        "largest(0)": np.zeros((3, 2, 4, 0)),
    }
    for text, array in expected.items():
        transformed = relation.transform(text)
        for key, result in transformed.evaluate({"A": arrays}).items():
            np.testing.assert_allclose(result, array[key])
        if array.size:
            np.testing.assert_allclose(db.compute(transformed).to_numpy(), array, rtol=1e-9)
            assert transformed.distributed(2).moved() == 0
    assert {text.partition("(")[0] for text in expected} == set(ARRAY_KERNELS)


@pytest.mark.parametrize(("kernel", "message"), REFUSED)
def test_wrong_kernels_are_refused(db: se.Database, kernel: str, message: str) -> None:
    db.tensor("A", np.ones((2, 2, 3)), promoted=["dim_0"])
    with pytest.raises(se.AlgebraError, match=message):
        db.relation("A").transform(kernel)


@BOTH
def test_a_matrix_without_inverse(db: se.Database) -> None:
    db.tensor("A", np.ones((2, 3, 3)), promoted=["dim_0"])
    inverse = db.relation("A").transform("inverse")
    with pytest.raises(se.SparseEinsumError, match="the matrix has no inverse: its column 1"):
        db.compute(inverse)
    with pytest.raises(se.AlgebraError, match="a matrix has no inverse"):
        inverse.evaluate({"A": {(i,): np.ones((3, 3)) for i in range(2)}})


@BOTH
@pytest.mark.parametrize("fold", ["argmin", "argmax"])
def test_positions(db: se.Database, fold: str) -> None:
    rng = np.random.default_rng(1)
    for number, (size, axis) in enumerate(itertools.product([(), (1,), (3,), (2, 2)], (0, 1))):
        array = rng.choice(
            [0.0, 1.0, -1.0, 2.5, np.nan, np.inf, -np.inf], (4, 3, *size), p=[0.2] * 4 + [0.05, 0.05, 0.1]
        )
        db.tensor(f"A{number}", array, promoted=["dim_0", "dim_1"], fill=-7.0)
        relation = db.relation(f"A{number}").aggregate(by=[1 - axis], fold=fold)
        expected = getattr(np, fold)(array, axis=axis)
        evaluated = relation.evaluate({f"A{number}": {key: array[key] for key in np.ndindex(4, 3)}})
        np.testing.assert_array_equal(np.stack([evaluated[at,] for at in range(len(expected))]), expected)
        np.testing.assert_array_equal(db.compute(relation).to_numpy(), expected)


@BOTH
def test_positions_of_sparse_tensors(db: se.Database) -> None:
    """Only tuples that are there count, and groups may lie in any order."""
    array = np.array([[0.0, 3.0, 0.0, 1.0], [0.0, 0.0, -2.0, 0.0], [5.0, 5.0, 0.0, 0.0]])
    db.tensor("S", array, promoted=["dim_0", "dim_1"])
    nearest = db.relation("S").aggregate(by=[0], fold="argmin")
    np.testing.assert_array_equal(db.compute(nearest).to_numpy(), [3, 2, 0])
    pairs = db.relation("S").rekey(lambda i, j: (j, i)).aggregate(by=[1], fold="argmax")
    np.testing.assert_array_equal(db.compute(pairs).to_numpy(), [1, 2, 0])
    over_all: Any = db.compute(db.relation("S").rekey(lambda i, j: 4 * i + j).aggregate(by=[], fold="argmin"))
    assert float(over_all.to_numpy()) == 6.0
    with pytest.raises(
        se.AlgebraError, match="argmin returns a part of the key, so groups lack exactly one, and not 2"
    ):
        db.relation("S").aggregate(by=[], fold="argmin")

"""Results that rewriting adds have their labels in an order in which products need no transposed arrays."""

import numpy as np
import pytest

import sparseeinsum as se
from sparseeinsum.language.eingraph import Reference
from sparseeinsum.rewrite.result_labels import labels_in_order


@pytest.mark.parametrize(
    ("read", "reader", "expected"),
    [
        pytest.param(("ij", "jf"), "io", "if", id="rows of the first operand, although the reader sums f"),
        pytest.param(("jf", "ij"), "io", "if", id="whichever operand is written first"),
        pytest.param(("jf", "fo"), "io", "jo", id="columns of the second operand"),
        pytest.param(("ic", "fc"), "jf", "if", id="rows first that the reader sums"),
        pytest.param(("jc", "jf"), "fc", "fc", id="as the reader's result"),
        pytest.param(("abc", "cde"), "abde", "abde", id="labels of an operand stay together"),
        pytest.param(("hid", "hjd"), "hie", "hji", id="batches first"),
        pytest.param(("i", "ij"), "ij", "ij", id="as the operand with all labels"),
        pytest.param(("jk", "k"), "ik", "jk", id="without a sum, no label is moved"),
        pytest.param(("ji",), "ij", "ji", id="as the only operand"),
    ],
)
def test_order(read: tuple[str, ...], reader: str, expected: str) -> None:
    operands = [Reference(f"T{number}", tuple(labels)) for number, labels in enumerate(read)]
    assert labels_in_order(frozenset(expected), operands, tuple(reader)) == tuple(expected)


def test_sparse_rows_times_weights() -> None:
    rng = np.random.default_rng(0)
    with se.connect() as database:
        database.tensor("N", (rng.random((60, 60)) < 0.1) * 1.0)
        database.tensor("X", rng.random((60, 3)))
        database.tensor("W", rng.random((3, 50)))
        plan = database.plan("Y[i, o] = sum(N[i, j] * X[j, f] * W[f, o])")
    inner = plan.notation()[0].split(" = ")[0]
    assert inner.lower() == "y_1[i, f]"

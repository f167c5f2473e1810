"""What is cached of an expression is not taken for another one that only seems equal."""

import math

import pytest

from sparseeinsum.language.eingraph import EinSum, Reference
from sparseeinsum.language.inference import value_at_fills
from sparseeinsum.language.scalar import evaluate
from sparseeinsum.language.tensors import Axis, Tensor
from sparseeinsum.operators.expressions import Call, Literal, Operand, U
from sparseeinsum.rewrite.chains import as_chain

ZEROS = [0.0, -0.0, 0.0]


def sign_of(number: float) -> float:
    return math.copysign(1, number)


@pytest.mark.parametrize("zeros", [ZEROS, [-zero for zero in ZEROS]])
def test_zeros_keep_their_signs(zeros: list[float]) -> None:
    tensor = Tensor("A", (Axis("i", 3),), "float64", 1.0)
    for zero in zeros:
        product = Call("mul", (U, Literal(zero)))
        chain = as_chain(product, None, ["float64"], least_factors=1)
        assert chain is not None
        assert sign_of(evaluate(chain.enclosing, [1.0]).item()) == sign_of(zero)
        assert sign_of(value_at_fills(product, [tensor]).item()) == sign_of(zero)
        einsum = EinSum(Reference("Y", ("i",)), (Reference("A", ("i",)),), product, None)
        assert sign_of(evaluate(einsum.join, [1.0]).item()) == sign_of(zero)


def test_fills_keep_their_signs() -> None:
    for fill in ZEROS:
        tensor = Tensor("A", (Axis("i", 3),), "float64", fill)
        assert sign_of(value_at_fills(Operand(0), [tensor]).item()) == sign_of(fill)

"""`se.contract` and `se.contract_expression` compute what those of opt_einsum compute."""

import re
from typing import Any

import numpy as np
import opt_einsum
import pytest
import scipy.sparse
from numpy_einsum import assert_same, filled
from opt_einsum.testing import build_views, rand_equation

import sparseeinsum as se

CHAIN = "ij,jk,kl->il"
CHAIN_SHAPES = [(3, 4), (4, 5), (5, 2)]
OPERANDS = [filled(*shape) for shape in CHAIN_SHAPES]
RESULT = OPERANDS[0] @ OPERANDS[1] @ OPERANDS[2]


def test_contract() -> None:
    assert_same(se.contract(CHAIN, *OPERANDS), RESULT)
    assert_same(se.contract(CHAIN, *OPERANDS, optimize="greedy", memory_limit=20), RESULT)
    out = np.zeros(RESULT.shape)
    assert se.contract(OPERANDS[0], "ab", OPERANDS[1], "bc", OPERANDS[2], "cd", out=out, memory_limit=-1) is out
    assert_same(out, RESULT)
    with pytest.raises(se.ArgumentError, match="memory_limit is 0; it must be the most elements"):
        se.contract(CHAIN, *OPERANDS, memory_limit=0)


@pytest.mark.parametrize("optimize", [True, False, "greedy", "optimal", [(1, 2), (0, 1)], ("greedy", 100)])
def test_expressions_are_called_with_arrays(optimize: Any) -> None:  # noqa: ANN401  # what einsum takes
    expression = se.contract_expression(CHAIN, *CHAIN_SHAPES, optimize=optimize)
    out = np.zeros(RESULT.shape)
    for _ in range(2):
        assert_same(expression(*OPERANDS), RESULT)
        assert expression(*OPERANDS, out=out) is out
        assert_same(out, RESULT)
    larger = filled(7, 4), filled(4, 9), filled(9, 2)
    assert_same(expression(*larger), larger[0] @ larger[1] @ larger[2])


def test_other_notations() -> None:
    expression = se.contract_expression((3, 4), ["a", "b"], (4, 5), ["b", "c"], ["c", "a"])
    assert_same(expression(*OPERANDS[:2]), (OPERANDS[0] @ OPERANDS[1]).T)
    batches = filled(2, 3, 4), filled(4, 5)
    assert_same(se.contract_expression("...ij,jk->...ik", (2, 3, 4), (4, 5))(*batches), batches[0] @ batches[1])
    sparse = scipy.sparse.csr_array(OPERANDS[0])
    expression = se.contract_expression("ij,jk->ik", (3, 4), (4, 5), sparse=True, dtype="complex128")
    assert_same(expression(sparse, OPERANDS[1]).toarray(), (OPERANDS[0] @ OPERANDS[1]).astype(complex))


@pytest.mark.parametrize(
    ("subscripts", "constants"),
    [
        ("hbc,bdef,cdkj,ji,ikeh,lfo", [1, 2, 3, 4]),
        ("bdef,cdkj,ji,ikeh,hbc,lfo", [0, 1, 2, 3]),
        ("ijab,acd,bce,df,ef->ji", [1, 2, 3, 4]),
        ("ab,cd,ad,cb", [1, 3]),
        ("ab,bc,cd", [0, 1]),
        ("ab,bc,cd", [0, 1, 2]),
        ("ab,bc,cd->a", [2]),
        ("ab,ab->", [0, 1]),
        ("aab,bb->", [0, 1]),
    ],
)
def test_constants(subscripts: str, constants: list[int]) -> None:
    arrays = build_views(subscripts)
    arrays_and_shapes = [array if place in constants else array.shape for place, array in enumerate(arrays)]
    others = [array for place, array in enumerate(arrays) if place not in constants]
    expression = se.contract_expression(subscripts, *arrays_and_shapes, constants=constants)
    for scale in (1.0, 2.0):
        changed = iter(scale * array for array in others)
        operands = [array if place in constants else next(changed) for place, array in enumerate(arrays)]
        result = expression(*(scale * array for array in others))
        assert_same(result, np.einsum(subscripts, *operands, optimize=True))
    theirs = opt_einsum.contract_expression(subscripts, *arrays_and_shapes, constants=constants)
    assert repr(expression).replace("Contraction", "Contract").replace(";", "") == repr(theirs)


def test_random_networks_with_constants() -> None:
    for seed in range(10):
        subscripts, shapes, _ = rand_equation(9, 3, n_out=2, d_max=3, seed=seed, return_size_dict=True)
        rng = np.random.default_rng(seed)
        arrays = [rng.random(shape) for shape in shapes]
        constants = [place for place in range(9) if rng.random() < 0.6]
        arrays_and_shapes = [array if place in constants else array.shape for place, array in enumerate(arrays)]
        expression = se.contract_expression(subscripts, *arrays_and_shapes, constants=constants)
        result = expression(*(array for place, array in enumerate(arrays) if place not in constants))
        assert_same(result, opt_einsum.contract(subscripts, *arrays))


def test_constants_are_contracted_in_the_dtype_of_the_whole_product() -> None:
    small = np.full((2, 2), 100, "int8")
    expression = se.contract_expression(
        "ij,jk,kl->il", small, small, (2, 2), constants=[0, 1], optimize=[(0, 1), (0, 1)]
    )
    for dtype in ("int8", "int32", "float32", "int8"):
        other = np.eye(2, dtype=dtype)
        assert_same(expression(other), np.einsum("ij,jk,kl->il", small, small, other))
    out = np.zeros((2, 2))
    expression(np.eye(2, dtype="int8"), out=out)
    assert_same(out, np.full((2, 2), 20_000.0))


def test_joins() -> None:
    lengths = 4 * np.abs(filled(3, 3))
    options: dict[str, Any] = {"join": "+", "agg": "min"}
    expected = se.einsum("ij,jk,kl->il", lengths, lengths, lengths, **options)
    expression = se.contract_expression("ij,jk,kl->il", lengths, lengths, (3, 3), constants=[0, 1], **options)
    assert_same(expression(lengths), expected)


@pytest.mark.parametrize(
    ("operands", "options", "error", "problem"),
    [
        (((2, 3), (4, 5)), {}, se.ShapeError, "label j of 'ij,jk->ik' has two sizes: 3 in operand 1, 4 in operand 2"),
        (((2, 3),), {}, se.ParseError, "the subscripts describe 2 operands, but 1 were given"),
        (((2, 3), np.eye(3)), {}, se.ArgumentError, "operand 2 is no shape, such as (3, 4); an array needs constants"),
        (((2, 3), (3, 2)), {"constants": [2]}, se.ArgumentError, "constants has 2; the positions of operands are"),
        (((2, 3), (3, 2)), {"out": np.eye(2)}, se.ArgumentError, "out is given for an expression; give it when"),
        (((2, 3), (3, 2)), {"optimize": [(0,)]}, se.ArgumentError, "the path [(0,)] leaves 2 of 2 operands"),
    ],
)  # fmt: skip
def test_invalid_expressions(
    operands: tuple[Any, ...], options: dict[str, Any], error: type[Exception], problem: str
) -> None:
    with pytest.raises(error, match=re.escape(problem)):
        se.contract_expression("ij,jk->ik", *operands, **options)


def test_invalid_calls() -> None:
    expression = se.contract_expression("ij,jk->ik", (2, 3), (3, 2))
    with pytest.raises(se.ArgumentError, match=r"<ContractionExpression.* takes exactly 2 arrays; it gets 1"):
        expression(np.eye(2))
    with pytest.raises(se.ShapeError, match="operand 1 of 'ij,jk->ik' has 2 labels, but 3 axes"):
        expression(np.ones((2, 3, 4)), np.eye(3))
    with pytest.raises(se.ShapeError, match=r"out has the shape \(2,\), but the result has \(2, 3\)"):
        expression(np.ones((2, 3)), np.eye(3), out=np.ones(2))

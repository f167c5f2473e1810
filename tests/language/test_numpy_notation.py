"""The program of a call in numpy's notation means what numpy computes."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from numpy_einsum import FORMS, Array, assert_same, calls, filled, planned
from random_runs import examples

import sparseeinsum as se
from sparseeinsum.api.einsum_operands import as_dense
from sparseeinsum.language.binding import bind
from sparseeinsum.language.numpy_notation import RESULT_NAME
from sparseeinsum.language.tensors import Axis, Tensor
from sparseeinsum.semantics.dense import evaluate_program

DTYPES = (
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
)


def evaluated(*arguments: Any, **keywords: Any) -> Array:  # noqa: ANN401  # whatever einsum takes
    """The value of the program of a call; its dtype is the one that later stages get."""
    call = planned(*arguments, **keywords)
    result = evaluate_program(call.program, {name: as_dense(data) for name, data in call.operands.items()})[RESULT_NAME]
    inputs = {
        name: Tensor(name, tuple(Axis(f"a{axis}", bound) for axis, bound in enumerate(array.shape)), array.dtype.name)
        for name, array in call.operands.items()
    }
    assert bind(call.program, inputs).tensors[RESULT_NAME].dtype == result.dtype
    return call.convert(result)


def check_meaning(*arguments: Any) -> None:  # noqa: ANN401  # whatever einsum takes
    assert_same(evaluated(*arguments), np.asarray(np.einsum(*arguments)))


@pytest.mark.parametrize(("subscripts", "shapes"), FORMS)
def test_meaning_of_forms(subscripts: str, shapes: list[tuple[int, ...]]) -> None:
    check_meaning(subscripts, *(filled(*shape, seed=at) for at, shape in enumerate(shapes)))


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


@settings(max_examples=examples(200))
@given(calls("aBé", DTYPES))
def test_meaning_of_any_call(call: tuple[str, list[Array]]) -> None:
    """Numpy allows only ASCII letters, so that it gets another letter with the same order."""
    subscripts, operands = call
    try:
        expected = np.asarray(np.einsum(subscripts.replace("é", "z"), *operands))
    except ValueError:
        with pytest.raises((se.ParseError, se.ShapeError)):
            evaluated(subscripts, *operands)
        return
    assert_same(evaluated(subscripts, *operands), expected)


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


def test_many_operands() -> None:
    vectors = [filled(2) for _ in range(40)]
    subscripts = ",".join(["i"] * 40)
    check_meaning(subscripts, *vectors)

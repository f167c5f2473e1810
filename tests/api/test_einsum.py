"""`se.einsum` returns numpy's values and dtype for the same subscripts and arrays."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from numpy_einsum import DTYPES, FORMS, assert_same, calls, check, dense, einsum_in, filled
from random_runs import random_runs

import sparseeinsum as se


@pytest.mark.parametrize(("subscripts", "shapes"), FORMS)
def test_forms(shared_db: se.Database, subscripts: str, shapes: list[tuple[int, ...]]) -> None:
    arrays = [filled(*shape, seed=at) for at, shape in enumerate(shapes)]
    assert_same(einsum_in(shared_db, subscripts, *arrays), np.asarray(np.einsum(subscripts, *arrays)))


@pytest.mark.parametrize("optimizer", ["dp", "greedy", "relational", "dense"])
def test_optimizers(optimizer: str) -> None:
    check("ij,jk->ik", filled(5, 6), filled(6, 4), optimizer=optimizer)
    check("bhqd,bhkd->bhqk", filled(2, 3, 4, 5), filled(2, 3, 6, 5), optimizer=optimizer)
    check("ijk,jkl,kl->i", filled(2, 3, 4), filled(3, 4, 2), filled(4, 2), optimizer=optimizer)


def test_lists_of_labels() -> None:
    a, b, c = filled(2, 3), filled(3, 4), filled(5, 2, 3)
    check(a, [0, 1], b, [1, 2], [2, 0])
    check(a, [7, 1], b, [1, 3])
    check(a, [1, 0])
    check(c, [Ellipsis, 0, 1], b, [1, 2], [Ellipsis, 2])
    check(a, [0, 1], a, [0, 1], [])


def test_letters_of_any_alphabet() -> None:
    a, b = filled(2, 3), filled(3, 4)
    assert_same(se.einsum("äβ,βδ->δä", a, b), (a @ b).T)
    assert_same(se.einsum("aA,Aä->aä", a, b), a @ b)


def test_layouts_of_memory_do_not_matter() -> None:
    array = filled(4, 6)
    for view in (array.T, array[::-1, ::2], np.asfortranarray(array), array.astype(">f8").astype("f8")):
        check("ij->i", view)
        check("ij->ji", view)
    check("ij,kj->ik", array.T[::2], array[::-1].T)
    np.testing.assert_array_equal(se.einsum("ij->ji", array.astype(">f8")), array.T)


def test_numbers_and_lists_are_arrays() -> None:
    check("i,->i", [1.0, 2.5], 2.0)
    check(",", np.float64(3), 0.5)
    check(",i->i", 2.5, np.arange(3.0))
    check("ij,j->i", [[1.0, 2.0], [3.0, 4.0]], (0.5, 2.0))
    check("ij->i", [[1.0, 2.0], [3.0, 4.0]])
    check("i,i->", (1.0, 2.0), (3.0, 4.0))


def test_values_that_are_or_turn_infinite_or_nan() -> None:
    check("ij,jk->ik", np.array([[np.inf, 1], [0, 2]]), np.array([[0.0, 1], [np.nan, 2]]))
    check("i,i->", np.array([1e300, 1.0]), np.array([1e300, 1.0]))
    check("i,j->ij", np.array([np.inf, 0.0, -1.0]), np.array([0.0, np.nan, np.inf]))
    check("i->", np.array([np.inf, -np.inf]))
    check("ij,j->i", scipy.sparse.csr_array(np.eye(3)), np.array([np.nan, 1, np.inf]))


@pytest.mark.parametrize("left", DTYPES)
@pytest.mark.parametrize("right", [*DTYPES, "float16", "uint8"])
def test_dtypes(shared_db: se.Database, left: str, right: str) -> None:
    a, b = filled(2, 3, dtype=left), filled(3, 4, dtype=right)
    for subscripts in ("ij,jk->ik", "ij,jk->ijk", "ij,jk->"):
        assert_same(einsum_in(shared_db, subscripts, a, b), np.asarray(np.einsum(subscripts, a, b)))


def test_products_are_computed_in_the_dtype_of_the_result(shared_db: se.Database) -> None:
    """As in numpy, a product of two float32 operands beside a float64 operand loses no digits."""
    a = np.array([[1 / 3, 1 / 7]], np.float32)
    b = np.array([[3.0]])
    assert_same(einsum_in(shared_db, "ij,kj,kl->il", a, a, b), np.einsum("ij,kj,kl->il", a, a, b))


def test_any_call(shared_db: se.Database, engine: str) -> None:
    @random_runs(100, engine)
    @given(call=calls("abcA", DTYPES, sparse=True), optimizer=st.sampled_from(["dp", "relational", "dense"]))
    def run(call: tuple[str, list[Any]], optimizer: str) -> None:
        subscripts, operands = call
        try:
            expected = np.asarray(np.einsum(subscripts, *map(dense, operands)))
        except ValueError:
            with pytest.raises((se.ParseError, se.ShapeError)):
                einsum_in(shared_db, subscripts, *operands)
            return
        assert_same(einsum_in(shared_db, subscripts, *operands, optimizer=optimizer), expected)

    run()

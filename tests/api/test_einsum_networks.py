"""`se.einsum` contracts networks of many operands, of any shape, to numpy's result."""

import itertools
from typing import Any

import numpy as np
import opt_einsum
import pytest
from numpy_einsum import DTYPES, assert_same, check, einsum_in, filled
from opt_einsum.testing import rand_equation

import sparseeinsum as se

SIZES = dict(zip("abcdefghijkl", itertools.cycle((2, 3, 4, 2, 3)), strict=False))

NETWORKS = [
    # Products of matrices
    "ab,bc,cd->ad",
    "ab,bc,cd->abcd",
    "ab,bc,cd,de->be",
    "ab,bc,ca->",
    "ab,cb,cd,ed->ae",
    "a,ab,b->",
    "a,ab,bc,c->",
    # Transformations of every axis
    "ea,fb,abcd,gc,hd->efgh",
    "abcd,ea,fb,gc,hd->efgh",
    "ai,bj,ijk->abk",
    # Outer and elementwise products
    "ab,cd,ef->acdf",
    "a,b,c,d->dcba",
    "a,ab,abc->abc",
    "ab,ab,ab,ab->ab",
    "ab,ab,cd,cd->ac",
    "ab,ab,c->",
    # Labels in more than two tensors
    "ab,ac,ad->a",
    "ab,ac,ad->bcd",
    "a,ac,ab,ad,cd,bd,bc->",
    "ab,ab,bc,bc,ca->abc",
    "bd,db,eac->ace",
    # Diagonals inside products
    "aab,bcc->ac",
    "aa,ab,bb->",
    "aab,fa,df,ecc->bde",
    "dd,fb,be,cdb->cef",
    "bbb,bf,fbf,fc->c",
    # Cycles and lattices
    "ab,bc,cd,da->",
    "abc,cde,efa->bdf",
    "ab,bcd,de,afg,cgh,ehi,fj,hjk,ik->",
    "abi,bcj,cak,ijk->",
    # Larger tensors
    "abdc,cdef,feij->abij",
    "cd,bdhe,aidb,hgca,gc,hgibcd,hgac->i",
    "bde,cdh,agdb,hica,ibd,hgicd,hiac->",
]


@pytest.mark.parametrize("subscripts", NETWORKS)
def test_networks(subscripts: str) -> None:
    terms = subscripts.split("->")[0].split(",")
    check(subscripts, *(filled(*(SIZES[label] for label in term), seed=at) for at, term in enumerate(terms)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("subscripts", NETWORKS[::4])
def test_networks_of_other_dtypes(shared_db: se.Database, subscripts: str, dtype: str) -> None:
    terms = subscripts.split("->")[0].split(",")
    shapes = [tuple(SIZES[label] for label in term) for term in terms]
    arrays = [filled(*shape, seed=at, dtype=dtype) for at, shape in enumerate(shapes)]
    expected = np.asarray(np.einsum(subscripts, *arrays))
    assert_same(einsum_in(shared_db, subscripts, *arrays), expected)
    dtypes = itertools.cycle((dtype, "bool", "float32", "int64"))
    mixed = [
        filled(*shape, seed=at, dtype=item_dtype)
        for at, (shape, item_dtype) in enumerate(zip(shapes, dtypes, strict=False))
    ]
    expected = np.asarray(np.einsum(subscripts, *mixed))
    assert_same(einsum_in(shared_db, subscripts, *mixed), expected)


@pytest.mark.parametrize("optimizer", ["dp", "greedy", "relational", "dense"])
@pytest.mark.parametrize("seed", range(7))
def test_random_networks(shared_db: se.Database, seed: int, optimizer: str) -> None:
    """Networks that opt_einsum draws: each tensor shares labels with several others; some labels are free."""
    subscripts, shapes = rand_equation(3 + seed, 2 + seed % 2, n_out=seed % 3, d_min=1, d_max=3, seed=seed)
    arrays = [filled(*shape, seed=at) for at, shape in enumerate(shapes)]
    expected = np.asarray(opt_einsum.contract(subscripts, *arrays))
    assert_same(einsum_in(shared_db, subscripts, *arrays, optimizer=optimizer), expected)


def test_a_chain_of_many_matrices() -> None:
    matrices = [np.linalg.qr(filled(4, 4, seed=at))[0] for at in range(30)]
    arguments = [part for at, matrix in enumerate(matrices) for part in (matrix, [at, at + 1])]
    np.testing.assert_allclose(se.einsum(*arguments, [0, 30]), np.linalg.multi_dot(matrices), rtol=1e-10, atol=1e-12)


def test_a_lattice_of_tensors() -> None:
    """Every tensor shares a label with each neighbour; the result is a scalar."""
    rows, columns = 4, 4
    arguments: list[Any] = []
    for row, column in itertools.product(range(rows), range(columns)):
        at = 2 * (row * columns + column)
        right, below = at, at + 1
        labels = [right] * (column + 1 < columns) + [below] * (row + 1 < rows)
        labels += [at - 2] * (column > 0) + [at - 2 * columns + 1] * (row > 0)
        arguments += [filled(*(2,) * len(labels), seed=at), labels]
    expected = np.asarray(opt_einsum.contract(*arguments, []))
    np.testing.assert_allclose(se.einsum(*arguments, []), expected, rtol=1e-10, atol=1e-9)


def test_a_star_of_tensors_around_one_label() -> None:
    vectors = [filled(3, seed=at) + 1 for at in range(20)]
    check(",".join("a" * 20) + "->a", *vectors)
    check(",".join("a" * 20) + "->", *vectors)


MANY_LABELS = "abcdefghijklmnopqrst"


@pytest.mark.parametrize("optimizer", ["dp", "greedy", "relational"])
@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("abcdefghi,jklmnopqr->aj", [(2,) * 9, (2,) * 9]),
        ("abcdefghi,jklmnopqr->abcdefghijklmnopqr", [(2, 1, 2, 1, 2, 1, 2, 1, 2), (2,) * 9]),
        (f"{MANY_LABELS[:18]}->ra", [(1, 2) * 9]),
        (f"{MANY_LABELS[:18]},{MANY_LABELS[:18]}->{MANY_LABELS[:18]}", [(1, 2) * 9, (2, 1) * 9]),
        (f"{MANY_LABELS}->t", [(1,) * 16 + (2,) * 4]),
    ],
)
def test_more_labels_than_arrays_have_axes(subscripts: str, shapes: list[tuple[int, ...]], optimizer: str) -> None:
    arrays = [filled(*shape, seed=at) for at, shape in enumerate(shapes)]
    assert_same(se.einsum(subscripts, *arrays, optimizer=optimizer), np.einsum(subscripts, *arrays, optimize=True))


def test_the_dense_baseline_refuses_more_labels_than_arrays_have_axes() -> None:
    with pytest.raises(se.PlanError, match="it has 18 labels, and arrays have at most 16 axes"):
        se.einsum("abcdefghi,jklmnopqr->aj", np.ones((1,) * 9), np.ones((1,) * 9), optimizer="dense")
    with se.connect() as db, pytest.raises(se.ShapeError, match="17 axes inside arrays, which take 16"):
        db.tensor("A", np.ones((1,) * 18), promoted=["dim_0"])


@pytest.mark.parametrize("factors", [30, 60])
def test_large_networks(factors: int) -> None:
    subscripts, shapes, _ = rand_equation(factors, 3, n_out=2, d_max=3, seed=1, return_size_dict=True)
    arrays = [np.random.default_rng(at).random(shape) for at, shape in enumerate(shapes)]
    assert_same(se.einsum(subscripts, *arrays, optimizer="dp"), opt_einsum.contract(subscripts, *arrays))

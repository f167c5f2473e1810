"""Calls of einsum that numpy takes, too, and numpy as their oracle."""

from typing import Any

import numpy as np
import scipy.sparse
from hypothesis import strategies as st
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.api.arrays import compute_in
from sparseeinsum.api.einsum_arguments import EinsumCall, plan_call
from sparseeinsum.api.einsum_operands import read_operands

Array = NDArray[Any]

DTYPES = ("float64", "float32", "int64", "bool", "complex128", "complex64")
TOLERANCES = {"float16": 1e-2, "float32": 2e-5, "complex64": 2e-5}

# Subscripts and the shapes of their operands.
FORMS: list[tuple[str, list[tuple[int, ...]]]] = [
    # Sums, views and diagonals of one operand
    ("i->", [(7,)]),
    ("i->i", [(7,)]),
    ("ij->i", [(2, 3)]),
    ("ij->j", [(2, 3)]),
    ("ij->", [(2, 3)]),
    ("ij->ij", [(2, 3)]),
    ("ij->ji", [(2, 3)]),
    ("ijk->ki", [(2, 3, 4)]),
    ("ijk->j", [(2, 3, 4)]),
    ("ijk->kij", [(2, 3, 4)]),
    ("ijkl->lj", [(2, 3, 2, 4)]),
    ("ii", [(4, 4)]),
    ("ii->", [(3, 3)]),
    ("ii->i", [(4, 4)]),
    ("iij->ij", [(3, 3, 2)]),
    ("iij->ji", [(3, 3, 2)]),
    ("iji->j", [(3, 2, 3)]),
    ("iii", [(3, 3, 3)]),
    ("ijij->ij", [(2, 3, 2, 3)]),
    ("ijij->", [(2, 3, 2, 3)]),
    ("iiii->i", [(3, 3, 3, 3)]),
    ("ijji->ij", [(2, 3, 3, 2)]),
    # Products
    ("i,i", [(5,), (5,)]),
    ("i,i->i", [(5,), (5,)]),
    ("i,j", [(2,), (3,)]),
    ("i,j->ij", [(2,), (3,)]),
    ("ij,j", [(3, 4), (4,)]),
    ("i,ij->j", [(3,), (3, 4)]),
    ("ij,jk->ik", [(2, 3), (3, 4)]),
    ("ij,jk->ki", [(2, 3), (3, 4)]),
    ("ij,kj->ik", [(2, 3), (4, 3)]),
    ("ij,ij->", [(2, 3), (2, 3)]),
    ("ij,ij->ij", [(2, 3), (2, 3)]),
    ("ij,kl->", [(2, 3), (3, 2)]),
    ("ii,i->i", [(3, 3), (3,)]),
    ("ii,jj->ij", [(3, 3), (2, 2)]),
    ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
    ("ijk,kl->lji", [(2, 3, 4), (4, 2)]),
    ("ijk,jkl,kl->", [(2, 3, 4), (3, 4, 2), (4, 2)]),
    ("ijk,jkl,kl->ij", [(2, 3, 4), (3, 4, 2), (4, 2)]),
    ("i,j,k,ijk->", [(2,), (3,), (4,), (2, 3, 4)]),
    ("mi,mi,mi->m", [(3, 4), (3, 4), (3, 4)]),
    ("im,jm,km->ijk", [(2, 3), (4, 3), (2, 3)]),
    ("ijklm,ijn,ijn->", [(2, 2, 3, 2, 2), (2, 2, 3), (2, 2, 3)]),
    ("ijkm,njkm->nkj", [(2, 3, 2, 2), (4, 3, 2, 2)]),
    ("cl,cpx->lpx", [(3, 2), (3, 2, 4)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
    ("ij,jk,kl,lm,mn->in", [(2, 3), (3, 2), (2, 4), (4, 2), (2, 3)]),
    ("ibj,bk,bkj->bi", [(2, 3, 4), (3, 2), (3, 2, 4)]),
    # Implicit results have the labels that occur once, in alphabetical order, capitals first
    ("ba", [(2, 3)]),
    ("bA", [(2, 3)]),
    ("ij,jk", [(2, 3), (3, 4)]),
    ("ij,ij", [(2, 3), (2, 3)]),
    ("jk,ij", [(3, 4), (2, 3)]),
    ("kj,ik", [(2, 3), (4, 2)]),
    ("ca,Bc", [(3, 2), (4, 3)]),
    ("aB,Bc", [(2, 3), (3, 4)]),
    ("ij,jk,kl", [(2, 3), (3, 4), (4, 5)]),
    # Upper and lower case are two labels
    ("ij,Jk->ik", [(2, 3), (4, 5)]),
    ("iI->Ii", [(2, 3)]),
    ("iI,Ii->", [(2, 3), (3, 2)]),
    ("i,I->iI", [(2,), (3,)]),
    # Ellipses
    ("...", [(2, 3)]),
    ("...->...", [()]),
    ("->...", [()]),
    ("i...->...", [(3, 2, 4)]),
    ("i...->...i", [(2, 3, 4)]),
    ("...i->...", [(3, 2, 4)]),
    ("...ij->...ji", [(3, 2, 4)]),
    ("...ij->ij", [(2, 3)]),
    ("ij->i...j", [(2, 3)]),
    ("ii...->...", [(3, 3, 2)]),
    ("i...i", [(2, 5, 2)]),
    ("i...i->i...", [(3, 2, 3)]),
    ("...ii->...i", [(2, 3, 3)]),
    ("...ij,...jk->...ik", [(5, 2, 3), (5, 3, 4)]),
    ("...ij,...jk->...ik", [(4, 1, 2, 3), (5, 3, 4)]),
    ("...ij,...jk->...ik", [(4, 2, 3), (3, 5)]),
    ("...ij,...jk", [(2, 3), (3, 4)]),
    ("...ij,...jk", [(5, 4, 2, 3), (4, 3, 2)]),
    ("ij...,jk...->ik...", [(2, 3, 5), (3, 4, 5)]),
    ("ij...,jk...->ik...", [(2, 3, 4), (3, 2, 4)]),
    ("...i,...i", [(2, 3), (3,)]),
    ("...i,...i", [(4, 1, 3), (2, 3)]),
    ("...i,...j->...ij", [(2, 3), (1, 4)]),
    ("...a,...b", [(3, 2), (3, 4)]),
    ("b...,a...", [(3, 2), (4, 2)]),
    ("i...,...->i...", [(2, 3), (3,)]),
    ("...,...", [(2, 1, 3), (4, 1)]),
    ("...,...", [(4, 1, 3), (2, 3)]),
    ("...a,b...,...c->...abc", [(2, 3), (2, 2), (1, 4)]),
    ("bhqd,bhkd->bhqk", [(2, 2, 3, 4), (2, 2, 5, 4)]),
    # Size 1, of the label or stretched to that of another operand
    ("i,i->", [(1,), (1,)]),
    ("i,i,i->i", [(1,), (3,), (1,)]),
    ("i,i,i,i->i", [(3,), (1,), (3,), (3,)]),
    ("ii,i->i", [(1, 1), (3,)]),
    ("ii,i->i", [(3, 3), (1,)]),
    ("ij,i->", [(1, 4), (3,)]),
    ("ij,ij->", [(1, 1), (2, 3)]),
    ("ij,ij->j", [(2, 1), (1, 3)]),
    ("ij,ij->ij", [(3, 1), (1, 4)]),
    ("ij,jk->ik", [(1, 1), (1, 1)]),
    ("ij,jk->ik", [(2, 1), (3, 4)]),
    ("ij,jk->ik", [(2, 3), (1, 4)]),
    # Size 0
    ("i->", [(0,)]),
    ("i->i", [(0,)]),
    ("ij->i", [(0, 3)]),
    ("ij->j", [(0, 3)]),
    ("ii", [(0, 0)]),
    ("i,i->i", [(1,), (0,)]),
    ("i,j->ij", [(0,), (3,)]),
    ("ij,jk->ik", [(0, 3), (3, 2)]),
    ("ij,jk->ik", [(2, 0), (0, 3)]),
    ("ij,jk->ij", [(2, 3), (3, 0)]),
    ("ij,j,j->i", [(0, 3), (3,), (1,)]),
    ("ij,jk,kl->il", [(2, 3), (3, 0), (0, 4)]),
    ("...i,i", [(0, 3), (3,)]),
    ("i...,i->...", [(2, 0), (2,)]),
    ("...i,...i->...", [(0, 3), (1, 3)]),
    # Scalars
    ("", [()]),
    ("->", [()]),
    (",", [(), ()]),
    (",,", [(), (), ()]),
    (",,i->i", [(), (), (3,)]),
    (",ij->ji", [(), (2, 3)]),
    (",ij,->ji", [(), (2, 3), ()]),
    ("i,->", [(3,), ()]),
    # Spaces
    (" i j , jk -> i k ", [(2, 3), (3, 4)]),
]


def filled(*shape: int, dtype: str = "float64", seed: int = 0) -> Array:
    """Values of both signs where a dtype has them, a third of them 0."""
    rng = np.random.default_rng((seed, *shape))
    values = rng.uniform(-2, 2, shape)
    if np.dtype(dtype).kind in "iu":
        values = np.round(3 * (values if np.dtype(dtype).kind == "i" else np.abs(values)))
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.uniform(-2, 2, shape)
    return np.asarray(np.where(rng.random(shape) < 1 / 3, 0, values)).astype(dtype)


def stored_with(array: Array, fill: float) -> scipy.sparse.coo_array:
    """A sparse matrix that stores all entries other than the fill."""
    coordinates = np.nonzero(array != fill)
    return scipy.sparse.coo_array((array[coordinates], coordinates), shape=array.shape)


def dense(operand: Any) -> Any:  # noqa: ANN401  # an array, a sparse matrix or a list of labels
    return operand.toarray() if hasattr(operand, "toarray") else operand


def assert_same(actual: Array, expected: Any) -> None:  # noqa: ANN401  # an array or a number of numpy
    assert (actual.shape, actual.dtype) == (np.shape(expected), expected.dtype)
    tolerance = TOLERANCES.get(expected.dtype.name, 1e-12)
    scale = float(np.max(np.abs(expected), initial=1, where=np.isfinite(expected))) if expected.dtype != bool else 1
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance * scale)


def check(*arguments: Any, optimizer: str = "dp") -> None:  # noqa: ANN401  # whatever numpy.einsum takes
    """Assert that the result is numpy's, which contracts longer products pair by pair to be fast enough."""
    with np.errstate(all="ignore"):
        expected = np.asarray(np.einsum(*map(dense, arguments), optimize=len(arguments) > 5))
    assert_same(se.einsum(*arguments, optimizer=optimizer), expected)


def planned(*arguments: Any, fill: float = 0, join: str = "*", agg: str = "sum") -> EinsumCall:  # noqa: ANN401
    """The program of a call of `se.einsum`."""
    text, operands = read_operands(arguments, fill)
    return plan_call(text, operands, join, agg)


def einsum_in(db: se.Database, *arguments: Any, optimizer: str = "dp", **keywords: Any) -> Array:  # noqa: ANN401  # as einsum
    """`se.einsum` in an open database, which is faster."""
    call = planned(*arguments, **keywords)
    return call.convert(compute_in(db, call, optimizer).to_numpy())


@st.composite
def calls(draw: st.DrawFn, labels: str, dtypes: tuple[str, ...], sparse: bool = False) -> tuple[str, list[Any]]:
    """Subscripts, maybe with ellipses, and fitting operands of any number and dtype, sparse on request."""
    sizes = {label: draw(st.integers(0, 4)) for label in f"{labels}0123"}
    operands, terms = [], []
    for at in range(draw(st.integers(1, 4))):
        own = draw(st.lists(st.sampled_from(labels), max_size=3))
        axes, term = own, "".join(own)
        if draw(st.integers(0, 2)) == 0:
            count, place = draw(st.integers(0, 2)), draw(st.integers(0, len(own)))
            axes = [*own[:place], *"0123"[4 - count :], *own[place:]]
            term = f"{term[:place]}...{term[place:]}"
        stretched = {label for label in axes if draw(st.integers(0, 4)) == 0}
        shape = [1 if label in stretched else sizes[label] for label in axes]
        array = filled(*shape, seed=at, dtype=draw(st.sampled_from(dtypes)))
        can_be_sparse = sparse and array.ndim == 2 and array.dtype != np.float16  # which scipy has no sparse arrays of
        is_sparse = can_be_sparse and draw(st.booleans())
        operands.append(scipy.sparse.coo_array(array) if is_sparse else array)
        terms.append(term)
    subscripts = ",".join(terms)
    if draw(st.booleans()):
        used = sorted({label for term in terms for label in term if label != "."})
        result_labels = [label for label in draw(st.permutations(used)) if draw(st.booleans())]
        subscripts += "->" + "..." * draw(st.booleans()) + "".join(result_labels)
    return subscripts, operands

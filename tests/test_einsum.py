"""`se.einsum` as a user of numpy, opt_einsum, PyData/sparse or semiring-einsum would call it."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import opt_einsum
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from opt_einsum.testing import rand_equation

import sparseeinsum as se
from sparseeinsum.arrays import read_call
from sparseeinsum.language.numpy_notation import RESULT_NAME

Array = NDArray[Any]

DTYPES = ("float64", "float32", "int64", "bool", "complex128", "complex64")
TOLERANCES = {"float16": 1e-2, "float32": 2e-5, "complex64": 2e-5}


def filled(*shape: int, dtype: str = "float64", seed: int = 0) -> Array:
    """Values of both signs, a third of them 0."""
    rng = np.random.default_rng((seed, *shape))
    values = rng.uniform(-2, 2, shape)
    if np.dtype(dtype).kind in "iu":
        values = np.round(3 * np.abs(values))
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.uniform(-2, 2, shape)
    return np.asarray(np.where(rng.random(shape) < 1 / 3, 0, values)).astype(dtype)


def dense(operand: Any) -> Any:  # noqa: ANN401  # an array, a sparse matrix or a list of labels
    return operand.toarray() if hasattr(operand, "toarray") else operand


def assert_same(found: Array, wanted: Any) -> None:  # noqa: ANN401  # an array or a number of numpy
    assert (found.shape, found.dtype) == (np.shape(wanted), wanted.dtype)
    tolerance = TOLERANCES.get(wanted.dtype.name, 1e-12)
    scale = float(np.max(np.abs(wanted), initial=1, where=np.isfinite(wanted))) if wanted.dtype != bool else 1
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * scale)


def check(*arguments: Any, optimizer: str = "dp") -> None:  # noqa: ANN401  # whatever numpy.einsum takes
    """The same as numpy, which contracts longer products pair by pair to be done in time."""
    with np.errstate(all="ignore"):
        wanted = np.asarray(np.einsum(*map(dense, arguments), optimize=len(arguments) > 5))
    assert_same(se.einsum(*arguments, optimizer=optimizer), wanted)


def einsum_in(db: se.Database, *arguments: Any, optimizer: str = "dp", **keywords: Any) -> Array:  # noqa: ANN401  # as einsum
    """`se.einsum` in a database that is open already, which is faster."""
    call = read_call(arguments, **keywords)
    for name, data in call.operands.items():
        db.tensor(name, data, fill=keywords.get("fill", 0) if scipy.sparse.issparse(data) else 0)
    results = db.run(call.program, optimizer=optimizer, layout="any", nonfinite="allow")
    return call.convert(results[RESULT_NAME].to_numpy())


# Networks of tensors

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
    wanted = np.asarray(np.einsum(subscripts, *arrays))
    assert_same(einsum_in(shared_db, subscripts, *arrays), wanted)
    dtypes = itertools.cycle((dtype, "bool", "float32", "int64"))
    mixed = [filled(*shape, seed=at, dtype=each) for at, (shape, each) in enumerate(zip(shapes, dtypes, strict=False))]
    wanted = np.asarray(np.einsum(subscripts, *mixed))
    assert_same(einsum_in(shared_db, subscripts, *mixed), wanted)


@pytest.mark.parametrize("optimizer", ["dp", "greedy", "relational", "dense"])
@pytest.mark.parametrize("seed", range(7))
def test_random_networks(shared_db: se.Database, seed: int, optimizer: str) -> None:
    """As opt_einsum makes them: tensors that share labels with so many others, and labels left over."""
    subscripts, shapes = rand_equation(3 + seed, 2 + seed % 2, n_out=seed % 3, d_min=1, d_max=3, seed=seed)
    arrays = [filled(*shape, seed=at) for at, shape in enumerate(shapes)]
    wanted = np.asarray(opt_einsum.contract(subscripts, *arrays))
    assert_same(einsum_in(shared_db, subscripts, *arrays, optimizer=optimizer), wanted)


def test_a_chain_of_many_matrices() -> None:
    matrices = [np.linalg.qr(filled(4, 4, seed=at))[0] for at in range(30)]
    arguments = [part for at, matrix in enumerate(matrices) for part in (matrix, [at, at + 1])]
    np.testing.assert_allclose(se.einsum(*arguments, [0, 30]), np.linalg.multi_dot(matrices), rtol=1e-10, atol=1e-12)


def test_a_lattice_of_tensors() -> None:
    """Every tensor shares a label with its neighbours; none is left."""
    rows, columns = 4, 4
    arguments: list[Any] = []
    for row, column in itertools.product(range(rows), range(columns)):
        at = 2 * (row * columns + column)
        right, below = at, at + 1
        labels = [right] * (column + 1 < columns) + [below] * (row + 1 < rows)
        labels += [at - 2] * (column > 0) + [at - 2 * columns + 1] * (row > 0)
        arguments += [filled(*(2,) * len(labels), seed=at), labels]
    wanted = np.asarray(opt_einsum.contract(*arguments, []))
    np.testing.assert_allclose(se.einsum(*arguments, []), wanted, rtol=1e-10, atol=1e-9)


def test_a_star_of_tensors_around_one_label() -> None:
    vectors = [filled(3, seed=at) + 1 for at in range(20)]
    check(",".join("a" * 20) + "->a", *vectors)
    check(",".join("a" * 20) + "->", *vectors)


# What numpy takes

FORMS: list[tuple[str, list[tuple[int, ...]]]] = [
    # Sums, views and diagonals of one operand
    ("i->", [(7,)]),
    ("i->i", [(7,)]),
    ("ijk->ki", [(2, 3, 4)]),
    ("ijk->j", [(2, 3, 4)]),
    ("ijkl->lj", [(2, 3, 2, 4)]),
    ("ii", [(4, 4)]),
    ("ii->i", [(4, 4)]),
    ("iij->ji", [(3, 3, 2)]),
    ("ijij->ij", [(2, 3, 2, 3)]),
    ("ijij->", [(2, 3, 2, 3)]),
    ("iiii->i", [(3, 3, 3, 3)]),
    ("ijji->ij", [(2, 3, 3, 2)]),
    # Products
    ("i,i", [(5,), (5,)]),
    ("i,i->i", [(5,), (5,)]),
    ("i,j", [(2,), (3,)]),
    ("ij,j", [(3, 4), (4,)]),
    ("i,ij->j", [(3,), (3, 4)]),
    ("ijk,jkl,kl->", [(2, 3, 4), (3, 4, 2), (4, 2)]),
    ("ijk,jkl,kl->ij", [(2, 3, 4), (3, 4, 2), (4, 2)]),
    ("mi,mi,mi->m", [(3, 4), (3, 4), (3, 4)]),
    ("im,jm,km->ijk", [(2, 3), (4, 3), (2, 3)]),
    ("ijklm,ijn,ijn->", [(2, 2, 3, 2, 2), (2, 2, 3), (2, 2, 3)]),
    ("ijkm,njkm->nkj", [(2, 3, 2, 2), (4, 3, 2, 2)]),
    ("cl,cpx->lpx", [(3, 2), (3, 2, 4)]),
    ("ij,jk,kl,lm,mn->in", [(2, 3), (3, 2), (2, 4), (4, 2), (2, 3)]),
    ("ibj,bk,bkj->bi", [(2, 3, 4), (3, 2), (3, 2, 4)]),
    # The result's labels by the alphabet
    ("jk,ij", [(3, 4), (2, 3)]),
    ("ca,Bc", [(3, 2), (4, 3)]),
    # Ellipses
    ("...", [(2, 3)]),
    ("...->...", [()]),
    ("i...->...", [(3, 2, 4)]),
    ("...i->...", [(3, 2, 4)]),
    ("...ij->...ji", [(3, 2, 4)]),
    ("ii...->...", [(3, 3, 2)]),
    ("i...i->i...", [(3, 2, 3)]),
    ("...ij,...jk->...ik", [(5, 2, 3), (5, 3, 4)]),
    ("...ij,...jk->...ik", [(4, 1, 2, 3), (5, 3, 4)]),
    ("...ij,...jk", [(2, 3), (3, 4)]),
    ("ij...,jk...->ik...", [(2, 3, 5), (3, 4, 5)]),
    ("...i,...i", [(2, 3), (3,)]),
    ("...i,...j->...ij", [(2, 3), (1, 4)]),
    ("i...,...->i...", [(2, 3), (3,)]),
    ("...,...", [(2, 1, 3), (4, 1)]),
    ("...a,b...,...c->...abc", [(2, 3), (2, 2), (1, 4)]),
    ("bhqd,bhkd->bhqk", [(2, 2, 3, 4), (2, 2, 5, 4)]),
    # Sizes 1 that stretch, sizes 0
    ("ij,ij->ij", [(3, 1), (1, 4)]),
    ("ij,jk->ik", [(2, 1), (3, 4)]),
    ("i,i,i->i", [(1,), (3,), (1,)]),
    ("ij,i->", [(1, 4), (3,)]),
    ("ij,jk->ik", [(1, 1), (1, 1)]),
    ("ij,jk->ik", [(2, 0), (0, 3)]),
    ("ij,jk->ij", [(2, 3), (3, 0)]),
    ("i,j->ij", [(0,), (3,)]),
    ("ij,j,j->i", [(0, 3), (3,), (1,)]),
    ("ij,jk,kl->il", [(2, 3), (3, 0), (0, 4)]),
    ("...i,i", [(0, 3), (3,)]),
    # Scalars
    ("", [()]),
    (",,", [(), (), ()]),
    (",ij,->ji", [(), (2, 3), ()]),
    ("i,->", [(3,), ()]),
    # Spaces
    (" ij , jk -> i k", [(2, 3), (3, 4)]),
]


@pytest.mark.parametrize(("subscripts", "shapes"), FORMS)
def test_forms(shared_db: se.Database, subscripts: str, shapes: list[tuple[int, ...]]) -> None:
    arrays = [filled(*shape, seed=at) for at, shape in enumerate(shapes)]
    assert_same(einsum_in(shared_db, subscripts, *arrays), np.asarray(np.einsum(subscripts, *arrays)))


@pytest.mark.parametrize("optimizer", ["dp", "greedy", "relational", "dense"])
def test_optimizers(optimizer: str) -> None:
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


def test_views_and_what_is_like_an_array() -> None:
    array = filled(4, 6)
    check("ij,kj->ik", array.T[::2], array[::-1].T)
    check("ij,j->i", [[1.0, 2.0], [3.0, 4.0]], (0.5, 2.0))
    check(",i->i", 2.5, np.arange(3.0))


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
    """As in numpy: two of float32 beside one of float64 lose no digits."""
    a = np.array([[1 / 3, 1 / 7]], np.float32)
    b = np.array([[3.0]])
    assert_same(einsum_in(shared_db, "ij,kj,kl->il", a, a, b), np.einsum("ij,kj,kl->il", a, a, b))


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, list[Any]]:
    """Subscripts with ellipses and operands that fit, of any number, dtype and density."""
    sizes = {label: draw(st.integers(0, 4)) for label in "abcI0123"}
    operands, terms = [], []
    for at in range(draw(st.integers(1, 4))):
        labels = draw(st.lists(st.sampled_from("abcI"), max_size=3))
        axes, term = labels, "".join(labels)
        if draw(st.integers(0, 2)) == 0:
            count, place = draw(st.integers(0, 2)), draw(st.integers(0, len(labels)))
            axes = [*labels[:place], *"0123"[4 - count :], *labels[place:]]
            term = f"{term[:place]}...{term[place:]}"
        stretched = {label for label in axes if draw(st.integers(0, 4)) == 0}
        shape = [1 if label in stretched else sizes[label] for label in axes]
        array = filled(*shape, seed=at, dtype=draw(st.sampled_from(DTYPES)))
        is_sparse = array.ndim == 2 and draw(st.booleans())
        operands.append(scipy.sparse.coo_array(array) if is_sparse else array)
        terms.append(term)
    subscripts = ",".join(terms)
    if draw(st.booleans()):
        used = sorted({label for term in terms for label in term if label != "."})
        kept = [label for label in draw(st.permutations(used)) if draw(st.booleans())]
        subscripts += "->" + "..." * draw(st.booleans()) + "".join(kept)
    return subscripts, operands


@settings(max_examples=100)
@given(call=calls(), optimizer=st.sampled_from(["dp", "relational", "dense"]))
def test_any_call(shared_db: se.Database, call: tuple[str, list[Any]], optimizer: str) -> None:
    subscripts, operands = call
    try:
        wanted = np.asarray(np.einsum(subscripts, *map(dense, operands)))
    except ValueError:
        with pytest.raises((se.ParseError, se.ShapeError)):
            einsum_in(shared_db, subscripts, *operands)
        return
    assert_same(einsum_in(shared_db, subscripts, *operands, optimizer=optimizer), wanted)


# Sparse operands

FORMATS: list[Callable[[Array], Any]] = [
    scipy.sparse.csr_array,
    scipy.sparse.csc_matrix,
    scipy.sparse.coo_array,
    scipy.sparse.lil_array,
    scipy.sparse.dia_array,
    scipy.sparse.bsr_array,
]


@pytest.mark.parametrize("sparse", FORMATS)
def test_sparse_formats(sparse: Callable[[Array], Any]) -> None:
    check("ij,jk->ki", sparse(filled(4, 6)), sparse(filled(6, 4)))
    check("ij,ij,jk->ik", sparse(filled(4, 6)), filled(4, 6, seed=1), sparse(filled(6, 2)))


@pytest.mark.parametrize(
    "subscripts", ["ij,jk->ik", "ij,kj->ik", "ij,jk->", "ij,jk->ijk", "ij,kl->", "ij,jk,kl->il", "ij,jk,ki->", "ij->ji"]
)
@pytest.mark.parametrize("optimizer", ["dp", "relational", "dense"])
def test_sparse_products(shared_db: se.Database, subscripts: str, optimizer: str) -> None:
    count = subscripts.count(",") + 1
    matrices: list[Any] = [
        scipy.sparse.random_array((30, 30), density=0.05, rng=at, format="csr") for at in range(count)
    ]
    wanted = np.asarray(np.einsum(subscripts, *(matrix.toarray() for matrix in matrices)))
    assert_same(einsum_in(shared_db, subscripts, *matrices, optimizer=optimizer), wanted)


def test_sparse_operands_beside_dense_ones_of_more_axes() -> None:
    graph = scipy.sparse.random_array((20, 20), density=0.1, rng=0)
    check("ij,jbc->ibc", graph, filled(20, 3, 4))
    check("ij,bjc,c->bi", graph, filled(2, 20, 4), filled(4))
    check("ij,i,j->", graph, filled(20), filled(20, seed=1))


def test_what_nothing_is_stored_of() -> None:
    check("ij,jk->ik", scipy.sparse.csr_array((3, 4)), filled(4, 2))
    check("ij,jk->ik", scipy.sparse.csr_array((0, 4)), scipy.sparse.csr_array((4, 2)))


# Other semirings

SEMIRINGS: dict[tuple[str, str], Callable[..., Any]] = {
    ("+", "min"): np.min,
    ("+", "max"): np.max,
    ("+", "logsumexp"): np.logaddexp.reduce,
    ("*", "max"): np.max,
    ("*", "min"): np.min,
    ("*", "prod"): np.prod,
    ("max", "min"): np.min,
    ("min", "max"): np.max,
    ("max", "sum"): np.sum,
    ("-", "max"): np.max,
    ("(u - v) ^ 2", "sum"): np.sum,
    ("abs(u - v)", "max"): np.max,
    ("u <= v", "all"): np.all,
    ("u > v", "any"): np.any,
    ("u != v", "sum"): np.sum,
}
JOINS: dict[str, Callable[[Array, Array], Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "(u - v) ^ 2": lambda u, v: (u - v) ** 2,
    "abs(u - v)": lambda u, v: np.abs(u - v),
    "u <= v": np.less_equal,
    "u > v": np.greater,
    "u != v": np.not_equal,
}


@pytest.mark.parametrize("fill", [0.0, 1.0, math.inf, -math.inf])
@pytest.mark.parametrize(("join", "agg"), SEMIRINGS)
@pytest.mark.parametrize("sparse", [False, True])
def test_semirings(shared_db: se.Database, join: str, agg: str, fill: float, sparse: bool) -> None:
    arrays = [np.where(filled(5, 6, seed=at) == 0, fill, filled(5, 6, seed=at)) for at in range(2)]
    operands: list[Any] = [stored_with(array, fill) for array in arrays] if sparse else arrays
    with np.errstate(invalid="ignore"):
        joined = JOINS[join](arrays[0][:, None], arrays[1])
        wanted = np.asarray(SEMIRINGS[join, agg](joined, axis=2))
        of_all = np.asarray(SEMIRINGS[join, agg](joined.reshape(-1)))
    given: dict[str, Any] = {"join": join, "agg": agg, "fill": fill}
    assert_same(einsum_in(shared_db, "ij,kj->ik", *operands, **given), wanted)
    assert_same(einsum_in(shared_db, "ij,kj->", *operands, **given), of_all)


def stored_with(array: Array, fill: float) -> scipy.sparse.coo_array:
    """A sparse matrix that stores what is not the fill."""
    coordinates = np.nonzero(array != fill)
    return scipy.sparse.coo_array((array[coordinates], coordinates), shape=array.shape)


def test_shortest_paths() -> None:
    """Distances of three steps in a graph, where no edge is an infinite distance."""
    distances = np.full((6, 6), np.inf)
    for at in range(5):
        distances[at, at + 1] = at + 1.0
    steps = stored_with(distances, np.inf)
    found = se.einsum("ij,jk,kl->il", steps, steps, steps, join="+", agg="min", fill=np.inf)
    wanted = np.full((6, 6), np.inf)
    for at in range(3):
        wanted[at, at + 3] = 3 * at + 6.0
    np.testing.assert_array_equal(found, wanted)


def test_the_likeliest_path_of_a_hidden_markov_model() -> None:
    """As Viterbi: the greatest sum of logarithms, and all paths together."""
    start, steps, seen = filled(4), filled(4, 4), filled(4, 4, seed=1)
    joined = start[:, None, None] + steps[:, :, None] + seen[None]
    call = ("i,ij,jk->k", start, steps, seen)
    assert_same(se.einsum(*call, join="+", agg="max"), joined.max(axis=(0, 1)))
    assert_same(se.einsum(*call, join="+", agg="logsumexp"), np.log(np.exp(joined).sum(axis=(0, 1))))


def test_sums_of_logarithms_of_large_and_of_no_weights() -> None:
    large = np.array([[1000.0, 1000.0, -1000.0], [-np.inf, -np.inf, -np.inf], [0.0, -np.inf, 710.0]])
    wanted = np.logaddexp.reduce(large, axis=1)
    assert_same(se.einsum("ij->i", large, agg="logsumexp"), wanted)
    found = se.einsum("ij->i", stored_with(large, -np.inf), agg="logsumexp", fill=-np.inf)
    assert_same(found, wanted)


def test_reachability() -> None:
    edges = filled(6, 6) > 0.8
    assert_same(se.einsum("ij,jk->ik", edges, edges), (edges[:, :, None] & edges).any(axis=1))
    found = se.einsum("ij,jk->ik", scipy.sparse.csr_array(edges), edges, join="or", agg="all")
    assert_same(found, (edges[:, :, None] | edges).all(axis=1))


@pytest.mark.parametrize("agg", ["sum", "prod", "max", "min", "any", "all", "logsumexp"])
@pytest.mark.parametrize("fill", [0.0, 2.5, -math.inf])
def test_aggregates_of_one_sparse_operand(shared_db: se.Database, agg: str, fill: float) -> None:
    array = np.where(filled(5, 6) == 0, fill, filled(5, 6))
    numpys = {"logsumexp": np.logaddexp.reduce}
    for subscripts, axes in (("ij->i", 1), ("ij->j", 0), ("ij->", (0, 1))):
        fold = numpys.get(agg) or getattr(np, agg)
        wanted = fold(array.reshape(-1)) if axes == (0, 1) else fold(array, axis=axes)
        found = einsum_in(shared_db, subscripts, stored_with(array, fill), agg=agg, fill=fill)
        assert_same(found, np.asarray(wanted))


def test_joins_of_several_operands() -> None:
    u, v, w = filled(3), filled(3, seed=1), filled(3, seed=2)
    np.testing.assert_allclose(se.einsum("i,i,i->i", u, v, w, join="where(u < v, w, 2)"), np.where(u < v, w, 2.0))
    np.testing.assert_allclose(se.einsum("i,j,k->", u, v, w, join="+", agg="max"), u.max() + v.max() + w.max())
    np.testing.assert_allclose(se.einsum("i,i,i->", u, v, w, join="u * exp(v - w)"), (u * np.exp(v - w)).sum())
    np.testing.assert_allclose(se.einsum("i->i", u, join="sigmoid(u)"), 1 / (1 + np.exp(-u)))
    np.testing.assert_allclose(se.einsum("i,i->i", u, v + 3, join="/"), u / (v + 3))

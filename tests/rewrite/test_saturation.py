"""Equality saturation derives the sum-product rewrites of SystemML (SPORES, figure 14)."""

import functools
import operator
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparseeinsum as se
from sparseeinsum.environment.extras import imported_alone
from sparseeinsum.errors import PackageError
from sparseeinsum.language.binding import bind
from sparseeinsum.language.tensors import Axis, Tensor
from sparseeinsum.rewrite.saturation.eclass_sizes import sizes_of
from sparseeinsum.rewrite.saturation.egraph import EClasses, ENode, SaturationLimits, saturate
from sparseeinsum.rewrite.saturation.extractor import Extractor
from sparseeinsum.rewrite.saturation.term_reading import GroupTerms, read_terms
from sparseeinsum.rewrite.saturation.terms import Add, AggregateTerm, Apply, Leaf, Mul, NumberTerm, Sum, Term
from sparseeinsum.semantics.dense import evaluate_program

X, Z, A, B, C, U, V, E = map(se.matrix, "XZABCUVE")
Y = se.matrix("Y2")
y, v, ones = se.vector("y1"), se.vector("v1"), se.vector("ones")
s, eps, one = se.scalar("s"), se.scalar("eps"), se.scalar("one")
ANY: Any = X  # numpy knows the types of its functions' own operands alone
RANKS = {"ones": 1, "y1": 1, "v1": 1, "s": 0, "eps": 0, "one": 0}

CONSTANTS = {"E": 0.0, "ones": 1.0, "one": 1.0}

Pair = tuple[Callable[[], se.Matrix], Callable[[], se.Matrix]]

# E is empty, ones holds 1 alone, and one is 1. Matrices of one row or column have no label for it: they are vectors.
REWRITES: dict[str, Sequence[Pair]] = {
    "UnnecessaryOuterProduct": [
        (lambda: X * (y @ ones.T), lambda: X * y),
        (lambda: (ones @ y.T) * X, lambda: X * y.T),
        (lambda: X / (y @ ones.T), lambda: X / y),
    ],
    "ColwiseAgg": [
        (lambda: y.colsums(), lambda: y.sum()),
        (lambda: y.T.colsums(), lambda: y.T),
        (lambda: s.colsums(), lambda: s),
    ],
    "RowwiseAgg": [
        (lambda: y.T.rowsums(), lambda: y.sum()),
        (lambda: y.rowsums(), lambda: y),
        (lambda: s.rowsums(), lambda: s),
    ],
    "ColSumsMVMult": [(lambda: (X * y).colsums(), lambda: y.T @ X)],
    "RowSumsMVMult": [(lambda: (X * y.T).rowsums(), lambda: X @ y)],
    "UnnecessaryAggregate": [
        (lambda: s.sum(), lambda: s),
        (lambda: s.rowsums(), lambda: s),
        (lambda: s.T.colsums(), lambda: s),
    ],
    "EmptyAgg": [
        (lambda: E.sum(), lambda: 0 * s),
        (lambda: E.rowsums(), lambda: 0 * y),
        (lambda: E.colsums(), lambda: 0 * y.T),
    ],
    "EmptyReorgOp": [(lambda: E.T, lambda: 0 * X)],
    "EmptyMMult": [(lambda: X @ E, lambda: 0 * X), (lambda: E @ X, lambda: 0 * X)],
    "IdentityRepMatrixMult": [(lambda: y @ one, lambda: y)],
    "ScalarMatrixMult": [(lambda: y @ s, lambda: y * s), (lambda: s @ y.T, lambda: y.T * s)],
    "pushdownSumOnAdd": [
        (lambda: (A + B).sum(), lambda: A.sum() + B.sum()),
        (lambda: (A - B).sum(), lambda: A.sum() - B.sum()),
    ],
    "DotProductSum": [(lambda: (v**2).sum(), lambda: v.T @ v), (lambda: (v * y).sum(), lambda: v.T @ y)],
    "reorderMinusMatrixMult": [
        (lambda: (-X.T) @ y, lambda: -(X.T @ y)),
        (lambda: X.T @ (-y), lambda: -(X.T @ y)),
    ],
    "SumMatrixMult": [
        (lambda: (A @ B).sum(), lambda: (A.colsums().T * B.rowsums()).sum()),
        (lambda: (A @ y).sum(), lambda: (A.colsums().T * y).sum()),
        (lambda: (y.T @ B).sum(), lambda: (y * B.rowsums()).sum()),
    ],
    "EmptyBinaryOperation": [(lambda: X * E, lambda: 0 * X), (lambda: X + E, lambda: X), (lambda: X - E, lambda: X)],
    "ScalarMVBinaryOperation": [(lambda: X * s, lambda: s * X)],
    "UnnecessaryBinaryOperation": [
        (lambda: X * 1, lambda: X),
        (lambda: 1 * X, lambda: X),
        (lambda: X / 1, lambda: X),
        (lambda: X + 0, lambda: X),
        (lambda: X - 0, lambda: X),
        (lambda: -1 * X, lambda: -X),
    ],
    "BinaryToUnaryOperation": [
        (lambda: X * X, lambda: X**2),
        (lambda: X + X, lambda: X * 2),
        (lambda: 1 * (X > 0) - (X < 0), lambda: np.sign(ANY)),
    ],
    "MatrixMultScalarAdd": [
        (lambda: eps + U @ V.T, lambda: U @ V.T + eps),
        (lambda: U @ V.T - eps, lambda: -eps + U @ V.T),
    ],
    "DistributiveBinaryOperation": [
        (lambda: X - Y * X, lambda: (1 - Y) * X),
        (lambda: X - X * Y, lambda: X * (1 - Y)),
        (lambda: X + Y * X, lambda: (1 + Y) * X),
        (lambda: X + X * Y, lambda: X * (1 + Y)),
    ],
    "BushyBinaryOperation": [
        (lambda: X * (Y * (Z @ v)), lambda: (X * Y) * (Z @ v)),
        (lambda: X * ((Z @ v) * Y), lambda: (X * Y) * (Z @ v)),
        (lambda: ((Z @ v) * Y) * X, lambda: (X * Y) * (Z @ v)),
    ],
    "UnaryAggReorgOperation": [
        (lambda: X.T.sum(), lambda: X.sum()),
        (lambda: (-X).T.sum(), lambda: -X.sum()),
        (lambda: X.T.trace(), lambda: X.trace()),
    ],
    "UnnecessaryAggregates": [
        (lambda: X.rowsums().sum(), lambda: X.sum()),
        (lambda: X.colsums().sum(), lambda: X.sum()),
        (lambda: X.sum().sum(), lambda: X.sum()),
        (lambda: X.rowsums().rowsums(), lambda: X.rowsums()),
        (lambda: X.colsums().colsums(), lambda: X.colsums()),
        (lambda: X.rowsums().colsums(), lambda: X.sum()),
        (lambda: X.colsums().rowsums(), lambda: X.sum()),
        (lambda: X.sum().rowsums(), lambda: X.sum()),
    ],
    "BinaryMatrixScalarOperation": [
        (lambda: (v.T @ y) * s, lambda: v.T @ (y * s)),
        (lambda: (v.T @ y) + s, lambda: s + v.T @ y),
        (lambda: (v.T @ y) - s, lambda: -s + v.T @ y),
    ],
    "pushdownUnaryAggTransposeOp": [
        (lambda: X.T.colsums(), lambda: X.rowsums().T),
        (lambda: X.T.rowsums(), lambda: X.colsums().T),
    ],
    "pushdownCSETransposeScalarOp": [(lambda: (X**2).T, lambda: X.T**2)],
    "pushdownSumBinaryMult": [
        (lambda: (s * X).sum(), lambda: s * X.sum()),
        (lambda: (X * s).sum(), lambda: X.sum() * s),
    ],
    "UnnecessaryReorgOperation": [(lambda: X.T.T, lambda: X), (lambda: (X.T @ Y.T).T, lambda: Y @ X)],
    "TransposeAggBinBinaryChains": [
        (lambda: (A.T @ B.T + C).T, lambda: B @ A + C.T),
        (lambda: (A.T @ B.T).T, lambda: B @ A),
    ],
    "UnnecessaryMinus": [(lambda: (-X) * (-1), lambda: X)],
}


def test_number_of_methods() -> None:
    assert len(REWRITES) == 31


def reading(matrix: se.Matrix) -> GroupTerms:
    program = se.program({"R": matrix})
    tensors = {name: _tensor(name) for name in program.inputs}
    graph = bind(program, tensors)
    return read_terms(graph.einsums, graph.einsums[-1:], graph)


def _tensor(name: str) -> Tensor:
    return Tensor(name, tuple(Axis(f"a{axis}", 5) for axis in range(RANKS.get(name, 2))))


def known_constants(classes_of: Sequence[Term]) -> Iterator[tuple[Term, Term]]:
    for term in classes_of:
        for leaf in leaves(term):
            if leaf.reference.tensor in CONSTANTS:
                yield leaf, NumberTerm(CONSTANTS[leaf.reference.tensor])


def leaves(term: Term) -> Iterator[Leaf]:
    match term:
        case Leaf():
            yield term
        case Add(left, right) | Mul(left, right):
            yield from leaves(left)
            yield from leaves(right)
        case Sum(_, body) | AggregateTerm(_, _, body):
            yield from leaves(body)
        case Apply(_, arguments):
            for argument in arguments:
                yield from leaves(argument)


def finds(classes: EClasses, name: str, term: Term, labels: Mapping[str, str]) -> bool:
    """Whether a class contains a term, up to the names of summed labels."""
    return any(_holds(classes, node, term, labels) for node in classes.nodes[name])


def _holds(classes: EClasses, node: ENode, term: Term, labels: Mapping[str, str]) -> bool:
    match term:
        case Leaf(reference):
            if node.operator != "Leaf":
                return False
            leaf = classes.leaves[int(node.names[0])]
            return leaf.tensor == reference.tensor and leaf.labels == tuple(
                labels.get(label, label) for label in reference.labels
            )
        case NumberTerm(value):
            return node.operator == "Number" and float(node.names[0]) == value
        case Sum(label, body):
            return node.operator == "Sum" and finds(classes, node.children[0], body, {**labels, label: node.names[0]})
        case Add(left, right) | Mul(left, right):
            return node.operator == type(term).__name__ and all(
                finds(classes, child, part, labels) for child, part in zip(node.children, (left, right), strict=True)
            )
        case Apply(function, arguments):
            return (node.operator, node.names) == ("Apply", (function,)) and all(
                finds(classes, child, part, labels) for child, part in zip(node.children, arguments, strict=True)
            )
        case _:
            return False


@pytest.mark.parametrize("method", REWRITES)
def test_saturation_derives_the_rewrites_of_systemml(method: str) -> None:
    for left, right in REWRITES[method]:
        terms_read, expected = reading(left()), reading(right()).terms[0]
        classes = saturate(
            terms_read.terms, terms_read.bounds, [*terms_read.equal_pairs, *known_constants(terms_read.terms)]
        )
        assert classes.is_saturated
        is_zero = isinstance(expected, Mul) and expected.left == NumberTerm(0.0)
        assert finds(classes, classes.roots[0], NumberTerm(0.0) if is_zero else expected, {}), str(right())


def test_limits_end_it_with_partial_classes() -> None:
    terms_read = reading(((X - U @ V.T) ** 2).sum())
    whole = saturate(terms_read.terms, terms_read.bounds, terms_read.equal_pairs, SaturationLimits(seconds=60))
    assert whole.is_saturated
    for limits in (SaturationLimits(nodes=200), SaturationLimits(rounds=3), SaturationLimits(seconds=0)):
        limited = saturate(terms_read.terms, terms_read.bounds, terms_read.equal_pairs, limits)
        assert not limited.is_saturated
        assert limited.count() < whole.count()
        assert finds(limited, limited.roots[0], terms_read.terms[0], {})


@contextmanager
def busy_threads(number: int) -> Iterator[None]:
    """Within the block, other threads occupy Python most of the time."""
    is_over = threading.Event()

    def work() -> None:
        while not is_over.is_set():
            pass

    threads = [threading.Thread(target=work) for _ in range(number)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def test_load_of_the_machine_is_no_limit() -> None:
    terms_read = reading(((X - U @ V.T) ** 2).sum())
    alone = saturate(terms_read.terms, terms_read.bounds, terms_read.equal_pairs)
    start = time.perf_counter()
    with busy_threads(6):
        saturated = saturate(terms_read.terms, terms_read.bounds, terms_read.equal_pairs)
    assert time.perf_counter() - start > SaturationLimits().seconds  # else it was not busy enough to tell
    assert saturated.is_saturated
    assert saturated.count() == alone.count()


@pytest.mark.parametrize("method", REWRITES)
def test_both_sides_are_equal_numerically(method: str) -> None:
    random = np.random.default_rng(3)
    for left, right in REWRITES[method]:
        programs = [se.program({"R": side()}) for side in (left, right)]
        names = {name for program in programs for name in program.inputs}
        tensors = {name: random.normal(size=(5,) * RANKS.get(name, 2)) for name in names}
        tensors |= {
            name: np.full_like(tensors[name], value)
            for name, value in (("E", 0), ("ones", 1), ("one", 1))
            if name in names
        }
        results = [evaluate_program(program, tensors)["R"] for program in programs]
        np.testing.assert_allclose(results[0], results[1], rtol=1e-12, atol=1e-12)


def test_expressions_that_explode_are_saturated_in_part() -> None:
    limits = SaturationLimits(seconds=60, nodes=3000)
    for factors in (4, 8, 16):
        sums = [se.matrix(f"A{factor}") + se.matrix(f"B{factor}") for factor in range(factors)]
        expression = functools.reduce(operator.mul, sums)
        terms_read = reading((expression * (U @ V.T)).sum())
        classes = saturate(terms_read.terms, terms_read.bounds, terms_read.equal_pairs, limits)
        assert not classes.is_saturated
        assert classes.count() < 2 * limits.nodes
        assert finds(classes, classes.roots[0], terms_read.terms[0], {})
        sizes = sizes_of(classes, terms_read.bounds, dict.fromkeys(classes.leaves, 1.0))
        extractor = Extractor.with_tree_costs(classes, sizes)
        assert extractor.with_sharing(classes.roots).cost <= extractor.greedy(classes.roots).cost


def test_a_module_of_a_package_is_imported_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the package itself imports takes longer than many searches; a package that is missing is named."""
    package = tmp_path / "slow_package"
    package.mkdir()
    (package / "__init__.py").write_text("raise AssertionError")
    (package / "part.py").write_text("VALUE = 1")
    monkeypatch.syspath_prepend(tmp_path)
    assert imported_alone("slow_package", "part", "rewriting", "this").VALUE == 1
    monkeypatch.delitem(sys.modules, "slow_package.part")
    with pytest.raises(PackageError, match=r"needs the package missing_package, .*sparseeinsum\[rewriting\]"):
        imported_alone("missing_package", "part", "rewriting", "this")

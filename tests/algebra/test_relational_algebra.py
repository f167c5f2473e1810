"""The tensor relational algebra types and evaluates the paper's examples, and refuses ill-formed expressions."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from numpy.typing import NDArray
from python_kernels import PythonKernel
from random_relations import sum_of

from sparseeinsum.algebra.relational.absence import AbsentArray, TileExtent
from sparseeinsum.algebra.relational.compositions import OperandwiseKernel
from sparseeinsum.algebra.relational.evaluate import RelationTuples, evaluate
from sparseeinsum.algebra.relational.expression_text import write_expression
from sparseeinsum.algebra.relational.folds import AggregateFold, KernelFold
from sparseeinsum.algebra.relational.kernels import (
    ADD,
    MATRIX_PRODUCT,
    SUBTRACT,
    commutes,
    einsum_kernel,
    elementwise,
)
from sparseeinsum.algebra.relational.key_functions import trace_key_map, trace_predicate
from sparseeinsum.algebra.relational.keys import KeyMap, projection
from sparseeinsum.algebra.relational.relational_expressions import (
    Aggregation,
    Complete,
    Concat,
    Expression,
    Filter,
    Input,
    Join,
    Rekey,
    Tile,
    Transform,
)
from sparseeinsum.algebra.relational.types import RelationType
from sparseeinsum.api.tensor_relations import parse_kernel
from sparseeinsum.errors import AlgebraError
from sparseeinsum.operators.records import Law
from sparseeinsum.semantics.exactness import JoinKind

Matrix = NDArray[np.float64]

A = np.array([[1.0, 2, 5, 6], [3, 4, 7, 8], [9, 10, 13, 14], [11, 12, 15, 16]])  # as in section 2.2
B = np.array([[1.0, 2, 5, 6, 9, 10, 13, 14], [3, 4, 7, 8, 11, 12, 15, 16]])  # as in section 3.1
R_A = Input("A", RelationType((2, 2), (2, 2)))
R_B = Input("B", RelationType((2,), (2, 4)))
DIAGONAL = einsum_kernel("ii->i")


def blocks(matrix: Matrix, rows: int, columns: int) -> RelationTuples:
    """A matrix in blocks of this size; the last blocks may be smaller."""
    return {
        (i, j): matrix[i * rows : (i + 1) * rows, j * columns : (j + 1) * columns]
        for i in range(-(-matrix.shape[0] // rows))
        for j in range(-(-matrix.shape[1] // columns))
    }


STORED: dict[str, RelationTuples] = {"A": blocks(A, 2, 2), "B": {(0,): B[:, :4], (1,): B[:, 4:]}}


def expect(expression: Expression, expected: Mapping[tuple[int, ...], object]) -> None:
    result = evaluate(expression, STORED)
    assert result.keys() == expected.keys()
    for key, array in expected.items():
        np.testing.assert_array_equal(result[key], np.asarray(array, float), err_msg=str(key))


def test_aggregation_by_the_second_key() -> None:
    expect(sum_of(R_A, [1]), {(0,): [[10, 12], [14, 16]], (1,): [[18, 20], [22, 24]]})


def test_aggregation_of_all_tuples() -> None:
    expect(Aggregation(R_A, (), KernelFold(ADD)), {(): [[28, 32], [36, 40]]})


def test_matrix_product() -> None:
    pairs = Join(R_A, R_A, (1,), (0,), MATRIX_PRODUCT)
    np.testing.assert_array_equal(evaluate(pairs, STORED)[0, 1, 0], [[111, 122], [151, 166]])
    assert pairs.type == RelationType((2, 2, 2), (2, 2))
    expect(sum_of(pairs, [0, 2]), dict(blocks(A @ A, 2, 2)))


def test_diagonal_blocks() -> None:
    on_diagonal = Filter(R_A, trace_predicate(lambda i, j: i == j, 2))
    assert (on_diagonal.type.frontier, on_diagonal.type.is_continuous) == ((2, 2), False)
    rekeyed = Rekey(on_diagonal, trace_key_map(lambda i, j: i, 2))
    assert rekeyed.type == RelationType((2,), (2, 2))  # without holes
    expect(Transform(rekeyed, DIAGONAL), {(0,): [1, 4], (1,): [13, 16]})


def test_tile_rekey_and_concat() -> None:
    tiled = Tile(R_B, 1, 2)
    expected: RelationTuples = {(0, 0): B[:, :2], (0, 1): B[:, 2:4], (1, 0): B[:, 4:6], (1, 1): B[:, 6:]}
    expect(tiled, expected)
    numbered = Rekey(tiled, trace_key_map(lambda k0, k1: 2 * k0 + k1, 2))
    assert numbered.type == RelationType((4,), (2, 2))
    expect(numbered, {(number,): array for number, array in enumerate(expected.values())})
    expect(Concat(tiled, 1, 1), dict(STORED["B"]))
    expect(Concat(numbered, 0, 1), {(): B})


def test_tiles_that_do_not_divide() -> None:
    whole = Input("W", RelationType((), (2, 8)))
    tiled = Tile(whole, 1, 3)
    assert tiled.type == RelationType((3,), (2, 3), is_ragged=True)
    relation = evaluate(tiled, {"W": {(): B}})
    assert [array.shape for array in relation.values()] == [(2, 3), (2, 3), (2, 2)]
    again = Concat(tiled, 0, 1, TileExtent(8, 8, None))
    np.testing.assert_array_equal(evaluate(again, {"W": {(): B}})[()], B)
    assert not Tile(tiled, 1, 2).type.is_continuous  # the last array has one piece, the others two


def test_order_of_groups() -> None:
    columns_first = Aggregation(R_A, (1, 0), AggregateFold("max"))
    expect(columns_first, {(j, i): array for (i, j), array in STORED["A"].items()})


@pytest.mark.parametrize("kind", [JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL])
def test_outer_joins_keep_unmatched_tuples(kind: JoinKind) -> None:
    left: RelationTuples = {(0,): np.array([1.0]), (2,): np.array([3.0])}
    right: RelationTuples = {(2,): np.array([10.0]), (3,): np.array([20.0])}
    with_holes = RelationType((4,), (1,), is_continuous=False)
    absent = AbsentArray(-1, (TileExtent(1, 4, 0),))
    joined = Join(Input("L", with_holes), Input("R", with_holes), (0,), (0,), SUBTRACT, kind, (absent, absent))
    expected = {(2,): [-7.0]}
    expected |= {(0,): [2.0]} if kind != JoinKind.RIGHT else {}
    expected |= {(3,): [-21.0]} if kind != JoinKind.LEFT else {}
    assert {key: array.tolist() for key, array in evaluate(joined, {"L": left, "R": right}).items()} == expected


def test_holes_are_filled() -> None:
    sparse = Input("S", RelationType((2, 2), (2,), is_continuous=False, is_ragged=True))
    complete = Complete(sparse, AbsentArray(7, (TileExtent(2, 3, 1),)), (2, 2))
    result = evaluate(Transform(complete, einsum_kernel("i->")), {"S": {(0, 0): np.array([1.0, 2.0])}})
    assert {key: float(array) for key, array in result.items()} == {(0, 0): 3, (0, 1): 7, (1, 0): 14, (1, 1): 7}


def test_nearest_neighbour() -> None:
    """Section 6.2: arrays hold pairs of a distance and the number of a point; the smaller pair is kept."""
    rng = np.random.default_rng(0)
    query, points, metric = rng.normal(size=4), rng.normal(size=(6, 4)), rng.normal(size=(4, 4))
    metric = metric @ metric.T
    stored: dict[str, RelationTuples] = {
        "q": {(i,): query[2 * i : 2 * i + 2] for i in range(2)},
        "X": blocks(points, 3, 2),
        "A": blocks(metric, 2, 2),
        "number": {(0,): np.arange(3.0), (1,): np.arange(3.0) + 3},
    }
    types = {"q": ((2,), (2,)), "X": ((2, 2), (3, 2)), "A": ((2, 2), (2, 2)), "number": ((2,), (3,))}
    q, x, metrics, number = (Input(name, RelationType(*type_arguments)) for name, type_arguments in types.items())
    less = einsum_kernel("j,nj->nj", join=SUBTRACT.expression)
    difference = Rekey(Join(q, x, (0,), (1,), less), projection(2, (1, 0)))
    projected = sum_of(Join(difference, metrics, (1,), (0,), MATRIX_PRODUCT), [0, 2])
    products = Join(projected, difference, (0, 1), (0, 1), elementwise("mul", 2))
    distances = Transform(sum_of(products, [0]), einsum_kernel("nj->n"))
    lesser = PythonKernel(
        "lesser", lambda u, v: u if tuple(u) <= tuple(v) else v, lambda u, v: u, operands=2, is_foldable=True
    )
    least = PythonKernel(
        "least",
        lambda d, n: np.array([d.min(), n[d.argmin()]]),
        lambda d, n: (2,),
        operands=2,
    )
    nearest = Aggregation(Join(distances, number, (0,), (0,), least), (), KernelFold(lesser))
    result = evaluate(nearest, stored)[()]
    all_distances = np.einsum("ni,ij,nj->n", query - points, metric, query - points)
    assert result[1] == all_distances.argmin()
    np.testing.assert_allclose(result[0], all_distances.min())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Rekey(R_A, trace_key_map(lambda i, j: i, 2)), "makes the key <0> of several; keys must be unique"),
        (lambda: Rekey(R_A, trace_key_map(lambda i, j: (i - 1, j), 2)), "a part is below 0: <-1, 0>"),
        (lambda: Rekey(R_A, trace_key_map(lambda i: i, 1)), "maps keys of 1 parts, and is given keys of 2"),
        (lambda: Rekey(R_A, KeyMap(2, projection(2, (0, 1)).parts, 2)), "makes the key <0, 0> of several"),
        (lambda: Join(R_A, R_A, (1,), (), MATRIX_PRODUCT), "1 keys of the left relation are to equal 0"),
        (lambda: Join(R_A, R_A, (2,), (0,), MATRIX_PRODUCT), "names the part 2 of keys that have 2"),
        (lambda: Join(R_A, R_B, (1,), (0,), einsum_kernel("ij,kj->ik")), "the label j has 2 indices, and 4"),
        (lambda: Join(R_A, R_B, (1,), (0,), ADD), r"needs arrays of one bound, and they have \(2, 2\) and \(2, 4\)"),
        (lambda: Join(R_A, R_A, (0,), (0,), ADD, JoinKind.FULL), "must be on all keys of the side"),
        (lambda: Join(R_A, R_A, (0, 1), (0, 1), ADD, JoinKind.LEFT), "must know what the missing side holds"),
        (lambda: Aggregation(R_A, (0, 0), AggregateFold("sum")), "names a part of the key twice"),
        (lambda: Aggregation(R_A, (0,), KernelFold(SUBTRACT)), "associative and commutative"),
        (lambda: AggregateFold("mean"), "'mean' is no aggregate"),
        (lambda: Transform(R_A, ADD), "takes 2 arrays, and is given 1"),
        (lambda: Tile(R_A, 2, 1), "arrays of 2 axes have no axis 2"),
        (lambda: Tile(R_A, 1, 0), "they have 1 or more"),
        (lambda: Concat(R_A, 2, 0), "have no part 2 to be concatenated by"),
        (lambda: Filter(R_A, trace_predicate(lambda i: i < 1, 1)), "a filter of keys of 1 parts"),
        (lambda: trace_predicate(lambda i, j: i, 2), "a filter needs a condition"),
        (lambda: trace_predicate(lambda i, j: i == 0 and j == 0, 2), "write & | ~ instead"),
        (lambda: trace_key_map(lambda i: i // 0, 1), "divided by whole numbers above 0"),
        (lambda: trace_key_map(lambda i: 1.5, 1), "1.5 is none"),
        (lambda: einsum_kernel("ij->k"), "specifies no kernel"),
    ],
)
def test_relations_that_do_not_fit_are_refused(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(AlgebraError, match=message):
        make()


@pytest.mark.parametrize(
    ("relation", "message"),
    [
        ({(0, 0): A[:2, :2]}, "3 of the 4 keys below"),
        ({**STORED["A"], (2, 0): A[:2, :2]}, "is not below the frontier"),
        ({**STORED["A"], (0, 0): A[:2, :1]}, "the relation's bound is"),
    ],
)
def test_relations_that_break_their_type_are_refused(relation: RelationTuples, message: str) -> None:
    with pytest.raises(AlgebraError, match=message):
        evaluate(R_A, {"A": relation})


def test_predicates_can_be_negated() -> None:
    predicate = trace_predicate(lambda i, j: ~((i == j) | (i < 1)), 2)
    assert str(predicate) == "k0 != k1 & k0 >= 1"
    assert list(evaluate(Filter(R_A, predicate), STORED)) == [(1, 0)]


def test_missing_parts_need_a_fill() -> None:
    with_hole = Filter(R_A, trace_predicate(lambda i, j: i + j < 2, 2))
    with pytest.raises(AlgebraError, match="2 of 4 indices are there to be concatenated; give it a fill"):
        evaluate(Concat(with_hole, 1, 1), STORED)
    result = evaluate(Concat(with_hole, 1, 1, fill=0), STORED)
    np.testing.assert_array_equal(result[(1,)], [[9, 10, 0, 0], [11, 12, 0, 0]])


SCALARS = (
    "u[i]",
    "-u[i]",
    "abs(u[i])",
    "relu(u[i])",
    "3 * u[i]",
    "-2 * u[i]",
    "u[i] / 4",
    "u[i] ^ 2",
    "u[i] ^ 3",
    "exp(u[i])",
    "tanh(2 * u[i]) + 1",
    "sign(u[i]) - 0.5",
    "u[i] + u[i]",
    "u[i] * u[i]",
    "u[i] + 1",
    "sqrt(abs(u[i]))",
    "2 - u[i]",
    "relu(-u[i])",
)
OF_TWO = {
    Law.SUM: ("add", "sub"),
    Law.PRODUCT: ("mul", "div"),
    Law.ORDER: ("max", "min"),
    Law.ANY: ("sub", "add", "mul", "max", "min"),
}


@pytest.mark.parametrize("text", SCALARS)
def test_laws_hold(text: str) -> None:
    """A kernel commutes with every function that its laws name, and most laws that hold are found."""
    kernel = parse_kernel(f"w[i] = {text}", (50,))
    rng = np.random.default_rng(0)
    u, v = rng.normal(size=(2, 50))
    for law, names in OF_TWO.items():
        holds = [
            np.allclose(
                kernel.apply(elementwise(name, 2).apply(u, v)),
                elementwise(name, 2).apply(kernel.apply(u), kernel.apply(v)),
            )
            for name in names
        ]
        assert all(holds) or law not in kernel.commutes_with, law
        assert (law in kernel.commutes_with) == all(holds) or text in ("sqrt(abs(u[i]))", "sign(u[i]) - 0.5"), law


OF_ONE = (
    "w[i, j] = u[i, j]",
    "w[i] = u[i, i]",
    "w[j, i] = u[i, j]",
    "w[i] = sum(u[i, j])",
    "w[i] = max(u[i, j])",
    "w[i, j] = -2 * u[i, j]",
    "w[j, i] = u[i, j] ^ 3",
    "w[i] = relu(u[i, i])",
    "w[i, j] = cumsum[j](u[i, j])",
    "w[i] = last[j](u[i, j])",
    "w[i] = prod(u[i, j])",
)
COMBINATIONS: dict[str, Callable[[Matrix, Matrix], Matrix]] = {
    "w[i, j] = u[i, j] + v[i, j]": np.add,
    "w[i, j] = u[i, j] - v[i, j]": np.subtract,
    "w[i, j] = u[i, j] * v[i, j]": np.multiply,
    "w[i, j] = u[i, j] / v[i, j]": np.divide,
    "w[i, j] = max(u[i, j], v[i, j])": np.maximum,
    "w[i, j] = u[i, j] * exp(v[i, j])": lambda u, v: u * np.exp(v),
    "w[i, j] = u[i, j] + v[j, i]": lambda u, v: u + v.T,
    "w[i, k] = sum(u[i, j] * v[j, k])": np.matmul,
}
NOT_MOVED = {  # though they could be
    ("w[i] = max(u[i, j])", "w[i, j] = max(u[i, j], v[i, j])"),  # not through min, which has the same law
    *((text, combination) for text in OF_ONE for combination in list(COMBINATIONS)[-2:]),  # these move elements
}


@pytest.mark.parametrize("combination", COMBINATIONS)
@pytest.mark.parametrize("text", OF_ONE)
def test_kernels_commute_as_table_2_requires(text: str, combination: str) -> None:
    """R1-4 and R1-7: f(g(u, v)) = g(f(u), f(v)), however g is written; a kernel that fails it is not moved."""
    kernel, of_two = parse_kernel(text, (3, 3)), parse_kernel(combination, (3, 3), (3, 3))
    u, v = np.random.default_rng(0).normal(size=(2, 3, 3))
    apply = COMBINATIONS[combination]
    np.testing.assert_allclose(of_two.apply(u, v), apply(u, v))
    with np.errstate(divide="ignore", invalid="ignore"):
        moved, expected = apply(kernel.apply(u), kernel.apply(v)), kernel.apply(apply(u, v))
    holds = moved.shape == expected.shape and np.allclose(moved, expected)
    assert commutes(kernel, of_two) == (holds and (text, combination) not in NOT_MOVED)
    if commutes(kernel, of_two):
        np.testing.assert_allclose(OperandwiseKernel(of_two, kernel).apply(u, v), expected)


def test_declared_kernels() -> None:
    """A Python function may be declared to commute with sums; its results are checked."""
    trace = PythonKernel("trace", np.trace, lambda bound: (), laws=frozenset({Law.SUM}))
    assert commutes(trace, AggregateFold("sum"))
    assert not commutes(trace, AggregateFold("max"))
    expect(Transform(R_A, trace), {key: np.trace(array) for key, array in STORED["A"].items()})
    wrong = PythonKernel("wrong", np.trace, lambda bound: bound)
    with pytest.raises(AlgebraError, match=r"wrong returned an array of shape \(\); it is declared to be \(2, 2\)"):
        evaluate(Transform(R_A, wrong), STORED)


def test_shared_subexpressions_are_written_once() -> None:
    twice = Transform(R_A, elementwise("relu", 1))
    written = """\
join on <0, 1> = <0, 1>, u + v: <2, 2> of [2, 2]
  transform relu(u): <2, 2> of [2, 2]
    A: <2, 2> of [2, 2]
  transform relu(u): <2, 2> of [2, 2] (as above)"""
    assert write_expression(Join(twice, twice, (0, 1), (0, 1), ADD)) == written

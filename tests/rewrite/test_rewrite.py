"""EinSums of many operands are split without a change of results and without needless work."""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from numpy.typing import NDArray
from random_joins import Case, call, cases, einsum, is_defined
from random_runs import examples

import sparseeinsum as se
from sparseeinsum.language.binding import bind
from sparseeinsum.language.eingraph import EinGraph, EinSum, Program, Reference
from sparseeinsum.language.tensors import Axis, Tensor
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.operators.expressions import Literal, Operand, Scalar
from sparseeinsum.operators.ranges import ANY_VALUE, EMPTY_RANGE, Range
from sparseeinsum.rewrite.annotated_graphs import GraphAnnotator
from sparseeinsum.rewrite.binarise import binarise
from sparseeinsum.semantics.dense import evaluate_program
from sparseeinsum.semantics.exactness import ValueFacts
from sparseeinsum.statistics.estimate import Statistics

Array = NDArray[Any]


def chain(operator: str, count: int) -> Scalar:
    """Operands 0 to count - 1, joined from the left."""
    joined: Scalar = Operand(0)
    for position in range(1, count):
        joined = call(operator, joined, Operand(position))
    return joined


def values_of(array: Array, fill: Any) -> ValueFacts:  # noqa: ANN401  # a number
    """Facts that a scan of an array finds."""
    entries = array[np.asarray(array != fill)]
    if not entries.size:
        return ValueFacts(EMPTY_RANGE, has_fill=array.size > 0)
    parts = np.concatenate([entries.real, entries.imag])
    value_range = Range(parts.min().item(), parts.max().item()) if np.isfinite(parts).all() else ANY_VALUE
    return ValueFacts(value_range, has_fill=entries.size < array.size)


def statistics_of(array: Array, fill: Number) -> Statistics:
    differs = np.asarray(array != fill)
    places = np.nonzero(differs) if differs.ndim else ()
    distinct = tuple(float(len(np.unique(axis))) for axis in places)
    return Statistics(float(np.count_nonzero(differs)), distinct, differs.shape)


def broken(
    einsums: tuple[EinSum, ...], arrays: Mapping[str, Array], fills: Mapping[str, Number] | None = None
) -> tuple[EinGraph, EinGraph]:
    """A graph of EinSums on arrays, before and after it is split."""
    fills = dict.fromkeys(arrays, 0) | dict(fills or {})
    tensors = {
        name: Tensor(
            name,
            tuple(Axis(f"dim_{axis}", bound) for axis, bound in enumerate(array.shape)),
            str(array.dtype),
            fills[name],
        )
        for name, array in arrays.items()
    }
    bound = bind(Program(einsums, outputs=(einsums[-1].output.tensor,)), tensors)
    statistics = {name: statistics_of(array, fills[name]) for name, array in arrays.items()}
    values = {name: values_of(array, fills[name]) for name, array in arrays.items()}
    return bound, binarise(bound, GraphAnnotator.for_inputs(bound.tensors, statistics, values)).graph


def check(
    einsums: tuple[EinSum, ...], arrays: Mapping[str, Array], fills: Mapping[str, Number] | None = None
) -> tuple[EinSum, ...]:
    """Both graphs compute the same, and later stages can compute the split one."""
    bound, graph = broken(einsums, arrays, fills)
    expected, results = evaluate_program(bound, arrays), evaluate_program(graph, arrays)
    assert graph.outputs == bound.outputs
    assert all(len(rewritten.operands) <= 2 for rewritten in graph.einsums)
    available = set(arrays)
    for rewritten in graph.einsums:
        assert {operand.tensor for operand in rewritten.operands} <= available
        assert rewritten.output.tensor.lower() not in {name.lower() for name in available}
        available.add(rewritten.output.tensor)
        tensor = graph.tensors[rewritten.output.tensor]
        assert (tensor.shape, tensor.dtype) == (results[tensor.name].shape, str(results[tensor.name].dtype))
    for name in bound.outputs:
        assert (results[name].shape, results[name].dtype) == (expected[name].shape, expected[name].dtype)
        scale = max(
            np.abs(array[np.isfinite(array)]).max(initial=1) for array in (*expected.values(), *results.values())
        )
        is_single = any(array.dtype in (np.float32, np.complex64) for array in arrays.values())
        tolerance = float(scale) * (1e-4 if is_single else 1e-9)
        np.testing.assert_allclose(results[name], expected[name], rtol=0, atol=tolerance, err_msg=name)
    return graph.einsums


@settings(max_examples=examples(200))
@given(cases())
def test_results_are_those_of_the_whole_expression(case: Case) -> None:
    assume(is_defined(case))
    check((case.einsum,), case.arrays, case.fills)


def sparse(shape: tuple[int, ...], seed: int, density: float = 0.3) -> Array:
    rng = np.random.default_rng(seed)
    return np.where(rng.random(shape) < density, rng.uniform(-1, 1, shape), 0.0)


def folds(parts: tuple[EinSum, ...]) -> list[tuple[str, ...]]:
    """Labels that each EinSum aggregates."""
    return [part.aggregated for part in parts]


CHAIN = "ij,jk,kl->il"


def chain_arrays(dtype: str = "float64") -> dict[str, Array]:
    shapes = {"A": (4, 5), "B": (5, 6), "C": (6, 3)}
    return {name: np.rint(sparse(shape, seed) * 9).astype(dtype) for seed, (name, shape) in enumerate(shapes.items())}


def test_matrix_products_aggregate_a_label_as_soon_as_no_other_factor_has_it() -> None:
    parts = check((einsum(CHAIN, chain("mul", 3)),), chain_arrays())
    assert sorted(folds(parts)) == [("j",), ("k",)]
    assert [part.output.tensor for part in parts] == ["W_1", "W"]


@pytest.mark.parametrize(
    ("aggregate", "operator", "dtype"),
    [
        ("sum", "mul", "int64"),
        ("sum", "mul", "complex128"),
        ("sum", "mul", "bool"),
        ("sum", "and", "bool"),
        ("sum", "and", "float64"),
        ("any", "mul", "bool"),
        ("max", "mul", "bool"),
        ("any", "and", "float64"),
        ("all", "or", "bool"),
        ("min", "add", "float64"),
        ("max", "add", "int64"),
        ("logsumexp", "add", "float64"),
        ("max", "min", "float64"),
        ("min", "max", "float64"),
    ],
)
def test_aggregates_that_distribute_are_taken_early(aggregate: str, operator: str, dtype: str) -> None:
    parts = check((einsum(CHAIN, chain(operator, 3), aggregate),), chain_arrays(dtype))
    assert sorted(folds(parts)) == [("j",), ("k",)]


@pytest.mark.parametrize(
    ("aggregate", "operator", "dtype"),
    [
        ("max", "mul", "float64"),
        ("min", "mul", "int64"),
        ("prod", "mul", "float64"),
        ("sum", "add", "float64"),
        ("sum", "or", "bool"),
        ("logsumexp", "mul", "float64"),
        ("any", "add", "float64"),
    ],
)
def test_other_aggregates_are_taken_at_the_end(aggregate: str, operator: str, dtype: str) -> None:
    parts = check((einsum(CHAIN, chain(operator, 3), aggregate),), chain_arrays(dtype))
    assert folds(parts) == [(), ("j", "k")]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_possibly_nonfinite_factors_are_multiplied_before_sums(value: float) -> None:
    arrays = chain_arrays()
    arrays["A"][1, 2] = value
    arrays["B"][2] = 0
    assert folds(check((einsum(CHAIN, chain("mul", 3)),), arrays)) == [(), ("j", "k")]


def test_shortest_paths_keep_their_absent_edges() -> None:
    arrays = {name: np.where(array == 0, np.inf, array) for name, array in chain_arrays().items()}
    fills = dict.fromkeys(arrays, np.inf)
    join = chain("add", 3)
    _, graph = broken((einsum(CHAIN, join, "min"),), arrays, fills)
    assert sorted(folds(graph.einsums)) == [("j",), ("k",)]
    assert graph.tensors["W_1"].fill == graph.tensors["W"].fill == np.inf
    check((einsum(CHAIN, join, "min"),), arrays, fills)
    assert folds(check((einsum(CHAIN, join, "max"),), arrays, fills)) == [(), ("j", "k")]


def test_an_int64_of_a_label_without_indices_is_not_added_to() -> None:
    arrays = {"A": np.ones((2, 0), "int64"), "B": np.ones((0, 2), "int64"), "C": np.ones((2, 2), "int64")}
    check((einsum(CHAIN, chain("add", 3), "min"),), arrays)


def test_unary_parts_stay_in_the_join_that_reads_them() -> None:
    join = call("mul", call("mul", Operand(0), call("relu", Operand(1))), call("tanh", Operand(2)))
    parts = check((einsum(CHAIN, join),), chain_arrays())
    assert len(parts) == 2
    assert sorted(folds(parts)) == [("j",), ("k",)]


def test_a_label_of_one_factor_is_aggregated_early_if_cheaper() -> None:
    arrays = {"A": sparse((50, 4), 1, 1.0), "B": sparse((4, 5), 2, 1.0), "C": sparse((5, 60), 3, 1.0)}
    parts = check((einsum("ij,jk,kl->", chain("mul", 3)),), arrays)
    assert {("i",), ("l",)} <= {part.aggregated for part in parts if len(part.operands) == 1}
    thin = arrays | {"A": np.eye(4), "C": np.eye(5)}
    assert all(len(part.operands) == 2 for part in check((einsum("ij,jk,kl->", chain("mul", 3)),), thin))


def test_a_factor_of_two_operands_is_computed_first_without_the_labels_that_it_alone_has() -> None:
    join = call("mul", call("max", Operand(0), Operand(1)), Operand(2))
    parts = check((einsum("ij,jk,kl->l", join),), chain_arrays())
    assert folds(parts) == [("i", "j"), ("k",)]


def test_differences_are_taken_only_where_they_count() -> None:
    """sum(A[i, j] * (X[i] - Y[j]) ^ 2) subtracts only where A has entries."""
    difference = call("pow", call("sub", Operand(1), Operand(2)), Literal(2))
    join = call("mul", Operand(0), difference)
    arrays = {"A": np.eye(30), "B": sparse((30,), 1, 1.0), "C": sparse((30,), 2, 1.0)}
    parts = check((einsum("ij,i,j->", join),), arrays)
    assert len(parts) == 4
    assert all("A" in [operand.tensor for operand in part.operands] for part in (*parts[:2], parts[-1]))
    dense = check((einsum("ij,i,j->", join),), arrays | {"A": np.ones((30, 30))})
    assert len(dense) == 2


def test_a_mask_hides_no_value_that_is_not_finite() -> None:
    join = call("mul", Operand(0), call("div", Operand(1), Operand(2)))
    arrays = {"A": np.eye(30), "B": sparse((30,), 1, 1.0), "C": sparse((30,), 2, 0.5)}
    assert len(check((einsum("ij,i,j->i", join),), arrays)) == 2


def test_division_by_a_literal_comes_last() -> None:
    arrays = {name: np.full((1, 1), 7, "int64") for name in "ABC"}
    join = call("div", chain("mul", 3), Literal(343))
    (*_, last) = check((einsum(CHAIN, join),), arrays)
    assert last.join == call("div", call("mul", Operand(0), Operand(1)), Literal(343))


def test_new_names_are_unique() -> None:
    arrays = chain_arrays() | {"w_1": np.ones(3)}
    parts = (
        einsum(CHAIN, chain("mul", 3)),
        EinSum(Reference("V", ("p",)), (Reference("w_1", ("p",)),), Operand(0), None),
    )
    _, graph = broken(parts, arrays)
    assert [part.output.tensor for part in graph.einsums] == ["W_2", "W", "V"]


def test_labels_in_upper_case_stay_promoted_in_every_part() -> None:
    parts = check((einsum(CHAIN, chain("mul", 3), promoted="ik"),), chain_arrays())
    for part in parts:
        assert part.promoted == {(label, 1) for label in "ik" if label in part.labels}


def test_einsums_of_one_or_two_operands_stay_as_they_are() -> None:
    bound, graph = broken((einsum("ij,jk->ik", call("sub", Operand(0), Operand(1))),), chain_arrays())
    assert graph.einsums == bound.einsums
    assert graph.tensors == bound.tensors


def test_results_of_parts_are_inputs_of_later_parts() -> None:
    arrays = chain_arrays()
    first = einsum(CHAIN, chain("mul", 3))
    second = EinSum(
        Reference("V", ("i",)),
        (Reference("W", ("i", "l")), Reference("A", ("i", "j")), Reference("C", ("k", "l"))),
        chain("mul", 3),
        "sum",
    )
    check((first, second), arrays)


def test_two_singles_are_not_multiplied_alone_beside_a_double() -> None:
    rng = np.random.default_rng(0)
    arrays: dict[str, Array] = {name: rng.random((9, 9)) for name in "ABC"}
    arrays |= {name: arrays[name].astype("float32") for name in "AB"}
    _, graph = broken((einsum(CHAIN, chain("mul", 3)),), arrays)
    assert {graph.tensors[part.output.tensor].dtype for part in graph.einsums} == {"float64"}
    result = evaluate_program(graph, arrays)["W"]
    np.testing.assert_allclose(result, arrays["A"].astype(float) @ arrays["B"] @ arrays["C"], rtol=1e-13)


def test_where_of_three_tensors() -> None:
    join = call("where", call("gt", Operand(0), Literal(0)), Operand(1), Operand(2))
    arrays = {"A": sparse((4, 5), 1), "B": np.array([np.inf, 1, -2, 3, np.nan]), "C": np.arange(4)}
    assert len(check((einsum("ij,j,i->ij", join, None),), arrays)) == 3


@pytest.mark.parametrize("operator", ["mul", "add"])
def test_hundreds_of_operands(operator: str) -> None:
    """A chain of matrices in a balanced expression is split within Python's recursion limit."""
    count = 300
    rng = np.random.default_rng(0)
    arrays = {f"T{position}": np.asarray(rng.permutation(np.eye(3))) for position in range(count)}
    joined: list[Scalar] = [Operand(position) for position in range(count)]
    while len(joined) > 1:
        joined = [
            call(operator, *joined[start : start + 2]) if start + 1 < len(joined) else joined[start]
            for start in range(0, len(joined), 2)
        ]
    references = tuple(Reference(f"T{position}", (f"x{position}", f"x{position + 1}")) for position in range(count))
    whole = EinSum(Reference("W", ("x0", f"x{count}")), references, joined[0], "sum" if operator == "mul" else "min")
    _, graph = broken((whole,), arrays)
    expected = functools.reduce(np.matmul, arrays.values()) if operator == "mul" else np.zeros((3, 3))
    assert len(graph.einsums) == count - 1
    np.testing.assert_allclose(evaluate_program(graph, arrays)["W"], expected)


def test_real_conditions_over_a_label_without_indices(db: se.Database) -> None:
    """Complex numbers have no order; here the condition on magnitudes is computed at no index."""
    db.tensor("A", np.zeros((0, 3), complex))
    db.tensor("B", np.full((), 1 + 2j))
    result = db.run("Y[j] = prod(where(abs(B[]) > abs(A[i, j]), B[], A[i, j])); Z[j] = any(abs(A[i, j]) > abs(B[]))")
    np.testing.assert_array_equal(result["Y"].to_numpy(), np.ones(3, complex))
    np.testing.assert_array_equal(result["Z"].to_numpy(), np.zeros(3, bool))

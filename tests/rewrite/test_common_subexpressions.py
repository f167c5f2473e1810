"""Equal EinSums are computed once, and every requested result is delivered."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from planning_problems import drawn

import sparseeinsum as se
from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference
from sparseeinsum.operators.expressions import Operand
from sparseeinsum.rewrite.chains import substitute
from sparseeinsum.rewrite.common_subexpressions import merge_common_subexpressions
from sparseeinsum.semantics.dense import evaluate_program

Array = NDArray[np.float64]


@pytest.fixture(scope="module")
def inputs() -> dict[str, Array]:
    rng = np.random.default_rng(3)
    sparse = rng.uniform(-1, 1, (6, 6)) * (rng.random((6, 6)) < 0.4)
    return {"A": sparse, "B": rng.uniform(-1, 1, (6, 6)), "v": rng.uniform(1, 2, 6)}


@pytest.fixture(scope="module")
def loaded(shared_db: se.Database, inputs: Mapping[str, Array]) -> se.Database:
    for name, array in inputs.items():
        shared_db.tensor(name, array)
    return shared_db


def computed(plan: se.Plan) -> list[str]:
    """Names of the results that a plan computes, in order."""
    return [line.split("[")[0] for line in plan.notation()]


def check(database: se.Database, inputs: Mapping[str, Array], text: str) -> None:
    expected = evaluate_program(se.program(text), dict(inputs))
    results = database.run(text, progress=False)
    for name in results:
        np.testing.assert_allclose(results[name].to_numpy(), expected[name], rtol=1e-12, atol=1e-12, err_msg=name)


SAME = {
    "as it stands": "S[i, k] = sum(A[i, j] * B[j, k])",
    "other labels": "S[x, y] = sum(A[x, z] * B[z, y])",
    "other order of operands": "S[i, k] = sum(B[j, k] * A[i, j])",
}
OTHER = {
    "other operands": "S[i, k] = sum(B[i, j] * A[j, k])",
    "transposed operand": "S[i, k] = sum(A[j, i] * B[j, k])",
    "other function": "S[i, k] = sum(A[i, j] + B[j, k])",
    "other aggregate": "S[i, k] = max(A[i, j] * B[j, k])",
    "other kind of number": "S[i, k] = sum(A[i, j] * B[j, k] * 1.0)",
    "promoted by hand": "S[I, k] = sum(A[I, j] * B[j, k])",
}
FIRST = "R[i, k] = sum(A[i, j] * B[j, k])\n"
READERS = "\nY[i, k] = exp(R[i, k])\nZ[i] = sum(S[i, k] * v[k])"


@pytest.mark.parametrize("second", SAME.values(), ids=SAME)
def test_equal_results_are_computed_once(loaded: se.Database, inputs: Mapping[str, Array], second: str) -> None:
    text = FIRST + second + READERS
    assert computed(loaded.plan(text)) == ["R", "Y", "Z"]
    check(loaded, inputs, text)


@pytest.mark.parametrize("second", OTHER.values(), ids=OTHER)
def test_different_results_are_not_merged(loaded: se.Database, inputs: Mapping[str, Array], second: str) -> None:
    text = FIRST + second + READERS
    assert {"R", "S"} <= set(computed(loaded.plan(text)))
    check(loaded, inputs, text)


def test_operands_of_noncommutative_functions_keep_their_order(
    loaded: se.Database, inputs: Mapping[str, Array]
) -> None:
    text = "R[i, j] = A[i, j] - B[j, i]\nS[i, j] = B[j, i] - A[i, j]\nT[i, j] = A[i, j] - B[j, i]\n"
    text += "Y[i, j] = R[i, j] * v[i] + exp(S[i, j])\nZ[i] = max(T[i, j] * v[j])"
    assert [name for name in computed(loaded.plan(text)) if name in "RST"] == ["R", "S"]
    check(loaded, inputs, text)


def test_another_order_of_axes_is_the_same_result(loaded: se.Database, inputs: Mapping[str, Array]) -> None:
    text = FIRST + "S[k, i] = sum(A[i, j] * B[j, k])\nY[i] = sum(R[i, k] * v[k])\nZ[i] = sum(S[i, k] * v[k])"
    assert computed(loaded.plan(text)) == ["R", "Y", "Z"]
    check(loaded, inputs, text)


def test_results_of_equal_results_are_merged(loaded: se.Database, inputs: Mapping[str, Array]) -> None:
    """Two equal operands become one."""
    text = FIRST + "S[x, y] = sum(B[z, y] * A[x, z])\nR2[i, k] = exp(R[i, k])\nS2[k, i] = exp(S[k, i])\n"
    text += "Y[i, k] = R2[i, k] / S2[i, k]"
    plan = loaded.plan(text)
    assert computed(plan) == ["R", "R2", "Y"]
    assert len(plan.data.decomposed.steps[-1].einsum.operands) == 1
    check(loaded, inputs, text)


def test_symmetric_products(loaded: se.Database, inputs: Mapping[str, Array]) -> None:
    """R is its own transpose, but A A^T is not A^T A."""
    text = "R[i, k] = sum(A[i, j] * A[k, j])\nS[k, i] = sum(A[i, j] * A[k, j])\nT[i, k] = sum(A[j, i] * A[j, k])\n"
    text += "Y[i, k] = exp(R[i, k])\nZ[i] = sum(S[i, k] * v[k])\nX[i] = sum(T[i, k] * v[k])"
    assert computed(loaded.plan(text)) == ["R", "T", "Y", "Z", "X"]
    check(loaded, inputs, text)


def test_outputs_are_delivered_under_their_own_names(loaded: se.Database, inputs: Mapping[str, Array]) -> None:
    text = FIRST + "S[x, y] = sum(B[z, y] * A[x, z])\nT[k, i] = sum(A[i, j] * B[j, k])"
    plan = loaded.plan(text)
    assert plan.outputs == ("R", "S", "T")
    assert [line.split(" = ")[1].lower() for line in plan.notation()][1:] == ["r[x, y]", "r[i, k]"]
    results = loaded.run(text, progress=False)
    assert list(results["S"].df().columns) == ["x", "y", "val"]
    check(loaded, inputs, text)


def test_the_name_of_an_output_stays(loaded: se.Database, inputs: Mapping[str, Array]) -> None:
    text = FIRST + "Y[i] = sum(R[i, k] * v[k])\nS[i, k] = sum(A[i, j] * B[j, k])"
    assert computed(loaded.plan(text)) == ["S", "Y"]
    assert computed(loaded.plan(text, outputs=["R"])) == ["R", "Y", "S"]
    check(loaded, inputs, text)


def test_parts_of_statements_are_shared(loaded: se.Database, inputs: Mapping[str, Array]) -> None:
    """Two statements contain the same softmax, whose maxima and sums are computed once."""
    text = "Y[i, k] = sum(softmax[j](B[i, j]) * A[j, k])\nZ[i] = sum(softmax[j](B[i, j]) * v[j])"
    assert len(computed(loaded.plan(text))) < sum(
        len(computed(loaded.plan(statement))) for statement in text.split("\n")
    )
    check(loaded, inputs, text)


def test_different_pins_prevent_merging(loaded: se.Database) -> None:
    text = FIRST + SAME["other labels"] + READERS
    for pin in ({"R": "i"}, {"R": "i", "S": "xy"}):
        assert computed(loaded.plan(text, pin=pin)) == ["R", "S", "Y", "Z"]
    plan = loaded.plan(text, pin={"R": "ij", "S": "zx"})
    assert computed(plan) == ["R", "Y", "Z"]
    assert plan.notation()[0] == "R[I, k] = sum(A[I, J] * B[J, k])"


def test_explanations_name_existing_parts(loaded: se.Database) -> None:
    text = "R[i] = sum(A[i, j] * B[j, k] * v[k])\nS[x] = sum(A[x, y] * B[y, z] * v[z])\nY[i] = R[i] + exp(S[i])"
    plan = loaded.plan(text)
    names = set(computed(plan))
    assert "S" not in names
    assert names >= plan.data.rewriting.all_parts
    assert "taken apart" in plan.explain()


def test_graphs_written_twice_are_computed_once() -> None:
    """The second graph has other names, operands in the opposite order and reversed axes of results."""
    for problem in [*drawn(is_tree=True, count=40), *drawn(is_tree=False, count=40)]:
        graph = problem.model.graph
        once, twice = (merge_common_subexpressions(einsums, {}) for einsums in (graph, doubled(graph)))
        copies = [einsum for einsum in twice.einsums if is_copy_of_result(einsum, graph)]
        assert len(twice.einsums) - len(copies) == len(once.einsums)
        assert {einsum.output.tensor for einsum in copies} <= {f"{name}_again" for name in graph.outputs}


def doubled(graph: EinGraph) -> EinGraph:
    """A graph with a second copy of every EinSum."""
    computed = {einsum.output.tensor for einsum in graph.einsums}
    tensors = dict(graph.tensors)
    again = []
    for einsum in graph.einsums:
        output = Reference(f"{einsum.output.tensor}_again", renamed(einsum.output.labels)[::-1])
        operands = tuple(
            Reference(f"{operand.tensor}_again", renamed(operand.labels)[::-1])
            if operand.tensor in computed
            else Reference(operand.tensor, renamed(operand.labels))
            for operand in reversed(einsum.operands)
        )
        last = len(operands) - 1
        join = substitute(einsum.join, {position: Operand(last - position) for position in range(len(operands))})
        again.append(EinSum(output, operands, join, einsum.aggregate))
        tensor = graph.tensors[einsum.output.tensor]
        tensors[output.tensor] = replace(tensor, name=output.tensor, axes=tensor.axes[::-1])
    outputs = (*graph.outputs, *(f"{name}_again" for name in graph.outputs))
    return EinGraph(tensors, (*graph.einsums, *again), outputs)


def renamed(labels: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{label}_again" for label in labels)


def is_copy_of_result(einsum: EinSum, graph: EinGraph) -> bool:
    (first, *others) = einsum.operands
    is_plain = einsum.join == Operand(0) and einsum.aggregate is None and not others
    return is_plain and graph.producer_of(first.tensor) is not None and einsum.output.tensor.endswith("_again")


@pytest.mark.parametrize("same", SAME)
def test_a_plan_names_merged_results(loaded: se.Database, same: str) -> None:
    plan = loaded.plan(FIRST + SAME[same] + "\nY[i, k] = R[i, k] + exp(S[i, k])")
    assert plan.data.rewriting.merged == {"S": "R"}
    assert plan.data.rewriting.rewritten == ()
    assert "S: the same as R, which is computed once for both" in plan.explain()
    assert loaded.load_plan(plan.to_json()).data.rewriting.merged == plan.data.rewriting.merged
    assert loaded.load_plan(plan.to_json()).data.rewriting.rewritten == ()


def test_merged_outputs_are_reported(loaded: se.Database) -> None:
    plan = loaded.plan(FIRST + SAME["other labels"] + "\nC[i, j] = A[i, j]")
    assert plan.data.rewriting.merged == {"S": "R"}
    assert loaded.plan(FIRST + OTHER["other aggregate"]).data.rewriting.merged == {}


def test_split_and_merged_einsums_count_as_rewritten(loaded: se.Database) -> None:
    product = "sum(A[i, j] * B[j, k] * v[k])"
    plan = loaded.plan(f"R[i] = {product}\nS[i] = {product}\nY[i] = R[i] + 2 * S[i]")
    assert plan.data.rewriting.merged == {"S": "R"}
    assert plan.data.rewriting.rewritten == ("R_1", "R")

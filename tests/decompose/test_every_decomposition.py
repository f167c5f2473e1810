"""Every decomposition of a program gives numpy's result."""

import itertools
import re
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from planning_problems import promoted

import sparseeinsum as se
from sparseeinsum.language.eingraph import Program
from sparseeinsum.semantics.dense import evaluate_program

PROGRAMS = {
    "matrix product": "C[i, k] = sum(A[i, j] * B[j, k])",
    "product and transposition": "C[k, i] = sum(A[i, j] * B[j, k])",
    "elementwise sum": "C[i, j] = A[i, j] + D[i, j]",
    "column times matrix": "C[i, j] = A[i, j] * v[j]",
    "outer product": "C[i, j, k] = A[i, j] * B[j, k]",
    "row maxima": "C[i] = max(A[i, j])",
    "sum of everything": "C[] = sum(A[i, j] * D[i, j])",
    "logistic function": "C[j, i] = sigmoid(A[i, j])",
    "trace": "C[] = sum(S[i, i])",
    "squared distances": "C[i, k] = sum((A[i, j] - B[j, k]) ^ 2)",
}


def program_inputs() -> dict[str, NDArray[np.float64]]:
    """Sparse and dense arrays, each with an empty row."""
    rng = np.random.default_rng(1)

    def sparse(*shape: int) -> NDArray[np.float64]:
        array = rng.uniform(-2, 2, shape) * (rng.random(shape) < 0.4)
        array[0] = 0
        return np.asarray(array)

    return {"A": sparse(4, 5), "B": rng.uniform(-2, 2, (5, 3)), "D": sparse(4, 5), "S": sparse(4, 4), "v": sparse(5)}


def every_pin(program: Program) -> Iterator[dict[str, tuple[str, ...]]]:
    """Every way to promote labels in every statement."""
    subsets = [
        [labels for size in range(len(einsum.labels) + 1) for labels in itertools.combinations(einsum.labels, size)]
        for einsum in program.einsums
    ]
    names = [einsum.output.tensor for einsum in program.einsums]
    return (dict(zip(names, labels, strict=True)) for labels in itertools.product(*subsets))


@pytest.fixture(scope="module")
def loaded(shared_db: se.Database) -> se.Database:
    for name, array in program_inputs().items():
        shared_db.tensor(name, array)
    return shared_db


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_every_decomposition(loaded: se.Database, text: str) -> None:
    program = se.program(text)
    expected = evaluate_program(program, program_inputs())["C"]
    pins = list(every_pin(program))
    assert len(pins) == 2 ** len(program.einsums[0].labels)
    for pin in pins:
        plan = loaded.plan(program, pin=pin, layout="any")
        assert promoted(plan, "C") == frozenset(pin["C"])
        result = loaded.run(plan, progress=False)["C"].to_numpy()
        np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12, err_msg=str(pin))


def test_every_decomposition_of_two_statements(loaded: se.Database) -> None:
    program = se.program("T[i, k] = sum(A[i, j] * B[j, k])\nC[k] = sum(T[i, k] * relu(T[i, k]))")
    expected = evaluate_program(program, program_inputs())["C"]
    for pin in every_pin(program):
        result = loaded.run(program, pin=pin, progress=False)["C"].to_numpy()
        np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12, err_msg=str(pin))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("labels", ["IJ", "I", "J"])
def test_large_array_is_sliced(shared_db: se.Database, dtype: str, labels: str) -> None:
    """The SQL counts the parts of a large array by its length, rather than listing them."""
    row, column = (np.random.default_rng(seed).uniform(1, 2, 1500).astype(dtype) for seed in (0, 1))
    shared_db.tensor("row", row)
    shared_db.tensor("column", column)
    text = "P[i, j] = row[i] * column[j]\nR[i] = sum(P[i, j])\nL[j] = R[j] * column[j]"
    plan = shared_db.plan(text, pin={"P": [], "R": labels, "L": "J"}, outputs=["P"])
    assert re.search(r"\b(LEN|CARDINALITY)\(", plan.sql())
    results = shared_db.run(plan)
    product = np.outer(row, column)
    np.testing.assert_allclose(results["P"].to_numpy(), product, rtol=1e-12)
    np.testing.assert_allclose(results["L"].to_numpy(), product.sum(axis=1) * column, rtol=1e-12)

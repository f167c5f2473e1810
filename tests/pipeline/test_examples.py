"""Every plan of the graph network and of sparse attention gives scipy's result."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparseeinsum as se
from sparseeinsum.api.calibration import random_plans
from sparseeinsum.api.examples import (
    FEED_FORWARD,
    MATRIX_CHAIN,
    MULTI_HEAD_ATTENTION,
    attention_inputs,
    attention_program,
    attention_reference,
    citation_graph,
    feed_forward_inputs,
    feed_forward_reference,
    gcn_inputs,
    gcn_reference,
    matrix_chain_inputs,
    matrix_chain_reference,
    multi_head_attention_inputs,
    multi_head_attention_reference,
)
from sparseeinsum.api.graphs import GCN
from sparseeinsum.language.binding import bind
from sparseeinsum.language.tensors import Axis, Tensor
from sparseeinsum.semantics.dense import evaluate_program

GRAPH = citation_graph(60, 300, 40, 700, seed=1)


@pytest.mark.parametrize("optimizer", ["dp", "greedy", "relational", "dense"])
def test_gcn(db: se.Database, optimizer: str) -> None:
    inputs = gcn_inputs(GRAPH, hidden=16, classes=4)
    for name, matrix in inputs.items():
        db.tensor(name, matrix)
    scores = db.run(GCN, optimizer=optimizer)["Y"].to_numpy()
    np.testing.assert_allclose(scores, gcn_reference(inputs), rtol=1e-9)


@pytest.mark.parametrize("optimizer", ["dp", "greedy", "relational", "dense"])
def test_attention(db: se.Database, optimizer: str) -> None:
    inputs = attention_inputs(GRAPH, width=16)
    for name, matrix in inputs.items():
        db.tensor(name, matrix)
    scores = db.run(attention_program(16), optimizer=optimizer)["S"].to_scipy()
    np.testing.assert_allclose(scores.toarray(), attention_reference(inputs).toarray(), rtol=1e-9, atol=1e-12)


def test_any_plan_computes_gcn(db: se.Database) -> None:
    inputs = gcn_inputs(GRAPH, hidden=16, classes=4)
    for name, matrix in inputs.items():
        db.tensor(name, matrix)
    for plan in db.plan(GCN, top=15) + random_plans(db, se.program(GCN), 15):
        np.testing.assert_allclose(db.run(plan)["Y"].to_numpy(), gcn_reference(inputs), rtol=1e-9)


def test_any_plan_computes_attention(db: se.Database) -> None:
    inputs, program = attention_inputs(GRAPH, width=16), attention_program(16)
    for name, matrix in inputs.items():
        db.tensor(name, matrix)
    expected = attention_reference(inputs).toarray()
    for plan in db.plan(program, top=15) + random_plans(db, se.program(program), 15):
        np.testing.assert_allclose(db.run(plan)["S"].to_numpy(), expected, rtol=1e-9, atol=1e-12)


def test_arrays_out_of_a_join_are_unnested(db: se.Database) -> None:
    """DuckDB 2.0.0 hangs if dictionary columns of a hash join become constant columns."""
    inputs = attention_inputs(citation_graph(600, 3000, 300, 12000, seed=1), width=128)
    for name, matrix in inputs.items():
        db.tensor(name, matrix)
    pin = {"T0": "ik", "T1": "", "T2": "ik", "T3": "ij", "S": "j"}
    scores = db.run(attention_program(128), pin=pin)["S"].to_scipy()
    assert abs(sp.csr_array(scores) - attention_reference(inputs)).max() < 1e-9


DENSE = [
    (MULTI_HEAD_ATTENTION, multi_head_attention_inputs(7, 2, 3), multi_head_attention_reference),
    (FEED_FORWARD, feed_forward_inputs(5, 6, 4, 3), feed_forward_reference),
    (MATRIX_CHAIN, matrix_chain_inputs(8), matrix_chain_reference),
]


@pytest.mark.parametrize("promoted", [None, "first", "last", "all", "none"])
@pytest.mark.parametrize("optimizer", ["dp", "greedy", "relational", "dense"])
@pytest.mark.parametrize(("text", "inputs", "reference"), DENSE, ids=["attention", "feed_forward", "chain"])
def test_dense_examples(
    shared_db: se.Database,
    text: str,
    inputs: Any,  # noqa: ANN401  # as DENSE
    reference: Any,  # noqa: ANN401  # as DENSE
    optimizer: str,
    promoted: str | None,
) -> None:
    for name, array in inputs.items():
        axes = [f"dim_{axis}" for axis in range(array.ndim)]
        chosen = {None: None, "first": axes[:1], "last": axes[-1:], "all": axes, "none": []}[promoted]
        shared_db.tensor(name, array, promoted=chosen)
    result = shared_db.run(text, optimizer=optimizer)["Y"].to_numpy()
    np.testing.assert_allclose(result, reference(inputs), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("text", "inputs", "reference"), DENSE, ids=["attention", "feed_forward", "chain"])
def test_the_oracle_agrees_with_numpy_for_dense_examples(text: str, inputs: Any, reference: Any) -> None:  # noqa: ANN401  # as DENSE
    program = se.program(text)
    assert program.outputs == ("Y",)
    assert se.program(str(program)) == program
    expected = reference(inputs)
    np.testing.assert_allclose(evaluate_program(program, inputs)["Y"], expected, rtol=1e-12, atol=1e-12)
    tensors = {
        name: Tensor(name, tuple(Axis(f"a{axis}", bound) for axis, bound in enumerate(array.shape)))
        for name, array in inputs.items()
    }
    assert bind(program, tensors).tensors["Y"].shape == expected.shape

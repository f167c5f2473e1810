"""EinSums of one kind share their costs, and these are the costs that each of them has on its own."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from program_cases import check
from random_programs import FAMILIES, cases
from random_runs import random_runs

import sparseeinsum as se
from bench.planning import cases as programs_with_layers
from sparseeinsum.api.examples import load
from sparseeinsum.decompose.choices import all_choices
from sparseeinsum.decompose.model import CostModel


def compare(model: CostModel) -> int:
    """Compare all costs of a model with those that are computed anew; returns how many were shared."""
    shared = 0
    for einsum in model.graph.einsums:
        bounds = {label: model.graph.bound_of(einsum, label) for label in einsum.labels}
        choices = list(all_choices(einsum, bounds))[:64]
        for choice in choices:
            uses = model._uses(einsum)
            known = model.kinds.known_cost(einsum, choice, uses) is not None
            shared += known and (einsum.output.tensor, choice) not in model._known_costs
            alone = model.storing.with_storing(einsum, choice, uses, model._vertex_cost(einsum, choice))
            assert model.vertex_cost(einsum, choice) == alone
        for name in {einsum.output.tensor, *(operand.tensor for operand in einsum.operands)}:
            rank = len(model.graph.tensors[name].axes)
            before, after = (0,) * rank, (1,) * rank
            for first, second in [(before, after), (after, before)] if rank else ():
                computed = model.repartitions._cheapest(name, first, second, reads=1)
                assert model.repartitions.seconds(name, first, second) == computed.seconds(model.constants)
                assert model.repartitions.cheapest(name, first, second) == computed
    return shared


@pytest.mark.engines("duckdb", reason="costs are of the model alone")
@pytest.mark.parametrize("memory_limit", [None, "200MB"])
@pytest.mark.parametrize("name", ["deep GCN", "attention heads", "training step"])
def test_layers_and_heads_share_costs(name: str, memory_limit: str | None) -> None:
    text, inputs = programs_with_layers()[name]
    with se.connect() as db:
        load(db, inputs)
        plan = db.plan(text, memory_limit=memory_limit)
    assert compare(plan.data.alternatives.model) > 0 or name == "training step"


@pytest.mark.engines("duckdb", reason="costs are of the model alone")
def test_what_differs_is_not_shared() -> None:
    rng = np.random.default_rng(0)
    with se.connect() as db:
        for name, density in (("A", 0.01), ("B", 0.01), ("C", 0.02)):
            db.tensor(name, sp.random_array((300, 300), density=density, rng=rng))
        db.tensor("D", rng.random((300, 300)), axes=["i", "j"])
        plan = db.plan(
            "P[i, k] = sum(A[i, j] * A[j, k])\nQ[i, k] = sum(A[i, j] * B[j, k])\nR[i, k] = sum(A[i, j] * C[j, k])\n"
            "S[i, k] = sum(A[i, j] * D[j, k])\nT[k, i] = sum(A[j, i] * D[j, k])\nU[i] = sum(P[i, k] + Q[i, k])"
        )
    compare(plan.data.alternatives.model)


@pytest.mark.engines("duckdb", reason="costs are of the model alone")
@pytest.mark.parametrize("family", FAMILIES)
def test_random_programs(shared_db: se.Database, family: str) -> None:
    @random_runs(20)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        plan = check(shared_db, data.draw(cases(family, "dp")))
        if plan is not None:
            compare(plan.data.alternatives.model)

    run()

"""Every plan, written as an expression of the tensor relational algebra, evaluates to numpy's result."""

import numpy as np
import pytest
from evaluated_plans import results_of
from hypothesis import given
from hypothesis import strategies as st
from program_cases import Case
from random_programs import FAMILIES, cases
from random_runs import random_runs

import sparseeinsum as se
from sparseeinsum.algebra.relational.traversal import topological_order
from sparseeinsum.semantics.dense import evaluate_program

pytestmark = pytest.mark.engines("duckdb", reason="nothing runs in the database")


@pytest.mark.parametrize("family", ["float64", "mixed"])
def test_expressions_of_random_plans(shared_db: se.Database, family: str) -> None:
    assert family in FAMILIES

    @random_runs(20)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        case: Case = data.draw(cases(family, data.draw(st.sampled_from(["dp", "greedy", "relational", "dense"]))))
        case.load(shared_db)
        try:
            plan = case.plan(shared_db)
        except se.SemanticsError:
            return
        with np.errstate(all="ignore"):
            values = evaluate_program(se.program(case.text), case.inputs)  # with those of generated tensors
            arrays = {name: values[name].astype(read.stored.tensor.dtype) for name, read in plan.data.inputs.items()}
            results = results_of(plan, arrays, data.draw(st.booleans()))
        for name, array in results.items():
            case.expect(name, array)

    run()


def test_expression_as_text(db: se.Database) -> None:
    db.tensor("A", np.eye(4), promoted={"dim_0": 1, "dim_1": 1})
    db.tensor("H", np.ones((4, 6)), promoted={"dim_0": 1})
    plan = db.plan("T[i, m] = sum(A[i, j] * H[j, m])", pin={"T": {"i": 1, "j": 1}}, layout="any")
    written = """\
T
  aggregation by <0>, sum: <4> with holes of [6]
    join on <1> = <0>, w[m] = u[] * v[m]: <4, 4> with holes of [6]
      A: <4, 4> with holes of []
      H: <4> of [6]"""
    assert str(plan.algebra()) == written
    tiled = db.plan("T[i, m] = sum(A[i, j] * H[j, m])", pin={"T": {"i": 2, "m": 3}}, layout="any")
    (expression,) = tiled.algebra().einsums.values()
    assert {type(node).__name__ for node in topological_order(expression)} >= {"Rekey", "Tile", "Concat", "Join"}


def test_expression_on_several_sites(db: se.Database) -> None:
    """On four sites, sparse edge weights are partitioned by rows and features are replicated; little else is moved."""
    rng = np.random.default_rng(0)
    edges = np.where(rng.random((40, 40)) < 0.1, 1.0, 0.0)
    db.tensor("A", edges, promoted={"dim_0": 1, "dim_1": 1})
    db.tensor("H", rng.normal(size=(40, 8)), promoted={"dim_0": 1})
    db.tensor("W", rng.normal(size=(8, 4)), promoted={})
    neighbours = db.relation("A").join(db.relation("H"), on=[(1, 0)], kernel="w[m] = u[] * v[m]").aggregate(by=[0])
    result = neighbours.join(db.relation("W"), on=[], kernel="w[n] = sum(u[m] * v[m, n])").transform("relu")
    site_plan = result.distributed(4, {"A": (0,), "H": (0,), "W": "everywhere"})
    assert site_plan.transfer <= 4 * 40 * 8
    assert "broadcast" in str(site_plan)
    assert site_plan.moved(keys={"A": list(zip(*map(list, np.nonzero(edges)), strict=True))}) <= site_plan.transfer
    with pytest.raises(se.AlgebraError, match="give its keys"):
        site_plan.moved()
    with pytest.raises(se.AlgebraError, match="A is placed 'somewhere'"):
        result.distributed(4, {"A": "somewhere"})
    with pytest.raises(se.AlgebraError, match="there are 0 sites"):
        result.distributed(0)

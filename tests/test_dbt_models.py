"""Plans as dbt models: on whatever data they run, the result is numpy's, or they say what no longer holds."""

import re
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import psycopg
import pytest
from dbt_rendering import new_project, render, run
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from random_programs import LARGEST, Case, arrays, cases, graph_of, scale_of
from reading import engine_of
from reference import evaluate_program

import sparseeinsum as se
from sparseeinsum.algebra.translate import delivery
from sparseeinsum.engines.results import TensorResult

Array = NDArray[Any]

EXAMPLES = 25
PREFIXES = {"duckdb": "duckdb", "postgresql": "postgres"}
SHARED = "T[i, k] = sum(A[i, j] * B[j, k])\nY[i, l] = sum(T[i, k] * T[l, k])"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return new_project(tmp_path / "project")


def build(db: se.Database, project: Path, name: str = "prog") -> None:
    """Run the models, as they are on disk, on the tables as they are now."""
    run(render(project, name, PREFIXES[engine_of(db).dialect]), db.connection.execute)


def result(db: se.Database, plan: se.Plan, name: str) -> Array:
    """What a model left, as an array."""
    schema = delivery(plan.decomposed, name).schema
    columns = ", ".join([*schema.keys, "val"])
    rows = engine_of(db).arrow(f'SELECT {columns} FROM "prog_{name.lower()}"')
    return TensorResult(schema, rows).to_numpy()


@pytest.fixture
def tables(db: se.Database) -> se.Database:
    """Two small matrices."""
    db.tensor("A", np.array([[1.0, 0, 2], [0, 0, 3]]))
    db.tensor("B", np.array([[1.0, 2], [0, 4], [5, 0]]), promoted=["dim_0"])
    return db


class TestAnyProgram:
    """Programs, data and how they are stored, all random; then other data in the same tables."""

    @pytest.mark.engines("duckdb", "postgresql")
    @pytest.mark.usefixtures("operators_are_free")
    def test_models_are_right_or_refuse(self, shared_db: se.Database, tmp_path: Path) -> None:
        project = new_project(tmp_path / "project")
        outcomes: set[tuple[str, str]] = set()

        @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
        @given(st.data())
        def check(data: st.DataObject) -> None:
            family = data.draw(st.sampled_from(["float64", "int64", "complex", "mixed"]))
            case = data.draw(cases(family, data.draw(st.sampled_from(["dp", "greedy", "relational", "dense"]))))
            if re.search(
                r"/ [A-Z]", case.text
            ):  # of sums that are 0 but for rounding, numpy's result is as good as any
                return
            case.load(shared_db)
            try:
                plan = case.plan(shared_db)
            except se.SparseEinsumError:
                return
            shared_db.write_dbt(plan, project, "prog")
            outcomes.add(("same", outcome(shared_db, project, plan, case, case.inputs)))
            inputs = {name: data.draw(other(array, case.fills[name])) for name, array in case.inputs.items()}
            for name, array in inputs.items():
                shared_db.tensor(name, array, fill=case.fills[name], promoted=case.stored[name])
            outcomes.add(("other", outcome(shared_db, project, plan, case, inputs)))

        check()
        assert ("same", "not as planned") not in outcomes
        assert outcomes >= {("same", "right"), ("other", "right"), ("other", "not as planned")}


@st.composite
def other(draw: st.DrawFn, array: Array, fill: Any) -> Array:  # noqa: ANN401  # a number
    """Other values in place of those of an array, maybe larger ones, negative ones, NaN, or none."""
    found: Array = draw(arrays(array.shape, str(array.dtype), fill))
    scale = draw(st.sampled_from([1, 1, 1, -1, 100]))
    scaled = found if array.dtype.kind == "b" else (found * scale).astype(array.dtype)
    if scaled.size and array.dtype.kind == "f" and draw(st.integers(0, 7)) == 0:
        scaled.flat[0] = draw(st.sampled_from([np.nan, np.inf]))
    return scaled


def outcome(db: se.Database, project: Path, plan: se.Plan, case: Case, inputs: dict[str, Array]) -> str:
    """Build the models and compare them with numpy, unless they refuse."""
    with np.errstate(all="ignore"):
        expected = evaluate_program(graph_of(case.text, inputs), inputs)
    seen = (*inputs.values(), *expected.values())
    if scale_of(seen) > LARGEST:
        return "too large to compare"
    try:
        build(db, project)
    except (duckdb.Error, psycopg.Error) as error:
        (reason,) = re.findall(r"not as it was|turned NaN|[Oo]verflow", str(error))[:1]
        return {"not as it was": "not as planned"}.get(reason, reason)
    is_single = any(array.dtype in (np.float32, np.complex64, np.bool_) for array in seen)
    for name in plan.outputs:
        tolerance = 0 if expected[name].dtype.kind in "bi" else scale_of(seen) * (2e-4 if is_single else 1e-9)
        np.testing.assert_allclose(result(db, plan, name), expected[name], rtol=0, atol=tolerance, err_msg=name)
    return "right"

"""Plans: the explanation of a plan as data that JSON can hold."""

from typing import Any

from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.decompose.decomposed_graph import Step
from sparseeinsum.plans.analysis import Analysis, Replanning
from sparseeinsum.plans.json_values import json_value
from sparseeinsum.plans.notes import notes_on
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.plans.result_sizes import step_sizes
from sparseeinsum.render.relation_names import write_relation, write_schema
from sparseeinsum.render.sql_statement import SqlStatement


def plan_data(plan: ProgramPlan, analysis: Analysis | None) -> dict[str, Any]:
    """A plan, and what a run of it took; seconds and sizes are expected ones unless `actual` holds them."""
    return {
        "seconds": json_value(plan.decomposed.seconds),
        "planning_seconds": dict(plan.planning_seconds),
        "transferred_bytes": json_value(plan.transferred_bytes),
        "einsums": [_einsum(plan, step, analysis) for step in plan.decomposed.steps],
        "inputs": [_input(plan, name) for name in plan.inputs],
        "notes": notes_on(plan, analysis),
        "replannings": [_replanning(replanning) for replanning in analysis.replannings] if analysis else [],
    }


def statement_data(statement: SqlStatement, seconds: float | None) -> dict[str, Any]:
    """A statement, and the seconds that it took."""
    return {
        "result": statement.name,
        "computes": list(statement.computes),
        "is_returned": statement.stage is None,
        "passes": len(statement.passes) + 1,
        "actual": None if seconds is None else {"seconds": seconds},
    }


def _einsum(plan: ProgramPlan, step: Step, analysis: Analysis | None) -> dict[str, Any]:
    name = step.einsum.output.tensor
    schema = Schema(plan.decomposed.graph.tensors[name], step.result)
    sizes = step_sizes(plan.alternatives.model, step)
    run = None if analysis is None else analysis.einsums.get(name)
    actual = run and {"tuples": run.tuples, "bytes": run.tuples * sizes.tuple_bytes, "seconds": run.seconds}
    return {
        "result": name,
        "notation": step.notation,
        "relation": write_relation(schema),
        "fill": json_value(schema.tensor.fill),
        "tuples": json_value(sizes.tuples),
        "bytes": json_value(sizes.expected_bytes),
        "seconds": json_value(step.seconds),
        "join_seconds": json_value(step.join_seconds),
        "aggregation_seconds": json_value(step.aggregation_seconds),
        "repartition_seconds": json_value(step.repartition_seconds),
        "actual": actual,
    }


def _input(plan: ProgramPlan, name: str) -> dict[str, Any]:
    stored = plan.inputs[name].stored
    schema = Schema(stored.tensor, stored.decomposition)
    return {
        "tensor": name,
        "notation": write_schema(schema),
        "relation": write_relation(schema),
        "stored_in": stored.table,
        "fill": json_value(stored.tensor.fill),
        "size": stored.tensor.size,
        "entries": json_value(plan.statistics[name].entries),
    }


def _replanning(replanning: Replanning) -> dict[str, Any]:
    return {
        "result": replanning.name,
        "expected_tuples": json_value(replanning.expected),
        "actual_tuples": replanning.tuples,
        "is_switched": replanning.is_better,
    }

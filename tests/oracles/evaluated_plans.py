"""The results of plans as expressions of the tensor relational algebra, evaluated by numpy."""

from collections.abc import Mapping

from dense_relations import array_of, relation_of
from program_cases import Array

import sparseeinsum as se
from sparseeinsum.algebra.relational.evaluate import RelationTuples, evaluate
from sparseeinsum.statistics.measured_tensors import stored_of


def results_of(plan: se.Plan, arrays: Mapping[str, Array], keeps_fill: bool) -> dict[str, Array]:
    """The outputs of a plan; tuples of inputs that hold only the fill are there if `keeps_fill`."""
    stored_tensors = stored_of(plan.data.inputs)
    complete = {name for name, tensor in plan.data.inputs.items() if tensor.is_complete}
    relations: dict[str, RelationTuples] = {
        name: relation_of(arrays[name], stored.tensor, stored.decomposition, keeps_fill or name in complete)
        for name, stored in stored_tensors.items()
    }
    algebra = plan.algebra()
    for name, expression in algebra.einsums.items():
        relations[name] = evaluate(expression, relations)
    tensors, layouts = plan.data.decomposed.graph.tensors, plan.data.decomposed.layouts
    return {
        name: array_of(evaluate(expression, relations), tensors[name], layouts[name])
        for name, expression in algebra.outputs.items()
    }

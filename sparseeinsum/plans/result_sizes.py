"""Plans: the expected sizes of results."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sparseeinsum.decompose.decomposed_graph import Step
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.plans.plan import ProgramPlan


@dataclass(frozen=True, slots=True)
class ResultSizes:
    """The expected sizes of the result of one EinSum, in the layout in which it is computed.

    Attributes:
        tuples: The number of tuples.
        tuple_bytes: The bytes of one tuple.
    """

    tuples: float
    tuple_bytes: int

    @property
    def expected_bytes(self) -> float:
        """The bytes of all tuples."""
        return self.tuples * self.tuple_bytes


def step_sizes(model: CostModel, step: Step) -> ResultSizes:
    """The expected sizes of the result of `step`."""
    name, tiles = step.einsum.output.tensor, step.result.tiles
    return ResultSizes(model.sizes.tuples(name, tiles), model.sizes.tuple_bytes(name, tiles))


def result_sizes(plan: ProgramPlan, name: str) -> ResultSizes:
    """The expected sizes of the result `name`."""
    step = plan.decomposed.step_of(name)
    assert step is not None
    return step_sizes(plan.alternatives.model, step)


def rows_read(plan: ProgramPlan, computed: Collection[str], stored: Mapping[str, int]) -> float:
    """The expected number of rows that a statement reads.

    Args:
        plan: The plan.
        computed: The results that the statement computes.
        stored: The rows of results that are in tables.
    """
    steps = (plan.decomposed.step_of(name) for name in computed)
    read = [operand.tensor for step in steps if step is not None for operand in step.read]
    return sum(_rows(plan, name, stored) for name in read if name not in computed)


def _rows(plan: ProgramPlan, name: str, stored: Mapping[str, int]) -> float:
    if name in plan.inputs:
        return plan.inputs[name].measurement.tuples
    return stored[name] if name in stored else result_sizes(plan, name).tuples


def delivered_bytes(plan: ProgramPlan, name: str) -> float:
    """The expected bytes of the output `name` in the layout in which it is delivered."""
    model, tiles = plan.alternatives.model, plan.decomposed.layouts[name].tiles
    return model.sizes.relation_bytes(name, tiles)

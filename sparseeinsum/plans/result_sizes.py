"""Plans: the expected sizes of results."""

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


def delivered_bytes(plan: ProgramPlan, name: str) -> float:
    """The expected bytes of the output `name` in the layout in which it is delivered."""
    model, tiles = plan.alternatives.model, plan.decomposed.layouts[name].tiles
    return model.sizes.relation_bytes(name, tiles)

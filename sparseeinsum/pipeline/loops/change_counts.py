"""Loops: how many values of the state a step has changed, counted in the database."""

from collections.abc import Mapping
from dataclasses import dataclass

from sparseeinsum.engines.engine import Engine
from sparseeinsum.language.lowering import lower_text
from sparseeinsum.pipeline.loops.prepared_statements import PreparedStatements
from sparseeinsum.pipeline.loops.state_tables import StateTables
from sparseeinsum.pipeline.loops.step_plans import AlternatingInput, StepPlan
from sparseeinsum.pipeline.program_data import NOTHING_ASSUMED
from sparseeinsum.plans.options import PlanOptions


@dataclass(frozen=True, slots=True)
class ChangeCounts:
    """A program that compares the state before and after a step.

    Attributes:
        plan: Its plan; the outputs are numbers, one for each tensor of the state.
        state: The names of the tensors of the state, in order.
    """

    plan: StepPlan
    state: tuple[str, ...]

    @classmethod
    def of(cls, engine: Engine, prepared: PreparedStatements, tables: tuple[StateTables, ...]) -> "ChangeCounts":
        """Plan the program, in the open transaction."""
        statements = []
        inputs: dict[str, AlternatingInput] = {}
        for number, state in enumerate(tables):
            labels = ", ".join(f"i{axis}" for axis in range(len(state.stored[0].tensor.axes)))
            before, after = f"before_{number}[{labels}]", f"after_{number}[{labels}]"
            count = f"where({before} != {after}, 1, 0)"
            statements.append(f"changed_{number}[] = {f'sum({count})' if labels else count}")
            inputs[f"before_{number}"] = AlternatingInput(state.stored)
            inputs[f"after_{number}"] = AlternatingInput((state.stored[1], state.stored[0]))
        options = PlanOptions(nonfinite="allow", searches_all=True)
        plan = StepPlan(engine, prepared, lower_text("\n".join(statements)), options, inputs, {})
        plan.plan_for(0, NOTHING_ASSUMED)
        plan.plan_for_later_values()
        return cls(plan, tuple(state.name for state in tables))

    def count(self, turn: int, before: Mapping[str, int], after: Mapping[str, int]) -> int:
        """The number of changed values in the open transaction.

        Args:
            turn: The tables that hold the state before the step.
            before: The numbers of rows before the step, by the names of the state.
            after: Those after the step.
        """
        rows = {f"before_{number}": before[name] for number, name in enumerate(self.state)}
        rows |= {f"after_{number}": after[name] for number, name in enumerate(self.state)}
        self.plan.make_exact(turn, rows, may_differ=False)
        _, counts = self.plan.statements(turn).run()
        return sum(int(count.real) for count in counts.values())

    def drop(self) -> None:
        """Drop the tables of intermediates."""
        self.plan.drop()

"""Plans: the explanation of a plan for a terminal: notation, schemas, expected and actual sizes and times."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.decompose.decomposed_graph import DecomposedGraph, Step
from sparseeinsum.language.scalar import write_number
from sparseeinsum.plans.analysis import Analysis
from sparseeinsum.plans.explanation_data import plan_data, statement_data
from sparseeinsum.plans.json_values import json_value
from sparseeinsum.plans.notes import notes_on
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.plans.preview import parts_text
from sparseeinsum.plans.result_sizes import step_sizes
from sparseeinsum.plans.units import write_bytes, write_count, write_seconds
from sparseeinsum.render.relation_names import write_relation, write_schema
from sparseeinsum.render.sql_statement import SqlStatement

_ANALYSED = ("tuples", "actual", "bytes", "actual", "time", "actual")
_MOST_LINES = 8  # of a runner-up


@dataclass(frozen=True, slots=True)
class Explanation:
    """A plan as text and tables.

    Attributes:
        plan: The plan to explain.
        analysis: What a run of it took; None if it was not run.
        runners_up: How many other plans to show.
    """

    plan: ProgramPlan
    analysis: Analysis | None
    runners_up: int

    def write(self) -> str:
        """The explanation as text for a terminal."""
        return parts_text(self.parts())

    __str__ = write

    def parts(self) -> Iterator[Table | str]:
        """A headline, then tables of EinSums, of other plans, of inputs and of statements, then remarks."""
        yield self.headline()
        yield self._einsums()
        if self.runners_up > 0:
            yield self._runners_up()
        yield self._inputs()
        yield self._statements()
        yield from notes_on(self.plan, self.analysis)
        if self.plan.partitioned is not None:
            yield from self.plan.partitioned.parts()

    def as_dict(self) -> dict[str, Any]:
        """The explanation as numbers, texts, lists and dictionaries."""
        others = [
            {"seconds": json_value(other.seconds), "einsums": [step.notation for step in other.steps]}
            for other in self.other_plans()
        ]
        statements = [statement_data(statement, seconds) for statement, seconds in self.statements()]
        return {**plan_data(self.plan, self.analysis), "statements": statements, "other_plans": others}

    def to_json(self) -> str:
        """The explanation as JSON text."""
        return json.dumps(self.as_dict(), indent=2)

    def headline(self) -> str:
        """The number of EinSums, the expected seconds, and the seconds that planning took."""
        seconds = self.plan.planning_seconds
        stages = ", ".join(f"{stage} {write_seconds(duration)}" for stage, duration in seconds.items())
        count = len(self.plan.decomposed.steps)
        transferred = write_bytes(self.plan.transferred_bytes)
        moved = f", {transferred} between machines" if self.plan.dialect.distributes else ""
        return (
            f"{count} EinSum{'s' if count != 1 else ''}, expected "
            f"{write_seconds(self.plan.decomposed.seconds)}{moved}; "
            f"planned in {write_seconds(sum(seconds.values()))} ({stages})"
        )

    def other_plans(self) -> Sequence[DecomposedGraph]:
        """The best other plans, the cheapest one first."""
        return self.plan.alternatives.other_plans(self.plan.decomposed, self.runners_up) if self.runners_up > 0 else ()

    def statements(self) -> Sequence[tuple[SqlStatement, float | None]]:
        """The statements of a run in their order, with the seconds that they took; None if the plan was not run."""
        if self.analysis is not None:
            return self.analysis.statements
        return [(statement, None) for statement in self.plan.statements.for_run_with_checkpoints]

    def _einsums(self) -> Table:
        title = "EinSums (labels in upper case are handled by the database)"
        if self.analysis is not None:
            title += "; actual times are of each alone, from tables into a table"
        table = Table(title=title, title_justify="left")
        table.add_column("EinSum", overflow="fold")
        table.add_column("result relation", overflow="fold")
        expected = ("tuples", "bytes", "join", "aggregate", "repartition")
        for heading in expected if self.analysis is None else _ANALYSED:
            table.add_column(heading, justify="right")
        cluster_plan = self.plan.decomposed.cluster_plan
        if cluster_plan is not None:
            table.add_column("on the machines", overflow="fold")
        for step in self.plan.decomposed.steps:
            placement = [] if cluster_plan is None else [cluster_plan.describe(step.einsum)]
            table.add_row(*self._einsum_cells(step), *placement)
        return table

    def _einsum_cells(self, step: Step) -> list[str]:
        name = step.einsum.output.tensor
        cells = [step.notation, _write_relation_and_fill(Schema(self.plan.decomposed.graph.tensors[name], step.result))]
        sizes = step_sizes(self.plan.alternatives.model, step)
        tuples, size = write_count(sizes.tuples), write_bytes(sizes.expected_bytes)
        if self.analysis is None:
            costs = (step.join_seconds, step.aggregation_seconds, step.repartition_seconds)
            return [*cells, tuples, size, *map(write_seconds, costs)]
        run = self.analysis.einsums.get(name)
        if run is None:
            actual = "-", "-", f"in {step.computed_in}"
        else:
            duration = "in its readers" if run.seconds is None else write_seconds(run.seconds)
            actual = write_count(run.tuples), write_bytes(run.tuples * sizes.tuple_bytes), duration
        expected = tuples, size, write_seconds(step.seconds)
        return [*cells, *(cell for pair in zip(expected, actual, strict=True) for cell in pair)]

    def _runners_up(self) -> Table | str:
        others = self.other_plans()
        if not others:
            return "No other plan keeps to what is asked."
        is_best = self.plan.decomposed.cost <= others[0].cost
        title = "Runners-up, and what they would do otherwise" if is_best else "Other plans, of which some are cheaper"
        table = Table(title=title, title_justify="left", min_width=len(title))
        for heading in ("expected", "times this plan"):
            table.add_column(heading, justify="right")
        table.add_column("EinSums that differ", overflow="fold")
        for other in others:
            differing = [step.notation for step in differing_steps(self.plan.decomposed, other)]
            if len(differing) > _MOST_LINES:
                differing = [*differing[:_MOST_LINES], f"and {len(differing) - _MOST_LINES} more"]
            table.add_row(write_seconds(other.seconds), write_times(other, self.plan.decomposed), "\n".join(differing))
        return table

    def _inputs(self) -> Table:
        table = Table(title="Inputs", title_justify="left")
        table.add_column("tensor")
        table.add_column("stored as")
        table.add_column("entries", justify="right")
        table.add_column("density", justify="right")
        for name, measured in self.plan.inputs.items():
            stored = measured.stored
            entries = self.plan.alternatives.model.statistics[name].entries
            schema = Schema(stored.tensor, stored.decomposition)
            density = f"{entries / stored.tensor.size:.3g}" if stored.tensor.size else "-"
            table.add_row(write_schema(schema), _write_relation_and_fill(schema), write_count(entries), density)
        return table

    def _statements(self) -> Table:
        title = "Statements, in the order in which they run"
        table = Table(title=title, title_justify="left", min_width=len(title))
        table.add_column("computes")
        table.add_column("result")
        if self.analysis is not None:
            table.add_column("seconds", justify="right")
        for statement, seconds in self.statements():
            target = "temporary table" if statement.stage else "returned"
            if statement.passes:
                target += f", in {len(statement.passes) + 1} passes"
            duration = [] if seconds is None else [write_seconds(seconds)]
            table.add_row(", ".join(statement.computes) or statement.name, f"{statement.name}: {target}", *duration)
        return table


def _write_relation_and_fill(schema: Schema) -> str:
    """The relational schema, and the fill if it is not 0."""
    fill = schema.tensor.fill
    return f"{write_relation(schema)}, else {write_number(fill)}" if fill else write_relation(schema)


def differing_steps(plan: DecomposedGraph, other: DecomposedGraph) -> list[Step]:
    """The steps of `other`, a plan for the same graph, whose decomposition differs from that in `plan`."""
    return [theirs for ours, theirs in zip(plan.steps, other.steps, strict=True) if ours.choice != theirs.choice]


def write_times(other: DecomposedGraph, plan: DecomposedGraph) -> str:
    """The expected seconds of `other` divided by those of `plan`."""
    return f"{other.seconds / plan.seconds:.2f}" if plan.seconds else "-"

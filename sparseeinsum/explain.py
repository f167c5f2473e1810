"""What a plan says of itself in a terminal: notation, schemas, expected and actual sizes, and where the time goes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from sparseeinsum.algebra.operators import Schema
from sparseeinsum.decompose.plan import DecomposedGraph, Step
from sparseeinsum.language.scalar import write_number
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.render.relations import write_schema
from sparseeinsum.render.statements import Statement
from sparseeinsum.semantics.exactness import Evaluation, JoinKind
from sparseeinsum.statistics.columns import NUMBER_TYPES
from sparseeinsum.statistics.estimate import Statistics

_WIDTH = 140


@dataclass(frozen=True, slots=True)
class Analysis:
    """What a run of a plan took.

    Attributes:
        statement_seconds: Of every statement, in order.
        tuples: Of every result, by name.
    """

    statement_seconds: tuple[float, ...]
    tuples: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Explanation:
    """All that an explanation shows.

    Attributes:
        decomposed: The EinSums, their choices and expected costs.
        stored: The inputs.
        statistics: T and V of every tensor.
        evaluations: What is exact for each EinSum.
        parts: For every EinSum as written, the results of EinSums that it was taken apart into.
        statements: What a run executes.
        planning_seconds: By stage.
        analysis: Of a run, if there was one.
    """

    decomposed: DecomposedGraph
    stored: Mapping[str, StoredTensor]
    statistics: Mapping[str, Statistics]
    evaluations: Mapping[str, Evaluation]
    parts: Mapping[str, tuple[str, ...]]
    statements: Sequence[Statement]
    planning_seconds: Mapping[str, float]
    analysis: Analysis | None

    def write(self) -> str:
        """The explanation as text."""
        console = Console(width=_WIDTH, color_system=None, highlight=False, markup=False)
        with console.capture() as captured:
            console.print(self._headline())
            console.print(self._einsums())
            console.print(self._inputs())
            console.print(self._statements())
            for line in self._notes():
                console.print(line)
        return "\n".join(line.rstrip() for line in captured.get().splitlines())

    def _headline(self) -> str:
        planned = ", ".join(f"{stage} {_seconds(taken)}" for stage, taken in self.planning_seconds.items())
        count = len(self.decomposed.steps)
        return (
            f"{count} EinSum{'s' if count != 1 else ''}, expected {_seconds(self.decomposed.seconds)}; "
            f"planned in {_seconds(sum(self.planning_seconds.values()))} ({planned})"
        )

    def _einsums(self) -> Table:
        table = Table(title="EinSums (labels in upper case are handled by the database)", title_justify="left")
        table.add_column("EinSum", overflow="fold")
        table.add_column("result relation", overflow="fold")
        for heading in ("tuples", *(("actual",) if self.analysis else ()), "join", "aggregate", "repartition"):
            table.add_column(heading, justify="right")
        for step in self.decomposed.steps:
            table.add_row(*self._einsum_cells(step))
        return table

    def _einsum_cells(self, step: Step) -> list[str]:
        name = step.einsum.output.tensor
        schema = Schema(self.decomposed.graph.tensors[name], step.result)
        cells = [step.notation, _relation_and_fill(schema), _count(self.statistics[name].tuples(step.result.tiles))]
        if self.analysis is not None:
            cells.append(_count(self.analysis.tuples[name]))
        costs = (step.join_seconds, step.aggregation_seconds, step.repartition_seconds)
        return [*cells, *(_seconds(cost) for cost in costs)]

    def _inputs(self) -> Table:
        table = Table(title="Inputs", title_justify="left")
        table.add_column("tensor")
        table.add_column("stored as")
        table.add_column("entries", justify="right")
        table.add_column("density", justify="right")
        for name, stored in self.stored.items():
            entries = self.statistics[name].entries
            schema = Schema(stored.tensor, stored.decomposition)
            density = f"{entries / stored.tensor.size:.3g}" if stored.tensor.size else "-"
            table.add_row(write_schema(schema), _relation_and_fill(schema), _count(entries), density)
        return table

    def _statements(self) -> Table:
        title = "Statements, in the order in which they run"
        table = Table(title=title, title_justify="left", min_width=len(title))
        table.add_column("computes")
        table.add_column("result")
        if self.analysis is not None:
            table.add_column("seconds", justify="right")
        for index, statement in enumerate(self.statements):
            kept = "temporary table" if statement.stage else "returned"
            cells = [", ".join(statement.computes) or statement.name, f"{statement.name}: {kept}"]
            if self.analysis is not None:
                cells.append(_seconds(self.analysis.statement_seconds[index]))
            table.add_row(*cells)
        return table

    def _notes(self) -> list[str]:
        notes = [
            f"{name}: taken apart into {', '.join(parts)}: fewer operands each, or only sparse ones, are cheaper"
            for name, parts in self.parts.items()
            if parts
        ]
        for step in self.decomposed.steps:
            name = step.einsum.output.tensor
            operands = step.einsum.operands
            made = [operand.tensor for operand, dense in zip(operands, step.absence.dense, strict=True) if dense]
            evaluation = self.evaluations[name]
            if made:
                notes.append(f"{name}: every tuple of {', '.join(made)} must be present, because {evaluation.reason}")
            elif step.absence.join != JoinKind.INNER:
                notes.append(f"{name}: a {step.absence.join} join fills in what is absent, because {evaluation.reason}")
            if _compensates(step, evaluation):
                notes.append(
                    f"{name}: {step.einsum.aggregate} counts {evaluation.constant} for every pair of tuples left out"
                )
            if evaluation.detects_nonfinite:
                notes.append(f"{name}: a run ends where it turns NaN or infinite (nonfinite='allow' lets it go on)")
        return notes


def _compensates(step: Step, evaluation: Evaluation) -> bool:
    """Whether pairs of tuples are left out of groups that their constant would change."""
    is_grouped = not step.promoted <= frozenset(step.einsum.output.labels)
    return is_grouped and evaluation.constant is not None and not evaluation.ignores_constant


def write_relation(schema: Schema) -> str:
    """The relational schema of a tensor, as in X(i INT, val DOUBLE[1433])."""
    keys = [f"{key} INT" for key in schema.keys]
    size = "" if schema.is_scalar else f"[{schema.array_size}]"
    return f"{schema.tensor.name}({', '.join([*keys, f'val {NUMBER_TYPES[schema.tensor.dtype]}{size}'])})"


def _relation_and_fill(schema: Schema) -> str:
    """The relational schema, and what an index holds that has no tuple, where that is not 0."""
    fill = schema.tensor.fill
    return f"{write_relation(schema)}, else {write_number(fill)}" if fill else write_relation(schema)


def _count(number: float) -> str:
    return f"{round(number):,}"


def _seconds(seconds: float) -> str:
    if seconds == 0:
        return "0"
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"

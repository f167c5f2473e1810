"""What a plan says of itself in a terminal: notation, schemas, expected and actual sizes, and where the time goes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from sparseeinsum.algebra.operators import Schema
from sparseeinsum.decompose.alternatives import Alternatives
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.plan import DecomposedGraph, Step
from sparseeinsum.language.scalar import write_number
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.render.relations import write_schema
from sparseeinsum.render.statements import Statement
from sparseeinsum.rewrite.derivations import Derivation
from sparseeinsum.rewrite.rewrite_summary import RewriteSummary
from sparseeinsum.rewrite.saturation.egraph import EXTRA
from sparseeinsum.semantics.exactness import Evaluation, JoinKind
from sparseeinsum.statistics.columns import NUMBER_TYPES

_WIDTH = 140
_ANALYSED = ("tuples", "actual", "bytes", "actual", "time", "actual")
_MOST_LINES = 8  # of a runner-up


@dataclass(frozen=True, slots=True)
class EinSumRun:
    """What one EinSum took, run on its own.

    Attributes:
        tuples: Of its result.
        seconds: From tables of its operands into one of its result; None where that was not measured alone.
    """

    tuples: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Replanning:
    """A run saw a result of another size than was expected, and looked for another plan for the rest.

    Attributes:
        name: The result.
        expected: Tuples of it.
        tuples: That there are.
        kept_seconds: Expected of the rest, as it was planned, now that the size is known.
        seconds: The same of the best plan that was found.
        planning_seconds: That it took to find out.
        is_better: Whether that is another plan, and enough faster to go on with it, or the only one with enough memory.
    """

    name: str
    expected: float
    tuples: int
    kept_seconds: float
    seconds: float
    planning_seconds: float
    is_better: bool

    @property
    def told(self) -> str:
        """What happened, in a line."""
        seen = f"{self.name}: {write_count(self.tuples)} tuples instead of {write_count(self.expected)}"
        if self.is_better:
            found = f"now {write_seconds(self.seconds)} instead of {write_seconds(self.kept_seconds)}"
            if self.seconds >= self.kept_seconds:
                found = f"{write_seconds(self.seconds)}, because it would have taken too much memory"
            return f"{seen}; the rest was planned anew in {write_seconds(self.planning_seconds)}, expected {found}"
        return f"{seen}; the rest goes on as planned, expected {write_seconds(self.kept_seconds)}"


@dataclass(frozen=True, slots=True)
class Analysis:
    """What a run of a plan took.

    Attributes:
        statements: Those that ran, in order, and their seconds.
        replannings: Where sizes were not as expected.
        einsums: Of every EinSum of the plan as it was, by the name of its result.
    """

    statements: tuple[tuple[Statement, float], ...]
    replannings: tuple[Replanning, ...]
    einsums: Mapping[str, EinSumRun]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of the result of one EinSum."""

    model: CostModel
    step: Step

    @property
    def tuples(self) -> float:
        """Expected tuples."""
        return self.model.tuples(self.step.einsum.output.tensor, self.step.result.tiles)

    @property
    def tuple_bytes(self) -> int:
        """Bytes of one tuple."""
        return self.model.tuple_bytes(self.step.einsum.output.tensor, self.step.result.tiles)

    @property
    def expected_bytes(self) -> float:
        """Expected bytes of all tuples."""
        return self.tuples * self.tuple_bytes


@dataclass(frozen=True, slots=True)
class Explanation:
    """All that an explanation shows.

    Attributes:
        decomposed: The EinSums, their choices and expected costs.
        alternatives: What might have been chosen.
        stored: The inputs.
        evaluations: What is exact for each EinSum.
        rewriting: How those EinSums came from the ones that were written.
        statements: What a run executes.
        planning_seconds: By stage.
        analysis: Of a run, if there was one.
        runners_up: How many other plans to show.
        transferred_bytes: Expected to go from machine to machine; None where there is one.
        matrix_products: What computes those of arrays.
    """

    decomposed: DecomposedGraph
    alternatives: Alternatives
    stored: Mapping[str, StoredTensor]
    evaluations: Mapping[str, Evaluation]
    rewriting: RewriteSummary
    statements: Sequence[Statement]
    planning_seconds: Mapping[str, float]
    analysis: Analysis | None
    runners_up: int
    transferred_bytes: float | None
    matrix_products: str

    def write(self) -> str:
        """The explanation as text."""
        console = Console(width=_WIDTH, color_system=None, highlight=False, markup=False)
        with console.capture() as captured:
            console.print(self.headline())
            console.print(self._einsums())
            if self.runners_up > 0:
                console.print(self._runners_up())
            console.print(self._inputs())
            console.print(self._statements())
            for line in self.notes():
                console.print(line)
        return "\n".join(line.rstrip() for line in captured.get().splitlines())

    def headline(self) -> str:
        """How many EinSums, expected and planning time."""
        planned = ", ".join(f"{stage} {write_seconds(taken)}" for stage, taken in self.planning_seconds.items())
        count = len(self.decomposed.steps)
        moved = "" if self.transferred_bytes is None else f", {write_bytes(self.transferred_bytes)} between machines"
        return (
            f"{count} EinSum{'s' if count != 1 else ''}, expected {write_seconds(self.decomposed.seconds)}{moved}; "
            f"planned in {write_seconds(sum(self.planning_seconds.values()))} ({planned})"
        )

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
        cluster_plan = self.decomposed.cluster_plan
        if cluster_plan is not None:
            table.add_column("on the machines", overflow="fold")
        for step in self.decomposed.steps:
            lies = [] if cluster_plan is None else [cluster_plan.describe(step.einsum)]
            table.add_row(*self._einsum_cells(step), *lies)
        return table

    def _einsum_cells(self, step: Step) -> list[str]:
        name = step.einsum.output.tensor
        cells = [step.notation, _relation_and_fill(Schema(self.decomposed.graph.tensors[name], step.result))]
        sizes = Sizes(self.alternatives.model, step)
        tuples, size = write_count(sizes.tuples), write_bytes(sizes.expected_bytes)
        if self.analysis is None:
            costs = (step.join_seconds, step.aggregation_seconds, step.repartition_seconds)
            return [*cells, tuples, size, *map(write_seconds, costs)]
        run = self.analysis.einsums[name]
        taken = "in its readers" if run.seconds is None else write_seconds(run.seconds)
        actual = write_count(run.tuples), write_bytes(run.tuples * sizes.tuple_bytes), taken
        expected = tuples, size, write_seconds(step.seconds)
        return [*cells, *(cell for pair in zip(expected, actual, strict=True) for cell in pair)]

    def _runners_up(self) -> Table | str:
        others = self.alternatives.other_plans(self.decomposed, self.runners_up)
        if not others:
            return "No other plan keeps to what is asked."
        is_best = self.decomposed.seconds <= others[0].seconds
        title = "Runners-up, and what they would do otherwise" if is_best else "Other plans, of which some are cheaper"
        table = Table(title=title, title_justify="left", min_width=len(title))
        for heading in ("expected", "times this plan"):
            table.add_column(heading, justify="right")
        table.add_column("EinSums that differ", overflow="fold")
        for other in others:
            differing = [step.notation for step in differing_steps(self.decomposed, other)]
            if len(differing) > _MOST_LINES:
                differing = [*differing[:_MOST_LINES], f"and {len(differing) - _MOST_LINES} more"]
            table.add_row(write_seconds(other.seconds), write_times(other, self.decomposed), "\n".join(differing))
        return table

    def _inputs(self) -> Table:
        table = Table(title="Inputs", title_justify="left")
        table.add_column("tensor")
        table.add_column("stored as")
        table.add_column("entries", justify="right")
        table.add_column("density", justify="right")
        for name, stored in self.stored.items():
            entries = self.alternatives.model.statistics[name].entries
            schema = Schema(stored.tensor, stored.decomposition)
            density = f"{entries / stored.tensor.size:.3g}" if stored.tensor.size else "-"
            table.add_row(write_schema(schema), _relation_and_fill(schema), write_count(entries), density)
        return table

    def _statements(self) -> Table:
        title = "Statements, in the order in which they run"
        table = Table(title=title, title_justify="left", min_width=len(title))
        table.add_column("computes")
        table.add_column("result")
        if self.analysis is not None:
            table.add_column("seconds", justify="right")
        ran = [(each, None) for each in self.statements] if self.analysis is None else self.analysis.statements
        for statement, seconds in ran:
            kept = "temporary table" if statement.stage else "returned"
            if statement.passes:
                kept += f", in {len(statement.passes) + 1} passes"
            taken = [] if seconds is None else [write_seconds(seconds)]
            table.add_row(", ".join(statement.computes) or statement.name, f"{statement.name}: {kept}", *taken)
        return table

    def notes(self) -> list[str]:
        """What was rewritten, how what is absent is dealt with, and where a run planned anew, a line each."""
        notes = [
            f"{name}: taken apart into {', '.join(parts)}: fewer operands each, or only sparse ones, are cheaper"
            for name, parts in self.rewriting.parts.items()
            if parts
        ]
        notes += [
            f"{name}: the same as {kept}, which is computed once for both"
            for name, kept in self.rewriting.merged.items()
        ]
        notes += [
            f"{name}: no equal formulas were looked for, which needs egglog: pip install 'sparseeinsum[{EXTRA}]'"
            for name in self.rewriting.unsearched
        ]
        notes += [line for each in self.rewriting.derivations.items() for line in _derivation_lines(*each)]
        notes += [
            f"{whole}: its product is computed in another order than written, without {', '.join(names)} "
            "(rewrite=False keeps to what is written)"
            for whole, names in _by_value(self.rewriting.inlined).items()
            if whole not in self.rewriting.derivations
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
            if step.indexed is not None:
                kept = operands[step.indexed]
                read = ", ".join(label for label in kept.labels if label in step.promoted)
                notes.append(f"{name}: {kept.tensor} is kept in memory as one array and read at {read}, without a join")
            if _compensates(step, evaluation):
                notes.append(
                    f"{name}: {step.einsum.aggregate} counts {evaluation.constant} for every pair of tuples left out"
                )
            if evaluation.detects_nonfinite:
                notes.append(f"{name}: a run ends where it turns NaN or infinite (nonfinite='allow' lets it go on)")
        products = [
            step.einsum.output.tensor
            for step in self.decomposed.steps
            if self.alternatives.model.is_matrix_product(step.einsum, step.choice)
        ]
        if products:
            notes.append(f"{', '.join(products)}: matrix products of arrays are computed by {self.matrix_products}")
        notes += [replanning.told for replanning in self.analysis.replannings] if self.analysis is not None else []
        return notes


def _derivation_lines(name: str, derivation: Derivation) -> Iterator[str]:
    """The formula that a result is computed by, and why it is equal to the one written."""
    seconds = f"{write_seconds(derivation.seconds)} instead of {write_seconds(derivation.seconds_written)}"
    yield (
        f"{name}: computed by an equal formula, expected to take {seconds} ({derivation.share:.2g} times as long), and "
        "rounded otherwise (rewrite=False keeps to what is written)"
    )
    written, computed = derivation.formulas
    yield f"{name}: written as {written}"
    yield f"{name}: computed as {computed}"
    laws = derivation.laws
    if laws:
        yield f"{name}: which is equal by {', '.join(laws)}"


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


def differing_steps(plan: DecomposedGraph, other: DecomposedGraph) -> list[Step]:
    """The EinSums of another plan for the same graph that it decomposes otherwise."""
    return [there for here, there in zip(plan.steps, other.steps, strict=True) if here.choice != there.choice]


def write_times(other: DecomposedGraph, plan: DecomposedGraph) -> str:
    """How many times as long another plan is expected to take."""
    return f"{other.seconds / plan.seconds:.2f}" if plan.seconds else "-"


def write_count(number: float) -> str:
    """A number of tuples or entries."""
    return f"{round(number):,}"


def write_bytes(size: float) -> str:
    """A size in the largest unit that leaves a whole number before the point."""
    for unit in ("B", "KB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.3g} TB"


def write_seconds(seconds: float) -> str:
    """A duration in s or ms."""
    if seconds == 0:
        return "0"
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def _by_value(names: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in names.items():
        found.setdefault(value, []).append(name)
    return found

"""Loops: the plan of a step, which stays exact as the state changes, and its statements."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

from sqlglot import exp

from sparseeinsum.algebra.operators import Relation
from sparseeinsum.engines.engine import Engine
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.operators.ranges import ANY_VALUE, finite_range
from sparseeinsum.pipeline.loops.inserted_outputs import InsertedOutput
from sparseeinsum.pipeline.loops.prepared_statements import PreparedStatements
from sparseeinsum.pipeline.loops.state_layouts import DRIFT
from sparseeinsum.pipeline.loops.step_statements import StageTables, StepStatements, statements_of
from sparseeinsum.pipeline.program_data import NOTHING_ASSUMED
from sparseeinsum.pipeline.supplied_plans import SuppliedFacts, SuppliedPlan
from sparseeinsum.plans.options import PlanOptions
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.plans.plan_statements import PlanStatements
from sparseeinsum.results.kept_operands import kept_operands
from sparseeinsum.rewrite.equal_formulas import EqualFormulas
from sparseeinsum.semantics.exactness import ValueFacts
from sparseeinsum.statistics.columns import table_by_name
from sparseeinsum.statistics.measure import measured_values

_NUMBERS = count(1)  # of the prepared statements in this process
_SCAN_SECONDS = 3e-4  # of a small table, to find out what holds for its values
_MOST_SLOWDOWN = 1.1  # of a plan that needs no such scans
_LITTLE = 1000  # tuples, of which any plan is fast

_ALWAYS_FINITE = ("int64", "bool")
_COMPUTED_AS_STORED = ("float64", "complex128")  # rounding to other dtypes can give infinity


@dataclass(frozen=True, slots=True)
class AlternatingInput:
    """An input that is in one of two tables, which alternate from step to step.

    Attributes:
        stored: The input in each of the two tables.
        following: The output that the next turn reads as this input; empty if none is.
        values: What is known of its values in all turns; None if nothing is.
    """

    stored: tuple[StoredTensor, StoredTensor]
    following: str = ""
    values: ValueFacts | None = None

    @property
    def has_unique_axis(self) -> bool:
        """Whether the key of its only promoted axis tells rows apart, as all keys together do."""
        return len(self.stored[0].decomposition.promoted) == 1

    @property
    def most_rows(self) -> int:
        """The number of rows if there is one for every possible key."""
        return self.stored[0].max_tuples


def later_values(dtype: str, stays_finite: bool = True) -> ValueFacts:
    """What may hold for the values of a state of a dtype in all turns, if they are finite in all turns or not."""
    is_finite = dtype in _ALWAYS_FINITE or (stays_finite and dtype in _COMPUTED_AS_STORED)
    return ValueFacts(finite_range(dtype) if is_finite else ANY_VALUE, has_fill=True)


class StepPlan:
    """A plan that reads tables in turn; another one is made where it is not exact for what they hold."""

    def __init__(
        self,
        engine: Engine,
        prepared: PreparedStatements,
        program: Program,
        options: PlanOptions,
        inputs: Mapping[str, AlternatingInput],
        inserted: Mapping[str, InsertedOutput],
        equal: EqualFormulas | None = None,
    ) -> None:
        """Make no plan yet.

        Args:
            engine: The database.
            prepared: The statements of the loop.
            program: What a step computes.
            options: The options of the plan.
            inputs: The inputs that are in tables in turn.
            inserted: The outputs that go into tables.
            equal: The equal formulas that other plans of the program have found; they grow.
        """
        self._engine = engine
        self._prepared = prepared
        self._inputs = {name: alternating for name, alternating in inputs.items() if name in program.inputs}
        self._inserted = inserted
        self._planned = SuppliedPlan(program, engine, options, {}, equal)
        self._unmeasured: frozenset[str] = frozenset()  # inputs for all of whose later values the plan is exact
        self._rendered: ProgramPlan | None = None  # the plan whose statements there are
        self._turn = 0  # whose tables the plan itself reads
        self._both_turns: PlanStatements | None = None
        self._statements: dict[int, StepStatements] = {}
        self._kept: Mapping[Relation, int | None] = {}
        self._stages = StageTables(engine, prepared)

    @property
    def plan(self) -> ProgramPlan:
        """The plan of the next step."""
        return self._planned.plan

    def take_outputs(self, inserted: Mapping[str, InsertedOutput]) -> None:
        """Let later statements fill other tables with outputs."""
        self._inserted, self._statements, self._both_turns = inserted, {}, None

    def plan_for(self, turn: int, later: Mapping[str, ValueFacts]) -> None:
        """Make a plan for the present data, which the tables of a turn hold, in the open transaction.

        Args:
            turn: The tables with the data.
            later: What may hold for the values of inputs in later turns, by name.
        """
        self._turn = turn
        self._planned.supplied = {name: alternating.stored[turn] for name, alternating in self._inputs.items()}
        self._planned.plan_again(later)

    def plan_for_later_values(self) -> None:
        """Make another plan if the present one is not exact for all later values, unless that takes longer to run.

        A plan that is exact for all later values takes no scan of them in every step.
        """
        later = self.later_values()
        if not self._accepts(later):
            most_seconds = _MOST_SLOWDOWN * self.plan.decomposed.seconds + _SCAN_SECONDS
            if self._planned.plan_within(most_seconds, later):
                self._unmeasured = frozenset(later)
        repeated = [name for name, alternating in self._inputs.items() if not alternating.has_unique_axis]
        self._planned.assume_no_unique_keys(repeated)

    def _accepts(self, later: Mapping[str, ValueFacts]) -> bool:
        """Whether the plan is exact for all later values of all inputs; keeps for which inputs it is."""
        self._unmeasured = self._planned.accepts(later)
        return len(self._unmeasured) == len(later)

    def later_values(self) -> dict[str, ValueFacts]:
        """What holds for the values of the inputs in all turns, by name."""
        return {name: self._later_values(name) for name in self._inputs}

    def _later_values(self, name: str) -> ValueFacts:
        """What holds for the values of an input in all turns."""
        alternating, tensor = self._inputs[name], self._inputs[name].stored[0].tensor
        if alternating.values is not None:
            return alternating.values
        evaluation = self.plan.evaluations.get(alternating.following)
        stays_finite = (
            evaluation is not None
            and (evaluation.detects_nonfinite or evaluation.values.entries.is_finite)
            and self._planned.known_facts(name).entries.is_finite
        )
        return later_values(tensor.dtype, stays_finite)

    def make_exact(self, turn: int, rows: Mapping[str, int], may_differ: bool) -> None:
        """Make another plan if the present one is not exact for the present data, or is for far fewer or more rows.

        Args:
            turn: The tables with the data.
            rows: The number of rows of every input in tables in turn.
            may_differ: Whether stored inputs may have changed.
        """
        if may_differ:
            self._stages.compute_again()
        is_exact = not may_differ or self._planned.adapts_to_stored()
        if not (is_exact and all(self._is_fit_for(name, turn, rows[name]) for name in self._inputs)):
            is_exact_later = len(self._unmeasured) == len(self._inputs)
            self.plan_for(turn, self.later_values() if is_exact_later else NOTHING_ASSUMED)
            self.plan_for_later_values()
        if may_differ or self.plan is not self._rendered:
            self._keep_operands()

    def _keep_operands(self) -> None:
        """Keep the operands of the present plan in memory that are made of stored inputs, which steps do not change."""
        kept = kept_operands(self.plan, self._engine, at_once=True)
        if kept != self._kept:
            self._kept, self._statements, self._both_turns = kept, {}, None

    def _is_fit_for(self, name: str, turn: int, rows: int) -> bool:
        alternating, planned = self._inputs[name], self.plan.inputs[name].measurement.tuples
        if max(rows, planned) > _LITTLE and not planned <= DRIFT * rows <= DRIFT**2 * planned:
            return False
        stored = alternating.stored[turn]
        is_measured = name not in self._unmeasured
        values = measured_values(stored, self._engine) if is_measured else self._planned.known_facts(name)
        facts = SuppliedFacts(values, rows == alternating.most_rows, lambda _: alternating.has_unique_axis)
        return self._planned.is_exact_for(name, facts)

    @property
    def is_small(self) -> bool:
        """Whether all inputs and results have few rows, so that an optimiser has little to gain."""
        return self._planned.is_small

    @property
    def reads_own_tables(self) -> bool:
        """Whether all stored inputs are tables of this package, which only transactions change."""
        return self._planned.reads_own_tables

    def statements(self, turn: int) -> StepStatements:
        """The statements that read the tables of a turn, and fill the others."""
        if self.plan is not self._rendered:
            self.drop()
            self._rendered = self.plan
        if self._both_turns is None:
            in_rows = [name for name, output in self._inserted.items() if output.column]
            changed_inputs = self._inputs.keys()
            self._both_turns = statements_of(self.plan, self._kept, changed_inputs, in_rows, not self.is_small)
        if turn not in self._statements:
            swapped = {} if turn == self._turn else self._swapped()
            changed = {table.name for tables in self._tables().values() for table in tables}
            changed |= {table.name for output in self._inserted.values() for table in output.tables}
            self._statements[turn] = StepStatements(
                self._prepared, self._both_turns, 1 - turn, swapped, self._inserted, self._stages, changed
            )
        return self._statements[turn]

    def _swapped(self) -> dict[str, exp.Table]:
        tables = self._tables().values()
        return {read.name: other for pair in tables for read, other in (pair, reversed(pair))}

    def _tables(self) -> dict[str, list[exp.Table]]:
        """The tables in turn, by the inputs that are in them."""
        dialect = self._engine.dialect_name
        return {
            name: [table_by_name(stored, dialect) for stored in alternating.stored]
            for name, alternating in self._inputs.items()
        }

    def drop(self) -> None:
        """Drop the tables of intermediates."""
        self._statements, self._both_turns = {}, None
        self._stages.drop()

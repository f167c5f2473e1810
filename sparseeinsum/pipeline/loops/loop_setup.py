"""Loops: the tables and plans of a loop, before its first step."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from sqlglot import exp

from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.temporary_names import temporary_name
from sparseeinsum.errors import ShapeError
from sparseeinsum.language.binding import bind
from sparseeinsum.language.scalar import write_number
from sparseeinsum.language.syntax import STEP
from sparseeinsum.language.tensors import VALUE_COLUMN, StoredTensor, Tensor, fully_promoted
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.operators.ranges import Range
from sparseeinsum.pipeline.loops.change_counts import ChangeCounts
from sparseeinsum.pipeline.loops.inserted_outputs import InsertedOutput
from sparseeinsum.pipeline.loops.kept_state import kept_tensor
from sparseeinsum.pipeline.loops.loop_programs import CHANGED, LoopProgram, check_next_values
from sparseeinsum.pipeline.loops.prepared_statements import PreparedStatements
from sparseeinsum.pipeline.loops.shared_rows import SharedRow, share_row
from sparseeinsum.pipeline.loops.state_layouts import StateLayout, array_layouts, computed_layouts, computes_arrays
from sparseeinsum.pipeline.loops.state_tables import (
    StateTables,
    count_rows,
    create_state_tables,
    drop_state_tables,
)
from sparseeinsum.pipeline.loops.step_plans import AlternatingInput, StepPlan, later_values
from sparseeinsum.pipeline.loops.step_records import StepRecords, records_of
from sparseeinsum.pipeline.program_data import NOTHING_ASSUMED
from sparseeinsum.plans.options import PlanOptions
from sparseeinsum.rewrite.equal_formulas import EqualFormulas
from sparseeinsum.semantics.exactness import ValueFacts
from sparseeinsum.storage.catalogue import require_tensors
from sparseeinsum.storage.program_inputs import stored_inputs
from sparseeinsum.storage.tensor_tables import stored_tensor

_NUMBERS = count(1)  # of the loops of this process


class StepNumber:
    """A temporary table with the number of steps done, which programs read as `step`."""

    def __init__(self, engine: Engine, prepared: PreparedStatements, stored: StoredTensor) -> None:
        self.stored = stored
        self._engine = engine
        self._prepared = prepared

    def set(self, done: int) -> None:
        """Store the number of steps done; the next step reads it."""
        self._engine.execute(f"UPDATE {self.stored.relation} SET {VALUE_COLUMN} = {done}")

    def increase(self) -> None:
        """Add one to the number."""
        self._prepared.write(f"UPDATE {self.stored.relation} SET {VALUE_COLUMN} = {VALUE_COLUMN} + 1")

    def get(self) -> int:
        """Return the stored number of steps done."""
        ((done,),) = self._engine.rows(f"SELECT {VALUE_COLUMN} FROM {self.stored.relation}")
        return int(str(done))


@dataclass(frozen=True, slots=True)
class LoopParts:
    """The tables and plans of a loop.

    Attributes:
        engine: The database.
        prepared: The statements of the loop.
        tables: The tables of the state.
        step: The number of steps done.
        records: The table of the steps.
        earlier: What the steps of earlier runs returned.
        first: The number of steps of earlier runs.
        rows: The number of rows of every state before the first step, by name.
        plan: The plan of a step.
        changes: Counts the changed values of the state; None if nothing reads that.
    """

    engine: Engine
    prepared: PreparedStatements
    tables: tuple[StateTables, ...]
    step: StepNumber
    records: StepRecords
    earlier: list[dict[str, Number]]
    first: int
    rows: Mapping[str, int]
    plan: StepPlan
    changes: ChangeCounts | None

    def close(self) -> None:
        """Remove from the connection what the loop has there."""
        self.plan.drop()
        if self.changes is not None:
            self.changes.drop()
        self.prepared.drop()
        self.engine.execute(f"DROP TABLE IF EXISTS {self.step.stored.relation}")
        drop_state_tables(self.engine, self.tables)


def set_up(
    steps: LoopProgram,
    engine: Engine,
    kept: Mapping[str, str],
    most_steps: int,
    resumes: bool,
    options: PlanOptions,
) -> LoopParts:
    """Create the tables and plans of a loop, in the open transaction.

    Args:
        steps: What a step computes.
        engine: The database.
        kept: The tensors that keep the state, by the names of the state.
        most_steps: The number of steps at most.
        resumes: Whether the loop goes on where an earlier one ended.
        options: The options of the plan of a step.

    Raises:
        PlanError: There are no earlier steps to go on with, or no plan satisfies the options.
        CatalogueError: A tensor does not exist, or may not be replaced.
        ShapeError: The next value of a state has another shape, dtype or fill.
    """
    number = next(_NUMBERS)
    prepared = PreparedStatements(engine)
    prepared.outdate()  # the tables of the state are created in this transaction
    step = _step_number(engine, prepared, number)
    if resumes:
        stored = require_tensors(engine, [kept[name] for name in steps.state])
        present = dict(zip(steps.state, stored.values(), strict=True))
    else:
        present = _stored_state(steps, engine, step.stored)
    sources = {name: replace(source, tensor=replace(source.tensor, name=name)) for name, source in present.items()}
    supplied = {**sources, STEP: step.stored}
    inputs = {**sources, **stored_inputs(steps.program, engine, supplied=supplied).stored}
    check_next_values(steps, inputs)
    dtypes = _dtypes(steps, inputs)
    records = records_of(engine, next(iter(kept.values())), dtypes)
    earlier = records.read() if resumes else []
    keeping = {name: kept_tensor(engine, source, kept[name]) for name, source in present.items()}
    if not resumes:
        records.create(tuple(steps.state))
    step.set(len(earlier))
    setup = _Setup(steps, engine, prepared, number, step, present, keeping, most_steps, options)
    planned = setup.cheapest()
    changes = ChangeCounts.of(engine, prepared, planned.tables) if steps.counts_changes else None
    return LoopParts(
        engine, prepared, planned.tables, step, records, earlier, len(earlier), planned.rows, planned.plan, changes
    )


@dataclass(frozen=True, slots=True)
class _PlannedStep:
    """The tables of a state in some layouts, with their numbers of rows, and the plan of a step that reads them."""

    tables: tuple[StateTables, ...]
    rows: Mapping[str, int]
    plan: StepPlan

    @property
    def seconds(self) -> float:
        """The expected seconds of a step."""
        return self.plan.plan.decomposed.seconds

    def drop(self, engine: Engine) -> None:
        """Drop the tables of the state: steps take those of a cheaper plan."""
        drop_state_tables(engine, self.tables)


@dataclass(frozen=True, slots=True)
class _Setup:
    """What plans of a step are made of; arguments as of `set_up`.

    Attributes:
        number: The number of the loop, for names of tables.
        step: The table of the number of steps.
        present: The state before the loop, by name.
        keeping: The tensors that keep it, by the same names.
        equal: The equal formulas that the plans so far have found.
    """

    steps: LoopProgram
    engine: Engine
    prepared: PreparedStatements
    number: int
    step: StepNumber
    present: Mapping[str, StoredTensor]
    keeping: Mapping[str, StoredTensor]
    most_steps: int
    options: PlanOptions
    equal: EqualFormulas = field(default_factory=EqualFormulas, init=False)

    def cheapest(self) -> _PlannedStep:
        """The state in the layouts of the cheapest plan of those that are made."""
        planned = self._in_arrays() or self._as_stored_or_computed()
        planned.plan.plan_for_later_values()
        return self._sharing_rows(planned)

    def _in_arrays(self) -> _PlannedStep | None:
        """A dense state in one array each, if steps compute it so; other layouts save at most their repartitions."""
        if not self.engine.dialect.chains_arrays or self.options.allows_nonfinite:
            return None
        rows = {name: count_rows(self.engine, source) for name, source in self.present.items()}
        layouts = array_layouts(self.present, rows)
        if not layouts:
            return None
        values = {name: later_values(source.tensor.dtype) for name, source in self.present.items()}
        planned = self._planned(layouts, "array", {**values, STEP: self._step_values})
        if computes_arrays(planned.plan.plan, self.steps.state, self.present):
            return planned
        planned.drop(self.engine)
        return None

    @property
    def _step_values(self) -> ValueFacts:
        return ValueFacts(Range(0, self.most_steps), has_fill=True)

    def _as_stored_or_computed(self) -> _PlannedStep:
        """The state in the layouts in which it is stored, or in those in which steps compute it."""
        stored = {name: source.decomposition for name, source in self.present.items()}
        as_stored = {name: StateLayout(decomposition) for name, decomposition in stored.items()}
        planned = self._planned(as_stored, "state")
        computed = computed_layouts(planned.plan.plan, self.steps.state, stored)
        if computed != as_stored:
            other = self._planned(computed, "arrays", planned.plan.later_values())
            # The plan for a state that grows in its first step says nothing of later steps.
            grows = any(layout.is_complete for layout in computed.values())
            is_cheaper = grows or other.seconds < planned.seconds
            planned, dearer = (other, planned) if is_cheaper else (planned, other)
            dearer.drop(self.engine)
        return planned

    def _sharing_rows(self, planned: _PlannedStep) -> _PlannedStep:
        """The same with one table in each turn for the states whose next values one statement returns in one row."""
        places = planned.plan.plan.statements.places_in_chains
        by_table: dict[str, list[StateTables]] = {}
        for state in planned.tables:
            table, _ = places.get(self.steps.state[state.name], ("", ""))
            if table and not state.stored[0].keys and planned.rows[state.name] == 1:
                by_table.setdefault(table, []).append(state)
        tensors = planned.plan.plan.decomposed.graph.tensors
        rows = []
        for number, (table, states) in enumerate(by_table.items()):
            if len(states) > 1:
                names = [temporary_name(f"loop_{self.number}_row_{number}_{turn}") for turn in "ab"]
                returned = [name for name in self.steps.recorded if name in places and places[name][0] == table]
                numbers = {name: tensors[name].dtype for name in returned}
                rows.append(share_row(self.engine, self.prepared, states, numbers, names))
        moved = {state.name: state for row in rows for state in row.states}
        tables = tuple(moved.get(state.name, state) for state in planned.tables)
        planned.plan.take_outputs(self._inserted(tables, planned.rows, rows))
        return replace(planned, tables=tables)

    def _planned(
        self, layouts: Mapping[str, StateLayout], word: str, later: Mapping[str, ValueFacts] = NOTHING_ASSUMED
    ) -> _PlannedStep:
        """The state in tables of these layouts, whose names have a word, and a plan that knows its `later` values."""
        tables = tuple(
            create_state_tables(
                self.engine,
                self.prepared,
                name,
                source,
                self.keeping[name],
                [temporary_name(f"loop_{self.number}_{word}_{position}_{turn}") for turn in "ab"],
                layouts[name].decomposition,
                layouts[name].is_complete,
            )
            for position, (name, source) in enumerate(self.present.items())
        )
        rows = {state.name: count_rows(self.engine, state.stored[0]) for state in tables}
        steps = self.steps.with_layouts({name: layout.decomposition for name, layout in layouts.items()})
        return _PlannedStep(tables, rows, self._plan(steps, tables, rows, later))

    def _plan(
        self,
        steps: LoopProgram,
        tables: tuple[StateTables, ...],
        rows: Mapping[str, int],
        later: Mapping[str, ValueFacts],
    ) -> StepPlan:
        """The plan of a step; a dense state stays dense, whatever the fill of its next value is."""
        inputs = {state.name: AlternatingInput(state.stored, steps.state[state.name]) for state in tables}
        inputs[STEP] = AlternatingInput((self.step.stored, self.step.stored), values=self._step_values)
        inserted = self._inserted(tables, rows)
        plan = StepPlan(self.engine, self.prepared, steps.program, self.options, inputs, inserted, self.equal)
        plan.plan_for(0, later)
        complete = frozenset(
            steps.state[state.name]
            for state in tables
            if _has_another_fill(plan, state, steps.state[state.name], rows[state.name] == state.most_rows)
        )
        if complete:
            options = replace(self.options, complete=complete)
            plan = StepPlan(self.engine, self.prepared, steps.program, options, inputs, inserted, self.equal)
            plan.plan_for(0, later)
        return plan

    def _inserted(
        self, tables: Iterable[StateTables], rows: Mapping[str, int], shared: Iterable[SharedRow] = ()
    ) -> dict[str, InsertedOutput]:
        """By the names of numbers in rows with states, and of the next values of states, the tables that take them."""
        inserted = {
            name: InsertedOutput(row.tables, None, (), "", is_scalar=True, column=column, is_number=True)
            for row in shared
            for name, column in row.numbers.items()
        }
        for state in tables:
            stored = state.stored[0]
            leaves_out_fill = stored.decomposition.is_scalar and rows[state.name] != state.most_rows
            inserted[self.steps.state[state.name]] = InsertedOutput(
                state.tables,
                state.fill if leaves_out_fill else None,
                stored.keys,
                stored.tensor.dtype,
                stored.decomposition.is_scalar,
                state.column,
            )
        return inserted


def _stored_state(steps: LoopProgram, engine: Engine, step: StoredTensor) -> dict[str, StoredTensor]:
    """The tensors with the first state, by name; as all tensors, they may be tables that the program reads in place."""
    read = stored_inputs(steps.program, engine, supplied={STEP: step}).stored
    unread = [name for name in steps.state if name not in read]
    return {**{name: read[name] for name in steps.state if name in read}, **require_tensors(engine, unread)}


def _step_number(engine: Engine, prepared: PreparedStatements, number: int) -> StepNumber:
    table = exp.table_(temporary_name(f"loop_{number}_step"), db=engine.dialect.temporary_schema)
    zero = exp.alias_(exp.cast(exp.Literal.number(0), "bigint"), VALUE_COLUMN)
    engine.create_temporary(table, exp.select(zero))
    stored = stored_tensor(Tensor(STEP, (), "int64", 0), fully_promoted(0), table.sql(engine.dialect_name))
    return StepNumber(engine, prepared, replace(stored, is_owned=False))


def _dtypes(steps: LoopProgram, inputs: Mapping[str, StoredTensor]) -> dict[str, str]:
    """The dtypes of the numbers that every step returns."""
    graph = bind(steps.program, {name: stored.tensor for name, stored in inputs.items()})
    return {name: "int64" if name == CHANGED else graph.tensors[name].dtype for name in steps.recorded}


def _has_another_fill(plan: StepPlan, state: StateTables, following: str, is_dense: bool) -> bool:
    """Whether the next value of a dense state has another fill; that of a sparse one is refused."""
    before, after = state.stored[0].tensor.fill, plan.plan.decomposed.graph.tensors[following].fill
    if before == after:
        return False
    if not is_dense:
        raise ShapeError(
            f"the state {state.name} has the fill {write_number(before)}, and its next value {following} has "
            f"{write_number(after)}; load {state.name} with fill={write_number(after)}, or with all its values stored"
        )
    return True

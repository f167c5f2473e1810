"""Loops: the plan of a step, which stays exact as the state changes, and its statements."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count

from sqlglot import exp

from sparseeinsum.algebra.translate import delivered_relation
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.prepared import PreparedInsert, PreparedQuery
from sparseeinsum.engines.temporary_names import temporary_name
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.tensors import VALUE_COLUMN, StoredTensor
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.operators.ranges import ANY_VALUE, finite_range
from sparseeinsum.pipeline.supplied_plans import SuppliedFacts, SuppliedPlan
from sparseeinsum.plans.options import PlanOptions
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.render.dialects import write_sql
from sparseeinsum.render.statements import SqlStatement
from sparseeinsum.results.results import result_of
from sparseeinsum.semantics.exactness import ValueFacts
from sparseeinsum.statistics.columns import table_by_name
from sparseeinsum.statistics.measure import measured_values
from sparseeinsum.statistics.numbers import number

_NUMBERS = count(1)  # of the prepared statements in this process
_DRIFT = 4  # times more or fewer tuples than when the plan was made: another plan may be better
_LITTLE = 1000  # tuples, of which any plan is fast

_ALWAYS_FINITE = ("int64", "bool")
_COMPUTED_AS_STORED = ("float64", "complex128")  # rounding to other dtypes can give infinity


@dataclass(frozen=True, slots=True)
class InsertedOutput:
    """A table that takes an output of every step.

    Attributes:
        tables: The table in each of the two turns.
        fill: Rows with this value are left out; None keeps all rows.
        dtype: The dtype of the values.
    """

    tables: tuple[exp.Table, exp.Table]
    fill: Number | None
    dtype: str

    def rows_of(self, query: exp.Select) -> exp.Select:
        """The rows of the output that the table takes."""
        if self.fill is None:
            return query
        value = exp.column(VALUE_COLUMN)
        is_entry = value.neq(exp.convert(bool(self.fill)) if self.dtype == "bool" else number(self.fill, self.dtype))
        return exp.select("*").from_(query.subquery("rows")).where(is_entry)


class StepStatements:
    """The statements of a plan in one of two turns, which differ in the tables that they read and fill."""

    def __init__(
        self,
        engine: Engine,
        plan: ProgramPlan,
        turn: int,
        swapped: Mapping[str, exp.Table],
        inserted: Mapping[str, InsertedOutput],
    ) -> None:
        """Prepare the statements.

        Args:
            engine: The database.
            plan: The plan, which reads the tables of one turn.
            turn: The tables that are filled.
            swapped: For the names of tables that the plan reads, those to read in place of them.
            inserted: The outputs that go into tables; all others are numbers.
        """
        self._engine = engine
        self._plan = plan
        self._statements = [_reading(statement, swapped) for statement in plan.statements.for_run]
        self._is_staged = any(statement.stage is not None for statement in self._statements)
        self._inserts: dict[str, PreparedInsert] = {}
        self._queries: dict[str, PreparedQuery] = {}
        self._tables = {name: output.tables[turn] for name, output in inserted.items()}
        self._texts = {
            statement.name: write_sql(inserted[statement.name].rows_of(statement.query), engine.dialect)
            for statement in self._statements
            if statement.stage is None and statement.name in inserted
        }

    def run(self) -> tuple[dict[str, int], dict[str, Number]]:
        """Run all statements; return the numbers of rows in tables, and the numbers, by output."""
        rows: dict[str, int] = {}
        numbers: dict[str, Number] = {}
        for statement in self._statements:
            name = statement.name
            if statement.stage is not None:
                self._engine.stage(statement)
            elif name in self._tables:
                rows[name] = self._insert(name).run()
            else:
                schema = delivered_relation(self._plan.decomposed, name).schema
                numbers[name] = result_of(schema, self._query(statement).arrow()).to_numpy().item()
        if self._is_staged:
            self.drop()  # statements cannot stay prepared without the tables that they read
            for statement in self._statements:
                if statement.stage is not None:
                    self._engine.execute(exp.Drop(tables=[statement.stage.copy()], kind="TABLE"))
        return rows, numbers

    def _insert(self, name: str) -> PreparedInsert:
        if name not in self._inserts:
            prepared = temporary_name(f"step_{next(_NUMBERS)}")
            self._inserts[name] = self._engine.prepared_insert(prepared, self._tables[name], self._texts[name])
        return self._inserts[name]

    def _query(self, statement: SqlStatement) -> PreparedQuery:
        if statement.name not in self._queries:
            prepared = temporary_name(f"step_{next(_NUMBERS)}")
            self._queries[statement.name] = self._engine.prepared_query(prepared, statement.text)
        return self._queries[statement.name]

    def drop(self) -> None:
        """Remove the prepared statements from the connection."""
        for insert in self._inserts.values():
            insert.drop()
        for query in self._queries.values():
            query.drop()
        self._inserts, self._queries = {}, {}


def _reading(statement: SqlStatement, tables: Mapping[str, exp.Table]) -> SqlStatement:
    """The statement, with `tables` in place of those of these names."""
    if not tables:
        return statement
    query, *passes = (part.copy() for part in (statement.query, *statement.passes))
    for part in (query, *passes):
        for node in list(part.find_all(exp.Table)):
            if node.name in tables:
                node.set("this", tables[node.name].this.copy())
    return replace(statement, query=query, passes=tuple(passes))


@dataclass(frozen=True, slots=True)
class TurningInput:
    """An input that is in one of two tables in turn.

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
        return self.stored[0].decomposition.max_tuples(self.stored[0].tensor.shape)


class StepPlan:
    """A plan that reads tables in turn; another one is made where it is not exact for what they hold."""

    def __init__(
        self,
        engine: Engine,
        program: Program,
        options: PlanOptions,
        inputs: Mapping[str, TurningInput],
        inserted: Mapping[str, InsertedOutput],
    ) -> None:
        """Make no plan yet.

        Args:
            engine: The database.
            program: What a step computes.
            options: The options of the plan.
            inputs: The inputs that are in tables in turn.
            inserted: The outputs that go into tables.
        """
        self._engine = engine
        self._inputs = {name: turning for name, turning in inputs.items() if name in program.inputs}
        self._inserted = inserted
        self._planned = SuppliedPlan(program, engine, options, {})
        self._unmeasured: frozenset[str] = frozenset()  # inputs for all of whose later values the plan is exact
        self._prepared: ProgramPlan | None = None
        self._turn = 0  # whose tables the plan itself reads
        self._statements: dict[int, StepStatements] = {}

    @property
    def plan(self) -> ProgramPlan:
        """The present plan."""
        return self._planned.plan

    def plan_anew(self, turn: int) -> None:
        """Make a plan for the present data, which the tables of a turn hold, in the open transaction."""
        self._turn = turn
        self._planned.supplied = {name: turning.stored[turn] for name, turning in self._inputs.items()}
        self._planned.plan_anew()
        repeated = [name for name, turning in self._inputs.items() if not turning.has_unique_axis]
        self._planned.assume_no_unique_keys(repeated)
        accepted = [name for name in self._inputs if self._planned.accepts(name, self._later_values(name))]
        self._unmeasured = frozenset(accepted)

    def _later_values(self, name: str) -> ValueFacts:
        """What holds for the values of an input in all turns."""
        turning, tensor = self._inputs[name], self._inputs[name].stored[0].tensor
        if turning.values is not None:
            return turning.values
        evaluation = self.plan.evaluations.get(turning.following)
        stays_finite = tensor.dtype in _ALWAYS_FINITE or (
            tensor.dtype in _COMPUTED_AS_STORED
            and evaluation is not None
            and (evaluation.detects_nonfinite or evaluation.values.entries.is_finite)
            and self._planned.known_facts(name).entries.is_finite
        )
        return ValueFacts(finite_range(tensor.dtype) if stays_finite else ANY_VALUE, has_fill=True)

    def make_exact(self, turn: int, rows: Mapping[str, int], may_differ: bool) -> None:
        """Make another plan if the present one is not exact for the present data, or is for far fewer or more rows.

        Args:
            turn: The tables with the data.
            rows: The number of rows of every input in tables in turn.
            may_differ: Whether stored inputs may have changed.
        """
        is_exact = not may_differ or self._planned.adapts_to_stored()
        if not (is_exact and all(self._is_fit_for(name, turn, rows[name]) for name in self._inputs)):
            self.plan_anew(turn)

    def _is_fit_for(self, name: str, turn: int, rows: int) -> bool:
        turning, planned = self._inputs[name], self.plan.inputs[name].measurement.tuples
        if max(rows, planned) > _LITTLE and not planned <= _DRIFT * rows <= _DRIFT**2 * planned:
            return False
        stored = turning.stored[turn]
        is_measured = name not in self._unmeasured
        values = measured_values(stored, self._engine) if is_measured else self._planned.known_facts(name)
        facts = SuppliedFacts(values, rows == turning.most_rows, lambda _: turning.has_unique_axis)
        return self._planned.is_exact_for(name, facts)

    @property
    def reads_own_tables(self) -> bool:
        """As in `SuppliedPlan`."""
        return self._planned.reads_own_tables

    def statements(self, turn: int) -> StepStatements:
        """The statements that read the tables of a turn, and fill the others."""
        if self.plan is not self._prepared:
            self.drop()
            self._prepared = self.plan
        if turn not in self._statements:
            swapped = {} if turn == self._turn else self._swapped()
            self._statements[turn] = StepStatements(self._engine, self.plan, 1 - turn, swapped, self._inserted)
        return self._statements[turn]

    def _swapped(self) -> dict[str, exp.Table]:
        dialect = self._engine.dialect_name
        tables = [[table_by_name(stored, dialect) for stored in turning.stored] for turning in self._inputs.values()]
        return {read.name: other for pair in tables for read, other in (pair, reversed(pair))}

    def drop(self) -> None:
        """Remove prepared statements from the connection."""
        for statements in self._statements.values():
            statements.drop()
        self._statements = {}

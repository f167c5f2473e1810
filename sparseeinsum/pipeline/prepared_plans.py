"""Pipeline: a program that is planned once and run often, with values that the user supplies for some of its inputs.

Every run makes sure that the plan is exact for its data. What is supplied is checked here, before the run. Stored
tensors cannot have changed if no other transaction has begun since the last run; otherwise they are checked as in
every run of a plan.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count

import pyarrow as pa

from sparseeinsum.algebra.operators import Relation
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.prepared import SuppliedTable, TransactionMark
from sparseeinsum.engines.retries import in_snapshot
from sparseeinsum.engines.temporary_names import temporary_name
from sparseeinsum.errors import EngineError, PlanError
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.loading.supplied_rows import SuppliedRows, check_suppliable, present_rows, supplied_rows
from sparseeinsum.pipeline.prepared_queries import PreparedQueries
from sparseeinsum.pipeline.run_options import RunOptions
from sparseeinsum.pipeline.running import (
    check_functions,
    naming_missing_tables,
    within_memory,
)
from sparseeinsum.pipeline.supplied_plans import SuppliedFacts, SuppliedPlan
from sparseeinsum.plans.options import PlanOptions
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.presentation.spelling import did_you_mean
from sparseeinsum.results.execution import execute, with_dictionaries
from sparseeinsum.results.kept_operands import kept_operands
from sparseeinsum.results.results import TensorResult
from sparseeinsum.storage.program_inputs import stored_inputs
from sparseeinsum.storage.tensor_tables import stored_tensor

_NUMBERS = count(1)  # of the names of relations in this process
# A plan that is expected to take longer runs after a look whether tables have changed; others run before that look.
_WORTH_LOOKING_SECONDS = 0.005


class PreparedPlan:
    """A plan, its prepared statements, and the relations that hold the supplied values."""

    def __init__(self, program: Program, engine: Engine, options: PlanOptions, names: Sequence[str]) -> None:
        """Plan a program on the present data.

        Args:
            program: The program.
            engine: The database.
            options: The options of the plan.
            names: The inputs whose values are supplied; the stored tensors give their shapes and layouts.

        Raises:
            PlanError: The program has no such input, it cannot be supplied, or no plan satisfies the options.
        """
        if engine.dialect.distributes:
            raise PlanError("a program is prepared for one machine, and this database is a cluster; use db.run")
        self._program = program
        self._engine = engine
        self._options = options
        self._tables: dict[str, SuppliedTable] = {}
        self._stored: dict[str, StoredTensor] = {}
        self._planned = SuppliedPlan(program, engine, options, self._stored)
        self._statements = PreparedQueries()
        self._rows: dict[str, pa.Table] = {}  # that were supplied for the last run
        self._mark: TransactionMark | None = None  # of the last run
        self._has_failed = False
        self._is_closed = False
        try:
            with engine.protected():
                self._supply_stored(names)
            in_snapshot(engine, self._plan_again)
        except BaseException:
            self.close()
            raise

    @property
    def plan(self) -> ProgramPlan:
        """The plan. A run replaces it if it is not exact for the data of the run."""
        return self._planned.plan

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs whose values are supplied."""
        return tuple(self._stored)

    def close(self) -> None:
        """Remove the relations and the prepared statements from the connection."""
        self._statements.drop()
        for table in self._tables.values():
            table.drop()
        self._statements, self._tables, self._is_closed = PreparedQueries(), {}, True

    def rows_of(self, name: str, data: object) -> SuppliedRows:
        """Convert values of an input.

        Raises:
            PlanError: The program was not prepared for values of this tensor.
            DataError: The data are invalid.
            ShapeError: The data have another shape than before.
        """
        if name not in self._stored:
            hint = did_you_mean(name, self._stored, otherwise="it has", none="it has none")
            raise PlanError(f"{name} is no input that this program was prepared for; {hint}")
        return supplied_rows(self._stored[name], data)

    def run(self, rows: Mapping[str, SuppliedRows]) -> Mapping[str, TensorResult]:
        """Run the program in a transaction; inputs that `rows` lacks keep the values that they had.

        Raises:
            EngineError: The database refused a statement.
            SemanticsError: No sparse evaluation is exact for these values.
        """
        if self._is_closed:
            raise PlanError("this prepared program is closed; prepare it again")

        try:
            results = self._run_if_nothing_changed(rows) or within_memory(
                self.plan, partial(self._run_in_transaction, rows), RunOptions()
            )
        except BaseException:
            self._undo_supply(rows)
            raise
        self._rows |= {name: supplied.table for name, supplied in rows.items()}
        self._has_failed = False
        return results

    def _undo_supply(self, rows: Mapping[str, SuppliedRows]) -> None:
        """Supply what the last run that succeeded had; the next run makes a plan for it, as the plan may be another."""
        self._mark = None
        self._has_failed = True
        with suppress(EngineError):  # of a connection that is lost
            for name, table in self._tables.items():
                table.supply(self._rows[name])

    def _run_if_nothing_changed(self, rows: Mapping[str, SuppliedRows]) -> Mapping[str, TensorResult] | None:
        """The results of a run that needs no transaction; None if it needs one."""
        mark = self._mark
        if mark is None or not (mark.is_alone and self._statements.check_nothing):
            return None
        with suppress(EngineError), self._engine.unguarded():  # the run in a transaction raises errors that say more
            return self._run_without_transaction(rows, mark)
        return None

    def _run_in_transaction(self, rows: Mapping[str, SuppliedRows], plan: ProgramPlan) -> Mapping[str, TensorResult]:
        """The results; `plan` is the present plan, or another one that takes less memory."""
        if plan is not self.plan:
            self._planned.adopt(plan)
        with naming_missing_tables(plan, self._engine):
            return in_snapshot(self._engine, partial(self._run, rows))

    def _run_without_transaction(
        self, rows: Mapping[str, SuppliedRows], mark: TransactionMark
    ) -> Mapping[str, TensorResult] | None:
        """The results if the plan is exact, and nobody has changed tables since the transaction of `mark`; or None."""
        self._mark = None  # until the run has succeeded
        if self.plan.decomposed.seconds > _WORTH_LOOKING_SECONDS:  # or the run would be in vain
            unchanged = self._engine.mark_after(mark, 0)
            if unchanged is None:
                return None
            mark = unchanged
        check_functions(self.plan)
        self._supply(rows)
        if not all(map(self._is_exact_for, rows.values())):
            return None
        results = self._statements.results()
        self._mark = self._engine.mark_after(mark, len(results))
        return None if self._mark is None else results

    def _run(self, rows: Mapping[str, SuppliedRows]) -> Mapping[str, TensorResult]:
        mark, last = self._engine.transaction_mark(is_reading=True), self._mark
        self._mark = None
        self._supply(rows)
        is_exact = not self._has_failed and all(map(self._is_exact_for, rows.values()))
        is_unchanged = mark.follows(last) and self._planned.reads_own_tables
        if is_exact and not is_unchanged:
            is_exact = self._planned.adapts_to_stored()
        check_functions(self.plan)
        if not is_exact:
            self._fill()
            self._plan_again()
        elif not (is_unchanged and self._statements.can_run and self.plan is self._statements.plan):
            self._prepare(kept_operands(self.plan, self._engine))
        results = self._results()
        self._mark = mark
        return results

    def _supply(self, rows: Mapping[str, SuppliedRows]) -> None:
        for name, supplied in rows.items():
            self._tables[name].supply(supplied.table)

    def _supply_stored(self, names: Sequence[str]) -> None:
        """Make the relations of inputs, with the rows that are stored."""
        stored = stored_inputs(self._program, self._engine).stored
        for name in names:
            if name not in stored:
                hint = did_you_mean(name, stored, otherwise="it has", none="it has none")
                raise PlanError(f"the program has no input {name} to be supplied; {hint}")
            check_suppliable(stored[name])
        for name in dict.fromkeys(names):
            relation = temporary_name(f"supplied_{next(_NUMBERS)}")
            source = stored[name]
            self._rows[name] = present_rows(source, self._engine)
            table = self._engine.supplied_table(relation, self._rows[name])
            text = table.table.sql(self._engine.dialect_name)
            self._tables[name] = table
            self._stored[name] = replace(stored_tensor(source.tensor, source.decomposition, text), is_owned=False)

    def _fill(self) -> None:
        """Let statements that are not prepared read the supplied rows, even if an earlier transaction was undone."""
        for table in self._tables.values():
            table.fill()

    def _plan_again(self) -> None:
        """Make the plan for the present data, and prepare its statements, in the open transaction."""
        self._planned.plan_again()
        self._prepare(kept_operands(self.plan, self._engine, at_once=True))

    def _prepare(self, kept: Mapping[Relation, int | None]) -> None:
        """Prepare the statements of a new plan, or of other operands in memory."""
        if self.plan is not self._statements.plan or kept != self._statements.kept:
            self._statements.drop()
            supplied = tuple(self._tables.values())
            self._statements = PreparedQueries.of_plan(self._planned, self._engine, supplied, kept)

    def _results(self) -> Mapping[str, TensorResult]:
        """Run the statements in the open transaction; results by name."""
        if self._statements.read_filled_tables:
            self._fill()
        if self._statements.queries:
            return self._statements.results()
        return with_dictionaries(execute(self.plan, self._engine, {}, RunOptions().progress), self._engine).results

    def _is_exact_for(self, rows: SuppliedRows) -> bool:
        """Whether the plan is exact for supplied rows."""
        facts = SuppliedFacts(rows.facts(), rows.is_complete, rows.identifies)
        return self._planned.is_exact_for(rows.stored.tensor.name, facts)

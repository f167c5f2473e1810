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

from sparseeinsum.algebra.operators import Schema
from sparseeinsum.algebra.translate import delivered_relation
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.prepared import PreparedQuery, SuppliedTable, TransactionMark
from sparseeinsum.engines.retries import in_snapshot
from sparseeinsum.engines.temporary_names import temporary_name
from sparseeinsum.errors import EngineError, PlanError
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.loading.supplied_rows import SuppliedRows, check_suppliable, present_rows, supplied_rows
from sparseeinsum.pipeline.run_options import RunOptions
from sparseeinsum.pipeline.running import (
    check_functions,
    naming_missing_tables,
    within_memory,
)
from sparseeinsum.pipeline.supplied_plans import SuppliedFacts, SuppliedPlan
from sparseeinsum.plans.options import PlanOptions
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.results.delivering import natural_keys
from sparseeinsum.results.execution import execute, with_dictionaries
from sparseeinsum.results.results import TensorResult, result_of
from sparseeinsum.spelling import did_you_mean
from sparseeinsum.storage.program_inputs import stored_inputs
from sparseeinsum.storage.tensor_tables import stored_tensor

_NUMBERS = count(1)  # of the names of relations and statements in this process


class PreparedProgram:
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
        self._prepared_plan: ProgramPlan | None = None  # whose queries are prepared
        self._queries: dict[str, PreparedQuery] = {}
        self._rows: dict[str, pa.Table] = {}  # that were supplied for the last run
        self._mark: TransactionMark | None = None  # of the last run
        self._has_failed = False
        self._is_closed = False
        try:
            with engine.protected():
                self._supply_stored(names)
            in_snapshot(engine, self._planned.plan_anew)
            self._prepare()
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
        for query in self._queries.values():
            query.drop()
        for table in self._tables.values():
            table.drop()
        self._queries, self._tables, self._is_closed = {}, {}, True

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
            for name in rows:
                self._tables[name].supply(self._rows[name])

    def _run_if_nothing_changed(self, rows: Mapping[str, SuppliedRows]) -> Mapping[str, TensorResult] | None:
        """The results of a run that needs no transaction; None if it needs one."""
        mark = self._mark
        if mark is None or not self._needs_no_transaction(mark):
            return None
        with suppress(EngineError), self._engine.protected():  # the run in a transaction raises errors that say more
            return self._run_without_transaction(rows, mark)
        return None

    def _run_in_transaction(self, rows: Mapping[str, SuppliedRows], plan: ProgramPlan) -> Mapping[str, TensorResult]:
        """The results; `plan` is the present plan, or another one that takes less memory."""
        if plan is not self.plan:
            self._planned.adopt(plan)
        with naming_missing_tables(plan, self._engine):
            return in_snapshot(self._engine, partial(self._run, rows))

    def _needs_no_transaction(self, mark: TransactionMark) -> bool:
        """Whether a run has nothing to check if no other transaction has begun since the one that had `mark`.

        Who changes tables, or settings that names depend on, begins a transaction, which takes a number.
        """
        has_nothing_to_check = not self._has_dictionaries and self._planned.reads_own_tables
        is_unchanged = mark.is_alone and bool(self._queries) and has_nothing_to_check
        return is_unchanged and self._engine.number_of_query() == mark.last + 1

    def _run_without_transaction(
        self, rows: Mapping[str, SuppliedRows], mark: TransactionMark
    ) -> Mapping[str, TensorResult] | None:
        """The results if the plan is exact, and no other transaction began since that of `mark`; otherwise None."""
        self._mark = None  # until the run has succeeded
        check_functions(self.plan)
        self._supply(rows)
        if not all(map(self._is_exact_for, rows.values())):
            return None
        results = self._results()
        number = mark.last + len(self._queries) + 2
        if self._engine.transaction_number() != number:
            return None
        self._mark = replace(mark, first=number, last=number)
        return results

    def _run(self, rows: Mapping[str, SuppliedRows]) -> Mapping[str, TensorResult]:
        mark, last = self._engine.transaction_mark(), self._mark
        self._mark = None
        self._supply(rows)
        is_exact = not self._has_failed and all(map(self._is_exact_for, rows.values()))
        if is_exact and not (mark.follows(last) and self._planned.reads_own_tables):
            is_exact = self._planned.adapts_to_stored()
        check_functions(self.plan)
        if not is_exact:
            self._planned.plan_anew()
        self._prepare()
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

    def _prepare(self) -> None:
        """Prepare the statements of a new plan if each of them returns an output, and it has no memory limit."""
        if self.plan is self._prepared_plan:
            return
        self._prepared_plan = self.plan
        for query in self._queries.values():
            query.drop()
        self._queries = {}
        statements = self.plan.statements.for_run
        if self._options.memory_limit is None and all(statement.stage is None for statement in statements):
            for statement in statements:
                name = temporary_name(f"query_{next(_NUMBERS)}")
                self._queries[statement.name] = self._engine.prepared_query(name, statement.text)

    def _results(self) -> Mapping[str, TensorResult]:
        """Run the statements."""
        plan, engine = self.plan, self._engine
        if not self._queries:
            return with_dictionaries(execute(plan, engine, {}, RunOptions().progress), engine).results
        results = {name: result_of(self._schema(name), query.arrow()) for name, query in self._queries.items()}
        if not self._has_dictionaries:
            return results
        dictionaries = natural_keys(engine, [result.schema for result in results.values()])
        return {name: replace(result, dictionaries=dictionaries) for name, result in results.items()}

    def _schema(self, name: str) -> Schema:
        return delivered_relation(self.plan.decomposed, name).schema

    @property
    def _has_dictionaries(self) -> bool:
        """Whether the results have natural keys, which are read from the database."""
        return any(self._schema(name).has_dictionaries for name in self.plan.outputs)

    def _is_exact_for(self, rows: SuppliedRows) -> bool:
        """Whether the plan is exact for supplied rows."""
        facts = SuppliedFacts(rows.facts(), rows.is_complete, rows.identifies)
        return self._planned.is_exact_for(rows.stored.tensor.name, facts)

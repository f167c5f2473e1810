"""Pipeline: a program that is planned once and run often, with values that the user supplies for some of its inputs.

Every run makes sure that the plan is exact for its data. What is supplied is checked here, before the run. Stored
tensors cannot have changed if no other transaction has begun since the last run; otherwise they are checked as in
every run of a plan.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
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
from sparseeinsum.errors import EngineError, OutdatedPlanError, PlanError, SemanticsError
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.loading.supplied_rows import SuppliedRows, check_suppliable, present_rows, supplied_rows
from sparseeinsum.operators.ranges import Range, finite_range
from sparseeinsum.pipeline.planning import make_plans
from sparseeinsum.pipeline.run_options import RunOptions
from sparseeinsum.pipeline.running import (
    check_exactness,
    check_functions,
    current_inputs,
    naming_missing_tables,
    within_memory,
)
from sparseeinsum.plans.options import PlanOptions
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.plans.validity import with_valid_grouping
from sparseeinsum.results.delivering import natural_keys
from sparseeinsum.results.execution import execute, with_dictionaries
from sparseeinsum.results.results import TensorResult, result_of
from sparseeinsum.semantics.exactness import ValueFacts
from sparseeinsum.spelling import did_you_mean
from sparseeinsum.statistics.measured_tensors import MeasuredTensor
from sparseeinsum.storage.program_inputs import stored_inputs
from sparseeinsum.storage.tensor_tables import stored_tensor

_NUMBERS = count(1)  # of the names of relations and statements in this process
_GROWTH = float(1 << 20)  # of values beyond those that a plan was checked for


class PreparedProgram:
    """A plan, its prepared statements, and the relations that hold the supplied values.

    Attributes:
        plan: The plan. A run replaces it if it is not exact for the data of the run.
    """

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
        self._queries: dict[str, PreparedQuery] = {}
        self._facts: dict[str, ValueFacts] = {}  # of the supplied values that the plan is known to be exact for
        self._rows: dict[str, pa.Table] = {}  # that were supplied for the last run
        self._mark: TransactionMark | None = None  # of the last run
        self._has_failed = False
        self._is_closed = False
        try:
            with engine.protected():
                self._supply_stored(names)
            in_snapshot(engine, self._plan_anew)
        except BaseException:
            self.close()
            raise

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
        mark = self._mark_without_transaction()
        if mark is None:
            return None
        with suppress(EngineError), self._engine.protected():  # the run in a transaction raises errors that say more
            return self._run_without_transaction(rows, mark)
        return None

    def _run_in_transaction(self, rows: Mapping[str, SuppliedRows], plan: ProgramPlan) -> Mapping[str, TensorResult]:
        """The results; `plan` is the present plan, or another one that takes less memory."""
        if plan is not self.plan:
            self._adopt(plan)
            check_exactness(plan, self._inputs(), tuple(self._stored))
        with naming_missing_tables(plan, self._engine):
            return in_snapshot(self._engine, partial(self._run, rows))

    def _mark_without_transaction(self) -> TransactionMark | None:
        """The mark of a run that needs no transaction, because nothing has changed and nothing is left to check."""
        if self._mark is None or not self._queries or self._has_dictionaries or not self._reads_own_tables:
            return None
        mark = self._engine.mark_of_query()
        return mark if mark is not None and mark.follows(self._mark) else None

    def _run_without_transaction(
        self, rows: Mapping[str, SuppliedRows], mark: TransactionMark
    ) -> Mapping[str, TensorResult] | None:
        """The results if the plan is exact, and no other transaction began since `mark`; otherwise None."""
        self._mark = None  # until the run has succeeded
        check_functions(self.plan)
        self._supply(rows)
        if not all(map(self._is_exact_for, rows.values())):
            return None
        results = self._results()
        number = mark.last + len(self._queries) + 1
        if self._engine.transaction_number() != number:
            return None
        self._mark = replace(mark, first=number, last=number)
        return results

    def _run(self, rows: Mapping[str, SuppliedRows]) -> Mapping[str, TensorResult]:
        mark, last = self._engine.transaction_mark(), self._mark
        self._mark = None
        self._supply(rows)
        is_exact = not self._has_failed and all(map(self._is_exact_for, rows.values()))
        if is_exact and not (mark.follows(last) and self._reads_own_tables):
            is_exact = self._adapts_to_stored()
        check_functions(self.plan)
        if not is_exact:
            self._plan_anew()
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

    def _plan_anew(self) -> None:
        """Make the plan for the present data, in the open transaction."""
        self._adopt(make_plans(self._program, self._engine, self._options, self._stored)[0])
        self._facts = {name: self.plan.inputs[name].values for name in self._stored}

    def _adopt(self, plan: ProgramPlan) -> None:
        self.plan = plan
        self._prepare()

    def _prepare(self) -> None:
        """Prepare the statements of the plan if each of them returns an output, and the plan has no memory limit."""
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

    @property
    def _reads_own_tables(self) -> bool:
        """Whether all stored inputs are tables of this package, which no statement changes outside of transactions."""
        inputs = self.plan.inputs.items()
        return all(
            tensor.stored.is_owned or tensor.stored.is_index_range
            for name, tensor in inputs
            if name not in self._stored
        )

    def _adapts_to_stored(self) -> bool:
        """Whether the plan is exact for the stored inputs as they are now, if need be with a GROUP BY everywhere."""
        with suppress(OutdatedPlanError, SemanticsError):
            valid = with_valid_grouping(self.plan, current_inputs(self.plan, self._engine, self._stored))
            if valid is not self.plan:
                self._adopt(valid)
            return True
        return False

    def _is_exact_for(self, rows: SuppliedRows) -> bool:
        """Whether the plan is exact for supplied rows."""
        name = rows.stored.tensor.name
        planned = self.plan.inputs[name]
        if planned.is_complete and not rows.is_complete:
            return False
        if not all(rows.identifies(axis) for axis in planned.identifying_axes):
            return False
        facts = rows.facts()
        united = self._facts[name].union(facts)
        return united == self._facts[name] or any(
            self._accepts(name, planned, ValueFacts(entries, united.has_fill))
            for entries in _wider_ranges(united.entries, rows.stored.tensor.dtype)
        )

    def _inputs(self) -> dict[str, MeasuredTensor]:
        """The inputs of the plan, with all supplied values that it is known to be exact for."""
        return {
            name: _with_values(tensor, self._facts.get(name, tensor.values))
            for name, tensor in self.plan.inputs.items()
        }

    def _accepts(self, name: str, planned: MeasuredTensor, facts: ValueFacts) -> bool:
        """Whether the plan is exact for values of an input as in `facts`, which are then kept for further runs."""
        inputs = {**self._inputs(), name: _with_values(planned, facts)}
        with suppress(OutdatedPlanError, SemanticsError):
            check_exactness(self.plan, inputs, (name,))
            self._facts[name] = facts
            return True
        return False


def _wider_ranges(entries: Range, dtype: str) -> Iterator[Range]:
    """Ranges that contain `entries`, of the same signs: the widest first, `entries` last."""
    if entries.is_finite:
        widest = finite_range(dtype)
        for growth in (math.inf, _GROWTH):
            low = entries.low if entries.low >= 0 else max(widest.low, entries.low * growth)
            high = entries.high if entries.high <= 0 else min(widest.high, entries.high * growth)
            yield Range(low, high)
    yield entries


def _with_values(tensor: MeasuredTensor, values: ValueFacts) -> MeasuredTensor:
    return replace(tensor, measurement=replace(tensor.measurement, values=values))

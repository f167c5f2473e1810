"""Loops: the statements of a step, which read the tables of one turn and fill those of the other."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from sparseeinsum.algebra.translate import delivered_relation
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.prepared import PreparedQuery, PreparedWrite
from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.pipeline.loops.refilled_tables import RefilledTable, insert_into, prepared_name
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.render.dialects import write_sql
from sparseeinsum.render.statements import SqlStatement
from sparseeinsum.results.results import result_of
from sparseeinsum.statistics.numbers import number


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


class StageTables:
    """The tables of the intermediates of a plan, which stay from step to step, so that statements stay prepared."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._tables: dict[str, RefilledTable] = {}
        self._rows: dict[str, int] = {}
        self._inserts: dict[str, PreparedWrite] = {}

    def fill(self, statement: SqlStatement, turn: int) -> None:
        """Put the rows of an intermediate into its table, which is created if need be; `turn` is that of the step."""
        stage = statement.stage
        assert stage is not None
        if stage.name not in self._tables:
            self._engine.execute(exp.Drop(tables=[stage.copy()], kind="TABLE", exists=True))  # after a failed step
            self._rows[stage.name] = self._engine.stage(statement)
            if self._may_stay(statement):
                self._tables[stage.name] = RefilledTable(self._engine, stage, may_be_replaced=True)
            return
        key = f"{stage.name} {turn}"
        if key not in self._inserts:
            dialect = self._engine.dialect
            text = write_sql(statement.query, dialect)
            self._inserts[key] = self._engine.prepared_write(prepared_name(), insert_into(stage, text, dialect))
        self._rows[stage.name] = self._inserts[key].run()

    def _may_stay(self, statement: SqlStatement) -> bool:
        """Whether a table can be filled again by one INSERT, and no worker reads it."""
        assert statement.stage is not None
        return not statement.passes and statement.stage.db == self._engine.dialect.temporary_schema

    def stays(self, statement: SqlStatement) -> bool:
        """Whether the table of an intermediate stays from step to step."""
        return statement.stage is not None and statement.stage.name in self._tables

    def empty(self, statement: SqlStatement) -> None:
        """Remove the rows of an intermediate, or its table."""
        stage = statement.stage
        assert stage is not None
        if stage.name in self._tables:
            self._tables[stage.name].empty(self._rows[stage.name])
        else:
            self._engine.execute(exp.Drop(tables=[stage.copy()], kind="TABLE"))

    def forget(self) -> None:
        """Create tables again: a step that failed may have undone them."""
        for insert in self._inserts.values():
            insert.drop()
        self._tables, self._inserts = {}, {}

    def drop(self) -> None:
        """Drop the tables."""
        tables = [table.table.copy() for table in self._tables.values()]
        self.forget()
        for table in tables:
            self._engine.execute(exp.Drop(tables=[table], kind="TABLE", exists=True))


class StepStatements:
    """The statements of a plan in one of two turns, which differ in the tables that they read and fill."""

    def __init__(
        self,
        engine: Engine,
        plan: ProgramPlan,
        turn: int,
        swapped: Mapping[str, exp.Table],
        inserted: Mapping[str, InsertedOutput],
        stages: StageTables,
    ) -> None:
        """Take the statements of a plan.

        Args:
            engine: The database.
            plan: The plan, which reads the tables of one turn.
            turn: The tables that are filled.
            swapped: For the names of tables that the plan reads, those to read in place of them.
            inserted: The outputs that go into tables; all others are numbers.
            stages: The tables of intermediates.
        """
        self._engine = engine
        self._plan = plan
        self._turn = turn
        self._stages = stages
        self._statements = [_reading(statement, swapped) for statement in plan.statements.for_run]
        self._staged = [statement for statement in self._statements if statement.stage is not None]
        self._inserts: dict[str, PreparedWrite] = {}
        self._queries: dict[str, PreparedQuery] = {}
        self._tables = {name: output.tables[turn] for name, output in inserted.items()}
        self._texts = {
            statement.name: write_sql(inserted[statement.name].rows_of(statement.query), engine.dialect)
            for statement in self._statements
            if statement.stage is None and statement.name in inserted
        }

    def run(self) -> tuple[dict[str, int], dict[str, Number]]:
        """Run all statements; return the numbers of rows in tables, and the numbers, by output."""
        try:
            return self._run()
        except BaseException:
            self._stages.forget()
            raise

    def _run(self) -> tuple[dict[str, int], dict[str, Number]]:
        rows: dict[str, int] = {}
        numbers: dict[str, Number] = {}
        for statement in self._statements:
            name = statement.name
            if statement.stage is not None:
                self._stages.fill(statement, self._turn)
            elif name in self._tables:
                rows[name] = self._insert(name).run()
            else:
                schema = delivered_relation(self._plan.decomposed, name).schema
                numbers[name] = result_of(schema, self._query(statement).arrow()).to_numpy().item()
        if not all(map(self._stages.stays, self._staged)):
            self.drop()  # statements cannot stay prepared without the tables that they read
        for statement in self._staged:
            self._stages.empty(statement)
        return rows, numbers

    def _insert(self, name: str) -> PreparedWrite:
        if name not in self._inserts:
            insert = insert_into(self._tables[name], self._texts[name], self._engine.dialect)
            self._inserts[name] = self._engine.prepared_write(prepared_name(), insert)
        return self._inserts[name]

    def _query(self, statement: SqlStatement) -> PreparedQuery:
        if statement.name not in self._queries:
            self._queries[statement.name] = self._engine.prepared_query(prepared_name(), statement.text)
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

"""Render: one statement of a compiled program, and its SQL text for each way in which engines read its rows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from sqlglot import exp

from sparseeinsum.algebra.operators import Materialized
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.render.blocks import ValueOfTuples
from sparseeinsum.render.collecting_queries import collecting_select, placing_select, value_of_tuples
from sparseeinsum.render.dialects import Dialect, write_sql
from sparseeinsum.render.table_distribution import TableDistribution


@dataclass(frozen=True, slots=True)
class ValueText:
    """The text of a query of one value; see `ValueOfTuples`."""

    text: str
    row_keys: int | None
    is_array: bool


@dataclass(frozen=True)  # no slots: its text is written once and kept
class SqlStatement:
    """One statement of a compiled program.

    Attributes:
        name: The tensor that it computes.
        query: Its SELECT, with CTEs; if there are several passes, that of the first.
        computes: The results of EinSums that it computes: its own, and those inlined into it.
        stage: The temporary table that keeps its rows; None for the last statement of an output.
        dialect: The dialect of the engine.
        passes: The SELECTs of the passes after the first, whose rows go into the same table: the temporary one, or the
            table that takes the output.
        materializes: The relation whose rows these are, if that is not the result of an EinSum as it is computed.
        distribution: How the rows of the table, or of a table that takes the output, are distributed over machines;
            None if one machine has them.
        value_type: The SQL type of the value column of the table.
        value_columns: If the table has one row with several results, the column of each.
        whole: Its tuples in one value, if kernels compute all of them in one call; otherwise `value_of_tuples` has it.
    """

    name: str
    query: exp.Select
    computes: tuple[str, ...]
    stage: exp.Table | None
    dialect: Dialect
    passes: tuple[exp.Select, ...] = ()
    materializes: Materialized | None = None
    distribution: TableDistribution | None = None
    value_type: str = ""
    value_columns: Mapping[str, str] = field(default_factory=dict)
    whole: ValueOfTuples | None = None

    @property
    def stored(self) -> tuple[str, ...]:
        """The results of EinSums that its table has as they are computed."""
        if self.stage is None or self.materializes is not None:
            return ()
        return tuple(self.value_columns) or (self.name,)

    @cached_property
    def tables_read(self) -> frozenset[str]:
        """The names of the tables that it reads, without schemas."""
        return frozenset(table.name for query in (self.query, *self.passes) for table in query.find_all(exp.Table))

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The commands as SQL text, without semicolons."""
        return tuple(write_sql(command, self.dialect) for command in self.commands)

    def collecting_text(self, schema: Schema) -> str:
        """The text of the query that collects the tuples of its query, of a schema, in memory."""
        return self._collected("collecting", collecting_select, schema)

    def placing_text(self, schema: Schema) -> str:
        """The text of the query that writes the arrays of its query, of a schema, in one place in memory."""
        return self._collected("placing", placing_select, schema)

    def value_text(self, schema: Schema) -> ValueText:
        """The text of the query of all tuples of its query, of a schema, in one value."""
        if schema not in self._texts_of_values:
            value = value_of_tuples(self.query, schema) if self.whole is None else self.whole
            text = write_sql(value.select, self.dialect)
            self._texts_of_values[schema] = ValueText(text, value.row_keys, value.is_array)
        return self._texts_of_values[schema]

    @cached_property
    def _texts_of_values(self) -> dict[Schema, ValueText]:
        """What `value_text` has returned, by schema."""
        return {}

    def _collected(self, kind: str, select: Callable[[exp.Select, Schema], exp.Select], schema: Schema) -> str:
        if (kind, schema) not in self._texts_of_tuples:
            self._texts_of_tuples[kind, schema] = write_sql(select(self.query, schema), self.dialect)
        return self._texts_of_tuples[kind, schema]

    @cached_property
    def _texts_of_tuples(self) -> dict[tuple[str, Schema], str]:
        """Texts that `_collected` has written, by their kind and the schema of the tuples."""
        return {}

    @property
    def text(self) -> str:
        """The text of all commands, separated by semicolons."""
        return ";\n\n".join(self.texts)

    @property
    def commands(self) -> tuple[exp.Expr, ...]:
        """The commands to execute: the query, or those that create its table and insert the rows of each pass."""
        if self.stage is None:
            return (self.query,)
        if self.distribution is not None:
            return self.distribution.filling(self.stage, (self.query, *self.passes), self.value_type)
        inserts = (exp.Insert(this=self.stage.copy(), expression=query) for query in self.passes)
        return (create_table_as(self.stage, self.query), *inserts)


def create_table_as(stage: exp.Table, query: exp.Select) -> exp.Create:
    """The command that creates a temporary table from the rows of a query."""
    properties = exp.Properties(expressions=[exp.TemporaryProperty()])
    return exp.Create(this=stage.copy(), kind="TABLE", properties=properties, expression=query)

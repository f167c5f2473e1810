"""Render: tables whose rows are distributed over machines, in the terms of Citus.

Source: the manual of Citus, "Citus Utility Functions": create_distributed_table, create_reference_table. Tables whose
distribution columns have one type, and that have as many shards, are colocated: equal keys are on one machine.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.decompose.places.distribution import Distribution, Hashed, Replicated
from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.render.calls import call
from sparseeinsum.render.dialects import CITUS
from sparseeinsum.render.packing import BYTES
from sparseeinsum.statistics.columns import type_named

# Rows hold arrays of up to a page inline.
INLINE_ARRAYS = exp.Property(this=exp.var("toast_tuple_target"), value=exp.Literal.number(8160))
KEY_TYPE = "BIGINT"  # the one type of all distribution columns, so that tables are colocated


@dataclass(frozen=True, slots=True)
class TableDistribution:
    """How the rows of a table are distributed over machines.

    Attributes:
        column: The distribution column; None if there is none, or one by which no other table is distributed.
        is_replicated: Whether every machine has all rows, as of a reference table.
    """

    column: str | None
    is_replicated: bool = False

    def command(self, table: exp.Table) -> exp.Select:
        """The SELECT that distributes the rows of a table, those present and those inserted later."""
        name = exp.Literal.string(table.sql(CITUS.name))
        if self.column is None:
            return exp.select(call("create_reference_table", name))
        return exp.select(call("create_distributed_table", name, exp.Literal.string(self.column)))

    def filling(self, table: exp.Table, queries: Sequence[exp.Select], value_type: str) -> tuple[exp.Expr, ...]:
        """The commands that create a table for a run, and fill it with the rows of queries.

        Args:
            table: The table.
            queries: SELECTs of its rows, all with the same columns.
            value_type: The SQL type of the value column.
        """
        return (
            exp.Create(this=_columns(table, queries[0], value_type), kind="TABLE", properties=_unlogged(value_type)),
            self.command(table),
            *(_insert(query, table) for query in queries),
        )


def stage_distribution(schema: Schema, distribution: Distribution | None) -> TableDistribution | None:
    """How the table of a relation in a run is distributed; None if one machine has it."""
    if distribution == Replicated():
        return TableDistribution(None, is_replicated=True)
    if not isinstance(distribution, Hashed):
        return None
    return TableDistribution(schema.tensor.axes[distribution.axis].name)


def output_distribution(schema: Schema, distribution: Distribution | None) -> TableDistribution | None:
    """How the table of an output is distributed, so that rows stay where they are computed if the keys agree."""
    if distribution is None or schema.has_dictionaries:  # natural keys have types of their own
        return None
    if not schema.keys:
        return TableDistribution(None, is_replicated=True)
    name = schema.tensor.axes[distribution.axis].name if isinstance(distribution, Hashed) else schema.keys[0]
    return TableDistribution(name if name in schema.keys else schema.keys[0])


def _columns(table: exp.Table, query: exp.Select, value_type: str) -> exp.Schema:
    types = {VALUE_COLUMN: value_type}
    columns = [
        exp.ColumnDef(this=exp.to_identifier(name), kind=type_named(types.get(name, KEY_TYPE)))
        for name in query.named_selects
    ]
    return exp.Schema(this=table.copy(), expressions=columns)


def _unlogged(value_type: str) -> exp.Properties:
    inline = [INLINE_ARRAYS.copy()] if value_type == BYTES or value_type.endswith("[]") else []
    return exp.Properties(expressions=[exp.UnloggedProperty(), *inline])


def _insert(query: exp.Select, table: exp.Table) -> exp.Insert:
    return exp.Insert(this=table.copy(), expression=query)

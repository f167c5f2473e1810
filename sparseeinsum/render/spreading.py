"""Render: tables whose rows are spread over machines, in the words of Citus.

Source: the manual of Citus, "Citus Utility Functions": create_distributed_table, create_reference_table. Tables with
distribution columns of one type and as many shards have equal keys on one machine, so that they are colocated.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from sparseeinsum.algebra.operators import Schema
from sparseeinsum.decompose.clusters.distribution import Distribution, Hashed
from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.render.calls import call
from sparseeinsum.render.dialects import CITUS
from sparseeinsum.render.packing import BYTES
from sparseeinsum.statistics.columns import type_named

# Arrays that fill a page lie in their rows.
INLINE_ARRAYS = exp.Property(this=exp.var("toast_tuple_target"), value=exp.Literal.number(8160))
KEY_TYPE = "BIGINT"  # of every column that rows are distributed by, so that tables are colocated


@dataclass(frozen=True, slots=True)
class Spread:
    """How the rows of a table are spread over machines.

    Attributes:
        column: The distribution column; None where there is none, or none that other tables are distributed by.
        is_replicated: Whether every machine has all rows, as of a reference table.
    """

    column: str | None
    is_replicated: bool = False

    def command(self, table: exp.Table) -> exp.Select:
        """What spreads the rows that a table has, and will have."""
        name = exp.Literal.string(table.sql(CITUS.name))
        if self.column is None:
            return exp.select(call("create_reference_table", name))
        return exp.select(call("create_distributed_table", name, exp.Literal.string(self.column)))

    def filling(self, table: exp.Table, queries: Sequence[exp.Select], value_type: str) -> tuple[exp.Expr, ...]:
        """What creates a table for a run, and fills it with the rows of queries."""
        return (
            exp.Create(this=_columns(table, queries[0], value_type), kind="TABLE", properties=_unlogged(value_type)),
            self.command(table),
            *(_insert(query, table) for query in queries),
        )


def spread_of(schema: Schema, distribution: Distribution | None) -> Spread | None:
    """How the table of a relation of a run is spread; None where one machine has it."""
    if not isinstance(distribution, Hashed):
        return None
    return Spread(schema.tensor.axes[distribution.axis].name)


def spread_of_output(schema: Schema, distribution: Distribution | None) -> Spread | None:
    """How a table is spread that takes an output, as it is computed where its keys are the same."""
    if distribution is None or schema.has_dictionaries:  # natural keys have types of their own
        return None
    if not schema.keys:
        return Spread(None, is_replicated=True)
    name = schema.tensor.axes[distribution.axis].name if isinstance(distribution, Hashed) else schema.keys[0]
    return Spread(name if name in schema.keys else schema.keys[0])


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

"""Loops: the tables that take the outputs of every step, each in a table of its own or several in one row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from sparseeinsum.algebra.operators import Computed
from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.plans.plan_statements import PlanStatements
from sparseeinsum.render.packing import packed_value
from sparseeinsum.render.sql_statement import SqlStatement
from sparseeinsum.statistics.columns import computed_type, stored_type
from sparseeinsum.statistics.number_literals import number


@dataclass(frozen=True, slots=True)
class InsertedOutput:
    """A table that takes an output of every step.

    Attributes:
        tables: The table in each of the two turns.
        fill: Rows with this value are left out; None keeps all rows.
        keys: The names of the columns of its keys.
        dtype: The dtype of the values.
        is_scalar: Whether values are numbers, not arrays.
        column: The column of its values if the tables take a row of several outputs; empty if they are its own.
        is_number: Whether it is a number in such a row that every step returns, too.
    """

    tables: tuple[exp.Table, exp.Table]
    fill: Number | None
    keys: tuple[str, ...]
    dtype: str
    is_scalar: bool
    column: str = ""
    is_number: bool = False

    @property
    def takes_any_row(self) -> bool:
        """Whether it takes the rows of an intermediate as they are: all of them, with values of the same type."""
        types = (kind(self.dtype, self.is_scalar) for kind in (stored_type, computed_type))
        return self.fill is None and len(set(types)) == 1

    def rows_of(self, query: exp.Select) -> exp.Select:
        """The rows of the output that the table takes."""
        if self.fill is None:
            return query
        value = exp.column(VALUE_COLUMN)
        is_entry = value.neq(exp.convert(bool(self.fill)) if self.dtype == "bool" else number(self.fill, self.dtype))
        return exp.select("*").from_(query.subquery("rows")).where(is_entry)


def outputs_by_row(inserted: Mapping[str, InsertedOutput]) -> dict[str, tuple[str, ...]]:
    """The outputs that share each row, in the order of its columns, by the last of them, which is a state."""
    sharing: dict[str, list[str]] = {}
    for name, output in inserted.items():
        if output.column:
            sharing.setdefault(output.tables[0].name, []).append(name)
    return {names[-1]: tuple(names) for names in sharing.values()}


def with_whole_rows(
    statements: Sequence[SqlStatement],
    both_turns: PlanStatements,
    inserted: Mapping[str, InsertedOutput],
    turn: int,
) -> list[SqlStatement]:
    """The statements, with one for each row of outputs in place of those that return these.

    Args:
        statements: The statements of a step.
        both_turns: The statements of the plan, which read the tables of one turn.
        inserted: The outputs that go into tables.
        turn: The tables that are filled.
    """
    others = list(statements)
    for last, names in outputs_by_row(inserted).items():
        returned = {statement.name: statement for statement in others if statement.stage is None}
        others = [statement for statement in others if statement.stage is not None or statement.name not in names]
        row = replace(returned[last], query=_whole_row([(name, returned[name].query) for name in names], both_turns))
        others = _with_row(others, row)
        for name in names:
            output = inserted[name]
            if output.is_number:
                value = exp.column(output.column).as_(VALUE_COLUMN)
                others.append(replace(returned[name], query=exp.select(value).from_(output.tables[turn].copy())))
    return others


def _with_row(statements: Sequence[SqlStatement], row: SqlStatement) -> list[SqlStatement]:
    """The statements and that of a row, which computes the values itself if it alone reads their table."""
    sources = [
        statement
        for statement in statements
        if statement.stage is not None and {statement.stage.name} == row.tables_read and not statement.passes
    ]
    if not sources or any(row.tables_read <= statement.tables_read for statement in statements):
        return [*statements, row]
    query = row.query.copy()
    for table in list(query.find_all(exp.Table)):
        table.replace(sources[0].query.subquery(table.name))
    return [replace(row, query=query) if statement is sources[0] else statement for statement in statements]


def _whole_row(returned: Sequence[tuple[str, exp.Select]], both_turns: PlanStatements) -> exp.Select:
    """The values of outputs of one row each, side by side: columns of a table that has them, or of subqueries."""
    sources: dict[str, exp.Expr] = {}
    values = []
    for position, (name, query) in enumerate(returned):
        schema = both_turns.delivery(name).schema
        if name in both_turns.places_in_chains and isinstance(both_turns.delivery(name), Computed):
            table, column = both_turns.table_of(name)
            sources[table.name] = table.copy()
            value = exp.column(column, table.name)
        else:
            sources[f"r{position}"] = query.subquery(f"r{position}")
            value = exp.column(VALUE_COLUMN, f"r{position}")
        values.append(packed_value(value, schema))
    first, *more = sources.values()
    row = exp.select(*values).from_(first)
    for source in more:
        row = row.join(source, join_type="cross")
    return row

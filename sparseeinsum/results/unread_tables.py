"""Results: frees the rows of temporary tables that nothing later in a run reads."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from sqlglot import exp

from sparseeinsum.engines.engine import Engine
from sparseeinsum.language.tensors import tuple_bytes
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.plans.result_sizes import result_sizes
from sparseeinsum.render.sql_statement import SqlStatement
from sparseeinsum.statistics.columns import table_by_name

_LARGE_BYTES = 4 << 20  # of a table: to free less takes longer than it is worth


@dataclass(slots=True)
class LargeTables:
    """The large temporary tables of a run that still have their rows.

    Attributes:
        engine: The database.
    """

    engine: Engine
    _tables: dict[str, exp.Table] = field(default_factory=dict)

    def add(self, plan: ProgramPlan, statement: SqlStatement, tuples: int) -> None:
        """Take the table that a statement has filled, if it is large."""
        if statement.stage is None or plan.dialect.distributes:
            return
        if tuples * _tuple_bytes(plan, statement) >= _LARGE_BYTES:
            self._tables[statement.stage.name] = statement.stage

    def free_unread(self, read_later: Callable[[], Set[str]]) -> None:
        """Free the rows of all tables but those that are read later, of these names."""
        if not self._tables:
            return
        for name in self._tables.keys() - read_later():
            self.engine.free_rows(self._tables.pop(name))


def _tuple_bytes(plan: ProgramPlan, statement: SqlStatement) -> int:
    if statement.materializes is not None:
        schema = statement.materializes.schema
        return tuple_bytes(schema.tensor, schema.decomposition)
    return sum(result_sizes(plan, name).tuple_bytes for name in statement.stored)


def in_order_of_readers(plan: ProgramPlan, statements: Sequence[SqlStatement]) -> list[SqlStatement]:
    """The statements of a plan in an order in which the rows of their tables can be freed early.

    Outputs are returned as soon as the tables that they read are filled, and results that are computed again are
    computed just before they are read. Statements keep their order if no table is expected to be large.
    """
    stages = {statement.stage.name: statement for statement in statements if statement.stage is not None}
    if not any(_expected_bytes(plan, statement) >= _LARGE_BYTES for statement in stages.values()):
        return list(statements)
    stages = _with_late_recomputation(stages, frozenset(plan.program.recomputed))
    waiting = [statement for statement in statements if statement.stage is None]
    unfilled, ordered = set(stages), []
    for name, stage in stages.items():
        unfilled.discard(name)
        ready = [statement for statement in waiting if unfilled.isdisjoint(statement.tables_read)]
        waiting = [statement for statement in waiting if statement not in ready]
        ordered += [stage, *ready]
    return ordered


def _with_late_recomputation(stages: Mapping[str, SqlStatement], recomputed: Set[str]) -> dict[str, SqlStatement]:
    """The statements that fill tables, by table, with those of recomputed results just before what reads them."""
    late = {name for name, statement in stages.items() if _result_in_table(statement) in recomputed}
    ordered: dict[str, SqlStatement] = {}
    for name, statement in stages.items():
        if name in late:
            continue
        needed, waiting = {name}, [statement]
        while waiting:
            unordered = (waiting.pop().tables_read & late) - needed - ordered.keys()
            needed |= unordered
            waiting += [stages[table] for table in unordered]
        ordered |= {table: stages[table] for table in stages if table in needed}
    return {**ordered, **{name: stages[name] for name in stages if name not in ordered}}


def _result_in_table(statement: SqlStatement) -> str:
    return statement.name if statement.materializes is None else statement.materializes.schema.tensor.name


def _expected_bytes(plan: ProgramPlan, statement: SqlStatement) -> float:
    return sum(result_sizes(plan, name).expected_bytes for name in statement.stored)


def tables_of_rest(plan: ProgramPlan, computed: Set[str], delivered: Set[str]) -> set[str]:
    """The names of the tables that another plan for the rest would read.

    Args:
        plan: The plan that runs.
        computed: Its results that are in tables.
        delivered: Its outputs that were returned.
    """
    rest = plan.decomposed.graph.without(computed, delivered)
    read = {operand.tensor for einsum in rest.einsums for operand in einsum.operands}
    inputs = [plan.inputs[name].stored for name in read & plan.inputs.keys()]
    stored = {table_by_name(tensor, plan.dialect.name).name for tensor in inputs if not tensor.is_generated}
    return stored | {plan.statements.table_of(name)[0].name for name in read & computed}

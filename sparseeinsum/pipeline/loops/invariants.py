"""Loops: what is the same in every step, and so is computed once."""

from collections.abc import Iterable, Set
from dataclasses import replace

from sparseeinsum.algebra.operators import Materialized, Relation, Stack, Stored
from sparseeinsum.algebra.translate import ComputedResult
from sparseeinsum.language.tensors import tuple_bytes
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.render.sql_statement import SqlStatement


def invariant_stages(statements: Iterable[SqlStatement], changed: Set[str]) -> frozenset[str]:
    """The names of the temporary tables that have the same rows in every step.

    Args:
        statements: The statements of a step, in order.
        changed: The names of the tables that steps change.
    """
    varying = set(changed)
    invariant: set[str] = set()
    for statement in statements:
        if statement.stage is not None:
            (invariant if varying.isdisjoint(statement.tables_read) else varying).add(statement.stage.name)
    return frozenset(invariant)


def with_invariant_arrays(plan: ProgramPlan, changed: Set[str]) -> tuple[ComputedResult, ...]:
    """The EinSums of a step, which read tensors that stay the same as single arrays from tables.

    To put such an array together from its entries takes several times as long as to read it.

    Args:
        plan: The plan of a step.
        changed: The inputs that steps change.
    """
    largest = plan.alternatives.model.memory.largest_relation_bytes

    def in_table(operand: Relation) -> Relation:
        if not isinstance(operand, Stack) or not isinstance(operand.input, Stored) or operand.schema.keys:
            return operand
        source, schema = operand.input.source, operand.schema
        stays = not source.is_generated and schema.tensor.name not in changed
        fits = tuple_bytes(schema.tensor, schema.decomposition) <= largest
        return Materialized(operand, 0, 1) if stays and fits else operand

    def with_tables(definition: ComputedResult) -> ComputedResult:
        contract = definition.relation
        return replace(definition, relation=replace(contract, inputs=tuple(map(in_table, contract.inputs))))

    return tuple(map(with_tables, plan.statements.definitions))


def invariant_aggregates(plan: ProgramPlan, changed: Set[str]) -> frozenset[str]:
    """The results that steps read and that are the same in every step, if values are aggregated for them.

    To compute others again, row by row, takes about as long as to read them from a table.

    Args:
        plan: The plan of a step.
        changed: The inputs that steps change.
    """
    model, steps = plan.alternatives.model, plan.decomposed.steps
    varying = set(changed)
    aggregates: set[str] = set()
    read: set[str] = set()
    for step in steps:
        name, operands = step.einsum.output.tensor, {operand.tensor for operand in step.einsum.operands}
        if not varying.isdisjoint(operands):
            varying.add(name)
            read |= operands
        elif step.einsum.aggregated or not aggregates.isdisjoint(operands):
            aggregates.add(name)
    fitting = {
        step.einsum.output.tensor
        for step in steps
        if not step.computed_in
        and model.sizes.relation_bytes(step.einsum.output.tensor, step.result.tiles)
        <= model.memory.largest_relation_bytes
    }
    return frozenset(aggregates & read & fitting)

"""Algebra: results that are worth a table because several processes can read it at once.

PostgreSQL's processes share tables, but no intermediate rows, and no memory. So one process forms the groups of a
query, and computes all that the same statement computes of them, and of operands in its memory, while a join with a
table runs in all processes. And a single tuple that is stacked of many is computed by every process, unless it is in a
table.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence, Set

from sparseeinsum.algebra.entry_rows import EntryRows
from sparseeinsum.algebra.operators import Densify, Relation, Stack
from sparseeinsum.algebra.translate import ComputedResult, is_aggregating
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.staging import TableCost

# A shorter join is not worth several processes.
_MIN_JOIN_SECONDS = 0.08
# The time to create and analyze a table, and to write and read a byte of it (measured on GCN, PostgreSQL 15).
_TABLE_COST = TableCost(table_seconds=0.01, seconds_per_byte=2e-9)


def results_read_in_parallel(
    definitions: Sequence[ComputedResult], model: CostModel, staged: Collection[str], kept: Set[Relation]
) -> set[str]:
    """The results that save time in a table of their own because processes share the work of reading them.

    Args:
        definitions: All EinSums, in topological order.
        model: The cost model of the plan.
        staged: Results that have a table anyway, which are not returned.
        kept: The operands that are in the memory of the session's process.
    """
    by_name = {definition.name: definition for definition in definitions}
    steps = {definition.name: definition.step for definition in definitions}
    one_process: set[str] = set()  # results that one process computes
    chosen: set[str] = set()
    for definition in definitions:
        read = [operand.tensor for operand in definition.step.einsum.operands]
        reads_memory = not kept.isdisjoint(definition.relation.inputs)
        reads_value = not one_process.isdisjoint(_handed_over(definition, by_name))
        if reads_memory or reads_value or definition.relation.is_sparse_matmul:  # one process computes this EinSum, too
            if definition.name not in staged:
                one_process.add(definition.name)
            continue
        chosen |= {
            name
            for name in _single_tuple_operands(definition)
            if name in steps
            and name not in staged
            and _saved_seconds(steps[name].seconds, model) > _TABLE_COST.seconds(steps[name], model)
        }
        seconds = definition.step.join_seconds + definition.step.aggregation_seconds
        if len(read) == 2 and seconds >= _MIN_JOIN_SECONDS:
            saved = _saved_seconds(seconds, model)
            chosen |= {
                name for name in one_process.intersection(read) if saved > _TABLE_COST.seconds(steps[name], model)
            }
            one_process -= chosen
        if definition.name not in staged and (_forms_groups(definition) or not one_process.isdisjoint(read)):
            one_process.add(definition.name)
    return chosen


def _handed_over(definition: ComputedResult, by_name: Mapping[str, ComputedResult]) -> Iterator[str]:
    """The operands that a kernel computes row by row, in the order in which this EinSum needs them in memory."""
    for operand in definition.relation.inputs:
        name = operand.schema.tensor.name
        rows = EntryRows.of(by_name[name].relation) if name in by_name else None
        if rows is not None and rows.are_read_by(operand):
            yield name


def _saved_seconds(seconds: float, model: CostModel) -> float:
    """The seconds saved if all processes share the work, or one does it while the others do theirs."""
    return seconds * (1 - 1 / model.memory.threads)


def _single_tuple_operands(definition: ComputedResult) -> Iterator[str]:
    """The operands that are stacked into a single tuple, and joined with many tuples of the other operand."""
    inputs, operands = definition.relation.inputs, definition.relation.einsum.operands
    for relation, operand in zip(inputs, operands, strict=True):
        is_single = isinstance(relation, Stack) and not relation.schema.keys
        if is_single and any(other.schema.keys for other in inputs):
            yield operand.tensor


def _forms_groups(definition: ComputedResult) -> bool:
    """Whether an EinSum aggregates pairs, or stacks tuples of an operand, into tuples with keys."""
    relation, step = definition.relation, definition.step
    if not relation.has_single_pairs and is_aggregating(step):
        return bool(relation.schema.keys)
    operands = [operand.input if isinstance(operand, Densify) else operand for operand in relation.inputs]
    return any(isinstance(operand, Stack) and bool(operand.schema.keys) for operand in operands)

"""Algebra: results that are worth a table because several processes can read it at once.

Where processes share tables, but no rows on the way (as in PostgreSQL), groups are put together in one process, and so
is all that is computed of them in the same statement. A join with a table is computed in all processes. And what one
tuple is put together of, beside which there are many, every process computes for itself, unless it is in a table.
"""

from collections.abc import Collection, Iterator, Sequence

from sparseeinsum.algebra.operators import Densify, Stack
from sparseeinsum.algebra.translate import Definition
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.plan import Step

# Of a join that several processes are worth; plans that take hardly more have temporary tables, which one alone reads.
_LEAST_SECONDS = 0.08
# Of a table: to make and analyze it, and to write and read a byte (measured on GCN, PostgreSQL 15).
_TABLE_SECONDS = 0.01
_TABLE_SECONDS_PER_BYTE = 2e-9


def results_read_in_parallel(definitions: Sequence[Definition], model: CostModel, staged: Collection[str]) -> set[str]:
    """Results that joins read from tables in less time, besides those that are kept in tables anyway.

    Args:
        definitions: Of all EinSums, in topological order.
        model: Priced them.
        staged: Results that are kept in tables anyway.
    """
    steps = {each.name: each.step for each in definitions}
    of_one_process: set[str] = set()
    chosen: set[str] = set()
    for each in definitions:
        chosen |= {
            name
            for name in _computed_by_each(each)
            if name in steps
            and name not in staged
            and _gained(steps[name].seconds, model) > _table_seconds(steps[name], model)
        }
        read = [operand.tensor for operand in each.step.einsum.operands]
        seconds = each.step.join_seconds + each.step.aggregation_seconds
        if len(read) == 2 and seconds >= _LEAST_SECONDS:
            gained = _gained(seconds, model)
            chosen |= {name for name in read if name in of_one_process and gained > _table_seconds(steps[name], model)}
            of_one_process -= chosen
        if each.name not in staged and (_forms_groups(each) or not of_one_process.isdisjoint(read)):
            of_one_process.add(each.name)
    return chosen


def _gained(seconds: float, model: CostModel) -> float:
    """What it takes less if all processes share the work, or one does it for all while the others do theirs."""
    return seconds * (1 - 1 / model.memory.threads)


def _computed_by_each(definition: Definition) -> Iterator[str]:
    """Operands that are put together into one tuple, beside many of the other operand."""
    inputs, operands = definition.relation.inputs, definition.step.einsum.operands
    for relation, operand in zip(inputs, operands, strict=True):
        is_one = isinstance(relation, Stack) and not relation.schema.keys
        if is_one and any(other.schema.keys for other in inputs):
            yield operand.tensor


def _forms_groups(definition: Definition) -> bool:
    """Whether pairs are aggregated, or tuples of an operand put together, into tuples with keys."""
    relation, step = definition.relation, definition.step
    if not relation.has_single_pairs and not step.promoted <= frozenset(step.einsum.output.labels):
        return bool(relation.schema.keys)
    operands = [each.input if isinstance(each, Densify) else each for each in relation.inputs]
    return any(isinstance(operand, Stack) and bool(operand.schema.keys) for operand in operands)


def _table_seconds(step: Step, model: CostModel) -> float:
    name, tiles = step.einsum.output.tensor, step.result.tiles
    return _TABLE_SECONDS + model.tuples(name, tiles) * model.tuple_bytes(name, tiles) * _TABLE_SECONDS_PER_BYTE

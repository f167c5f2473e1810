"""Results: operands that a run reads in memory, and that stay there for later runs while their tables do not change.

Runs with a memory limit of their own, or in another number of threads, do not read what others keep.
"""

from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache

from sqlglot import exp

from sparseeinsum.algebra.operators import Compress, Contract, Densify, Relation, Resident, Slice, Stack, Stored
from sparseeinsum.engines.engine import Engine
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.render.calls import call
from sparseeinsum.render.dialects import Dialect, write_sql
from sparseeinsum.render.layouts import HANDLE_COLUMN
from sparseeinsum.render.statements import relation_query
from sparseeinsum.storage.row_versions import row_versions

_ANY_TENSOR = "sparseeinsum_any_tensor"  # stand for those of an operand, in the text of a query
_ANY_RELATION = "sparseeinsum_any_relation"


def kept_operands(plan: ProgramPlan, engine: Engine, at_once: bool = False) -> Mapping[Relation, int | None]:
    """The handles of the operands of a plan that are in memory, None for those without rows; in an open transaction.

    Those that a run before this one needed, too, are put there now, and stay; with `at_once`, all of them are.
    """
    kept = engine.kept_memory
    if kept is None or plan.options.memory_limit is not None:
        return {}
    operands = dict(_operands_in_memory(plan))
    stored = {source.source.tensor.name: source.source for source in operands.values()}
    owned = {name: source for name, source in stored.items() if source.is_owned}
    if not owned:
        return {}
    versions = row_versions(owned, engine)
    needed: dict[Relation, Hashable] = {
        operand: (versions[source.source.tensor.name].version, plan.threads)
        for operand, source in operands.items()
        if source.source.tensor.name in owned
    }

    def keep(operand: Relation) -> int | None:
        return _put_into_memory(operand, operands[operand].source, plan, engine)

    return kept.handles(needed, plan.alternatives.model.kept_bytes, keep, at_once)


@contextmanager
def operands_of_passes(plan: ProgramPlan, name: str, engine: Engine) -> Iterator[Mapping[Relation, int | None]]:
    """The handles of the operands that all passes of a result read, made of one stored tensor each.

    They are in memory until the passes are done.
    """
    passes = next((definition.passes() for definition in plan.definitions if definition.name == name), ())
    kept = engine.kept_memory
    if kept is None or len(passes) < 2:
        yield {}
        return
    first, *others = (dict(_in_memory(relation)) for relation in passes)
    shared = {operand: source for operand, source in first.items() if all(operand in other for other in others)}

    def keep(operand: Relation) -> int | None:
        return _put_into_memory(operand, shared[operand].source, plan, engine)

    with kept.during_statement(shared, keep) as handles:
        yield handles


def _put_into_memory(operand: Relation, source: StoredTensor, plan: ProgramPlan, engine: Engine) -> int | None:
    ((handle,),) = engine.rows(_keeping_text(operand, source, plan.dialect))
    return None if handle is None else int(str(handle))


def _keeping_text(operand: Relation, source: StoredTensor, dialect: Dialect) -> str:
    """The query that keeps an operand, which is made of one stored tensor, and returns its handle.

    It takes longer to write than to run, and operands of programs often differ in nothing but their tables.
    """
    name = source.tensor.name
    if source.lists is not None:
        return _written_text(operand, dialect)
    any_source = replace(source, tensor=replace(source.tensor, name=_ANY_TENSOR), relation=_ANY_RELATION, owner=None)
    text = _written_text(_of_source(operand, any_source), dialect)
    return text.replace(_ANY_RELATION, source.relation).replace(_ANY_TENSOR, name)


def _of_source(relation: Relation, source: StoredTensor) -> Relation:
    """The same operand, made of another stored tensor."""
    match relation:
        case Stored():
            return Stored(source)
        case Resident() | Compress() | Slice() | Stack() | Densify():
            return replace(relation, input=_of_source(relation.input, source))
        case _:
            raise AssertionError(f"{relation} is not made of one stored tensor")


@lru_cache(maxsize=512)
def _written_text(operand: Relation, dialect: Dialect) -> str:
    resident = Resident(operand) if isinstance(operand, Stack) else operand
    query = relation_query(resident, dialect).subquery("made")
    kept_handle = call("tensor_keep", exp.column(HANDLE_COLUMN, table="made"))
    return write_sql(exp.select(kept_handle).from_(query), dialect)


def _operands_in_memory(plan: ProgramPlan) -> Iterator[tuple[Relation, Stored]]:
    """The operands that statements put into memory from one stored tensor alone, with that tensor."""
    for definition in plan.definitions:
        if definition.step.passes is None:
            yield from _in_memory(definition.relation)
    for entries in plan.statements.entry_chains:
        yield from _in_memory(entries.pattern)


def _in_memory(relation: Relation) -> Iterator[tuple[Relation, Stored]]:
    match relation:
        case Contract(inputs=inputs):
            for operand in inputs:
                yield from _in_memory(operand)
        case Resident(input=source) | Compress(input=source) | Stack(input=source) if _is_one_value(relation):
            stored = _stored(source)
            if stored is not None:
                yield relation, stored


def _is_one_value(relation: Relation) -> bool:
    """Whether a relation in memory is one value: a handle, or an array without keys."""
    return not isinstance(relation, Stack) or not relation.schema.keys


def _stored(relation: Relation) -> Stored | None:
    """The stored tensor of which a relation is made; None if it is made of others."""
    match relation:
        case Stored():
            return relation
        case Slice(input=source) | Stack(input=source) | Densify(input=source, all_keys=None):
            return _stored(source)
        case _:
            return None

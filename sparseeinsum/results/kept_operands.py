"""Results: operands that a run reads in memory, and that stay there for later runs while their tables do not change.

Runs with a memory limit of their own, or in another number of threads, do not read what others keep.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache

from sparseeinsum.algebra.operators import Compress, Contract, Densify, Relation, Resident, Slice, Stack, Stored
from sparseeinsum.engines.engine import Engine
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.operators.dtypes import ITEM_BYTES
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.render.dialects import Dialect, write_sql
from sparseeinsum.render.layouts import HANDLE_COLUMN, resident_of
from sparseeinsum.render.statements import relation_query
from sparseeinsum.storage.row_versions import row_versions

_ANY_TENSOR = "sparseeinsum_any_tensor"  # stand for those of an operand, in the text of a query
_ANY_RELATION = "sparseeinsum_any_relation"
_FIRST_RUN_BYTES = 1 << 26  # of all operands of a plan; the first run keeps them if they take no more
_POSITION_BYTES = 4  # of an entry that is ordered by row


def kept_operands(plan: ProgramPlan, engine: Engine, at_once: bool = False) -> Mapping[Relation, int | None]:
    """The handles of the operands of a plan that are in memory, None for those without rows; in an open transaction.

    Those that a run before this one needed, too, are put there now, and stay. So are small ones that no run has needed
    yet, and with `at_once`, all of them.
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
    sources = {_memory_of(operand): source.source for operand, source in operands.items()}
    needed: dict[Relation, Hashable] = {
        relation: (versions[source.tensor.name].version, plan.threads)
        for relation, source in sources.items()
        if source.tensor.name in owned
    }

    def keep(missing: Sequence[Relation]) -> list[int | None]:
        return _put_into_memory({relation: sources[relation] for relation in missing}, plan, engine)

    new = {relation: sources[relation] for relation in needed if not kept.was_needed(relation)}
    kept_at_once = needed if at_once else _small(new, plan)
    handles = kept.handles(needed, plan.alternatives.model.kept_bytes, keep, kept_at_once)
    return _by_operand(operands, handles)


def _memory_of(operand: Relation) -> Relation:
    """The relation that is in memory for an operand: the same one for rows and for one array of them."""
    return resident_of(operand) if isinstance(operand, Stack) else operand


def _by_operand(operands: Iterable[Relation], handles: Mapping[Relation, int | None]) -> dict[Relation, int | None]:
    """The handles of operands, as far as there are any, from those of the relations in memory."""
    relations = {operand: _memory_of(operand) for operand in operands}
    return {operand: handles[relation] for operand, relation in relations.items() if relation in handles}


def _small(operands: Mapping[Relation, StoredTensor], plan: ProgramPlan) -> frozenset[Relation]:
    """The operands, unless they are so large together that they had better stay only if they are needed again."""
    size_bytes = sum(_size_bytes(operand, source, plan) for operand, source in operands.items())
    return frozenset(operands if size_bytes <= _FIRST_RUN_BYTES else ())


def _size_bytes(operand: Relation, source: StoredTensor, plan: ProgramPlan) -> float:
    tensor = source.tensor
    if isinstance(operand, Compress):
        entries = plan.alternatives.model.statistics[tensor.name].entries
        return entries * (_POSITION_BYTES + ITEM_BYTES[tensor.dtype])
    return tensor.size * ITEM_BYTES[tensor.dtype]


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
    sources = {_memory_of(operand): source.source for operand, source in shared.items()}

    def keep(missing: Sequence[Relation]) -> list[int | None]:
        return _put_into_memory({relation: sources[relation] for relation in missing}, plan, engine)

    with kept.during_statement(list(sources), keep) as handles:
        yield _by_operand(shared, handles)


def _put_into_memory(operands: Mapping[Relation, StoredTensor], plan: ProgramPlan, engine: Engine) -> list[int | None]:
    """Keep operands, which are made of one stored tensor each; returns their handles, or None for those without rows.

    One query puts all of them into memory, and keeps them when all are there: an error or an interruption before that
    leaves nothing.
    """
    queries = [_making_text(operand, source, plan.dialect) for operand, source in operands.items()]
    rows = sorted(engine.rows(_keeping_text(queries)))
    return [None if handle is None else int(str(handle)) for _, handle in rows]


def _keeping_text(queries: Sequence[str]) -> str:
    """The query that keeps the operands that other queries put into memory; returns their numbers and handles."""
    numbered = " UNION ALL ".join(
        f"SELECT {number} AS number, operand.{HANDLE_COLUMN} FROM ({query}) AS operand"
        for number, query in enumerate(queries)
    )
    order = " ORDER BY number" if len(queries) > 1 else ""  # all are in memory before the first one is kept
    return f"SELECT operand.number, tensor_keep(operand.{HANDLE_COLUMN}) FROM ({numbered}{order}) AS operand"


def _making_text(operand: Relation, source: StoredTensor, dialect: Dialect) -> str:
    """The query that puts an operand into memory, which is made of one stored tensor, and returns its handle.

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
    return write_sql(relation_query(operand, dialect), dialect)


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

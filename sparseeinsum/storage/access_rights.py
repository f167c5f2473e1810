"""Storage: which tensors a role may use, without running code of other roles with its own rights."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from sqlglot import exp

from sparseeinsum.engines.engine import Engine, RelationAccess
from sparseeinsum.errors import EngineError, RightsError
from sparseeinsum.language.tensors import Dictionary, StoredTensor
from sparseeinsum.statistics.columns import place_of
from sparseeinsum.statistics.dictionary_queries import dictionary_table
from sparseeinsum.storage.catalogue_tables import prepare_catalogue


@contextmanager
def explaining_missing_rights(engine: Engine) -> Iterator[None]:
    """In this context, say how to get the right to use the catalogue if a statement is refused for lack of it.

    Raises:
        RightsError: The user lacks a right.
    """
    try:
        yield
    except EngineError as error:
        if not engine.is_permission_error(error):
            raise
        reason = str(error.__cause__ or error).splitlines()[0]
        raise RightsError(
            f"this role may not use the tensors of this database ({reason}); let their owner run `sparseeinsum grant "
            "ROLE --database URL`"
        ) from error.__cause__


def grant(engine: Engine, role: str) -> None:
    """Let a role of the database use its tensors: list all, add new ones, and change its own.

    Rights to the tables of the tensors are granted in SQL.

    Raises:
        EngineError: The database has no roles or no such role, or the user may not grant this.
    """
    with engine.transaction():
        prepare_catalogue(engine)
        engine.grant(role)


def check_readable(engine: Engine, tensors: Iterable[StoredTensor]) -> None:
    """Refuse tensors that would run code of other roles with the caller's rights when they are read.

    Raises:
        RightsError: Names the first such tensor and the reason.
    """
    accesses: dict[str, RelationAccess] = {}
    for stored in tensors:
        if stored.is_generated:
            continue
        name = f"tensor {stored.tensor.name}"
        accesses[name] = RelationAccess(name, place_of(stored, engine.dialect_name), stored.owner)
        for axis in stored.tensor.axes:
            if axis.dictionary is not None:
                accesses[axis.dictionary.relation] = access_to(axis.dictionary)
    _check(engine, accesses.values())


def access_to(dictionary: Dictionary) -> RelationAccess:
    """Return the read access to the table of a dictionary."""
    return RelationAccess(f"the dictionary {dictionary.name}", dictionary_table(dictionary))


def check_relation_readable(engine: Engine, title: str, table: exp.Table) -> None:
    """Refuse a relation that the user names if it would run code of other roles when it is read.

    Args:
        engine: The engine of the relation.
        title: What messages call it.
        table: The relation.

    Raises:
        RightsError: It would.
    """
    _check(engine, [RelationAccess(title, table)])


def _check(engine: Engine, accesses: Iterable[RelationAccess]) -> None:
    """Check tables and views; files have no rights in the database."""
    engine.check_access([access for access in accesses if isinstance(access.table.this, exp.Identifier)])

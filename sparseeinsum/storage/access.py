"""Storage: what a role may do in a database, and what it must not be made to do by what other roles wrote there."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from sqlglot import exp

from sparseeinsum.engines.engine import Engine, RelationAccess
from sparseeinsum.errors import EngineError, RightsError
from sparseeinsum.language.tensors import Dictionary, StoredTensor
from sparseeinsum.statistics.columns import table_by_name
from sparseeinsum.statistics.dictionaries import dictionary_table
from sparseeinsum.storage.catalogue_tables import prepare_catalogue


@contextmanager
def explaining_missing_rights(engine: Engine) -> Iterator[None]:
    """Within, a statement on the catalogue that the user has no right to is refused with the way to get it.

    Raises:
        RightsError: One was.
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
    """Let a role of the database use its tensors: see all, add some, and change its own.

    Rights to the tables that hold them are granted in SQL.

    Raises:
        EngineError: The database has no roles or no such role, or the user may not grant that.
    """
    with engine.transaction():
        prepare_catalogue(engine)
        engine.grant(role)


def check_readable(engine: Engine, tensors: Iterable[StoredTensor]) -> None:
    """Refuse to read tensors where that would run what other roles wrote with the rights of the caller.

    Raises:
        RightsError: Naming the first such tensor, and why.
    """
    readings: dict[str, RelationAccess] = {}
    for stored in tensors:
        if stored.is_generated:
            continue
        name = f"tensor {stored.tensor.name}"
        readings[name] = RelationAccess(name, table_by_name(stored, engine.dialect_name), stored.owner)
        for axis in stored.tensor.axes:
            if axis.dictionary is not None:
                readings[axis.dictionary.relation] = reading_of(axis.dictionary)
    _check(engine, readings.values())


def reading_of(dictionary: Dictionary) -> RelationAccess:
    """The reading of a dictionary's table."""
    return RelationAccess(f"the dictionary {dictionary.name}", dictionary_table(dictionary))


def check_relation_readable(engine: Engine, title: str, table: exp.Table) -> None:
    """Refuse to read a relation that the user names, as `check_readable` does tensors."""
    _check(engine, [RelationAccess(title, table)])


def _check(engine: Engine, readings: Iterable[RelationAccess]) -> None:
    """Ask the database, which knows of tables and views, and not of files."""
    engine.check_access([reading for reading in readings if isinstance(reading.table.this, exp.Identifier)])

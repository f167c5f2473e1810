"""Storage: which tables belong to tensors, and may be replaced or dropped with them."""

from collections.abc import Mapping

from sqlglot import exp

from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import CatalogueError
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.statistics.columns import table_by_name, written_table
from sparseeinsum.statistics.dictionary_queries import SCHEMA
from sparseeinsum.storage.catalogue import Catalogue, check_name, find_tensor
from sparseeinsum.storage.table_names import folds_case, parse_table_name, table_in


def claim_table(engine: Engine, catalogue: Catalogue, name: str) -> exp.Table:
    """Return the table for a new tensor of a name; a table of an earlier tensor of that name elsewhere is dropped.

    The table itself may still exist, so that the rows of the new tensor can be read from it.

    Args:
        engine: The engine of the table.
        catalogue: The catalogue in the open transaction, from which an earlier tensor of that name is removed.
        name: The name of the tensor.

    Raises:
        CatalogueError: A table or view of that name exists that was not created by loading, or the name is invalid.
    """
    tensors = catalogue.all()
    catalogue.prepare()  # a cluster cannot create a schema in a transaction that has filled a table
    check_name(name, tensors, engine)
    if name in tensors:
        catalogue.remove(name)
    table = default_table(engine, name)
    previous = owned_tensor(engine, tensors, name)
    if previous is None or previous.table != table.sql(engine.dialect_name):
        _check_free(engine, name)
        drop_table(engine, previous)
    else:
        drop_view(engine, previous)
    return table


def drop_tensor(engine: Engine, name: str) -> StoredTensor:
    """Remove a tensor, and drop its table if loading created it; tables, views and files of the user stay.

    Raises:
        CatalogueError: There is no such tensor.
    """
    with engine.transaction():
        catalogue = Catalogue(engine)
        stored = find_tensor(catalogue.all(), name)
        catalogue.remove(name)
        drop_table(engine, owned_tensor(engine, {name: stored}, name))
    return stored


def check_target(engine: Engine, result: str, table: str) -> tuple[str, ...]:
    """Return the parts of the qualified name of a table for a result, in lower case.

    Args:
        engine: The engine of the table.
        result: The name of the result, for messages.
        table: The table as the user names it.

    Raises:
        CatalogueError: The table must not be replaced: a tensor was loaded into it, or it belongs to the catalogue.
    """
    database, schema = (name.lower() for name in engine.location())

    def qualified_parts(text: str) -> tuple[str, ...]:
        parts = tuple(part.name.lower() for part in parse_table_name(text, engine.dialect_name).parts)
        return _qualified_parts(parts, database, schema, engine.dialect.default_schema)

    target = qualified_parts(table)
    if target[:-1] == (SCHEMA,):
        raise CatalogueError(f"{table} belongs to the catalogue of tensors; choose another table for {result}")
    for name, stored in Catalogue(engine).all().items():
        if stored.is_owned and target in (qualified_parts(stored.table), qualified_parts(stored.relation)):
            raise CatalogueError(
                f"{table} is the table that tensor {name} was loaded into; choose another table for {result}"
            )
    return target


def _qualified_parts(parts: tuple[str, ...], database: str, schema: str, default: str | None) -> tuple[str, ...]:
    """Return schema and name, preceded by the database if it is not the current one."""
    if len(parts) > (2 if default is None else 1) and parts[0] == database:
        parts, schema = parts[1:], default or schema
    return (schema, *parts) if len(parts) == 1 else parts


def default_table(engine: Engine, name: str) -> exp.Table:
    """Return the table in which a tensor of a name is stored unless the user says otherwise."""
    _, schema = engine.location()
    return table_in(schema, name.lower() if folds_case(engine.dialect_name) else name, engine.dialect_name)


def owned_tensor(engine: Engine, tensors: Mapping[str, StoredTensor], name: str) -> StoredTensor | None:
    """Return the tensor of a name if loading created its table, else None.

    The catalogue says so, but is trusted only if the role that recorded the tensor owns the table.
    """
    stored = tensors.get(name)
    if stored is None or not stored.is_owned:
        return None
    table = written_table(stored, engine.dialect_name)
    is_named_so = table.name.lower() == name.lower()  # records of version 0.1 have no owner
    return stored if engine.role_owns(stored.owner, table) and (stored.owner or is_named_so) else None


def drop_table(engine: Engine, previous: StoredTensor | None) -> None:
    """Drop the table of a tensor, if there is one, and the view of its entries."""
    if previous is not None:
        drop_view(engine, previous)
        table = written_table(previous, engine.dialect_name)
        engine.execute(exp.Drop(tables=[table], kind="TABLE", exists=True))


def drop_view(engine: Engine, stored: StoredTensor) -> None:
    """Drop the view of the entries of a tensor in lists."""
    if stored.lists is not None:
        view = table_by_name(stored, engine.dialect_name)
        engine.execute(exp.Drop(tables=[view], kind="VIEW", exists=True))


def claim_view(engine: Engine, name: str) -> exp.Table:
    """Return the view of the entries of a tensor in lists, with a name that no table or view has.

    Args:
        engine: The engine of the view.
        name: The name of the tensor; an earlier view of its entries has been dropped.

    Raises:
        CatalogueError: There is a table or view of that name.
    """
    view = f"{name}_entries"
    _check_free(engine, view)
    return default_table(engine, view)


def _check_free(engine: Engine, name: str) -> None:
    """Refuse a name that a table or view has, as only tables that loading created may be replaced."""
    for relation in engine.relations_named(name):
        raise CatalogueError(
            f"there is a table or view {relation.name} that was not loaded as a tensor; choose another name, or make a "
            f"tensor of it with db.tensor_from_table({name!r}, {relation.name!r}, index=[...])"
        )

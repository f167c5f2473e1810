"""Storage: which tables are ours: names that tensors take, tables that give way to them, those that go with them."""

from collections.abc import Mapping

from sqlglot import exp

from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import CatalogueError
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.statistics.columns import table_by_name
from sparseeinsum.statistics.dictionaries import SCHEMA
from sparseeinsum.storage.catalogue import Catalogue, check_name, find
from sparseeinsum.storage.table_names import folds_case, parse_table_name, table_in


def claim_table(engine: Engine, name: str) -> exp.Table:
    """The table that takes a tensor of a name, and may be there yet; where it lies elsewhere, the one before it goes.

    Raises:
        CatalogueError: A table or view of that name is there that was not made by loading, or the name cannot be had.
    """
    catalogue = Catalogue(engine)
    known = catalogue.all()
    catalogue.prepare()  # a cluster makes no schema any more in a transaction that has filled a table
    check_name(name, known, engine)
    if name in known:
        catalogue.remove(name)
    table = default_table(engine, name)
    replaced = owned_tensor(engine, known, name)
    if replaced is None or replaced.relation != table.sql(engine.dialect_name):
        _check_free(engine, name)
        drop_table(engine, replaced)
    return table


def drop_tensor(engine: Engine, name: str) -> StoredTensor:
    """Forget a tensor; the table that was made for it goes, tables, views and files of the user's stay.

    Raises:
        CatalogueError: There is no such tensor.
    """
    with engine.transaction():
        catalogue = Catalogue(engine)
        stored = find(catalogue.all(), name)
        catalogue.remove(name)
        drop_table(engine, owned_tensor(engine, {name: stored}, name))
    return stored


def check_target(engine: Engine, result: str, table: str) -> tuple[str, ...]:
    """The whole name of a table that is to take a result, in lower case.

    Raises:
        CatalogueError: It must not be replaced: a tensor was loaded into it, or it is the catalogue.
    """
    database, schema = (name.lower() for name in engine.location())

    def whole_name(text: str) -> tuple[str, ...]:
        parts = parse_table_name(text, engine.dialect_name).parts
        return _whole_name(tuple(part.name.lower() for part in parts), database, schema, engine.dialect.default_schema)

    target = whole_name(table)
    if target[:-1] == (SCHEMA,):
        raise CatalogueError(f"{table} belongs to the catalogue of tensors; choose another table for {result}")
    for name, stored in Catalogue(engine).all().items():
        if stored.is_owned and whole_name(stored.relation) == target:
            raise CatalogueError(
                f"{table} is the table that tensor {name} was loaded into; choose another table for {result}"
            )
    return target


def _whole_name(parts: tuple[str, ...], database: str, schema: str, default: str | None) -> tuple[str, ...]:
    """Schema and name; before them the database where it is not the current one."""
    if len(parts) > (2 if default is None else 1) and parts[0] == database:
        parts, schema = parts[1:], default or schema
    return (schema, *parts) if len(parts) == 1 else parts


def default_table(engine: Engine, name: str) -> exp.Table:
    """The table in which a tensor of a name is kept, unless the user says otherwise."""
    _, schema = engine.location()
    return table_in(schema, name.lower() if folds_case(engine.dialect_name) else name, engine.dialect_name)


def owned_tensor(engine: Engine, known: Mapping[str, StoredTensor], name: str) -> StoredTensor | None:
    """The tensor of that name, if loading made its table: who entered it says so, and must be the table's owner."""
    stored = known.get(name)
    if stored is None or not stored.is_owned:
        return None
    table = table_by_name(stored, engine.dialect_name)
    is_named_so = table.name.lower() == name.lower()  # of entries of version 0.1 nobody knows who made them
    return stored if engine.role_owns(stored.owner, table) and (stored.owner or is_named_so) else None


def drop_table(engine: Engine, replaced: StoredTensor | None) -> None:
    """Drop the table of a tensor that another takes the place of, if there is one."""
    if replaced is not None:
        table = table_by_name(replaced, engine.dialect_name)
        engine.execute(exp.Drop(tables=[table], kind="TABLE", exists=True))


def _check_free(engine: Engine, name: str) -> None:
    """A table may be replaced only if loading made it."""
    for found in engine.relations_named(name):
        raise CatalogueError(
            f"there is a table or view {found.name} that was not loaded as a tensor; choose another name, or make a "
            f"tensor of it with db.tensor_from_table({name!r}, {found.name!r}, index=[...])"
        )

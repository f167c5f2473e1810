"""Storage: creates the tables of the catalogue, and upgrades those of earlier versions."""

from collections.abc import Mapping

from sqlglot import exp

from sparseeinsum.engines.engine import Engine
from sparseeinsum.environment import assets
from sparseeinsum.errors import CatalogueError
from sparseeinsum.statistics.dictionary_queries import SCHEMA
from sparseeinsum.storage.table_names import parts_of_relation

TABLE = "tensors"
DICTIONARIES = "dictionaries"

# The columns of the table of tensors; earlier versions lack the last ones.
COLUMNS = (
    "name",
    "axes",
    "bounds",
    "dtype",
    "fill",
    "tiles",
    "relation",
    "key_columns",
    "value_column",
    "casts",
    "is_owned",
    "dictionaries",
    "holds_keys",
    "list_relation",
    "list_tiles",
    "list_axes",
    "owner",
)
COLUMNS_OF_DICTIONARIES = ("name", "key_type", "size", "relation", "owner")
STATISTICS, AXIS_COUNTS = "statistics", "axis_counts"
_LISTS = {"list_relation": "TEXT[]", "list_tiles": "BIGINT[]", "list_axes": "BIGINT[]"}  # since version 0.3
_ADDED = {**_LISTS, STATISTICS: "TEXT", AXIS_COUNTS: "TEXT"}  # the last two since version 0.4
_LATER = ("dictionaries", "holds_keys", "owner", *_LISTS)


def tensor_columns(engine: Engine) -> Mapping[str, str] | None:
    """Return the columns of the table of tensors with their types; None if there is no such table.

    Raises:
        CatalogueError: The table of that name is another one.
    """
    columns = engine.scans.of_state(
        "columns of the catalogue", engine.state_token(), lambda: engine.catalogue_columns(SCHEMA, TABLE)
    )
    if columns is not None and not set(COLUMNS) - set(_LATER) <= columns.keys():
        raise CatalogueError(
            f"the table {SCHEMA}.{TABLE} of this database is not the one in which tensors are recorded; rename it"
        )
    return columns


def is_present(columns: Mapping[str, str]) -> bool:
    """Whether the table of tensors has all its columns; those of earlier versions lack some."""
    return {*COLUMNS, *_ADDED} <= columns.keys()


def prepare_catalogue(engine: Engine) -> None:
    """Create the tables of the catalogue, or upgrade those of an earlier version."""
    columns = tensor_columns(engine)
    if columns is not None and is_present(columns):
        return
    if columns is None or "owner" not in columns:
        if columns is None:
            engine.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        else:
            _migrate(engine, columns)
        for script in engine.dialect.catalogue_scripts:
            engine.execute(assets.read(script))
    if columns is not None:
        for name in [name for name in _ADDED if name not in columns]:
            engine.execute(f"ALTER TABLE {SCHEMA}.{TABLE} ADD COLUMN {name} {_ADDED[name]}")
    if engine.dialect.changes_script is not None:
        engine.execute(assets.read(engine.dialect.changes_script))


def _migrate(engine: Engine, columns: Mapping[str, str]) -> None:
    """Upgrade tables of version 0.1, which stored names of relations as SQL, and at first fills as numbers."""
    if columns["fill"] == "DOUBLE":
        engine.execute(f"ALTER TABLE {SCHEMA}.{TABLE} ALTER fill TYPE TEXT")
    for name, definition in (("dictionaries", "TEXT[]"), ("holds_keys", "BOOLEAN DEFAULT FALSE")):
        if name not in columns:
            engine.execute(f"ALTER TABLE {SCHEMA}.{TABLE} ADD COLUMN {name} {definition}")
    dictionary_columns = engine.catalogue_columns(SCHEMA, DICTIONARIES)
    for table in (TABLE,) if dictionary_columns is None else (TABLE, DICTIONARIES):
        _split_relations(engine, table)
        # Existing rows have no owner, because it is unknown who recorded them.
        engine.execute(f"ALTER TABLE {SCHEMA}.{table} ADD COLUMN owner TEXT")
        engine.execute(f"ALTER TABLE {SCHEMA}.{table} ALTER owner SET DEFAULT CURRENT_USER")


def _split_relations(engine: Engine, table: str) -> None:
    """Replace the SQL names of relations by their parts."""
    rows = engine.rows(f"SELECT name, relation FROM {SCHEMA}.{table}")
    parts_by_name = [(str(name), parts_of_relation(str(relation), engine.dialect_name)) for name, relation in rows]
    array = exp.array(exp.column("relation")).sql(engine.dialect_name)
    engine.execute(f"ALTER TABLE {SCHEMA}.{table} ALTER relation TYPE TEXT[] USING {array}")
    for name, name_parts in parts_by_name:
        condition = exp.column("name").eq(exp.Literal.string(name))
        values: dict[str, object] = {"relation": exp.array(*map(exp.Literal.string, name_parts))}
        engine.execute(exp.update(exp.table_(table, db=SCHEMA), values, where=condition))

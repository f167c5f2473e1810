"""Engines: tensors into tables of the database, and tables of the user's as tensors."""

import difflib
from collections.abc import Sequence
from pathlib import Path

from sqlglot import exp

from sparseeinsum.engines.catalogue import Catalogue
from sparseeinsum.engines.duckdb import DuckDB
from sparseeinsum.engines.loading import Columns
from sparseeinsum.errors import CatalogueError, DataError, EngineError, ShapeError
from sparseeinsum.language.tensors import VALUE_COLUMN, Axis, StoredTensor, Tensor, entries
from sparseeinsum.statistics.columns import array_type, number_type
from sparseeinsum.statistics.measure import measure

_INCOMING = "sparseeinsum_incoming"
_INTEGER_TYPES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_FILE_ENDINGS = (".parquet", ".csv", ".csv.gz", ".json")
_NUMBER_TYPES = {"DOUBLE": "float64", "FLOAT": "float32"}


def load(engine: DuckDB, columns: Columns, sums_duplicates: bool) -> StoredTensor:
    """Store a tensor in a table of its own name, in place of one loaded before, and record it in the catalogue.

    Raises:
        CatalogueError: A table or view of that name is there that was not made by loading.
        DataError: The data are no tensor; the database is as it was.
    """
    name = columns.tensor.name
    with engine.registered(columns.table, _INCOMING), engine.transaction():
        catalogue = Catalogue(engine)
        _check_free(engine, catalogue, name)
        query = _summed(columns) if sums_duplicates else _selected(columns)
        table = _table(engine, name)
        engine.execute(exp.Create(this=table, kind="TABLE", replace=True, expression=query))
        keys = tuple(columns.table.column_names[:-1])
        relation = table.sql(engine.dialect)
        stored = StoredTensor(columns.tensor, columns.decomposition, relation, keys, VALUE_COLUMN, False, True)
        measure(stored, engine)
        catalogue.add(stored)
    return stored


def _table(engine: DuckDB, name: str) -> exp.Table:
    ((schema,),) = engine.rows("SELECT current_schema()")
    return exp.table_(exp.to_identifier(name), db=exp.to_identifier(str(schema)))


def _check_free(engine: DuckDB, catalogue: Catalogue, name: str) -> None:
    """A table may be replaced only if loading made it."""
    query = exp.select("COUNT(*)").from_(exp.Anonymous(this="duckdb_tables")).where(_named("table_name", name))
    views = exp.select("COUNT(*)").from_(exp.Anonymous(this="duckdb_views")).where(_named("view_name", name))
    taken = any(int(str(engine.rows(statement)[0][0])) for statement in (query, views))
    if not taken:
        return
    known = catalogue.find(name) if name in catalogue.names() else None
    if known is None or not known.is_owned:
        raise CatalogueError(
            f"there is a table or view {name} that was not loaded as a tensor; choose another name, or make a tensor "
            f"of it with db.tensor_from_table({name!r}, {name!r}, index=[...])"
        )


def _named(column: str, name: str) -> exp.Expr:
    here = "database_name = current_database() AND schema_name = current_schema()"
    return exp.and_(exp.Lower(this=exp.column(column)).eq(name.lower()), exp.condition(here, dialect="duckdb"))


def _value_type(columns: Columns) -> exp.DataType:
    dtype = columns.tensor.dtype
    return number_type(dtype) if columns.decomposition.is_scalar else array_type(dtype)


def _selected(columns: Columns) -> exp.Select:
    keys = [exp.column(key) for key in columns.table.column_names[:-1]]
    value = exp.cast(exp.column(VALUE_COLUMN), _value_type(columns))
    return exp.select(*keys, exp.alias_(value, VALUE_COLUMN)).from_(_INCOMING)


def _summed(columns: Columns) -> exp.Select:
    keys = [exp.column(key) for key in columns.table.column_names[:-1]]
    value = exp.cast(exp.Sum(this=exp.column(VALUE_COLUMN)), _value_type(columns))
    select = exp.select(*keys, exp.alias_(value, VALUE_COLUMN)).from_(_INCOMING)
    return select.group_by(*[key.copy() for key in keys]) if keys else select


def refer(
    engine: DuckDB,
    name: str,
    relation: str,
    index: Sequence[str],
    value: str | None,
    shape: Sequence[int] | None,
    axes: Sequence[str] | None,
    dtype: str | None,
) -> StoredTensor:
    """Record a table, view or file as a tensor; nothing is copied.

    Raises:
        CatalogueError: The relation cannot be read or lacks a column.
        DataError: A column has a wrong type, or the rows are no tensor.
    """
    with engine.transaction():
        catalogue = Catalogue(engine)
        table = _relation(engine, relation)
        types = _column_types(engine, name, relation, table, [*index, *([value] if value else [])])
        for column in index:
            if types[column] not in _INTEGER_TYPES:
                raise DataError(
                    f"tensor {name}: the index column {column} of {relation} has type {types[column]}; indices must be "
                    "whole numbers from 0, of a type up to BIGINT (a view can cast them)"
                )
        found = _NUMBER_TYPES.get(types[value]) if value else None
        wanted = dtype or found or "float64"
        bounds = _greatest(engine, table, index) if shape is None else [int(bound) for bound in shape]
        names = [column.lower() for column in (index if axes is None else axes)]
        if not len(index) == len(bounds) == len(names):
            raise ShapeError(
                f"tensor {name} has {len(index)} index columns, {len(names)} axis names and a shape of {len(bounds)}"
            )
        tensor = Tensor(name, tuple(Axis(axis, bound) for axis, bound in zip(names, bounds, strict=True)), wanted)
        text = table.sql(engine.dialect)
        stored = StoredTensor(
            tensor, entries(len(bounds)), text, tuple(index), value, value is not None and found != wanted, False
        )
        measure(stored, engine)
        catalogue.add(stored)
    return stored


def _relation(engine: DuckDB, relation: str) -> exp.Table:
    """A file by its path, else a table or view by its whole name, so that no CTE can stand in its way."""
    if relation.lower().endswith(_FILE_ENDINGS):
        return exp.Table(this=exp.Literal.string(str(Path(relation).resolve())))
    table = exp.to_table(relation, dialect=engine.dialect)
    if table.db:
        return table
    found = engine.rows(
        "SELECT temporary, schema_name, name FROM ("
        "SELECT database_name, schema_name, table_name AS name, temporary FROM duckdb_tables() UNION ALL "
        "SELECT database_name, schema_name, view_name AS name, temporary FROM duckdb_views()) AS relations "
        f"WHERE LOWER(name) = {exp.Literal.string(table.name.lower()).sql(engine.dialect)} "
        "AND (temporary OR (database_name = current_database() AND schema_name = current_schema())) "
        "ORDER BY temporary DESC LIMIT 1"
    )
    if not found:
        raise CatalogueError(f"there is no table, view or file {relation} in this database")
    is_temporary, schema, name = found[0]
    catalog = exp.to_identifier("temp") if is_temporary else None
    return exp.table_(exp.to_identifier(str(name)), db=exp.to_identifier(str(schema)), catalog=catalog)


def _column_types(engine: DuckDB, name: str, relation: str, table: exp.Table, columns: Sequence[str]) -> dict[str, str]:
    """SQL types of columns, as the user spells them."""
    try:
        described = engine.rows(f"DESCRIBE SELECT * FROM {table.sql(engine.dialect)}")
    except EngineError as error:
        raise CatalogueError(f"tensor {name}: {relation} cannot be read: {error.__cause__ or error}") from None
    types = {str(column).lower(): str(kind) for column, kind, *_ in described}
    for column in columns:
        if column.lower() not in types:
            near = difflib.get_close_matches(column.lower(), types, n=1)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(types)}"
            raise CatalogueError(f"tensor {name}: {relation} has no column {column}; {hint}")
    return {column: types[column.lower()] for column in columns}


def _greatest(engine: DuckDB, table: exp.Table, index: Sequence[str]) -> list[int]:
    """One more than the greatest index of every column: the smallest shape that holds them."""
    query = exp.select(*[exp.Max(this=exp.column(column)) for column in index]).from_(table)
    (row,) = engine.rows(query)
    return [0 if greatest is None else int(str(greatest)) + 1 for greatest in row]

"""Engines: tensors into tables of the database, and tables of the user's as tensors."""

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path

from sqlglot import exp

from sparseeinsum.engines.arguments import axes_of, bounds_of, dtype_named
from sparseeinsum.engines.catalogue import SCHEMA, TABLE, Catalogue, check_name, table_in, table_named
from sparseeinsum.engines.duckdb import DuckDB
from sparseeinsum.engines.loading import Columns
from sparseeinsum.errors import CatalogueError, DataError, EngineError, ShapeError
from sparseeinsum.language.tensors import VALUE_COLUMN, StoredTensor, Tensor, entries
from sparseeinsum.statistics.columns import array_type, dtype_of, is_index_type, is_number_type, number_type
from sparseeinsum.statistics.measure import measure

_INCOMING = "sparseeinsum_incoming"
_FILE_ENDINGS = (".parquet", ".csv", ".tsv", ".json", ".jsonl", ".ndjson")
_COMPRESSED_ENDINGS = (".gz", ".zst")


def load(engine: DuckDB, columns: Columns, sums_duplicates: bool) -> StoredTensor:
    """Store a tensor in a table of its own name, in place of one loaded before, and record it in the catalogue.

    Raises:
        CatalogueError: A table or view of that name is there that was not made by loading.
        DataError: The data are no tensor; the database is as it was.
    """
    name = columns.tensor.name
    with engine.registered(columns.table, _INCOMING), engine.transaction():
        catalogue = Catalogue(engine)
        known = catalogue.all()
        check_name(name, known)
        table = _table(engine, name)
        relation = table.sql(engine.dialect)
        replaced = _owned(known, name)
        if replaced is None or replaced.relation != relation:
            _check_free(engine, name)
            _drop(engine, replaced)
        may_repeat = columns.decomposition.is_scalar  # arrays come from dense data
        query = _summed(columns) if sums_duplicates and may_repeat else _selected(columns)
        engine.execute(exp.Create(this=table, kind="TABLE", replace=True, expression=query))
        keys = tuple(columns.table.column_names[:-1])
        stored = StoredTensor(columns.tensor, columns.decomposition, relation, keys, VALUE_COLUMN, False, True)
        measure(stored, engine)
        catalogue.add(stored)
    return stored


def check_target(engine: DuckDB, result: str, table: str) -> tuple[str, ...]:
    """The whole name of a table that is to take a result, in lower case.

    Raises:
        CatalogueError: It must not be replaced: a tensor was loaded into it, or it is the catalogue.
    """
    ((database, schema),) = engine.rows("SELECT LOWER(current_database()), LOWER(current_schema())")

    def whole_name(text: str) -> tuple[str, ...]:
        parts = table_named(text, engine.dialect).parts
        return _whole_name(tuple(part.name.lower() for part in parts), str(database), str(schema))

    target = whole_name(table)
    if target == (SCHEMA, TABLE):
        raise CatalogueError(f"{table} is where tensors are recorded; choose another table for {result}")
    for name, stored in Catalogue(engine).all().items():
        if stored.is_owned and whole_name(stored.relation) == target:
            raise CatalogueError(
                f"{table} is the table that tensor {name} was loaded into; choose another table for {result}"
            )
    return target


def _whole_name(parts: tuple[str, ...], database: str, schema: str) -> tuple[str, ...]:
    """Schema and name; before them the database where it is not the current one."""
    if len(parts) > 1 and parts[0] == database:
        parts, schema = parts[1:], "main"  # the schema where only a database is named
    return (schema, *parts) if len(parts) == 1 else parts


def _table(engine: DuckDB, name: str) -> exp.Table:
    ((schema,),) = engine.rows("SELECT current_schema()")
    return table_in(str(schema), name, engine.dialect)


def _owned(known: Mapping[str, StoredTensor], name: str) -> StoredTensor | None:
    """The tensor of that name, if loading made its table."""
    stored = known.get(name)
    return stored if stored is not None and stored.is_owned else None


def _drop(engine: DuckDB, replaced: StoredTensor | None) -> None:
    """Drop the table of a tensor that another takes the place of."""
    if replaced is not None:
        table = table_named(replaced.relation, engine.dialect)
        engine.execute(exp.Drop(tables=[table], kind="TABLE", exists=True))


def _check_free(engine: DuckDB, name: str) -> None:
    """A table may be replaced only if loading made it."""
    for _, _, spelled in _relations_named(engine, name):
        raise CatalogueError(
            f"there is a table or view {spelled} that was not loaded as a tensor; choose another name, or make a "
            f"tensor of it with db.tensor_from_table({name!r}, {spelled!r}, index=[...])"
        )


def _relations_named(engine: DuckDB, name: str) -> Sequence[tuple[object, ...]]:
    """What a bare name may mean, first what it does mean: (whether it is temporary, schema, name as spelled)."""
    return engine.rows(
        "SELECT temporary, schema_name, name FROM ("
        "SELECT database_name, schema_name, table_name AS name, temporary, internal FROM duckdb_tables() UNION ALL "
        "SELECT database_name, schema_name, view_name AS name, temporary, internal FROM duckdb_views()) AS relations "
        f"WHERE LOWER(name) = {exp.Literal.string(name.lower()).sql(engine.dialect)} "
        "AND NOT internal AND (temporary OR (database_name = current_database() AND schema_name = current_schema())) "
        "ORDER BY temporary DESC"
    )


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
        known = catalogue.all()
        check_name(name, known)
        table = _relation(engine, relation)
        text = table.sql(engine.dialect)
        replaced = _owned(known, name)
        if replaced is not None and replaced.relation == text:
            raise CatalogueError(
                f"{relation} is the table that tensor {name} was loaded into; choose another name for the tensor"
            )
        _drop(engine, replaced)
        types = _column_types(engine, name, relation, table, [*index, *([value] if value else [])])
        _check_types(name, relation, types, index, value)
        found = dtype_of(types[value]) if value else None
        wanted = found or "float64" if dtype is None else dtype_named(name, dtype)
        bounds = _greatest(engine, table, index) if shape is None else bounds_of(name, shape)
        if len(bounds) != len(index):
            raise ShapeError(f"tensor {name} is given shape {bounds}, but {len(index)} index columns")
        tensor = Tensor(name, axes_of(name, index if axes is None else axes, bounds), wanted)
        casts = value is not None and found != wanted
        stored = StoredTensor(tensor, entries(len(bounds)), text, tuple(index), value, casts, False)
        measure(stored, engine)
        catalogue.add(stored)
    return stored


def _check_types(name: str, relation: str, types: Mapping[str, str], index: Sequence[str], value: str | None) -> None:
    for column in index:
        if not is_index_type(types[column]):
            raise DataError(
                f"tensor {name}: the index column {column} of {relation} has type {types[column]}; indices must be "
                "whole numbers from 0, of a type up to BIGINT (a view can cast them)"
            )
    if value is not None and not is_number_type(types[value]):
        raise DataError(
            f"tensor {name}: the value column {value} of {relation} has type {types[value]}; values must be numbers "
            "(a view can cast them)"
        )


def _relation(engine: DuckDB, relation: str) -> exp.Table:
    """A file by its path, else a table or view by its whole name, so that no CTE can stand in its way."""
    if _is_file(relation):
        path = relation if "://" in relation else str(Path(relation).resolve())
        return exp.Table(this=exp.Literal.string(path))
    table = table_named(relation, engine.dialect)
    if table.db:
        return table
    found = _relations_named(engine, table.name)
    if not found:
        raise CatalogueError(f"there is no table, view or file {relation} in this database")
    is_temporary, schema, name = found[0]
    return table_in(str(schema), str(name), engine.dialect, "temp" if is_temporary else None)


def _is_file(relation: str) -> bool:
    path = Path(relation.lower())
    return (path.with_suffix("") if path.suffix in _COMPRESSED_ENDINGS else path).suffix in _FILE_ENDINGS


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
    if not index:
        return []
    query = exp.select(*[exp.Max(this=exp.column(column)) for column in index]).from_(table)
    (row,) = engine.rows(query)
    return [0 if greatest is None else max(int(str(greatest)) + 1, 0) for greatest in row]

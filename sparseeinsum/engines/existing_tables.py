"""Engines: tables, views and files that users have, described as tensors."""

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path

from sqlglot import exp

from sparseeinsum.engines.arguments import Description
from sparseeinsum.engines.catalogue import folds_case, table_in, table_named
from sparseeinsum.engines.engine import Column, Engine
from sparseeinsum.engines.parquet_files import metadata_of_file
from sparseeinsum.errors import CatalogueError, DataError, EngineError, ShapeError
from sparseeinsum.language.dtypes import is_complex
from sparseeinsum.language.tensors import StoredTensor, entries
from sparseeinsum.statistics.columns import computed_type, dtype_of, is_index_type, is_pair_type, is_readable

_FILE_ENDINGS = (".parquet", ".csv", ".tsv", ".json", ".jsonl", ".ndjson")
_COMPRESSED_ENDINGS = (".gz", ".zst")


def described(
    engine: Engine,
    description: Description,
    relation: str,
    table: exp.Table,
    index: Sequence[str],
    value: str | None,
) -> tuple[StoredTensor, str | None]:
    """A relation as a tensor, one entry a row; its rows are not looked at, but for the bounds where none are given.

    Args:
        engine: Where it is.
        description: What the user says of the tensor.
        relation: The relation, as the user names it.
        table: The relation.
        index: Columns of indices, in axis order.
        value: Column of values; without it every row counts as 1.

    Returns:
        The tensor, and the type of its column of values.

    Raises:
        CatalogueError: The relation cannot be read or lacks a column.
        DataError: A column has a wrong type.
    """
    name = description.name
    columns = _columns(engine, name, relation, table, [*index, *([value] if value else [])])
    types = {column: found.sql_type for column, found in columns.items()}
    _check_index_types(name, relation, types, index)
    dtype = description.wanted_dtype()
    if value is not None:
        dtype = _dtype_of_column(
            f"tensor {name}: the value column {value} of {relation}", types[value], dtype, engine.sql.casts_truth
        )
    keys = [columns[column].name for column in index]
    bounds = greatest_indices(engine, table, keys) if description.shape is None else description.bounds()
    if len(bounds) != len(index):
        raise ShapeError(f"tensor {name} is given shape {bounds}, but {len(index)} index columns")
    tensor = description.tensor(bounds, dtype or "float64", index)
    casts = value is not None and types[value] != computed_type(tensor.dtype, is_scalar=True)
    text = table.sql(engine.dialect)
    column = value and columns[value].name
    stored = StoredTensor(tensor, entries(len(bounds)), text, tuple(keys), column, casts, is_owned=False)
    return stored, None if value is None else types[value]


def _check_index_types(name: str, relation: str, types: Mapping[str, str], index: Sequence[str]) -> None:
    for column in index:
        if not is_index_type(types[column]):
            raise DataError(
                f"tensor {name}: the index column {column} of {relation} has type {types[column]}; indices must be "
                "whole numbers from 0, of a type up to BIGINT (a view can cast them)"
            )


def _dtype_of_column(column: str, sql_type: str, wanted: str | None, casts_truth: bool) -> str:
    """The dtype wanted, else that of a column of values, if it can be read so."""
    dtype = wanted or dtype_of(sql_type)
    if sql_type == "BOOLEAN" and dtype != "bool" and not casts_truth:
        raise DataError(
            f"{column} has type BOOLEAN, of which there are no numbers; read it as bool, or cast it in a view"
        )
    if dtype is not None and is_readable(sql_type, dtype):
        return dtype
    if wanted is not None and is_complex(wanted):
        way = f"values of dtype {wanted} must be arrays [real, imaginary] of DOUBLE or FLOAT (a view can make them)"
    elif is_pair_type(sql_type):
        way = "values must be numbers; if they are [real, imaginary], pass dtype='complex128'"
    else:
        way = "values must be numbers (a view can cast them)"
    raise DataError(f"{column} has type {sql_type}; {way}")


def relation_named(engine: Engine, relation: str) -> exp.Table:
    """A file by its path, else a table or view by its whole name, so that no CTE can stand in its way."""
    if is_file(relation):
        if not engine.sql.reads_files:
            raise CatalogueError(f"{engine.title} reads no files; load {relation} with db.tensor(...), or into a table")
        path = relation if "://" in relation else str(Path(relation).resolve())
        return exp.Table(this=exp.Literal.string(path))
    table = table_named(relation, engine.dialect)
    if table.db:
        return table
    found = engine.relations_named(table.name)
    if not found:
        raise CatalogueError(f"there is no table, view or file {relation} in this database")
    first = found[0]
    return table_in(first.schema, first.name, engine.dialect, first.catalog)


def is_file(relation: str) -> bool:
    """Whether a name is that of a file rather than of a table: by how it ends."""
    path = Path(relation.lower())
    return (path.with_suffix("") if path.suffix in _COMPRESSED_ENDINGS else path).suffix in _FILE_ENDINGS


def metadata_of_relation(relation: str) -> dict[bytes, bytes] | None:
    """What a single Parquet file of this machine says besides its columns."""
    path = Path(relation)
    return metadata_of_file(path) if path.suffix.lower() == ".parquet" and path.is_file() else None


def _columns(engine: Engine, name: str, relation: str, table: exp.Table, wanted: Sequence[str]) -> dict[str, Column]:
    """Columns by the names that the user gives; these stay their names where case does not tell names apart."""
    try:
        described = engine.columns(exp.select("*").from_(table.copy()))
    except EngineError as error:
        cause = error.__cause__
        raise CatalogueError(f"tensor {name}: {relation} cannot be read: {cause or error}") from cause
    known = {column.name.lower(): column for column in described} | {column.name: column for column in described}
    found = {}
    for column in wanted:
        match = known.get(column) or known.get(column.lower())
        if match is None:
            names = [each.name.lower() for each in described]
            near = difflib.get_close_matches(column.lower(), names, n=1)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(names)}"
            raise CatalogueError(f"tensor {name}: {relation} has no column {column}; {hint}")
        found[column] = match if folds_case(engine.dialect) else Column(column, match.sql_type)
    return found


def greatest_indices(engine: Engine, table: exp.Table, index: Sequence[str]) -> tuple[int, ...]:
    """One more than the greatest index of every column: the smallest shape that holds them."""
    if not index:
        return ()
    query = exp.select(*[exp.Max(this=exp.column(column)) for column in index]).from_(table)
    (row,) = engine.rows(query)
    return tuple(0 if greatest is None else max(int(str(greatest)) + 1, 0) for greatest in row)

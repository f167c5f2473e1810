"""Storage: tables, views and files that users have, described as tensors."""

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path

from sqlglot import exp

from sparseeinsum.engines.engine import Column, Engine
from sparseeinsum.errors import CatalogueError, DataError, EngineError, ShapeError
from sparseeinsum.language.files import is_data_file
from sparseeinsum.language.tensors import StoredTensor, fully_promoted
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.statistics.columns import computed_type, dtype_of, is_index_type, is_pair_type, is_readable
from sparseeinsum.storage.access import check_relation_readable
from sparseeinsum.storage.dictionaries import Dictionaries, dictionaries_of, sizes_of
from sparseeinsum.storage.natural_keys import KINDS_OF_KEYS, key_type_of
from sparseeinsum.storage.table_names import file_table, folds_case, parse_table_name, table_of_relation
from sparseeinsum.storage.tensor_description import TensorDescription


def relation_as_tensor(
    engine: Engine,
    description: TensorDescription,
    relation: str,
    table: exp.Table,
    index: Sequence[str],
    value: str | None,
) -> tuple[StoredTensor, str | None]:
    """A relation as a tensor, one entry a row; its rows are looked at for bounds that are not given, and natural keys.

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
        CatalogueError: The relation cannot be read or lacks a column, or a dictionary must not be extended.
        DataError: A column has a wrong type.
        ShapeError: What the user says does not fit together.
    """
    name = description.name
    columns = _columns(engine, name, relation, table, [*index, *([value] if value else [])])
    types = {column: found.sql_type for column, found in columns.items()}
    wanted = _dictionary_names(description, relation, types, index)
    dtype = description.wanted_dtype()
    if value is not None:
        dtype = _dtype_of_column(
            f"tensor {name}: the value column {value} of {relation}", types[value], dtype, engine.dialect.casts_truth
        )
    keys = [columns[column].name for column in index]
    key_types = [key_type_of(types[column]) for column in index]
    known = Dictionaries(engine).of_columns(name, table, list(zip(keys, wanted, key_types, strict=True)))
    bounds = _bounds(engine, description, table, keys, sizes_of(known))
    if len(bounds) != len(index):
        raise ShapeError(f"tensor {name} is given shape {bounds}, but {len(index)} index columns")
    dictionaries = dictionaries_of(known)
    tensor = description.tensor(bounds, dtype or "float64", index, dictionaries=dictionaries)
    casts = value is not None and types[value] != computed_type(tensor.dtype, is_scalar=True)
    text = table.sql(engine.dialect_name)
    column = value and columns[value].name
    holds_keys = any(dictionaries)
    stored = StoredTensor(
        tensor, fully_promoted(len(bounds)), text, tuple(keys), column, casts, is_owned=False, holds_keys=holds_keys
    )
    return stored, None if value is None else types[value]


def _dictionary_names(
    description: TensorDescription, relation: str, types: Mapping[str, str], index: Sequence[str]
) -> list[str | None]:
    """For every axis the name of its dictionary; None where the column holds indices."""
    name = description.name
    for column in index:
        if key_type_of(types[column]) is None:
            raise DataError(
                f"tensor {name}: the index column {column} of {relation} has type {types[column]}; indices must be "
                f"whole numbers from 0, of a type up to BIGINT, or natural keys: {KINDS_OF_KEYS} (a view can cast them)"
            )
    axes = description.axis_names(len(index), index)
    found = description.dictionary_names(axes, [not is_index_type(types[column]) for column in index])
    by_column = dict(zip(index, found, strict=True))
    for column, dictionary in zip(index, found, strict=True):
        if by_column[column] != dictionary:
            raise ShapeError(f"tensor {name}: the column {column} is two axes; give both the same dictionary, or none")
    return found


def _bounds(
    engine: Engine, description: TensorDescription, table: exp.Table, keys: Sequence[str], sizes: Sequence[int | None]
) -> tuple[int, ...]:
    """The shape given, or the smallest that holds all indices, and all keys of dictionaries."""
    if description.shape is not None:
        return description.bounds(sizes)
    plain = [key for key, size in zip(keys, sizes, strict=True) if size is None]
    greatest = iter(greatest_indices(engine, table, plain))
    return tuple(next(greatest) if size is None else size for size in sizes)


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


def index_columns(engine: Engine, name: str, relation: str, table: exp.Table, index: Sequence[str]) -> tuple[str, ...]:
    """Columns of indices as the database names them.

    Raises:
        CatalogueError: The relation cannot be read or lacks one.
        DataError: One has a wrong type.
    """
    columns = _columns(engine, name, relation, table, index)
    for column, found in columns.items():
        if not is_index_type(found.sql_type):
            raise DataError(
                f"tensor {name}: the index column {column} of {relation} has type {found.sql_type}; indices must be "
                "whole numbers from 0, of a type up to BIGINT (for natural keys, make a tensor of the table with "
                "tensor_from_table)"
            )
    return tuple(columns[column].name for column in index)


def relation_named(engine: Engine, relation: str) -> exp.Table:
    """A file by its path, else a table or view by its whole name, so that no CTE can stand in its way.

    Raises:
        CatalogueError: There is none of that name.
        RightsError: To read it would run what other roles wrote.
    """
    if is_data_file(relation):
        if not engine.dialect.reads_files:
            raise CatalogueError(f"{engine.title} reads no files; load {relation} with db.tensor(...), or into a table")
        path = relation if "://" in relation else str(Path(relation).resolve())
        return file_table(path)
    table = parse_table_name(relation, engine.dialect_name)
    if not table.db:
        found = engine.relations_named(table.name)
        if not found:
            raise CatalogueError(f"there is no table, view or file {relation} in this database")
        table = table_of_relation(found[0], engine.dialect_name)
    check_relation_readable(engine, relation, table)
    return table


def relation_columns(engine: Engine, name: str, relation: str, table: exp.Table) -> list[Column]:
    """All columns of a relation, which the user names so.

    Raises:
        CatalogueError: It cannot be read.
    """
    try:
        return engine.columns(exp.select("*").from_(table.copy()))
    except EngineError as error:
        cause = error.__cause__
        raise CatalogueError(f"tensor {name}: {relation} cannot be read: {cause or error}") from cause


def _columns(engine: Engine, name: str, relation: str, table: exp.Table, wanted: Sequence[str]) -> dict[str, Column]:
    """Columns by the names that the user gives; these stay their names where case does not tell names apart."""
    described = relation_columns(engine, name, relation, table)
    known = {column.name.lower(): column for column in described} | {column.name: column for column in described}
    found = {}
    for column in wanted:
        match = known.get(column) or known.get(column.lower())
        if match is None:
            names = [each.name.lower() for each in described]
            near = difflib.get_close_matches(column.lower(), names, n=1)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(names)}"
            raise CatalogueError(f"tensor {name}: {relation} has no column {column}; {hint}")
        found[column] = match if folds_case(engine.dialect_name) else Column(column, match.sql_type)
    return found


def greatest_indices(engine: Engine, table: exp.Table, index: Sequence[str]) -> tuple[int, ...]:
    """One more than the greatest index of every column: the smallest shape that holds them."""
    if not index:
        return ()
    query = exp.select(*[exp.Max(this=exp.column(column)) for column in index]).from_(table)
    (row,) = engine.rows(query)
    return tuple(0 if greatest is None else max(int(str(greatest)) + 1, 0) for greatest in row)

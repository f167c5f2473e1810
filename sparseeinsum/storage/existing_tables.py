"""Storage: describes tables, views and files of users as tensors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlglot import exp

from sparseeinsum.engines.engine import Column, Engine
from sparseeinsum.errors import CatalogueError, DataError, EngineError, ShapeError
from sparseeinsum.language.program_files import is_data_file
from sparseeinsum.language.tensors import StoredTensor, fully_promoted
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.presentation.spelling import did_you_mean
from sparseeinsum.statistics.columns import computed_type, dtype_of, is_index_type, is_pair_type, is_readable
from sparseeinsum.statistics.dictionary_queries import SCHEMA
from sparseeinsum.storage.access_rights import check_relation_readable
from sparseeinsum.storage.dictionaries import Dictionaries, dictionaries_of, sizes_of
from sparseeinsum.storage.natural_keys import KINDS_OF_KEYS, key_type_of
from sparseeinsum.storage.table_names import file_table, folds_case, parse_table_name, table_of_relation
from sparseeinsum.storage.tensor_description import TensorDescription

_SCHEMAS_OF_SYSTEMS = ("information_schema", "pg_catalog", SCHEMA)


@dataclass(frozen=True, slots=True)
class UserRelation:
    """A table, view or file of a user, with its columns as the database has them.

    Attributes:
        title: The relation as the user names it, for messages.
        table: The relation.
        columns: All its columns, in their order.
    """

    title: str
    table: exp.Table
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class RelationTensor:
    """A tensor that a relation of a user holds, one entry per row.

    Attributes:
        stored: The tensor.
        column_types: The SQL types of its key columns, then that of its column of values if it has one.
    """

    stored: StoredTensor
    column_types: tuple[str, ...]


def relation_as_tensor(
    engine: Engine, description: TensorDescription, relation: UserRelation, index: Sequence[str], value: str | None
) -> RelationTensor:
    """Describe a relation with one entry per row as a tensor; bounds and natural keys may be read from its rows.

    Args:
        engine: The engine of the relation.
        description: What the user says of the tensor.
        relation: The relation.
        index: The columns of indices, in the order of the axes.
        value: The column of values; None if every row has the value 1.

    Raises:
        CatalogueError: The relation lacks a column, or a dictionary must not be extended.
        DataError: A column has a wrong type.
        ShapeError: The user's shape, axes and dictionaries do not fit together.
    """
    name, table = description.name, relation.table
    columns = _columns(engine, name, relation, [*index, *([value] if value else [])])
    types = {column: match.sql_type for column, match in columns.items()}
    dictionary_names = _dictionary_names(description, relation.title, types, index)
    dtype = description.checked_dtype()
    if value is not None:
        column = f"tensor {name}: the value column {value} of {relation.title}"
        dtype = _dtype_of_column(column, types[value], dtype, engine.dialect.casts_truth)
    keys = [columns[column].name for column in index]
    key_types = [key_type_of(types[column]) for column in index]
    key_columns = list(zip(keys, dictionary_names, key_types, strict=True))
    stored_dictionaries = Dictionaries(engine).for_columns(name, table, key_columns)
    bounds = _bounds(engine, description, table, keys, sizes_of(stored_dictionaries))
    if len(bounds) != len(index):
        raise ShapeError(f"tensor {name} is given shape {bounds}, but {len(index)} index columns")
    dictionaries = dictionaries_of(stored_dictionaries)
    tensor = description.tensor(bounds, dtype or "float64", index, dictionaries=dictionaries)
    casts = value is not None and types[value] != computed_type(tensor.dtype, is_scalar=True)
    text = table.sql(engine.dialect_name)
    value_column = value and columns[value].name
    holds_keys = any(dictionaries)
    layout = fully_promoted(len(bounds))
    stored = StoredTensor(tensor, layout, text, tuple(keys), value_column, casts, is_owned=False, holds_keys=holds_keys)
    return RelationTensor(stored, tuple(types[column] for column in (*index, value) if column is not None))


def _dictionary_names(
    description: TensorDescription, relation: str, types: Mapping[str, str], index: Sequence[str]
) -> list[str | None]:
    """Return the names of the axes' dictionaries; None for an axis whose column holds indices."""
    name = description.name
    for column in index:
        if key_type_of(types[column]) is None:
            raise DataError(
                f"tensor {name}: the index column {column} of {relation} has type {types[column]}; indices must be "
                f"whole numbers from 0, of a type up to BIGINT, or natural keys: {KINDS_OF_KEYS} (a view can cast them)"
            )
    axes = description.axis_names(len(index), index)
    names = description.dictionary_names(axes, [not is_index_type(types[column]) for column in index])
    by_column = dict(zip(index, names, strict=True))
    for column, dictionary in zip(index, names, strict=True):
        if by_column[column] != dictionary:
            raise ShapeError(f"tensor {name}: the column {column} is two axes; give both the same dictionary, or none")
    return names


def _bounds(
    engine: Engine, description: TensorDescription, table: exp.Table, keys: Sequence[str], sizes: Sequence[int | None]
) -> tuple[int, ...]:
    """Return the shape of the description, or the smallest one for all indices and all keys of dictionaries.

    Args:
        engine: The engine of the relation.
        description: What the user says of the tensor.
        table: The relation.
        keys: Its columns of indices or keys.
        sizes: The sizes of their dictionaries; None for a column of indices.
    """
    if description.shape is not None:
        return description.bounds(sizes)
    plain = [key for key, size in zip(keys, sizes, strict=True) if size is None]
    greatest = iter(greatest_indices(engine, table, plain))
    return tuple(next(greatest) if size is None else size for size in sizes)


def _dtype_of_column(column: str, sql_type: str, requested: str | None, casts_truth: bool) -> str:
    """Return the dtype that a column of values is read as: the requested one, else that of its SQL type.

    Args:
        column: What messages call the column.
        sql_type: The type of the column.
        requested: The dtype that the user gives, if any.
        casts_truth: Whether the database casts BOOLEAN to numbers.

    Raises:
        DataError: The column cannot be read as that dtype.
    """
    dtype = requested or dtype_of(sql_type)
    if sql_type == "BOOLEAN" and dtype != "bool" and not casts_truth:
        raise DataError(
            f"{column} has type BOOLEAN, of which there are no numbers; read it as bool, or cast it in a view"
        )
    if dtype is not None and is_readable(sql_type, dtype):
        return dtype
    if requested is not None and is_complex(requested):
        requirement = (
            f"values of dtype {requested} must be arrays [real, imaginary] of DOUBLE or FLOAT (a view can make them)"
        )
    elif is_pair_type(sql_type):
        requirement = "values must be numbers; if they are [real, imaginary], pass dtype='complex128'"
    else:
        requirement = "values must be numbers (a view can cast them)"
    raise DataError(f"{column} has type {sql_type}; {requirement}")


def index_columns(engine: Engine, name: str, relation: UserRelation, index: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of indices as the database spells them.

    Args:
        engine: The engine of the relation.
        name: The name of the tensor, for messages.
        relation: The relation.
        index: The columns as the user spells them.

    Raises:
        CatalogueError: The relation lacks a column.
        DataError: A column has a wrong type.
    """
    columns = _columns(engine, name, relation, index)
    for column, match in columns.items():
        if not is_index_type(match.sql_type):
            raise DataError(
                f"tensor {name}: the index column {column} of {relation.title} has type {match.sql_type}; indices "
                "must be whole numbers from 0, of a type up to BIGINT (for natural keys, make a tensor of the table "
                "with tensor_from_table)"
            )
    return tuple(columns[column].name for column in index)


def relation_named(engine: Engine, relation: str) -> exp.Table:
    """Return the file, table or view that a user names; a table is qualified, so that no CTE can hide it.

    Raises:
        CatalogueError: There is none of that name.
        RightsError: To read it would run code of other roles.
    """
    if is_data_file(relation):
        if not engine.dialect.reads_files:
            raise CatalogueError(f"{engine.title} reads no files; load {relation} with db.tensor(...), or into a table")
        path = relation if "://" in relation else str(Path(relation).resolve())
        return file_table(path)
    table = parse_table_name(relation, engine.dialect_name)
    if not table.db:
        relations = engine.relations_named(table.name)
        if not relations:
            hint = did_you_mean(relation, _tables_of_users(engine))
            raise CatalogueError(f"there is no table, view or file {relation} in this database; {hint}")
        table = table_of_relation(relations[0], engine.dialect_name)
    check_relation_readable(engine, relation, table)
    return table


def _tables_of_users(engine: Engine) -> list[str]:
    """Return the names of the tables and views that are not those of the database itself or of the catalogue."""
    condition = exp.column("table_schema").isin(*map(exp.Literal.string, _SCHEMAS_OF_SYSTEMS)).not_()
    query = exp.select("table_name").from_("information_schema.tables").where(condition).order_by("table_name")
    return [str(name) for (name,) in engine.rows(query)]


def read_relation(engine: Engine, name: str, title: str, table: exp.Table) -> UserRelation:
    """Return a relation with its columns.

    Args:
        engine: The engine of the relation.
        name: The name of the tensor, for messages.
        title: The relation as the user names it, for messages.
        table: The relation.

    Raises:
        CatalogueError: It cannot be read.
    """
    try:
        return UserRelation(title, table, tuple(engine.columns(exp.select("*").from_(table.copy()))))
    except EngineError as error:
        cause = error.__cause__
        raise CatalogueError(f"tensor {name}: {title} cannot be read: {cause or error}") from cause


def _columns(engine: Engine, name: str, relation: UserRelation, requests: Sequence[str]) -> dict[str, Column]:
    """Return columns by the names that the user gives, and keep these spellings if case does not matter in names.

    Args:
        engine: The engine of the relation.
        name: The name of the tensor, for messages.
        relation: The relation.
        requests: The names that the user gives.
    """
    columns_by_name = {column.name.lower(): column for column in relation.columns} | {
        column.name: column for column in relation.columns
    }
    columns = {}
    for requested in requests:
        match = columns_by_name.get(requested) or columns_by_name.get(requested.lower())
        if match is None:
            hint = did_you_mean(requested, [column.name for column in relation.columns], otherwise="it has")
            raise CatalogueError(f"tensor {name}: {relation.title} has no column {requested}; {hint}")
        columns[requested] = match if folds_case(engine.dialect_name) else Column(requested, match.sql_type)
    return columns


def greatest_indices(engine: Engine, table: exp.Table, index: Sequence[str]) -> tuple[int, ...]:
    """Return one more than the greatest index of every column, which is the smallest shape for them."""
    if not index:
        return ()
    query = exp.select(*[exp.Max(this=exp.column(column)) for column in index]).from_(table)
    (row,) = engine.rows(query)
    return tuple(0 if greatest is None else max(int(str(greatest)) + 1, 0) for greatest in row)

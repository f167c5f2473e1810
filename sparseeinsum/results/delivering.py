"""Results: runs the statement that returns an output, and puts its rows into a table or a file."""

import itertools
from collections.abc import Iterable, Sequence

import pyarrow as pa
from sqlglot import exp

from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.engines.engine import Column, Engine
from sparseeinsum.engines.temporary_names import temporary_name
from sparseeinsum.errors import DataError
from sparseeinsum.language.tensors import VALUE_COLUMN, key_dictionaries
from sparseeinsum.render.sql_statement import SqlStatement
from sparseeinsum.results.output_targets import OutputTarget, ParquetFile, Table
from sparseeinsum.results.parquet_files import write_parquet
from sparseeinsum.results.results import entries_in_batches
from sparseeinsum.statistics.columns import index_type, is_index_type
from sparseeinsum.storage.dictionaries import Dictionaries
from sparseeinsum.storage.table_comments import describe_table, extend_description
from sparseeinsum.storage.table_names import parse_table_name, qualified_table
from sparseeinsum.storage.tensor_metadata import metadata_of

_ADDED = temporary_name("added")


def natural_keys(engine: Engine, schemas: Iterable[Schema]) -> dict[str, pa.Array]:
    """The natural keys of the dictionaries of results, by the name of the dictionary, in the open transaction."""
    axes = dict.fromkeys(axis for schema in schemas for axis in schema.tensor.axes)
    dictionaries = Dictionaries(engine)
    return {axis.dictionary.name: dictionaries.keys(axis.dictionary) for axis in axes if axis.dictionary}


def deliver(engine: Engine, statement: SqlStatement, keyed: SqlStatement, schema: Schema, target: OutputTarget) -> int:
    """Put the rows of an output into a table or a file, in the open transaction; return the number of rows.

    Args:
        engine: The database.
        statement: The statement that returns the output with indices.
        keyed: The statement that returns it with natural keys where axes have them.
        schema: The columns of these rows.
        target: The table or file.

    Raises:
        DataError: The rows do not fit the table to which they are added.
        EngineError: The database refused a statement.
    """
    if isinstance(target, ParquetFile):
        return _write_file(engine, statement, keyed, schema, target)
    table = qualified_table(parse_table_name(target.name, engine.dialect_name), engine)
    columns = engine.columns_of(table) if target.mode == "append" else None
    if columns is None:
        key = () if schema.has_dictionaries else schema.keys  # an index of long keys could not be built
        # On a cluster, distribution columns are of one type, so that tables are colocated.
        queries = [keyed.query, *keyed.passes]
        if not engine.dialect.distributes:
            queries = [_with_index_types(query, schema) for query in queries]
        count = engine.replace_table(table, queries[0], key, keyed.distribution, passes=queries[1:])
        if not schema.has_dictionaries:
            describe_table(engine, table, schema)
        return count
    _check_columns(target, columns, schema, engine.columns(keyed.query))
    count = _append(engine, table, target, keyed.query, schema.keys)
    extend_description(engine, table, schema)
    return count


def _write_file(
    engine: Engine, statement: SqlStatement, keyed: SqlStatement, schema: Schema, target: ParquetFile
) -> int:
    """Write entries to a Parquet file: by the database if it can write files and its rows are entries."""
    if not (schema.is_scalar and engine.dialect.writes_files):
        tables = entries_in_batches(engine, statement, schema, natural_keys(engine, [schema]))
        first = next(tables)
        return write_parquet(target.written, first.schema, itertools.chain([first], tables))
    metadata = exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.to_identifier(name), expression=exp.Literal.string(text))
            for name, text in metadata_of(schema.tensor).items()
        ]
    )
    parameters = [
        exp.CopyParameter(this=exp.var("FORMAT"), expression=exp.var("PARQUET")),
        exp.CopyParameter(this=exp.var("KV_METADATA"), expression=metadata),
        # Rows have no order of their own; to keep one takes several times the memory.
        exp.CopyParameter(this=exp.var("PRESERVE_ORDER"), expression=exp.false()),
    ]
    path = exp.Literal.string(str(target.written))
    copy = exp.Copy(this=_with_index_types(keyed.query, schema).subquery(), kind=False, files=[path], params=parameters)
    ((count,),) = engine.rows(copy)
    return int(str(count))


def _with_index_types(query: exp.Select, schema: Schema) -> exp.Select:
    """A query of rows whose indices have the types that those of these axes have; kernels may return others."""
    tensor, decomposition = schema.tensor, schema.decomposition
    columns: list[exp.Expr] = []
    for position, dictionary in zip(decomposition.promoted, key_dictionaries(tensor, decomposition), strict=True):
        axis = tensor.axes[position]
        column = exp.column(exp.to_identifier(axis.name, quoted=True), table="rows")
        index = exp.cast(column, index_type(axis.bound))
        columns.append(exp.alias_(index, axis.name, quoted=True) if dictionary is None else column)
    value = exp.column(exp.to_identifier(VALUE_COLUMN, quoted=True), table="rows")
    return exp.select(*columns, value).from_(query.subquery("rows"))


def _check_columns(target: Table, present: Sequence[Column], schema: Schema, added: Sequence[Column]) -> None:
    """Refuse a table whose columns, `present`, differ from the `added` ones; integer types of indices may differ."""
    name = schema.tensor.name
    known_types = {column.name.lower(): column.sql_type for column in present}
    added_types = {column.name.lower(): column.sql_type for column in added}
    if known_types.keys() != added_types.keys():
        raise DataError(
            f"{name} cannot be added to {target}: it has the columns {', '.join(added_types)}, and the table has "
            f"{', '.join(known_types)}; name the labels of {name} as the columns, or choose another table"
        )
    keys = set(list(added_types)[: len(schema.keys)])
    for column, sql_type in added_types.items():
        is_wide = column in keys and is_index_type(known_types[column]) and is_index_type(sql_type)
        if known_types[column] != sql_type and not is_wide:
            raise DataError(
                f"{name} cannot be added to {target}: its column {column} has type {sql_type}, and that of the table "
                f"{known_types[column]}; change one of them"
            )


def _append(engine: Engine, table: exp.Table, target: Table, query: exp.Select, keys: Sequence[str]) -> int:
    """Add the rows of `query` to a table; they are computed first, since `query` may read the table itself."""
    added = exp.table_(_ADDED, db=engine.dialect.temporary_schema)
    count = engine.create_temporary(added, query)
    columns = [column.name for column in engine.columns(exp.select("*").from_(added.copy()))]
    _check_new_keys(engine, table, target, added, columns[: len(keys)])
    select = exp.select(*_quoted(columns)).from_(added.copy())
    engine.execute(exp.insert(select, table.copy(), columns=_quoted(columns)))
    engine.execute(exp.Drop(tables=[added.copy()], kind="TABLE"))
    return count


def _check_new_keys(engine: Engine, table: exp.Table, target: Table, added: exp.Table, keys: Sequence[str]) -> None:
    """Refuse rows in `added` whose keys a row of `table` has."""
    names = _quoted(keys)
    shown = [exp.column(name.copy(), table="added") for name in names]
    pairs = [exp.column(name.copy(), table="there").eq(exp.column(name.copy(), table="added")) for name in names]
    existing_rows = exp.alias_(table.copy(), "there", table=True)
    join = exp.and_(*pairs) if pairs else exp.true()
    number = exp.Literal.number(1)
    query = exp.select(*(shown if shown else [number])).from_(exp.alias_(added.copy(), "added", table=True))
    query = query.join(existing_rows, on=join).limit(1)
    query = query.order_by(*shown) if shown else query
    for row in engine.rows(query):
        at = ", ".join(f"{key} {index}" for key, index in zip(keys, row, strict=False)) or "its single entry"
        raise DataError(
            f"{target} has a row at {at} already, which the rows to add have, too; delete such rows first, or replace "
            "the table"
        )


def _quoted(names: Sequence[str]) -> list[exp.Identifier]:
    return [exp.to_identifier(name, quoted=True) for name in names]

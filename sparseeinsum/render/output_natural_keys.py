"""Render: the statement of an output, with natural keys in place of indices."""

from dataclasses import replace

from sqlglot import exp

from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.language.tensors import VALUE_COLUMN, key_dictionaries
from sparseeinsum.render.sql_statement import SqlStatement
from sparseeinsum.statistics.dictionary_queries import rows_with_keys


def with_natural_keys(statement: SqlStatement, schema: Schema) -> SqlStatement:
    """The statement with natural keys in the key columns of axes that have a dictionary, and other columns unchanged.

    Args:
        statement: The statement that returns an output.
        schema: The schema of what it returns.
    """
    if not schema.has_dictionaries:
        return statement
    query, *passes = (_keyed(query, statement.name, schema) for query in (statement.query, *statement.passes))
    return replace(statement, query=query, passes=tuple(passes))


def _keyed(by_index: exp.Select, tensor: str, schema: Schema) -> exp.Select:
    dictionaries = key_dictionaries(schema.tensor, schema.decomposition)
    query = by_index.copy()
    with_ = query.args.get("with_")
    query.set("with_", None)
    comments, query.comments = query.comments, None
    table_names = {table.name.lower() for table in by_index.find_all(exp.Table)}
    name = f"{tensor}_by_index"
    while name.lower() in table_names:
        name += "_"
    rows = exp.alias_(exp.table_(exp.to_identifier(name)), "t", table=True)
    select = rows_with_keys(rows, list(zip(schema.keys, dictionaries, strict=True)), [VALUE_COLUMN])
    select.set("with_", with_)
    select = select.with_(exp.TableAlias(this=exp.to_identifier(name)), as_=query)
    select.comments = comments
    return select

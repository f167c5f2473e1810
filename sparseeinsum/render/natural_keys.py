"""Render: the statement of an output in, the same with natural keys in place of indices out."""

from dataclasses import replace

from sqlglot import exp

from sparseeinsum.algebra.operators import Schema
from sparseeinsum.language.tensors import VALUE_COLUMN, key_dictionaries
from sparseeinsum.render.statements import Statement
from sparseeinsum.statistics.dictionaries import with_keys


def with_natural_keys(statement: Statement, schema: Schema) -> Statement:
    """The statement with the keys of dictionaries in the key columns of axes that have one; others stay as they are.

    Args:
        statement: The SELECT of an output.
        schema: Of what it returns.
    """
    dictionaries = key_dictionaries(schema.tensor, schema.decomposition)
    if not schema.has_dictionaries:
        return statement
    query = statement.query.copy()
    with_ = query.args.get("with_")
    query.set("with_", None)
    comments, query.comments = query.comments, None
    known = {table.name.lower() for table in statement.query.find_all(exp.Table)}
    name = f"{statement.name}_by_index"
    while name.lower() in known:
        name += "_"
    rows = exp.alias_(exp.table_(exp.to_identifier(name)), "t", table=True)
    select = with_keys(rows, list(zip(schema.keys, dictionaries, strict=True)), [VALUE_COLUMN])
    select.set("with_", with_)
    select = select.with_(exp.TableAlias(this=exp.to_identifier(name)), as_=query)
    select.comments = comments
    return replace(statement, query=select)

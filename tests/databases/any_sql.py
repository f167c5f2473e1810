"""Statements of tests for any engine: DuckDB's SQL, in PostgreSQL's words where that runs it."""

from collections.abc import Iterator, Sequence

import sqlglot
from reading import engine_of
from sqlglot import exp

import sparseeinsum as se

_NEW = "new_table"


def run_sql(db: se.Database, text: str, parameters: Sequence[object] = ()) -> list[tuple[object, ...]]:
    """Run statements with the same parameters; return the rows of the last statement."""
    if engine_of(db).dialect_name == "duckdb":
        rows: list[tuple[object, ...]] = db.connection.execute(text, parameters).fetchall()
        return rows
    for tree in sqlglot.parse(text, read="duckdb"):
        assert tree is not None
        for statement in _in_postgres(tree):
            cursor = db.connection.execute(statement, parameters or None)
    return list(cursor.fetchall()) if cursor.description else []


def _in_postgres(tree: exp.Expr) -> Iterator[str]:
    if isinstance(tree, exp.Use):
        yield f"SET search_path = {tree.this.name}, public"
    elif isinstance(tree, exp.Create) and tree.args.get("replace") and tree.kind == "TABLE":
        named = tree.this if isinstance(tree.this, exp.Table) else tree.this.this
        name = named.sql("postgres")
        named.set("this", exp.to_identifier(_NEW))
        tree.set("replace", None)
        yield _written(tree)
        yield f"DROP TABLE IF EXISTS {name}"
        yield f"ALTER TABLE {_NEW} RENAME TO {name}"
    else:
        yield _written(tree)


def _written(tree: exp.Expr) -> str:
    text = tree.transform(_in_words_of_postgres).sql("postgres")
    return text.replace("?", "%s") if tree.find(exp.Placeholder) else text


def _in_words_of_postgres(node: exp.Expr) -> exp.Expr:
    """The node with PostgreSQL's words for types and functions of DuckDB."""
    if isinstance(node, exp.DataType) and node.this in _WHOLE:
        return exp.DataType.build(_WHOLE[node.this], dialect="postgres")
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Anonymous) and node.this.name.lower() == "range":
        (bound,) = node.this.expressions
        numbers = [exp.Literal.number(0), exp.Sub(this=bound, expression=exp.Literal.number(1))]
        node.set("this", exp.Anonymous(this="generate_series", expressions=numbers))
    return node


_WHOLE = {
    exp.DType.TINYINT: "smallint",
    exp.DType.UTINYINT: "smallint",
    exp.DType.USMALLINT: "integer",
    exp.DType.UINT: "bigint",
    exp.DType.UBIGINT: "numeric(20, 0)",
    exp.DType.INT128: "numeric(39, 0)",
    exp.DType.UINT128: "numeric(39, 0)",
}

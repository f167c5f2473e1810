"""Reading back what a database holds: a tensor as a dense array, and everything there is."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

import sparseeinsum as se
from sparseeinsum.algebra.relational.evaluate import RelationTuples
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.engines.engine import Engine
from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.statistics.columns import value_of
from sparseeinsum.statistics.tensor_rows import relation_of


def read_back(db: se.Database, name: str) -> NDArray[Any]:
    """A stored tensor as a dense array, by a program that copies it."""
    labels = ", ".join(f"l{position}" for position in range(len(db.tensors()[name].tensor.axes)))
    return db.run(f"Copy[{labels}] = {name}[{labels}]")["Copy"].to_numpy()


def engine_of(db: se.Database) -> Engine:
    """The engine that runs a database's statements."""
    return db._engine


def stored_result(db: se.Database, name: str) -> se.TensorResult:
    """A stored tensor as a result of a program: its rows, with values in the dtype of computation."""
    stored, engine = db.tensors()[name], engine_of(db)
    schema = Schema(stored.tensor, stored.decomposition)
    keys = [exp.column(key, quoted=True).as_(axis) for key, axis in zip(stored.keys, schema.keys, strict=True)]
    select = exp.select(*keys, value_of(stored).as_(VALUE_COLUMN)).from_(relation_of(stored, engine.dialect_name))
    return se.TensorResult(schema, engine.arrow(select))


def column_types(db: se.Database, table: str) -> dict[str, str]:
    """The columns of a table, with their types."""
    return {column.name: column.sql_type for column in engine_of(db).columns(f"SELECT * FROM {table}")}


_OF_POSTGRESQL = (
    "SELECT table_schema, table_name FROM information_schema.tables "
    "WHERE table_schema NOT IN ('pg_catalog', 'information_schema') "
    "AND (table_schema, table_name) <> ('sparseeinsum', 'changes')"
)
_RELATIONS = {
    "duckdb": "SELECT database_name, schema_name, table_name FROM duckdb_tables() WHERE NOT internal "
    "AND NOT starts_with(table_name, 'changes_') UNION ALL "
    "SELECT database_name, schema_name, view_name FROM duckdb_views() WHERE NOT internal",
    "postgresql": _OF_POSTGRESQL,
    "citus": _OF_POSTGRESQL,
}


def contents(db: se.Database) -> dict[str, list[tuple[object, ...]]]:
    """The rows of every table and view, temporary ones and the catalogue included, the log of changes not; sorted."""
    names = db.connection.execute(_RELATIONS[engine_of(db).dialect_name]).fetchall()
    quoted = [".".join('"' + part.replace('"', '""') + '"' for part in name) for name in names]
    return {name: sorted(db.connection.execute(f"SELECT * FROM {name}").fetchall(), key=repr) for name in quoted}


def assert_usable(db: se.Database) -> None:
    """Assert that the connection is in no transaction and runs a statement."""
    db.connection.execute("BEGIN")
    db.connection.execute("ROLLBACK")
    db.tensor("Probe", np.eye(2))
    np.testing.assert_array_equal(read_back(db, "Probe"), np.eye(2))


def rows_of(result: se.TensorResult) -> list[tuple[Any, ...]]:
    """The rows of a result that are not the fill, sorted."""
    frame = result.df()
    return sorted(frame[frame.val != result.fill].itertuples(index=False, name=None))


def relation_in(result: se.TensorResult, arity: int) -> RelationTuples:
    """The tuples of a result."""
    rows = result.rows.to_pydict()
    columns = [rows[f"k{at}"] for at in range(arity)]
    shape = result.shape[arity:]
    keys = list(zip(*columns, strict=True)) if columns else [()] * len(rows["val"])
    return {key: np.asarray(value, float).reshape(shape) for key, value in zip(keys, rows["val"], strict=True)}

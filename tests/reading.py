"""Reading back what a database holds: a tensor as a dense array, and everything there is."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

import sparseeinsum as se
from sparseeinsum.algebra.operators import Schema
from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.statistics.columns import relation_of, value_of


def read_back(db: se.Database, name: str) -> NDArray[Any]:
    """A stored tensor as a dense array, by a program that copies it."""
    labels = ", ".join(f"l{position}" for position in range(len(db.tensors()[name].tensor.axes)))
    return db.run(f"Copy[{labels}] = {name}[{labels}]")["Copy"].to_numpy()


def stored_result(db: se.Database, name: str) -> se.TensorResult:
    """A stored tensor as if a program had returned it: its rows, with values as they are computed with."""
    stored = db.tensors()[name]
    schema = Schema(stored.tensor, stored.decomposition)
    keys = [exp.column(key, quoted=True).as_(axis) for key, axis in zip(stored.keys, schema.keys, strict=True)]
    select = exp.select(*keys, value_of(stored).as_(VALUE_COLUMN)).from_(relation_of(stored, "duckdb"))
    return se.TensorResult(schema, db.connection.sql(select.sql("duckdb")).to_arrow_table())


def contents(db: se.Database) -> dict[str, list[tuple[object, ...]]]:
    """The rows of every table and view, temporary ones and the catalogue included, sorted."""
    names = db.connection.execute(
        "SELECT database_name, schema_name, table_name FROM duckdb_tables() WHERE NOT internal UNION ALL "
        "SELECT database_name, schema_name, view_name FROM duckdb_views() WHERE NOT internal"
    ).fetchall()
    quoted = [".".join('"' + part.replace('"', '""') + '"' for part in name) for name in names]
    return {name: sorted(db.connection.execute(f"FROM {name}").fetchall(), key=repr) for name in quoted}


def assert_usable(db: se.Database) -> None:
    """The connection is in no transaction, and takes new work."""
    db.connection.execute("BEGIN")
    db.connection.execute("ROLLBACK")
    db.tensor("Probe", np.eye(2))
    np.testing.assert_array_equal(read_back(db, "Probe"), np.eye(2))

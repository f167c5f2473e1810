"""Reading back what a database holds: a tensor as a dense array, and everything there is."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import sparseeinsum as se


def read_back(db: se.Database, name: str) -> NDArray[Any]:
    """A stored tensor as a dense array, by a program that copies it."""
    labels = ", ".join(f"l{position}" for position in range(len(db.tensors()[name].tensor.axes)))
    return db.run(f"Copy[{labels}] = {name}[{labels}]")["Copy"].to_numpy()


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

"""Dropping a tensor removes its own tables and keeps the user's."""

import numpy as np
import pytest
from any_sql import run_sql
from edge_tables import MATRIX, refer
from reading import assert_usable, contents, read_back

import sparseeinsum as se

pytestmark = pytest.mark.engines("duckdb", "postgresql")


def test_table_of_a_loaded_tensor_is_dropped(edges: se.Database) -> None:
    refer(edges, "edges")
    before = contents(edges)
    edges.tensor("B", np.eye(3))
    dropped = edges.drop_tensor("B")
    assert dropped.is_owned
    assert contents(edges) == before
    assert list(edges.tensors()) == ["A"]
    with pytest.raises(se.CatalogueError, match="there is no tensor B in this database; known are A"):
        edges.drop_tensor("B")
    edges.tensor("B", np.eye(2))
    np.testing.assert_array_equal(read_back(edges, "B"), np.eye(2))


def test_table_of_the_user_stays(edges: se.Database) -> None:
    refer(edges, "edges")
    assert not edges.drop_tensor("A").is_owned
    assert edges.tensors() == {}
    refer(edges, "edges")
    np.testing.assert_array_equal(read_back(edges, "A"), MATRIX)


def test_tensor_whose_table_was_dropped(db: se.Database) -> None:
    db.tensor("A", np.eye(3))
    run_sql(db, 'DROP TABLE "a"' if "psycopg" in type(db.connection).__module__ else "DROP TABLE A")
    db.drop_tensor("A")
    assert db.tensors() == {}


@pytest.mark.engines("postgresql", reason="DuckDB drops tables that views read")
def test_table_that_a_view_reads_stays(db: se.Database) -> None:
    db.tensor("A", np.eye(3))
    run_sql(db, "CREATE VIEW reader AS SELECT * FROM a")
    before = contents(db)
    with pytest.raises(se.EngineError, match="reader depends on table"):
        db.drop_tensor("A")
    assert contents(db) == before
    assert_usable(db)

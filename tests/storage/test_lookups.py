"""A program's tensors are looked up once: their columns in a planning, the catalogue while nothing has changed."""

from collections.abc import Callable

import numpy as np
import pytest

import sparseeinsum as se
from sparseeinsum.storage.catalogue_tables import TABLE

PRODUCT = "Y[i] = sum(A[i, j] * X[j])"


@pytest.fixture
def looked_up(db: se.Database, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The queries whose columns are looked up, and those that return rows, from now on."""
    texts: list[str] = []
    engine = type(db._engine)

    def observe(name: str) -> Callable[..., object]:
        original = getattr(engine, name)

        def observed(self: object, statement: object) -> object:
            texts.append(f"{name}: {statement}")
            return original(self, statement)

        return observed

    for name in ("columns", "rows"):
        monkeypatch.setattr(engine, name, observe(name))
    return texts


def table(db: se.Database) -> None:
    """A user's table A with the identity, and a tensor X."""
    db.connection.execute(
        "CREATE TABLE a AS SELECT i, i AS j, 1.0::DOUBLE PRECISION AS val FROM (VALUES (0), (1)) AS t(i)"
    )
    db.tensor("X", np.array([1.0, 2.0]))


@pytest.mark.engines("duckdb", "postgresql")
def test_the_columns_of_a_users_table_are_looked_up_once(db: se.Database, looked_up: list[str]) -> None:
    table(db)
    looked_up.clear()
    for text in (
        "Y[i] = sum(a[i, j] * X[j])",
        'tensor B[r, c] from "a" index i, j value val\nY[r] = sum(B[r, c] * X[c])',
    ):
        db.plan(text)
        of_table = [text for text in looked_up if text.startswith("columns") and ".a" in text.replace('"', "")]
        assert len(of_table) == 1
        looked_up.clear()
    np.testing.assert_array_equal(db.run("Y[i] = sum(a[i, j] * X[j])")["Y"].to_numpy(), [1, 2])


def test_a_column_that_has_another_type_than_at_first_is_noticed(db: se.Database) -> None:
    table(db)
    plan = db.plan("Y[i] = sum(a[i, j] * X[j])")
    db.connection.execute("ALTER TABLE a ALTER val TYPE VARCHAR")
    with pytest.raises(se.CatalogueError, match="val VARCHAR"):
        db.run(plan)


@pytest.mark.engines("duckdb", reason="the literal of an array is DuckDB's")
def test_runs_of_a_text_read_the_catalogue_again_only_after_a_change(db: se.Database, looked_up: list[str]) -> None:
    db.tensor("A", np.eye(2))
    db.tensor("X", np.array([1.0, 2.0]))
    db.run(PRODUCT)
    looked_up.clear()
    np.testing.assert_array_equal(db.run(PRODUCT)["Y"].to_numpy(), [1, 2])
    assert not any(TABLE in text for text in looked_up)
    db.tensor("X", np.array([3.0, 4.0]))
    np.testing.assert_array_equal(db.run(PRODUCT)["Y"].to_numpy(), [3, 4])
    db.connection.execute("UPDATE X SET val = [5.0, 6.0]")
    np.testing.assert_array_equal(db.run(PRODUCT)["Y"].to_numpy(), [5, 6])
    db.run(PRODUCT, into={"Y": "y"})
    np.testing.assert_array_equal(db.run("Z[i] = 2 * y[i]")["Z"].to_numpy(), [10, 12])


def test_a_tensor_that_is_loaded_again_is_recorded_by_few_statements(db: se.Database, looked_up: list[str]) -> None:
    db.tensor("X", np.array([1.0, 2.0]))
    looked_up.clear()
    db.tensor("X", np.array([3.0, 4.0]))
    assert sum("owner" in text and "WHERE" in text for text in looked_up) == 1  # whether another role has it
    np.testing.assert_array_equal(db.run("Y[i] = X[i]")["Y"].to_numpy(), [3, 4])
    db.tensor("X", np.array([[5.0]]))
    assert db.tensors()["X"].tensor.shape == (1, 1)

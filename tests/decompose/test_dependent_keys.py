"""Groups that a functional dependency makes single are not formed, until the dependency ends."""

from typing import Any

import numpy as np
import pytest
from any_sql import run_sql
from numpy.typing import NDArray

import sparseeinsum as se

pytestmark = pytest.mark.engines("duckdb", "postgresql")

ROWS, COLUMNS, WIDTH = 12, 5, 6
random = np.random.default_rng(0)
D = np.zeros((ROWS, COLUMNS))  # every row has one entry, columns 0 to 3 have three each
D[np.arange(ROWS), np.arange(ROWS) % 4] = np.arange(1, ROWS + 1)
A = random.normal(size=(COLUMNS, WIDTH)) * (random.random((COLUMNS, WIDTH)) < 0.5)
B = random.normal(size=(ROWS, WIDTH)) * (random.random((ROWS, WIDTH)) < 0.5)
E = np.diag([2.0, 0.0, 3.0, -1.0, 0.5])
PRODUCT = "Y[i, k] = sum(D[i, j] * A[j, k])"


@pytest.fixture
def matrices(db: se.Database) -> se.Database:
    """A database that has all matrices as tables of entries."""
    for name, matrix in {"D": D, "A": A, "B": B, "E": E}.items():
        db.tensor(name, matrix, promoted=["dim_0", "dim_1"])
    return db


def relational(db: se.Database, program: str) -> se.Plan:
    return db.plan(program, optimizer="relational", rewrite=False)


CASES: dict[str, tuple[NDArray[Any], bool]] = {
    PRODUCT: (D @ A, False),
    "Y[i] = sum(D[i, j] * E[j, l])": ((D @ E).sum(axis=1), False),
    "Y[i] = sum(D[i, j])": (D.sum(axis=1), False),
    "Y[i, k] = max(D[i, j] * A[j, k])": ((D[:, :, None] * A).max(axis=1), True),  # absent pairs count
    "Y[i, k] = any(D[i, j] > 4 and A[j, k] < 0)": (np.any((D[:, :, None] > 4) & (A < 0), axis=1), False),
    "Y[i, j] = all(D[i, j] * A[j, k])": (np.zeros((ROWS, COLUMNS)), True),
    "Y[j, k] = sum(D[i, j] * B[i, k])": (D.T @ B, True),
    "Y[k] = sum(D[i, j] * A[j, k])": ((D @ A).sum(axis=0), True),
    "Y[j] = sum(D[i, j])": (D.sum(axis=0), True),
}


@pytest.mark.parametrize("program", CASES)
def test_groups_are_formed_only_without_a_functional_dependency(matrices: se.Database, program: str) -> None:
    expected, has_groups = CASES[program]
    plan = relational(matrices, program)
    np.testing.assert_allclose(matrices.run(plan)["Y"].to_numpy(), expected, atol=1e-12)
    texts = [text for statement in plan.data.statements.for_run for text in statement.texts]
    assert any("GROUP BY" in text for text in texts) == has_groups


def test_the_sql_of_a_plan_forms_all_groups(matrices: se.Database) -> None:
    plan = relational(matrices, PRODUCT)
    assert "GROUP BY" in plan.sql()
    assert "GROUP BY" in plan.sql("staged")


def test_a_plan_forms_groups_once_the_dependency_ends(matrices: se.Database) -> None:
    plan = relational(matrices, PRODUCT)
    table = matrices.tensors()["D"].relation
    changed = D.copy()
    for row, column, value in [(1, 0, 10.0), (2, 1, 0.0)]:  # the second one is an explicit fill
        changed[row, column] = value
        run_sql(matrices, f"INSERT INTO {table} VALUES ({row}, {column}, {value})")
        np.testing.assert_allclose(matrices.run(plan)["Y"].to_numpy(), changed @ A, atol=1e-12)
    run_sql(matrices, f"DELETE FROM {table} WHERE val = 0 OR (dim_0 = 1 AND dim_1 = 0)")
    np.testing.assert_allclose(matrices.run(plan)["Y"].to_numpy(), D @ A, atol=1e-12)

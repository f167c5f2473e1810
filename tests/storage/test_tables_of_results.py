"""Tables of results are tensors for later programs, with the results' bounds and fills."""

from pathlib import Path

import numpy as np
import pytest

import sparseeinsum as se
from sparseeinsum.cli import main

pytestmark = pytest.mark.engines("duckdb", "postgresql")

X = np.array([[0.0, 3.0, 0.0], [0.0, 0.0, 0.0]])


@pytest.fixture
def loaded(db: se.Database) -> se.Database:
    rows, columns = np.nonzero(X)
    db.tensor("X", ([rows, columns], X[rows, columns]), shape=X.shape)
    return db


def read(db: se.Database, name: str = "scores") -> object:
    return db.run(f"Z[i, j] = {name}[i, j]")["Z"].to_numpy()


@pytest.mark.parametrize("layout", ["entries", "any"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Y[i, j] = 2 - X[i, j]", 2 - X),
        ("Y[j, i] = exp(X[i, j])", np.exp(X.T)),
        ("Y[i, j] = X[i, j] > 1", X > 1),
        ("Y[I, j] = X[I, j] * 1j - 0.5", X * 1j - 0.5),
        ("Y[i, j] = where(X[i, j] > 0, X[i, j], -inf)", np.where(X > 0, X, -np.inf)),
    ],
)
def test_results_are_read_with_bounds_and_fills(loaded: se.Database, text: str, expected: object, layout: str) -> None:
    loaded.run(text, into={"Y": "scores"}, layout=layout)
    np.testing.assert_array_equal(read(loaded), expected)
    assert "scores" not in loaded.tensors()


def test_a_program_reads_its_own_result(loaded: se.Database) -> None:
    loaded.run("Y[i, j] = 1 + X[i, j]", into={"Y": "scores"})
    for _ in range(2):
        loaded.run("Y[i, j] = 2 * scores[i, j]", into={"Y": "scores"})
    np.testing.assert_array_equal(read(loaded), 4 * (1 + X))


def test_tables_recreated_by_users_are_no_results(loaded: se.Database) -> None:
    loaded.run("Y[i, j] = 1 + X[i, j]", into={"Y": "scores"})
    loaded.connection.execute("DROP TABLE scores")
    loaded.connection.execute("CREATE TABLE scores (a INTEGER, b INTEGER, c DOUBLE PRECISION)")
    loaded.connection.execute("INSERT INTO scores VALUES (0, 0, 5.0)")
    for comment in ("'of points'", "'null'", "'{\"a\": 1}'", "NULL"):
        loaded.connection.execute(f"COMMENT ON TABLE scores IS {comment}")
        np.testing.assert_array_equal(read(loaded), [[5.0]])
    loaded.connection.execute('COMMENT ON TABLE scores IS \'{"sparseeinsum": {"axes": 3}}\'')
    with pytest.raises(se.CatalogueError, match="the comment of the table scores does not say which tensor"):
        read(loaded)


def test_tensors_come_before_tables(loaded: se.Database) -> None:
    loaded.run("Y[i, j] = 1 + X[i, j]", into={"Y": "scores"})
    loaded.tensor_from_table("Scores", "scores", ["i", "j"], "val", shape=(2, 3))
    np.testing.assert_array_equal(read(loaded, "Scores"), np.where(X > 0, 1 + X, 0))


def test_declarations_must_fit(loaded: se.Database) -> None:
    loaded.run("Y[i, j] = 1 + X[i, j]", into={"Y": "scores"})
    with pytest.raises(se.ShapeError, match=r"declares scores with shape \(9, 9\), but the database has it with"):
        loaded.run("tensor scores[i: 9, j: 9]; Z[i] = sum(scores[i, j])")


@pytest.mark.engines("duckdb")
def test_the_command_line_reads_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = str(tmp_path / "graph.duckdb")
    with se.connect(database) as db:
        db.tensor("X", X)
    (tmp_path / "first.ein").write_text("Y[i, j] = 1 + X[i, j]")
    (tmp_path / "second.ein").write_text("Z[i] = sum(scores[i, j])")
    assert main(["run", "-d", database, str(tmp_path / "first.ein"), "--into", "Y=scores"]) == 0
    assert main(["check", "-d", database, str(tmp_path / "second.ein")]) == 0
    assert main(["run", "-d", database, str(tmp_path / "second.ein")]) == 0
    assert capsys.readouterr().out.endswith("i  val\n0    6\n")  # the other row holds the fill, which is 3

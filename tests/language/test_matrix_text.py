"""Linear algebra in program text equals numpy's, and malformed text is refused."""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.cli import main
from sparseeinsum.cli.shell_input import InputKind, ShellInput, inputs
from sparseeinsum.semantics.dense import evaluate_program

Array = NDArray[np.float64]
Arrays = dict[str, Array]

RANDOM = np.random.default_rng(7)
ARRAYS: Arrays = {
    "X": RANDOM.normal(size=(6, 4)) * (RANDOM.random((6, 4)) < 0.5),
    "U": RANDOM.normal(size=(6, 3)),
    "V": RANDOM.normal(size=(4, 3)),
    "S": RANDOM.normal(size=(4, 4)),
    "p": RANDOM.random(6),
    "w": RANDOM.normal(size=4),
    "c": np.array(2.5),
}
KINDS = "vector p, w; scalar c\n"

EXPRESSIONS: dict[str, Callable[[Arrays], Any]] = {
    "sum((X - U @ V.T)^2)": lambda a: ((a["X"] - a["U"] @ a["V"].T) ** 2).sum(),
    "(U @ V.T - X) @ V": lambda a: (a["U"] @ a["V"].T - a["X"]) @ a["V"],
    "p * X - p * p * X": lambda a: (a["p"] * (1 - a["p"]))[:, None] * a["X"],
    "X.T @ (sigmoid(X @ w) - p)": lambda a: a["X"].T @ (1 / (1 + np.exp(-a["X"] @ a["w"])) - a["p"]),
    "p.T @ X": lambda a: a["p"] @ a["X"],
    "p @ w.T": lambda a: np.outer(a["p"], a["w"]),
    "w.T @ w * c": lambda a: a["w"] @ a["w"] * 2.5,
    "X + w.T": lambda a: a["X"] + a["w"],
    "S / (w + 3)": lambda a: a["S"] / (a["w"] + 3)[:, None],
    "exp(X - rowmaxs(X)) / rowsums(exp(X - rowmaxs(X)))": lambda a: (
        (e := np.exp(a["X"] - a["X"].max(axis=1, keepdims=True))) / e.sum(axis=1, keepdims=True)
    ),
    "X - colmeans(X)": lambda a: a["X"] - a["X"].mean(axis=0),
    "rowmins(X) * 2": lambda a: a["X"].min(axis=1) * 2,
    "max(X, 0.5) - min(X)": lambda a: np.maximum(a["X"], 0.5) - a["X"].min(),
    "trace(S @ S.T) + norm(S)": lambda a: (a["S"] ** 2).sum() + np.linalg.norm(a["S"]),
    "colsums(X.T.T).T ^ 2": lambda a: a["X"].sum(axis=0) ** 2,
    "-S.T^2 + where(S > 0, S, 0)": lambda a: -(a["S"].T ** 2) + np.maximum(a["S"], 0),
    "rowsums(X) / bound(X, 1) + eta": lambda a: a["X"].mean(axis=1) + 0.5,
    "S @ S @ S": lambda a: a["S"] @ a["S"] @ a["S"],
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_text_is_numpys(text: str) -> None:
    program = se.program(f"param eta = 0.5\n{KINDS}R = {text}")
    assert program.outputs == ("R",)
    np.testing.assert_allclose(
        evaluate_program(program, ARRAYS)["R"], EXPRESSIONS[text](ARRAYS), rtol=1e-12, atol=1e-12
    )


def test_text_and_python_are_one_program() -> None:
    X, U, V = map(se.matrix, "XUV")  # noqa: N806  # as in the text
    built = se.program({"L": ((X - U @ V.T) ** 2).sum(), "G": (U @ V.T - X) @ V, "C": X.colmaxs() + X.rowmeans()})
    text = "L = sum((X - U @ V.T)^2); G = (U @ V.T - X) @ V; C = colmaxs(X) + rowmeans(X)"
    assert str(se.program(text)) == str(built)


MIXED = """
T[i, m] = sum(X[i, j] * V[j, m])     # with labels
norms[i] = sqrt(sum(T[i, m]^2))
N = T / norms                        # norms is a vector, because it has one label above
m = colsums(N)                       # a row vector
D = N - m
Q[m] = sum(D[i, m])
tensor = Q.T @ Q
"""


def test_labels_and_linear_algebra_mix() -> None:
    result = evaluate_program(se.program(MIXED), ARRAYS)["tensor"]
    product = ARRAYS["X"] @ ARRAYS["V"]
    scaled = product / np.linalg.norm(product, axis=1, keepdims=True)
    expected = ((scaled - scaled.sum(axis=0)).sum(axis=0) ** 2).sum()
    np.testing.assert_allclose(result, expected, rtol=1e-12)


@pytest.fixture
def loaded(db: se.Database) -> se.Database:
    for name, array in ARRAYS.items():
        db.tensor(name, array)
    return db


def test_the_database_tells_vectors_from_matrices(loaded: se.Database) -> None:
    gradient = "X.T @ (sigmoid(X @ w) - p)"
    result = loaded.run(f"G = {gradient}; Z = c * G")["Z"]
    np.testing.assert_allclose(result.to_numpy(), 2.5 * EXPRESSIONS[gradient](ARRAYS), rtol=1e-9)
    assert loaded.program("y = X @ w").outputs == ("y",)
    with pytest.raises(se.ParseError, match=r"(?s)^line 1, column 5: X\[i, j\] @ V\[j, i\] does not fit: .* 4 columns"):
        loaded.run("Y = X @ V.T")


def test_tables_are_matrices_by_their_columns(db: se.Database) -> None:
    cursor = db.connection
    cursor.execute("CREATE TABLE marks (pupil INTEGER, exam INTEGER, mark DOUBLE PRECISION)")
    cursor.execute("INSERT INTO marks VALUES (0, 0, 3.0), (1, 1, 4.0), (1, 0, 1.0)")
    cursor.execute("CREATE TABLE heft (exam INTEGER, share DOUBLE PRECISION)")
    cursor.execute("INSERT INTO heft VALUES (0, 0.5), (1, 0.25)")
    np.testing.assert_allclose(db.run("y = marks @ heft")["y"].to_numpy(), [1.5, 1.5])
    imported = 'tensor W[exam] from "heft" value share; y = marks @ W'
    np.testing.assert_allclose(db.run(imported)["y"].to_numpy(), [1.5, 1.5])


@pytest.mark.engines("duckdb", reason="the query is planned by DuckDB")
def test_sql_takes_linear_algebra(loaded: se.Database) -> None:
    rows = loaded.connection.execute("FROM einsum('y = X @ w') ORDER BY i").fetchall()
    np.testing.assert_allclose([value for _, value in rows], ARRAYS["X"] @ ARRAYS["w"], rtol=1e-9)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = str(tmp_path / "graph.duckdb")
    with se.connect(path) as database:
        for name, array in ARRAYS.items():
            database.tensor(name, array)
    return path


@pytest.mark.engines("duckdb", reason="the command line is the same on every database")
def test_the_command_line_and_files(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model.ein").write_text("param eta = 0.1\ny = X @ w\n")
    program = tmp_path / "step.ein"
    program.write_text('include "model.ein"\nG = X.T @ (y - p)\nnext = w - eta * G\n')
    assert main(["run", "-d", file, str(program)]) == 0
    assert main(["explain", "-d", file, "-t", "L = sum((X - U @ V.T)^2)"]) == 0
    assert "L[] = sum" in capsys.readouterr().out
    program.write_text("Y = X @ V\nZ = X @ w.T\nvector q\nQ[i] = sum(q[i, j])\n")
    assert main(["check", "-d", file, str(program)]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert [line.removeprefix(f"{program}:").split(";")[0] for line in printed] == [
        "2:5: error: X[i, j] @ w[j] does not fit: the first has 4 columns, the second one row",
        "4:12: error: q is a vector, but has 2 labels here",
    ]
    assert main(["check", str(program)]) == 1  # here w is a matrix, as it is not declared as a vector
    assert "4:12" in capsys.readouterr().out


@pytest.mark.engines("duckdb", reason="the shell is the same on every database")
def test_the_shell(file: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sys, "stdin", io.StringIO("m = colsums(S)\nvector r\nD = S - m\nL = sum(D)\n\\plan out = D @ w\n")
    )
    assert main(["shell", file]) == 0
    printed = capsys.readouterr().out
    total = ARRAYS["S"].sum() - 4 * ARRAYS["S"].sum()
    assert f"{total:.6g}" in printed  # m is a row vector in later lines, too
    assert "out[i]" in printed


def test_the_shell_distinguishes_programs_from_sql() -> None:
    lines = iter(["Y = X @ (", "U)", "vector w, p", "SELECT a = b FROM t;"])
    entered = list(inputs(lambda _: next(lines, None), "duckdb"))
    assert entered == [
        ShellInput(InputKind.PROGRAM, "Y = X @ (\nU)"),
        ShellInput(InputKind.PROGRAM, "vector w, p"),
        ShellInput(InputKind.SQL, "SELECT a = b FROM t"),
    ]


REFUSED = [
    (
        "vector w; Y = w @ X",
        15,
        "w[i] @ X[i, j] does not fit: the first has one column, the second many rows; transpose",
    ),
    ("tensor X[n: 5, m: 6]; Y = X * X.T", 27, "X[i, j] has 5 rows, but X[j, i] has 6 rows; elementwise"),
    ("tensor X[n: 5, m: 6]; Y = trace(X)", 27, "X[i, j] has no trace, because it has 5 rows and 6 columns"),
    (
        "tensor X[a: 3, b: 3, c: 3]; Y = X @ X",
        33,
        "X has 3 axes, but linear algebra is for matrices, vectors and scalars",
    ),
    ("Z[i] = sum(X[i, j, k]); Y = X @ X", 29, "X has 3 axes, but linear algebra is for matrices, vectors and scalars"),
    ("vector v; Z[i] = sum(v[i, j])", 22, "v is a vector, but has 2 labels here"),
    ("Y = X @ X; Z[i] = sum(Y[i])", 23, "Y is a matrix, but has 1 label here"),
    ("vector v, v; Y = v", 1, "v is declared twice"),
    ("tensor v[i: 3]; matrix v; Y = v", 17, "v is declared twice"),
    ("Y = 2 @ X", 5, "2 @ X[i, j] does not fit: the first has one column"),
    ("Y = A[i]", 5, "A[i] has labels, and the left side none; leave them out everywhere, as in C = A @ B, or write"),
    ("Y = eta[] * X", 5, "eta[] cannot be used among tensors without labels; write eta"),
    ("Y = sum[j](X)", 5, "sum[j](X) names labels, and the left side has none; write rowsums(...), colsums(...) or sum"),
    ("Y = softmax(X)", 5, "softmax needs to know a label; write the statement with labels, as in Y[i, j] = softmax[j]"),
    ("Y = bound(i) * X", 5, "bound(i) needs a label, and this statement has none; name the axis of a tensor"),
    ("Y = X * index(i)", 9, "index(i) has labels, and the left side none"),
    ("Y = rowSums(X)", 5, "there is no function 'rowSums'; did you mean rowsums?"),
    ("Y = rowsums(X, X)", 5, "rowsums takes one matrix"),
    ("Y = exp(X, X)", 5, "exp takes one argument, not 2"),
    ("Y = Y @ X", 5, "Y is read by the statement that assigns it"),
    ("Y = 3", 1, "the right side has no tensor"),
    ("Y = X @", 8, "the program ends here, expected"),
    ("Y[i, k] = A @ B", 11, "@ is for matrices without labels, as in C = A @ B.T; with labels, write C[i, k] = sum("),
    ("Y[i] = A[i].T", 8, ".T is for matrices without labels"),
    ("Y = X; Y = X", 8, "Y is assigned twice"),
]


@pytest.mark.parametrize(("text", "column", "problem"), REFUSED)
def test_invalid_text_is_refused(text: str, column: int, problem: str) -> None:
    with pytest.raises(se.ParseError) as caught:
        se.program(text)
    assert str(caught.value).startswith(f"line 1, column {column}: {problem}")


def test_python_functions_do_not_take_the_names_of_linear_algebra() -> None:
    def rowsums(x: float) -> float:
        return x

    with pytest.raises(se.SemanticsError, match="rowsums has a meaning in programs already"):
        se.function(rowsums)

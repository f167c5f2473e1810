"""`sparseeinsum check` reports every wrong line with its place, and every result that nothing reads."""

import io
import json
from pathlib import Path

import numpy as np
import pytest

import sparseeinsum as se
from sparseeinsum.cli import main

WRONG = """\
param unused = 3
tensor Q[i: 3]
tensor A[i: 2, j: 3]
Y[i] = sum(A[i, j)
Z[i] = sum(A[i, j] *
           $ B[j])
W[i] = A[i, j]
V[i] = sum(frob(A[i, j])); U[i] = V[i]
T[i] = sum(A[i, j] * B[j]
S[i] = mu * A[i, i]
R[j] = sum(A[j, i] * A[i, j])
P[k] = A[k]
O[i, j] = A[i, j] + O2[i]
O[i, j] = Q2[i, j] + O2[i, j]
"""

FOUND = """\
1:1: warning: nothing reads the parameter unused
2:1: warning: nothing reads the tensor Q
4:18: error: found ')', expected ',', ':', ']' or an operator
6:12: error: the character '$' has no meaning here
7:1: error: label j must be aggregated, because the left side lacks it
8:12: error: there is no function 'frob'
10:1: error: found 'S', expected
10:8: error: mu has no labels
11:1: error: label i of R has two bounds: 3 in A, 2 in A (axis i)
12:1: error: A[k] has 1 label, but tensor A has 2 axes
14:1: error: O is assigned twice
14:1: error: O2 has 2 labels here, but 1 before
"""


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_all_errors_of_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "wrong.ein"
    path.write_text(WRONG)
    assert main(["check", str(path)]) == 1
    printed = lines_of(capsys)
    for line, expected in zip(printed, FOUND.splitlines(), strict=True):
        assert line.startswith(f"{path}:{expected}")
    monkeypatch.setattr("sys.stdin", io.StringIO(WRONG))
    assert main(["check", "-", "--format", "json"]) == 1
    messages = json.loads(capsys.readouterr().out)
    text = [
        f"{message['line']}:{message['column']}: {message['severity']}: {message['message']}" for message in messages
    ]
    assert [f"{path}:{written}" for written in text] == printed
    assert {message["file"] for message in messages} == {"<stdin>"}


def test_files_without_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Files may have declarations only, or parameters without values."""
    (tmp_path / "given.ein").write_text("param n\nparam other = 2\ntensor A[i: n] from edges\ntensor B[i: 3]")
    (tmp_path / "main.ein").write_text("include 'given.ein'\nY[i] = A[i] / n\nZ[] = sum(X[i, j] * Y[j])")
    assert main(["check", str(tmp_path / "main.ein"), str(tmp_path / "given.ein")]) == 0
    assert lines_of(capsys) == []


def test_errors_of_included_files_are_reported_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "part.ein").write_text("T[i] = A[i]\nY[i] = T[i, j]")
    (tmp_path / "main.ein").write_text("include 'part.ein'\ninclude 'none.ein'\nZ[i] = Y[i]")
    assert main(["check", str(tmp_path / "main.ein"), str(tmp_path / "part.ein")]) == 1
    first, second = lines_of(capsys)
    assert first.startswith(f"{tmp_path}/main.ein:2:1: error: cannot read {tmp_path}/none.ein: No such file")
    assert first != second
    assert second.startswith(f"{tmp_path}/part.ein:2:1: error: label j must be aggregated")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "1:1: error: the program assigns nothing"),
        ("C[i] = sum(\n", "2:1: error: the program ends here"),
        ("(\n(\nC[i] = A[i]\n)", "1:1: error: found '('"),
        ("C[i] = A[i]\n\n)", "3:1: error: found ')'"),
    ],
)
def test_text_that_is_no_program(text: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "text.ein"
    path.write_text(text)
    assert main(["check", str(path)]) == 1
    assert lines_of(capsys)[0].startswith(f"{path}:{expected}")


def test_tensors_of_a_database(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = str(tmp_path / "graph.duckdb")
    with se.connect(database) as db:
        db.tensor("A", np.ones((2, 3)))
        db.tensor("X", np.array([True, False]))
        db.connection.execute("CREATE TABLE edges (src INTEGER, dst INTEGER, w DOUBLE)")
    path = tmp_path / "program.ein"
    path.write_text(
        "tensor A[i: 3, j: 3]\n"
        "tensor E[src: 4, dest: 4] from edges value w\n"
        "Y[i] = sum(A[i, j] * B[j])\n"
        "Z[i] = sum(A[j, i] * X[i])\n"
        "W[] = sum(Y[i])\n"
        "V[i] = E[i, i] + softmax[i](A[i, i])\n"
        "U[i] = -X[i]\n"
        "T[i] = sum(edges[i, j])\n"
        "S[i] = sum(T[i, j])\n"
    )
    assert main(["check", "-d", database, str(path)]) == 1
    expected = (
        "1:1: error: the program declares A with shape (3, 3), but the database has it with shape (2, 3)",
        "2:1: error: tensor E: edges has no column dest; did you mean dst?",
        "3:22: error: there is no tensor B in this database; known are A, X",
        "4:1: error: label i of Z has two bounds: 3 in A, 2 in X (axis dim_0)",
        "6:1: error: label i of V_max has two bounds: 2 in A, 3 in A (axis dim_1)",
        "7:1: error: U: numpy has no -X for bool",
        "9:1: error: T[i, j] has 2 labels, but tensor T has 1 axis: i",
    )
    printed = lines_of(capsys)
    assert len(printed) == len(expected)
    for line, start in zip(printed, expected, strict=True):
        assert line.startswith(f"{path}:{start}")


def test_parameters_and_missing_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "program.ein"
    path.write_text("param n = 3\ntensor A[i: n]\nY[i] = A[i]")
    assert main(["check", str(path), "--set", "n=4"]) == 0
    assert main(["check", str(path), "--set", "n=0.5"]) == 1
    assert lines_of(capsys) == [
        f"{path}:2:13: error: the parameter n is 0.5, but it must be a whole number here, 0 or more"
    ]
    assert main(["check", str(path), "--set", "m=4"]) == 1
    assert "the program has no parameter m; it has n" in capsys.readouterr().err
    assert main(["check", str(tmp_path / "none.ein")]) == 1
    assert "No such file" in capsys.readouterr().err
    assert main(["check", str(path), "-d", str(tmp_path / "none.duckdb")]) == 1
    assert "there is no database file" in capsys.readouterr().err

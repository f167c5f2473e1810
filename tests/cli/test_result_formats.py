"""`run --format` gives other programs all rows of a result, with its exact values and natural keys."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import sparseeinsum as se
from sparseeinsum.cli import main

Run = Callable[..., bytes]
TEXT = "Y[i, j] = K[i, j] * 0.1"


@pytest.fixture
def database(tmp_path: Path) -> str:
    """A file with natural keys, and with numbers of all kinds."""
    path = str(tmp_path / "graph.duckdb")
    with se.connect(path) as db:
        edges = {"who": ["Zoë", "a,b", 'say "hi"'], "whom": ["a,b", "Zoë", "Zoë"], "weight": [1.0, 1 / 3, 1e300]}
        db.tensor("K", pd.DataFrame(edges), keys={"who": "person", "whom": "person"})
        db.tensor("X", np.array([1.0, -1.0, 0.0, 2.0]))
        db.tensor("Z", np.array([1 + 2j, 3 - 0.5j]))
        db.tensor("N", np.array([2**62 + 1, -1]))
        db.tensor("B", np.array([True, False]))
        db.tensor("L", np.arange(20_000) / 7)
    return path


@pytest.fixture
def run(database: str, capsysbinary: pytest.CaptureFixture[bytes]) -> Run:
    """Runs a program with options; returns standard output."""

    def run(text: str, *options: str) -> bytes:
        assert main(["run", "-d", database, "-t", text, *options]) == 0
        return capsysbinary.readouterr().out

    return run


def test_natural_keys_in_every_format(run: Run, database: str, tmp_path: Path) -> None:
    with se.connect(database) as db:
        expected = db.run(TEXT)["Y"].arrow().to_pylist()
    assert {row["i"] for row in expected} == {"Zoë", "a,b", 'say "hi"'}
    assert json.loads(run(TEXT, "--format", "json").decode()) == expected
    assert pa.ipc.open_stream(run(TEXT, "-f", "arrow")).read_all().to_pylist() == expected
    assert parquet.read_table(io.BytesIO(run(TEXT, "-f", "parquet"))).to_pylist() == expected
    path = tmp_path / "rows.csv"
    path.write_bytes(run(TEXT, "-f", "csv"))
    rows = [tuple(row.values()) for row in expected]
    assert duckdb.connect().execute(f"FROM read_csv('{path}')").fetchall() == rows


@pytest.mark.parametrize(
    ("text", "values", "csv"),
    [
        ("Y[i] = 1 / X[i]", [1, -1, "Infinity", 0.5], "1 -1 inf 0.5"),
        ("Y[i] = log(X[i] - 1)", ["-Infinity", "NaN", "NaN", 0], "-inf nan nan 0"),
        ("Y[i] = Z[i] * 2", [{"re": 2, "im": 4}, {"re": 6, "im": -1}], "2,4 6,-1"),
        ("Y[i] = N[i]", [2**62 + 1, -1], f"{2**62 + 1} -1"),
        ("Y[i] = B[i]", [True], "true"),
    ],
)
def test_values(run: Run, text: str, values: list[object], csv: str) -> None:
    """Values that are the fill, 0, may lack a row."""
    rows = json.loads(run(text, "--nonfinite", "allow", "-f", "json"), parse_constant=pytest.fail)
    assert {row["i"]: row["val"] for row in rows} == {i: value for i, value in enumerate(values) if value != 0}
    heading, *lines = run(text, "--nonfinite", "allow", "-f", "csv").decode().splitlines()
    assert heading == ("i,val.re,val.im" if "," in csv else "i,val")
    assert sorted(lines) == [f"{i},{value}" for i, value in enumerate(csv.split()) if value != "0"]


def test_another_fill_is_said(run: Run, database: str, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """Rows that are not there hold 0.5; in Arrow and Parquet, metadata say so."""
    text = "Y[i, j] = exp(K[i, j] * 0) / 2"
    for kind in ("json", "csv"):
        assert main(["run", "-d", database, "-t", text, "-f", kind]) == 0
        assert capsysbinary.readouterr().err == b"Y holds 0.5 wherever no row says otherwise\n"
    table = pa.ipc.open_stream(run(text, "-f", "arrow")).read_all()
    with se.connect() as db:
        db.tensor("Y", table)
        assert db.tensors()["Y"].tensor.fill == 0.5


def test_all_rows_are_written(run: Run) -> None:
    rows = json.loads(run("Y[i] = L[i]", "-f", "json"))
    assert sorted((row["i"], row["val"]) for row in rows) == [(i, i / 7) for i in range(20_000) if i]
    assert run("Y[i] = L[i] * 0", "-f", "json") == b"[]\n"
    assert run("Y[] = sum(L[i] > 0)", "-f", "csv").splitlines()[1:] == [b"19999"]


def test_one_of_several_results(run: Run, database: str, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    text = "T[i] = X[i] + 1\nY[i] = T[i] * 2\nZ[] = sum(X[i])"
    assert main(["run", "-d", database, "-t", text, "-f", "csv", "--into", "Y=y", "--into", "Z=z"]) == 2
    assert main(["run", "-d", database, "-t", text, "-f", "csv"]) == 2
    message = b"--format csv writes one result, and there are Y, Z; choose one, as in --result Y"
    assert message in capsysbinary.readouterr().err
    assert run(text, "-f", "csv", "--result", "Z") == b"val\n2\n"
    assert run(text, "-f", "csv", "--result", "T").splitlines()[1:] == [b"0,2", b"1,0", b"3,3"]
    assert run(text, "--result", "Z").startswith(b"<Z[] scalar")
    assert main(["run", "-d", database, "-t", text, "--result", "W"]) == 1
    assert b"the program computes no W" in capsysbinary.readouterr().err


def test_files(run: Run, database: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    text = "Y[i] = X[i] * 2"
    readers: dict[str, Callable[[Path], list[dict[str, float]]]] = {
        "y.json": lambda path: list(json.loads(path.read_text())),
        "y.parquet": lambda path: list(parquet.read_table(path).to_pylist()),
        "y.arrow": lambda path: list(pa.ipc.open_stream(path.read_bytes()).read_all().to_pylist()),
    }
    for name, read in readers.items():
        path = tmp_path / name
        path.write_text("older")
        assert run(text, "--output", str(path)) == b""
        assert sorted(row["val"] for row in read(path)) == [-2, 2, 4]
    assert run(text, "--output", str(tmp_path / "y.txt"), "-f", "csv") == b""
    assert (tmp_path / "y.txt").read_text().splitlines()[0] == "i,val"
    assert main(["run", "-d", database, "-t", text, "--output", str(tmp_path / "none" / "y.csv")]) == 1
    assert b"there is no folder" in capsysbinary.readouterr().err
    path = tmp_path / "y.json"
    assert main(["run", "-d", database, "-t", "Y[i] = 1 / X[i]", "--output", str(path)]) == 1
    assert len(json.loads(path.read_text())) == 3


def test_a_terminal_takes_no_bytes(
    database: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["run", "-d", database, "-t", TEXT, "-f", "parquet"]) == 2
    assert "parquet is no text for a terminal; add --output FILE" in capsys.readouterr().err

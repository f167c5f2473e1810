"""Program files include others, take parameters and name tables."""

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparseeinsum as se
from sparseeinsum.cli import main

LAYERS = """
param eta = 0.5
tensor W[i: 2] fill 0
H[i] = eta * W[i]
"""


def write(folder: Path, **texts: str) -> Path:
    """Write files by their names without ending; return the path of the last one."""
    for name, text in texts.items():
        path = folder / f"{name}.ein"
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
    return path


def test_files_are_found_beside_the_file_that_includes_them(tmp_path: Path) -> None:
    write(tmp_path / "lib" / "deep", layers=LAYERS)
    write(tmp_path / "lib", model="include 'deep/layers.ein'\nY[i] = H[i] + eta\n")
    path = write(tmp_path, main='include "lib/model.ein"  # and so on\nZ[i] = Y[i]')
    assert se.read_program(path, eta=2) == se.program(
        "param eta = 0.5\ntensor W[i: 2] fill 0\nH[i] = eta * W[i]\nY[i] = H[i] + eta\nZ[i] = Y[i]", eta=2
    )


def test_a_file_is_read_once(tmp_path: Path) -> None:
    write(tmp_path, layers=LAYERS, other='include "layers.ein"\nY[i] = H[i]')
    path = write(tmp_path, main='include "layers.ein"; include "./other.ein"\ninclude "layers.ein"\nZ[i] = Y[i]')
    assert [einsum.output.tensor for einsum in se.read_program(path).einsums] == ["H", "Y", "Z"]


def test_errors_point_into_the_file(tmp_path: Path) -> None:
    layers = write(tmp_path, layers="A[i] = B[i]\nC[i] = sum(A[i, j)")
    path = write(tmp_path, main='include "layers.ein"')
    with pytest.raises(se.ParseError) as caught:
        se.read_program(path)
    problem = "found ')', expected ',', ':', ']' or an operator"
    assert str(caught.value) == f"{layers}:2:18: {problem}\n  C[i] = sum(A[i, j)\n                   ^"
    assert (caught.value.file, caught.value.line, caught.value.problem) == (str(layers), 2, problem)
    write(tmp_path, layers="A[i] = B[i]\nC[i] = A[i, j]")
    with pytest.raises(se.ParseError, match=r"layers\.ein:2:1: label j must be aggregated"):
        se.read_program(path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('include "none.ein"', r"main\.ein:1:1: cannot read .*none\.ein: No such file"),
        ('A[i] = B[i]\ninclude "main.ein"', r"main\.ein:2:1: main\.ein includes itself: main\.ein -> main\.ein"),
        ('include "circle.ein"', r"circle\.ein:1:1: main\.ein includes itself: main\.ein -> circle\.ein -> main\.ein"),
        ('include "bytes.ein"', r"bytes\.ein:1:1: the file is not text in UTF-8"),
        ('include "twice.ein"\nY[i] = B[i]', r"main\.ein:2:1: Y is assigned twice"),
        ("include layers", r"main\.ein:1:9: found 'layers', expected"),
    ],
)
def test_files_that_cannot_be_included(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "bytes.ein").write_bytes(b"\xff\xfe\x00")
    write(tmp_path, circle='include "main.ein"', twice="Y[i] = B[i]")
    with pytest.raises(se.ParseError, match=problem):
        se.read_program(write(tmp_path, main=text))


def test_text_outside_files_cannot_include(db: se.Database) -> None:
    for read in (se.program, db.plan):
        with pytest.raises(se.ParseError, match="outside a file cannot include files"):
            read('include "/etc/passwd"\nA[i] = B[i]')


def test_words_are_names_beside_brackets() -> None:
    text = "param[i] = include[i] + param[i2] * from[i] + index[i] + value[i]\n"
    program = se.program(text.replace("i2", "i").replace("param[i] *", "fill[i] *"))
    assert program.inputs == ("include", "fill", "from", "index", "value")


@pytest.mark.parametrize(
    ("text", "same", "parameters"),
    [
        ("param eta = 0.1\nC[i] = eta * A[i] - eta", "C[i] = 0.1 * A[i] - 0.1", {}),
        ("param eta = 0.1; C[i] = -eta * A[i]", "C[i] = -0.1 * A[i]", {}),
        ("param eta = 0.1; C[i] = eta * A[i]", "C[i] = 2.0 * A[i]", {"eta": 2}),
        ("param eta; C[i] = eta * A[i]", "C[i] = 2 * A[i]", {"eta": np.int64(2)}),
        ("param eta = 1; param mu = -eta; C[i] = A[i] ^ mu", "C[i] = A[i] ^ -3", {"eta": 3}),
        ("param on = true; C[i] = where(on, A[i], 0)", "C[i] = where(false, A[i], 0)", {"on": False}),
        ("param z = 1 + 2j; C[i] = z * A[i]", "C[i] = (3.0 + 0j) * A[i]", {"z": 3}),
        ("param f = inf; tensor A[i: 3] fill f; C[i] = A[i]", "tensor A[i: 3] fill -inf; C[i] = A[i]", {"f": -np.inf}),
        ("param n = 4; tensor A[i: n]; C[i] = A[i]", "tensor A[i: 5]; C[i] = A[i]", {"n": 5}),
        ("param n = 4; C[k] = 0 + index(k: n)", "C[k] = 0 + index(k: 4)", {}),
        ("param t = 64; C[I:t] = A[I:t]", "C[I:8] = A[I:8]", {"t": 8}),
        ("param n = 3; C[n] = A[n] * n * bound(n)", "C[n] = A[n] * 3 * bound(n)", {}),
    ],
)
def test_parameters(text: str, same: str, parameters: dict[str, float]) -> None:
    assert se.program(text, **parameters) == se.program(same)


@pytest.mark.parametrize(
    ("text", "parameters", "error", "problem"),
    [
        ("param eta; C[i] = A[i]", {}, se.ParseError, "column 1: the parameter eta has no value; give it one here"),
        ("param eta = 1\nparam Eta = 2; C[i] = A[i]", {}, se.ParseError, "line 2, column 1: the parameter eta is"),
        ("param eta = 1; C[i] = A[i]", {"et": 1}, se.SemanticsError, "has no parameter et; it has eta"),
        ("C[i] = A[i]", {"et": 1}, se.SemanticsError, "has no parameter et; it declares none"),
        ("param eta = 1; C[i] = A[i]", {"eta": "1"}, se.SemanticsError, "eta cannot be '1', which is not a number"),
        ("param eta = 1; C[i] = A[i]", {"eta": np.nan}, se.SemanticsError, "eta cannot be NaN"),
        ("param on = true; C[i] = A[i]", {"on": 1}, se.SemanticsError, "on is a truth value, so it cannot be 1"),
        ("param n = 1; C[i] = n * A[i]", {"n": True}, se.SemanticsError, "n is a number, so it cannot be True"),
        ("param n = 1; tensor C[i: n]; C[i] = 1", {"n": 0.5}, se.ParseError, "column 26: the parameter n is 0.5, but"),
        ("param n = 1; tensor C[i: n]; C[i] = 1", {"n": -2}, se.ParseError, "column 26: the parameter n is -2, but"),
        ("param eta = 1; C[i: n] = A[i]", {}, se.ParseError, "column 21: there is no parameter n"),
        ("param size = 1; tensor C[i: sise]; C[i] = 1", {}, se.ParseError, "no parameter sise; did you mean size"),
        ("C[i] = eta * A[i]; param eta = 1", {}, se.ParseError, "column 8: eta is a parameter"),
        (
            "param eta = A[i]; C[i] = A[i]",
            {},
            se.ParseError,
            "the value of the parameter eta is not a number",
        ),
        ("param eta = 1; C[i] = Eta[i]", {}, se.ParseError, "eta is a parameter; give the tensor Eta another name"),
    ],
)
def test_invalid_parameters(
    text: str, parameters: dict[str, float], error: type[se.SparseEinsumError], problem: str
) -> None:
    with pytest.raises(error, match=problem):
        se.program(text, **parameters)


def test_parameters_where_programs_are_run(db: se.Database) -> None:
    db.tensor("A", np.arange(3.0))
    text = "param eta = 1.0\nC[i] = eta * A[i]"
    np.testing.assert_array_equal(db.run(text, parameters={"eta": 3})["C"].to_numpy(), [0, 3, 6])
    plan = db.plan(text, parameters={"eta": 2})
    np.testing.assert_array_equal(db.run(plan)["C"].to_numpy(), [0, 2, 4])
    for read in (plan, se.program(text)):
        with pytest.raises(se.SemanticsError, match=r"eta is given to a program that was read before"):
            db.run(read, parameters={"eta": 3})


@pytest.fixture
def tables(db: se.Database) -> se.Database:
    """Edges between three nodes, with columns in another order, and a tensor with the name of a table."""
    db.connection.execute("""
        CREATE TABLE edges (note TEXT, w DOUBLE PRECISION, dst INTEGER, src INTEGER);
        INSERT INTO edges VALUES ('a', 2.0, 1, 0), ('b', 3.0, 0, 2)
    """)
    return db


EDGES = np.array([[0, 2, 0], [0, 0, 0], [3, 0, 0]])


@pytest.mark.engines("duckdb", "postgresql")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('tensor A[src, dst] from "edges" value "w"\nC[i, j] = A[i, j]', EDGES[:, :2]),
        ("tensor A[src, dst] from edges value w; C[i, j] = A[i, j] + A[j, i]", EDGES + EDGES.T),
        ("tensor A[src: 3, dst: 3] from edges value w; C[i] = sum(A[i, j])", EDGES.sum(axis=1)),
        ("tensor A[i: 3, j: 3] from edges index src, dst; C[i, j] = A[i, j]", EDGES != 0),
        ("tensor A[i: 3, j: 3] from edges index dst, src value W; C[i, j] = A[i, j]", EDGES.T),
        ("tensor A[src: 3, dst: 3] from edges value w fill 1; C[i] = prod(A[i, j])", [2, 1, 3]),
        ("tensor A[src: 3, dst: 3] from edges value w dtype float32; C[i, j] = A[i, j]", EDGES.astype(np.float32)),
        ("param n = 4; tensor A[src: n, dst: n] from edges value w; C[i] = A[i, i]", np.zeros(4)),
        ("tensor A[src: 3, dst: 3] from edges value w; C[] = sum(A[i, j]) + bound(A, 0)", 8),
    ],
)
def test_tables_that_programs_name(text: str, expected: object, tables: se.Database) -> None:
    result = tables.run(text)["C"].to_numpy()
    np.testing.assert_array_equal(result, expected)
    assert str(se.program(str(se.program(text)))) == str(se.program(text))
    assert se.program(str(se.program(text))) == se.program(text)
    assert tables.tensors() == {}


def test_tables_of_a_program_precede_tensors_of_the_database(tables: se.Database) -> None:
    tables.tensor("A", np.ones((3, 3)))
    text = "tensor A[src: 3, dst: 3] from edges value w; C[i, j] = A[i, j]"
    plan = tables.plan(text)
    np.testing.assert_array_equal(tables.run(plan)["C"].to_numpy(), EDGES)
    tables.connection.execute("INSERT INTO edges VALUES ('c', 1.0, 2, 2)")
    np.testing.assert_array_equal(tables.run(plan)["C"].to_numpy()[2], [3, 0, 1])
    np.testing.assert_array_equal(tables.load_plan(plan.to_json()).data.decomposed.graph.tensors["A"].shape, (3, 3))


@pytest.mark.parametrize(
    ("text", "error", "problem"),
    [
        ("tensor A[i, j] from none; C[i] = A[i, i]", se.CatalogueError, "no table, view or file none"),
        ("tensor A[src, dest] from edges; C[i] = A[i, i]", se.CatalogueError, "no column dest; did you mean dst"),
        ("tensor A[src] from edges value weight; C[i] = A[i]", se.CatalogueError, "edges has no column weight"),
        ("tensor A[i] from edges index note; C[i] = A[i]", se.DataError, "index column note of edges has type"),
        ("tensor A[src: 2] from edges value w; C[i] = A[i]", se.DataError, "2"),
        ("tensor A[src] from edges value w fill 0.5 dtype int64; C[i] = A[i]", se.DataError, "fill 0.5"),
        ("tensor A[src, dst] from edges value w; C[i] = A[i]", se.ShapeError, r"A\[i\] has 1 label"),
        ("tensor A[i, j] from edges index src; C[i] = A[i, i]", se.ParseError, "A has 2 axes, but 1 index columns"),
        ("tensor A[i] from ''; C[i] = A[i]", se.ParseError, "column 18: a name must have one character or more"),
        ("tensor A[src] from edges; A[i] = B[i]", se.ParseError, "A is read from edges, and assigned here"),
        ("tensor A[src] from edges; tensor A[i: 3]; C[i] = A[i]", se.ParseError, "A is declared twice"),
        ("tensor A[i]; C[i] = A[i]", se.ParseError, "the axis i of A has no bound; write one, as in i: 10"),
        ("tensor A[i: 3] value w; C[i] = A[i]", se.ParseError, "found 'value', expected"),
    ],
)
def test_tables_that_are_no_tensors(
    text: str, error: type[se.SparseEinsumError], problem: str, tables: se.Database
) -> None:
    with pytest.raises(error, match=problem):
        tables.run(text)


@pytest.mark.engines("duckdb", reason="PostgreSQL reads no files")
def test_data_files_are_found_beside_the_program(
    db: se.Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "edges.csv").write_text("src,dst,w\n0,1,2.5\n")
    write(tmp_path / "data", graph='tensor A[src: 2, dst: 2] from "edges.csv" value w')
    path = write(tmp_path, main='include "data/graph.ein"\nC[i] = sum(A[i, j])')
    monkeypatch.chdir("/")
    np.testing.assert_array_equal(db.run(se.read_program(path))["C"].to_numpy(), [2.5, 0])


names = st.text(st.characters(exclude_characters="\"\n'", exclude_categories=["Cs"]), min_size=1, max_size=8)


@given(names | names.map(lambda name: f'a."{name}"'), st.lists(names, min_size=2, max_size=2), st.none() | names)
def test_tables_are_written_as_they_are_read(relation: str, index: list[str], value: str | None) -> None:
    quoted = f"'{relation}'" if '"' in relation else f'"{relation}"'
    origin = f'from {quoted} index "{index[0]}", "{index[1]}"' + ("" if value is None else f' value "{value}"')
    program = se.program(f"tensor A[i, j: 3] {origin} fill 2 dtype int64\nC[i] = sum(A[i, j])")
    (imported,) = program.imported
    assert (imported.relation, imported.index, imported.value) == (relation, tuple(index), value)
    assert se.program(str(program)) == program


def test_the_command_line_gives_parameters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    database = str(tmp_path / "graph.duckdb")
    with se.connect(database) as db:
        db.tensor("W", np.array([1.0, 2.0]))
    write(tmp_path, layers=LAYERS)
    path = str(write(tmp_path, main='include "layers.ein"\nY[] = sum(H[i])'))
    arguments = ["run", "-d", database, path]
    for more, expected in (([], "1.5"), (["--set", "eta=2"], "6"), (["-s", "eta=1e1"], "30")):
        assert main([*arguments, *more]) == 0
        assert capsys.readouterr().out.endswith(f"val\n{expected.rjust(3)}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO('include "layers.ein"\nY[] = sum(H[i])'))
    assert main(["compile", "-d", database, "-", "--set", "eta=7"]) == 0
    assert "7.0" in capsys.readouterr().out
    for more, status, problem in (
        (["--set", "eta"], 2, "--set 'eta' is not NAME=NUMBER"),
        (["--set", "eta=many"], 2, "--set 'eta=many' is not NAME=NUMBER"),
        (["--set", "mu=2"], 1, "the program has no parameter mu; it has eta"),
    ):
        assert main([*arguments, *more]) == status
        assert problem in capsys.readouterr().err
    assert main(["run", "-d", database, "--plan", "x.json", "--set", "eta=2"]) == 2
    assert "--set is an option of planning" in capsys.readouterr().err

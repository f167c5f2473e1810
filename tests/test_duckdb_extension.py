"""The extension file in the `duckdb` command line and in Python's DuckDB alone: the same functions and results."""

import ctypes
import itertools
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from duckdb_shell import Shell, rows_in_python
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from random_programs import FAMILIES, Case, cases, may_be_refused
from sql_rows import Array, Rows, create_rows, expect_equal, read_column
from test_sql_aggregates import AGGREGATES
from test_sql_function_errors import MALFORMED
from test_sql_functions import SCALARS
from test_sql_vocabulary import EXAMPLE_ROWS

import sparseeinsum as se
from sparseeinsum.cli import main
from sparseeinsum.examples import (
    GCN,
    attention_inputs,
    attention_program,
    attention_reference,
    citation_graph,
    gcn_inputs,
    gcn_reference,
)
from sparseeinsum.kernels import duckdb_library, linking, processors
from sparseeinsum.kernels.catalogue import ValueType, functions
from sparseeinsum.kernels.duckdb_library import build_extension
from sparseeinsum.kernels.processors import is_x86

Matrices = dict[str, Any]
EXAMPLES = int(os.environ.get("EXAMPLES", "2"))


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A shell with the file as `sparseeinsum build duckdb` makes it."""
    folder = tmp_path_factory.mktemp("extension")
    assert main(["build", "duckdb", "--output", str(folder)]) == 0
    return Shell(folder / "sparseeinsum.duckdb_extension")


def new_database(path: Path) -> duckdb.DuckDBPyConnection:
    """A file that shells of the last version before 2 can read, too."""
    return duckdb.connect(str(path), config={"storage_compatibility_version": "v1.5.0"})


def test_the_same_functions_are_listed(shell: Shell, db: se.Database) -> None:
    query = (
        "SELECT function_name AS name, function_type AS kind, parameter_types::VARCHAR AS parameters, "
        "return_type AS returns, stability FROM duckdb_functions() WHERE function_name LIKE 'tensor%' "
        "AND NOT ends_with(function_type, 'macro') ORDER BY ALL"
    )
    ((*listed,),) = shell.rows([query])
    assert [tuple(row.values()) for row in listed] == db.connection.execute(query).fetchall()
    assert len(listed) == 1 + sum(len(function.dtypes) for function in functions())
    query = "SELECT loaded, extension_version AS version FROM duckdb_extensions() WHERE extension_name = 'sparseeinsum'"
    assert shell.rows([query]) == [[{"loaded": True, "version": se.__version__}]]


def examples() -> list[str]:
    """A query for the example of every function, which gives true."""
    found = []
    for function in functions():
        if function.returns == ValueType.RESIDENT:
            rows = "(VALUES ([1, 2, 3, 4], 2), ([5, 6, 7, 8], 0)) AS t(val, i)"
            found.append(f"SELECT {function.example} > 0 AS holds FROM {rows}")
        elif function.is_aggregate:
            rows, expected = EXAMPLE_ROWS[function.example]
            close = f"list_sum(list_transform(list_zip(val, {expected}), lambda p: abs(p[1] - p[2]))) < 1e-12"
            found.append(f"SELECT {close} AS holds FROM (SELECT {function.example} AS val FROM {rows})")
        else:
            found.append(f"SELECT {function.example} AS holds")
    return found


def test_examples_in_the_shell(shell: Shell) -> None:
    queries = examples()
    assert shell.rows(queries) == [[{"holds": True}]] * len(queries)


def test_examples_in_python_alone(shell: Shell) -> None:
    queries = examples()
    assert rows_in_python(shell.extension, queries) == [[[True]]] * len(queries)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_functions_against_numpy(shell: Shell, tmp_path: Path, dtype: str) -> None:
    """Thousands of rows, some of them NULL, through every function at once."""
    database = tmp_path / "rows.duckdb"
    with new_database(database) as connection:
        create_rows(connection)
    calls = (*SCALARS, *AGGREGATES)
    folder = tmp_path / "found"
    folder.mkdir()
    statements = [f"COPY (SELECT i, u, v, s FROM rows_{dtype}) TO '{folder}/rows.parquet'"] + [
        f"COPY (SELECT {call} AS w FROM rows_{dtype}) TO '{folder}/{index}.parquet'" for index, call in enumerate(calls)
    ]
    shell.rows(statements, str(database))
    table = pq.read_table(folder / "rows.parquet")
    i, u, v, s = (read_column(table[name]) for name in "iuvs")
    rows = Rows(u, v, s[:, 0], i[:, 0])
    for index, call in enumerate(calls):
        found = read_column(pq.read_table(folder / f"{index}.parquet")["w"])
        with np.errstate(divide="ignore", invalid="ignore"):
            expected = (SCALARS | AGGREGATES)[call](rows)
        expect_equal(found, expected, dtype)


def test_malformed_calls_are_errors(shell: Shell) -> None:
    found = shell.errors(f"SELECT {call}" for call, _ in MALFORMED)
    assert len(found) == len(MALFORMED)
    for (call, words), message in zip(MALFORMED, found, strict=True):
        for word in (call.split("(")[0], *words):
            assert re.search(rf"(?<![\w-]){re.escape(str(word))}(?!\w)", message), message


def test_large_products_on_several_threads(shell: Shell) -> None:
    """Every thread multiplies in memory of its own; sums of integers are exact in any order."""
    statements = [
        "SET threads = 4",
        "CREATE TABLE t AS SELECT i, list_transform(range(9000), lambda k: ((k * 7 + i) % 11)::DOUBLE) AS u "
        "FROM range(400) AS r(i)",
        "SET preserve_insertion_order = false",
        "SELECT i, list_sum(tensor_matmul(u, u, [90, 100, 90])) AS total, "
        "count(*) AS count FROM t, range(2) AS r(n) GROUP BY ALL ORDER BY ALL",
    ]
    *_, rows = shell.rows(statements)
    u = (np.arange(9000) * 7 + np.arange(400)[:, None]) % 11
    totals = np.einsum("rij,rjk->r", u.reshape(-1, 90, 100), u.reshape(-1, 100, 90))
    np.testing.assert_array_equal([row["total"] for row in rows], totals)
    assert {row["count"] for row in rows} == {2}


def test_resident_arrays(shell: Shell) -> None:
    """Read where DuckDB keeps them, from version 2 on; an earlier one says what to do."""
    statements = [
        "CREATE TABLE x AS SELECT j, [j, j * 10]::DOUBLE[] AS val FROM range(3000) AS t(j) WHERE j <> 7",
        "WITH v AS (SELECT tensor_resident(val, j, 3000, -1::DOUBLE) AS handle FROM x) "
        "SELECT tensor_sum(tensor_row(v.handle, n * 7919 % 3000, 2, -1::DOUBLE)) AS total FROM range(30000) AS t(n), v",
    ]
    total = 10 * (np.arange(3000).sum() - 7)
    _, ((found,),) = rows_in_python(shell.extension, statements)
    assert found == [total - 10, 10 * total - 10]
    ((row,),) = shell.rows(["SELECT version() AS version"])
    if row["version"].startswith("v1."):
        (message,) = shell.errors([";\n".join(statements)])
        assert "compile programs with --no-indexes" in message
    (message,) = shell.errors(["SELECT tensor_row(4611686018427387904, 0, 2, 0::DOUBLE)"])
    assert "no array is resident under the handle 4611686018427387904" in message


PRODUCT = "C[i, k] = sum(A[i, j] * B[j, k])"


def product_inputs() -> tuple[Matrices, NDArray[Any]]:
    rng = np.random.default_rng(0)
    left, right = sp.csr_array(sp.random_array((30, 40), density=0.2, rng=rng)), rng.uniform(size=(40, 50))
    return {"A": left, "B": right}, np.asarray(left @ right)


SMALL = (300, 1200, 150, 6000)  # nodes, edges, features and how many of these are not 0


def gcn() -> tuple[Matrices, NDArray[Any]]:
    inputs = gcn_inputs(citation_graph(*SMALL))
    return dict(inputs), gcn_reference(inputs)


def attention() -> tuple[Matrices, NDArray[Any]]:
    inputs = attention_inputs(citation_graph(*SMALL))
    return dict(inputs), attention_reference(inputs).toarray()


def entries(rows: list[dict[str, Any]], filled: Array) -> Array:
    """The rows of a result put into an array; complex values are pairs."""
    for row in rows:
        *keys, value = row.values()
        filled[tuple(keys)] = complex(*value) if filled.dtype.kind == "c" else value
    return filled


@pytest.mark.parametrize(
    ("program", "inputs", "style"),
    [
        (GCN, gcn, "cte"),
        (GCN, gcn, "staged"),
        (attention_program(1024), attention, "cte"),
    ],
    ids=["gcn", "gcn in stages", "attention"],
)
def test_compiled_programs(
    shell: Shell,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    program: str,
    inputs: Callable[[], tuple[Matrices, NDArray[Any]]],
    style: str,
) -> None:
    """What the command line compiles for a file gives the right result there without Python."""
    database, text = tmp_path / "graph.duckdb", tmp_path / "program.sql"
    tensors, expected = inputs()
    with new_database(database) as connection, se.connect(connection) as db:
        for name, matrix in tensors.items():
            db.tensor(name, matrix)
    command = ["compile", "--no-indexes", "--database", str(database), "--style", style, "--text", program]
    assert main(command) == 0
    text.write_text(capsys.readouterr().out, encoding="utf-8")
    *_, rows, _ = shell.rows([f".read {text}\nSELECT 1 AS done"], str(database))
    np.testing.assert_allclose(entries(rows, np.zeros_like(expected)), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_random_programs(shell: Shell, tmp_path: Path, family: str) -> None:
    database = tmp_path / "programs.duckdb"

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    @given(cases(family, "dp"), st.sampled_from(["cte", "staged"]))
    def run(case: Case, style: str) -> None:
        with new_database(database) as connection, se.connect(connection) as db:
            case.load(db)
            try:
                plan = db.plan(case.text, pin=case.pin, outputs=case.outputs, tiles=case.tiles, indexes=False)
                expected = db.run(plan)
            except se.SparseEinsumError as error:
                assert isinstance(error, se.SemanticsError) or may_be_refused(case, error)
                return
        for name, rows in zip(plan.outputs, shell.rows([plan.sql(style)], str(database)), strict=True):
            wanted = case.expected[name]
            found = entries(rows, np.full_like(wanted, expected[name].fill))
            np.testing.assert_allclose(found, wanted, rtol=0, atol=case.tolerance(name), err_msg=name)

    run()


def test_every_decomposition_of_a_product(shell: Shell, tmp_path: Path) -> None:
    database = tmp_path / "product.duckdb"
    tensors, expected = product_inputs()
    with new_database(database) as connection, se.connect(connection) as db:
        for name, matrix in tensors.items():
            db.tensor(name, matrix)
        promoted = ["".join(labels) for count in range(4) for labels in itertools.combinations("ijk", count)]
        statements = [db.plan(PRODUCT, pin={"C": labels}).sql().rstrip().rstrip(";") for labels in promoted]
    for rows in shell.rows(statements, str(database)):
        np.testing.assert_allclose(entries(rows, np.zeros_like(expected)), expected, rtol=1e-9, atol=1e-12)


def test_readme_shows_what_the_shell_shows(tmp_path: Path) -> None:
    """Typed into a folder of its own, line by line."""
    programs = {"sparseeinsum": "-c 'from sparseeinsum.cli import main; exit(main())'", "duckdb": "-m duckdb_cli"}
    for name, arguments in {**programs, "python": ""}.items():
        (tmp_path / name).write_text(f'#!/bin/sh\nexec {sys.executable} {arguments} "$@"\n')
        (tmp_path / name).chmod(0o755)
    readme = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    asked = 0
    for block in re.findall(r"^```console\n(.*?)^```", readme, flags=re.DOTALL | re.MULTILINE):
        for command, shown in re.findall(r"^\$ (.*\n(?:    .*\n)*)((?:[^$ ].*\n)*)", block, flags=re.MULTILINE):
            typed = ["bash", "-c", command.replace("\n    ", "\n")]
            finished = subprocess.run(typed, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
            assert (finished.stdout, finished.returncode) == (shown, 0), finished.stderr
            asked += 1
    assert asked == 6


def test_functions_of_users_are_refused(shell: Shell) -> None:
    (message,) = shell.errors(["SELECT tensor_map('smooth(u)', [1.0])"])
    assert "unknown function" in message
    assert "only in the Python process that compiled them" in message


def test_the_footer_says_what_the_file_is_for(shell: Shell) -> None:
    content = shell.extension.read_bytes()
    head, magic, signature = content[-534:-512], content[-512:-256], content[-256:]
    assert head == b"\x00\x93\x04\x10duckdb_signature\x80\x04"
    assert signature == bytes(256)
    fields = [magic[start : start + 32].rstrip(b"\0").decode() for start in range(0, 256, 32)]
    ((platform,),) = duckdb.execute("PRAGMA platform").fetchall()
    assert fields == ["", "", "", "C_STRUCT", se.__version__, "v1.5.6", platform, "4"]
    symbols = subprocess.run(
        ["nm", "-D", "--defined-only", shell.extension], capture_output=True, text=True, check=True
    )
    assert [line.split()[2] for line in symbols.stdout.splitlines()] == ["sparseeinsum_init_c_api"]


def test_another_version_of_duckdb_refuses_it(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / shell.extension.name
    content = shell.extension.read_bytes()
    file.write_bytes(content[:-512] + content[-512:].replace(b"v1.5.6", b"v1.9.0"))
    refused = Shell(file).run(script="SELECT 1;")
    assert "built for DuckDB C API version 'v1.9.0', but we can only load extensions built for" in refused.stderr


def test_a_shell_without_the_option_refuses_it(shell: Shell) -> None:
    command = [sys.executable, "-m", "duckdb_cli", "-c", f"LOAD '{shell.extension}'"]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "duckdb -unsigned" in refused.stderr


def test_installed_in_a_folder(shell: Shell, tmp_path: Path) -> None:
    """INSTALL copies the file to where LOAD finds it by its name."""
    place = f"SET extension_directory = '{tmp_path}'"
    command = [sys.executable, "-m", "duckdb_cli", "-unsigned", "-csv", "-noheader"]
    for statements in (
        f"{place}; INSTALL '{shell.extension}'",
        f"{place}; LOAD sparseeinsum; SELECT tensor_norm([3, 4])",
    ):
        finished = subprocess.run([*command, "-c", statements], capture_output=True, text=True, timeout=60, check=True)
    assert finished.stdout == "5.0\n"


def test_loading_it_where_the_functions_are_changes_nothing(shell: Shell) -> None:
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as connection:
        connection.execute(f"LOAD '{shell.extension}'")
        assert connection.execute("SELECT tensor_add([1], [2])").fetchall() == [([3],)]
        query = "SELECT install_mode FROM duckdb_extensions() WHERE extension_name = 'sparseeinsum'"
        assert connection.execute(query).fetchall() == [("STATICALLY_LINKED",)]


def test_loaded_twice_and_in_two_databases_of_one_process(shell: Shell) -> None:
    load, ask = f"LOAD '{shell.extension}'", "SELECT tensor_add([1], [2]) AS w"
    assert shell.rows([load, ask]) == [[{"w": [3]}]]
    program = (
        "import duckdb\nfor _ in 'ab':\n    c = duckdb.connect(config={'allow_unsigned_extensions': 'true'})\n"
        f'    c.execute("{load}"); print(c.execute("{ask}").fetchall())'
    )
    command = [sys.executable, "-c", program]
    finished = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=True, cwd=shell.extension.parent
    )
    assert finished.stdout == "[([3],)]\n" * 2


REGISTERS_TWICE = """
import duckdb
from sparseeinsum.kernels.duckdb_extension import _ENTRY_POINT
from sparseeinsum.kernels.duckdb_static_extension import register_static_extension

register_static_extension("another", "1", "v1.2.0", _ENTRY_POINT)
duckdb.connect()
"""


def test_a_function_that_is_there_already_is_named() -> None:
    """An extension whose functions another one has is refused, not half of its functions taken for all."""
    refused = subprocess.run(
        [sys.executable, "-c", REGISTERS_TWICE], capture_output=True, text=True, timeout=60, check=False
    )
    assert re.search("DuckDB refused the function tensor_[a-z]+; is there another of this name", refused.stderr)


SetError = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)
GetDatabase = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
GetApi = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)


class Access(ctypes.Structure):
    """What DuckDB hands to an extension's entry point."""

    _fields_ = (("set_error", SetError), ("get_database", GetDatabase), ("get_api", GetApi))


def test_what_duckdb_does_not_give_is_an_error(shell: Shell) -> None:
    """No table of functions, of which DuckDB tells itself; no database; another DuckDB's table in the same process."""
    enter = ctypes.CDLL(str(shell.extension)).sparseeinsum_init_c_api
    enter.restype = ctypes.c_bool
    asked: list[bytes] = []
    told: list[bytes] = []

    def loads(table: ctypes.Array[ctypes.c_int64] | None) -> bool:
        def get_api(_: object, version: bytes) -> int | None:
            asked.append(version)
            return None if table is None else ctypes.addressof(table)

        set_error = SetError(lambda _, message: told.append(message))
        access = Access(set_error, GetDatabase(lambda _: None), GetApi(get_api))
        return bool(enter(None, ctypes.byref(access)))

    one, another = ((ctypes.c_int64 * 1000)(number) for number in (1, 2))
    assert [loads(table) for table in (None, one, another, one)] == [False] * 4
    assert set(asked) == {b"v1.5.6"}
    assert [re.findall("no connection|another DuckDB", message.decode()) for message in told] == [
        ["no connection"],
        ["another DuckDB"],
        ["no connection"],
    ]


@pytest.mark.skipif(not is_x86(), reason="this processor has no levels")
def test_a_file_for_another_processor_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error when it is loaded, not a crash when it meets an instruction that the processor does not know."""
    monkeypatch.setitem(processors._BITS[(1, "ecx")], "reserved", 16)  # a bit that no processor sets
    monkeypatch.setattr(duckdb_library, "features", lambda processor: {"sse3", "reserved"})
    refused = Shell(build_extension(tmp_path, se.__version__)).run(script="SELECT 1;")
    assert "another processor" in refused.stderr


def test_what_cannot_be_built_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    build = ["build", "duckdb", "--output", str(tmp_path)]

    def refused(*arguments: str) -> str:
        assert main([*build, *arguments]) == 1
        return capsys.readouterr().err

    assert "--version is for postgres" in refused("--version", "16")
    monkeypatch.setattr(linking, "_LINKERS", ("no-such-linker",))
    assert "apt-get install binutils" in refused()
    monkeypatch.setattr(duckdb_library, "_platform", lambda: "osx_arm64")
    assert "on Linux only so far, not on osx_arm64" in refused()
    assert list(tmp_path.iterdir()) == []

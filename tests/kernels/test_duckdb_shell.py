"""The extension file runs functions and programs in the `duckdb` command line, and in a Python without this package."""

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from duckdb_shell import Shell, new_database, rows_in_python
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from program_cases import Case, may_be_refused
from random_programs import FAMILIES, cases
from random_runs import random_runs
from sql_rows import Array, Rows, create_rows, expect_equal, read_column
from test_sql_aggregates import AGGREGATES
from test_sql_function_errors import MALFORMED
from test_sql_functions import SCALARS
from test_sql_vocabulary import EXAMPLE_ROWS, ROWS_OF_HANDLES

import sparseeinsum as se
from sparseeinsum.api.examples import (
    attention_inputs,
    attention_program,
    attention_reference,
    citation_graph,
    gcn_inputs,
    gcn_reference,
)
from sparseeinsum.api.graphs import GCN
from sparseeinsum.cli import main
from sparseeinsum.kernels.array_functions import HANDLES, ValueType, array_functions

Matrices = dict[str, Any]
TABLE_FUNCTIONS = ("tensor_functions", "tensor_no_tuples", "tensor_row_numbers")
pytestmark = pytest.mark.engines("duckdb", reason="the file is for DuckDB")


def test_the_same_functions_are_listed(shell: Shell, db: se.Database) -> None:
    query = (
        "SELECT function_name AS name, function_type AS kind, parameter_types::VARCHAR AS parameters, "
        "return_type AS returns, stability FROM duckdb_functions() WHERE function_name LIKE 'tensor%' "
        "AND NOT ends_with(function_type, 'macro') ORDER BY ALL"
    )
    ((*listed,),) = shell.rows([query])
    assert [tuple(row.values()) for row in listed] == db.connection.execute(query).fetchall()
    assert len(listed) == len(TABLE_FUNCTIONS) + sum(len(function.dtypes) for function in array_functions())
    query = "SELECT loaded, extension_version AS version FROM duckdb_extensions() WHERE extension_name = 'sparseeinsum'"
    assert shell.rows([query]) == [[{"loaded": True, "version": se.__version__}]]


def test_functions_are_described(shell: Shell, db: se.Database) -> None:
    query = "FROM tensor_functions()"
    ((*listed,),) = shell.rows([query])
    assert len(listed) == len(array_functions())
    relation = db.connection.execute(query)
    names = [column[0] for column in relation.description or ()]
    assert listed == [dict(zip(names, row, strict=True)) for row in relation.fetchall()]


def examples() -> list[str]:
    """A query for the example of every function that works without Python; each returns true.

    DuckDB before version 2 frees too early what functions read by handle.
    """
    queries = []
    for function in (listed for listed in array_functions() if not listed.is_embedded):
        types = {argument.type for argument in function.arguments}
        if ValueType.RESERVED in types or (function.is_aggregate and not HANDLES.isdisjoint(types)):
            continue
        if function.example in ROWS_OF_HANDLES:
            queries.append(f"SELECT {function.example} > 0 AS holds FROM {ROWS_OF_HANDLES[function.example]}")
        elif function.is_aggregate:
            rows, expected = EXAMPLE_ROWS[function.example]
            close = f"list_sum(list_transform(list_zip(val, {expected}), lambda p: abs(p[1] - p[2]))) < 1e-12"
            queries.append(f"SELECT {close} AS holds FROM (SELECT {function.example} AS val FROM {rows})")
        else:
            queries.append(f"SELECT {function.example} AS holds")
    return queries


def test_examples_in_the_shell(shell: Shell) -> None:
    queries = examples()
    assert shell.rows(queries) == [[{"holds": True}]] * len(queries)


def test_examples_in_python_alone(shell: Shell) -> None:
    queries = examples()
    assert rows_in_python(shell.extension, queries) == [[[True]]] * len(queries)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_functions_against_numpy(shell: Shell, tmp_path: Path, dtype: str) -> None:
    """Every function on thousands of rows, some of them NULL."""
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
        results = read_column(pq.read_table(folder / f"{index}.parquet")["w"])
        with np.errstate(divide="ignore", invalid="ignore"):
            expected = (SCALARS | AGGREGATES)[call](rows)
        expect_equal(results, expected, dtype)


def test_malformed_calls_are_errors(shell: Shell) -> None:
    messages = shell.errors(f"SELECT {call}" for call, _ in MALFORMED)
    assert len(messages) == len(MALFORMED)
    for (call, words), message in zip(MALFORMED, messages, strict=True):
        for word in (call.split("(")[0], *words):
            assert re.search(rf"(?<![\w-]){re.escape(str(word))}(?!\w)", message), message


def test_large_products_on_several_threads(shell: Shell) -> None:
    """Every thread multiplies in its own memory; integer sums are exact in any order."""
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
    """DuckDB 2 and later runs them; earlier versions get an error that names the remedy."""
    statements = [
        "CREATE TABLE x AS SELECT j, [j, j * 10]::DOUBLE[] AS val FROM range(3000) AS t(j) WHERE j <> 7",
        "WITH v AS (SELECT tensor_resident(val, j, 3000, -1::DOUBLE) AS handle FROM x) "
        "SELECT tensor_sum(tensor_row(v.handle, n * 7919 % 3000, 2, -1::DOUBLE)) AS total FROM range(30000) AS t(n), v",
    ]
    total = 10 * (np.arange(3000).sum() - 7)
    _, ((totals,),) = rows_in_python(shell.extension, statements)
    assert totals == [total - 10, 10 * total - 10]
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


SMALL = (300, 1200, 150, 6000)  # nodes, edges, features and nonzero features


def gcn() -> tuple[Matrices, NDArray[Any]]:
    inputs = gcn_inputs(citation_graph(*SMALL))
    return dict(inputs), gcn_reference(inputs)


def attention() -> tuple[Matrices, NDArray[Any]]:
    inputs = attention_inputs(citation_graph(*SMALL))
    return dict(inputs), attention_reference(inputs).toarray()


def entries(rows: list[dict[str, Any]], filled: Array) -> Array:
    """The array of a result's rows; complex values are pairs."""
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
    """Programs compiled by the command line for a file give right results there without Python."""
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

    @random_runs(2)
    @given(cases(family, "dp"), st.sampled_from(["cte", "staged"]))
    def run(case: Case, style: str) -> None:
        with new_database(database) as connection, se.connect(connection) as db:
            case.load(db)
            try:
                plan = db.plan(
                    case.text,
                    pin=case.pin,
                    outputs=case.outputs,
                    tiles=case.tiles,
                    nonfinite=case.nonfinite,
                    indexes=False,
                )
                expected = db.run(plan)
            except se.SparseEinsumError as error:
                assert isinstance(error, se.SemanticsError) or may_be_refused(case, error)
                return
        for name, rows in zip(plan.outputs, shell.rows([plan.sql(style)], str(database)), strict=True):
            wanted = case.expected[name]
            result = entries(rows, np.full_like(wanted, expected[name].fill))
            case.expect(name, result)

    run()


def test_every_decomposition_of_a_product(shell: Shell, tmp_path: Path) -> None:
    database = tmp_path / "product.duckdb"
    tensors, expected = product_inputs()
    with new_database(database) as connection, se.connect(connection) as db:
        for name, matrix in tensors.items():
            db.tensor(name, matrix)
        promoted = ["".join(labels) for count in range(4) for labels in itertools.combinations("ijk", count)]
        statements = [
            db.plan(PRODUCT, pin={"C": labels}, indexes=False).sql().rstrip().rstrip(";") for labels in promoted
        ]
    for rows in shell.rows(statements, str(database)):
        np.testing.assert_allclose(entries(rows, np.zeros_like(expected)), expected, rtol=1e-9, atol=1e-12)

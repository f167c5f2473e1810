"""PostgreSQL uses workers for large data, computes no value twice, and stores or keys results as needed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import psycopg
import pytest
import scipy.sparse as sp
from reading import contents

import sparseeinsum as se
from sparseeinsum.api.examples import ExampleMatrix, load

Array = Any  # of numpy, or a sparse one of scipy

pytestmark = pytest.mark.engines("postgresql", reason="workers, queries put into others, and keys are PostgreSQL's own")

NODES, EDGES, WIDTH = 4_000, 200_000, 160
LAYER = """
T[i, m] = sum(A[i, j] * H[j, m])
Y[i, n] = sum(T[i, m] * W[m, n])
Z[m] = max(T[i, m])
"""  # T is read twice and therefore materialised


def large_inputs() -> dict[str, ExampleMatrix]:
    """A graph of many edges, vectors for its nodes, and weights."""
    rng = np.random.default_rng(0)
    edges = np.unique(rng.integers(0, NODES * NODES, EDGES))
    adjacency = sp.coo_array((rng.standard_normal(len(edges)), np.divmod(edges, NODES)), shape=(NODES, NODES))
    return {"A": adjacency.tocsr(), "H": rng.standard_normal((NODES, WIDTH)), "W": rng.standard_normal((WIDTH, 8))}


@pytest.fixture(scope="module")
def large(shared_db: se.Database) -> se.Database:
    """A database that has these inputs."""
    return load(shared_db, large_inputs())


def check_layer(db: se.Database) -> None:
    """Run the program and compare the results with numpy's."""
    adjacency, hidden, weights = large_inputs().values()
    results = db.run(LAYER)
    aggregated = np.asarray(adjacency @ hidden)
    np.testing.assert_allclose(results["Y"].to_numpy(), aggregated @ np.asarray(weights), atol=1e-9)
    np.testing.assert_allclose(results["Z"].to_numpy(), aggregated.max(axis=0), atol=1e-9)


@contextmanager
def explained(connection: psycopg.Connection) -> Iterator[list[str]]:
    """Plans of the statements of a connection within the block, with actual rows and workers."""
    plans: list[str] = []

    def note(diagnostic: psycopg.errors.Diagnostic) -> None:
        plans.append(diagnostic.message_primary or "")

    try:
        connection.execute("LOAD 'auto_explain'")
    except psycopg.errors.UndefinedFile:
        pytest.skip("this server has no auto_explain")
    settings = {"log_min_duration": "0", "log_analyze": "on", "log_timing": "off", "log_level": "notice"}
    for name, value in settings.items():
        connection.execute(f"SET auto_explain.{name} = {value}")
    connection.add_notice_handler(note)
    try:
        yield plans
    finally:
        connection.remove_notice_handler(note)
        connection.execute("SET auto_explain.log_min_duration = -1")


class TestWorkers:
    def test_are_used_for_large_tables(self, large: se.Database) -> None:
        with explained(large.connection) as plans:
            large.run(large.plan(LAYER, indexes=False, pin={"Y": ("i",)}))
        (product,) = (plan for plan in plans if "CREATE UNLOGGED TABLE" in plan)
        assert "Workers Launched: 2" in product
        assert "Parallel Seq Scan on a " in product
        readers = [plan for plan in plans if '_T"' in plan and plan is not product and "CREATE" not in plan]
        assert any("Workers Launched: 2" in plan and 'Parallel Seq Scan on "sparseeinsum_' in plan for plan in readers)

    def test_scan_intermediate_results_in_parallel(self, large: se.Database) -> None:
        text = "T[i, m] = sum(A[i, j] * H[j, m])\nZ[i, m] = sum(A[i, j] * T[j, m])"
        plan = large.plan(text, rewrite=False, indexes=False)
        assert plan.data.statements.staged_names == ("T",)
        with explained(large.connection) as plans:
            result = large.run(plan)["Z"].to_numpy()
        (reader,) = (text for text in plans if '_T"' in text and "CREATE" not in text)
        assert 'Parallel Seq Scan on "sparseeinsum_' in reader
        adjacency, hidden, _ = large_inputs().values()
        once = np.asarray(adjacency @ hidden)
        np.testing.assert_allclose(result, np.asarray(adjacency @ once), atol=1e-9)

    def test_results_are_those_of_numpy(self, large: se.Database) -> None:
        before = contents(large)
        check_layer(large)
        assert contents(large) == before

    def test_are_not_used_for_small_tables(self, db: se.Database) -> None:
        db.tensor("A", sp.csr_array(np.eye(30)))
        db.tensor("H", np.ones((30, 4)))
        db.tensor("W", np.ones((4, 2)))
        with explained(db.connection) as plans:
            db.run(LAYER, pin={"T": ("i",)})
        assert any("CREATE TEMPORARY TABLE" in plan for plan in plans)
        assert not any("Workers Planned" in plan for plan in plans)

    @pytest.mark.parametrize(("width", "staged"), [(600, ("V",)), (60, ())])
    def test_do_not_each_compute_stacked_arrays(self, db: se.Database, width: int, staged: tuple[str, ...]) -> None:
        rng = np.random.default_rng(0)
        left, right, rows = (rng.standard_normal(shape) for shape in ((width, 2000), (width, 2000), (60, width)))
        for name, array in {"P": left, "Q": right, "H": rows}.items():
            db.tensor(name, array)
        program = "V[m, n] = sum(P[m, k] * Q[n, k])\nY[i, n] = sum(H[i, m] * V[m, n])"
        plan = db.plan(program, pin={"V": "n", "Y": "i"}, rewrite=False)
        assert plan.data.statements.staged_names == staged
        last = plan.data.definitions[-1].relation
        in_memory = dict.fromkeys(last.inputs[:1], 1)  # a process reads this operand alone, so it needs no table of V
        assert plan.data.statements.reading(in_memory).staged_names == ()
        np.testing.assert_allclose(db.run(plan)["Y"].to_numpy(), rows @ (left @ right.T), atol=1e-8)

    def test_get_plans_without_large_constants(self, db: se.Database) -> None:
        """The array of fill values for absent tuples would be written number by number into the plan."""
        db.tensor("W", np.ones((100, 100)))
        plan = db.plan("Y[i] = sum(W[i, j] * W[k, j])", pin={"Y": ""})
        assert "tensor_fill" in plan.sql()
        explanation = db.connection.execute(f"EXPLAIN (VERBOSE) {plan.sql()}").fetchall()
        assert len(str(explanation)) < 10_000
        np.testing.assert_allclose(db.run(plan)["Y"].to_numpy(), np.full(100, 10_000.0))

    def test_roles_without_create_rights_use_temporary_tables(self, large: se.Database) -> None:
        run = large.connection.execute
        run("CREATE ROLE reader; GRANT USAGE ON SCHEMA main, sparseeinsum TO reader")
        run("GRANT SELECT ON ALL TABLES IN SCHEMA main, sparseeinsum TO reader; SET ROLE reader")
        try:
            check_layer(large)
        finally:
            run("RESET ROLE; DROP OWNED BY reader; DROP ROLE reader")


class TestValues:
    def test_are_computed_once_for_all_pairs_that_read_them(self, db: se.Database) -> None:
        """Each of the two products has one row per node, and many edges read each row."""
        rng = np.random.default_rng(0)
        nodes, adjacency = 12, rng.integers(0, 2, (12, 12)).astype(float)
        inputs = {"X": rng.random((nodes, 5)), "Q": rng.random((5, 7)), "K": rng.random((5, 7))}
        for name, array in inputs.items():
            db.tensor(name, array)
        db.tensor("A", adjacency, promoted=["dim_0", "dim_1"])
        program = """
        U[i, k] = sum(X[i, m] * Q[m, k])
        V[j, k] = sum(X[j, m] * K[m, k])
        P[i, j, k] = A[i, j] * U[i, k]
        S[i, j] = sum(P[i, j, k] * V[j, k])
        """
        plan = db.plan(program, pin={"U": "i", "V": "j", "P": "ij", "S": "ij"})
        db.connection.execute("SET track_functions = 'all'")
        with db.connection.transaction():
            result = db.run(plan)["S"].to_numpy()
            query = "SELECT SUM(calls) FROM pg_stat_xact_user_functions WHERE funcname = 'tensor_matmul'"
            ((calls,),) = db.connection.execute(query).fetchall()
        expected = adjacency * (inputs["X"] @ inputs["Q"] @ (inputs["X"] @ inputs["K"]).T)
        np.testing.assert_allclose(result, expected)
        assert calls == 2 * nodes


class TestOrderedEntries:
    PROGRAM = """
    T[i, k] = sum(D[i, j] * A[j, k])
    H[i, m] = tanh(sum(T[i, k] * X[k, m]))
    G[i, o] = sum(H[i, m] * W[m, o])
    Y[i, o] = sum(T[i, k] * G[k, o])
    """  # two products order T by row

    @pytest.mark.parametrize(("outputs", "staged"), [(["Y"], ()), (["H", "Y"], ("T", "H"))])
    def test_need_a_table_if_several_statements_read_them(
        self, db: se.Database, outputs: list[str], staged: tuple[str, ...]
    ) -> None:
        rng, nodes = np.random.default_rng(0), 2_000
        adjacency = sp.random_array((nodes, nodes), density=0.002, rng=rng, format="coo")
        degrees = np.arange(1.0, nodes + 1)
        features, weights = rng.standard_normal((nodes, 32)), rng.standard_normal((32, 16))
        scaling = sp.coo_array(sp.diags_array(degrees))
        for name, data in {"A": adjacency, "D": scaling, "X": features, "W": weights}.items():
            db.tensor(name, data)
        plan = db.plan(self.PROGRAM, outputs=outputs)
        assert "T[I, K]" in plan.notation()[0]
        assert plan.data.statements.staged_names == staged
        results = db.run(plan)
        mixed = degrees[:, None] * adjacency.toarray()
        hidden = np.tanh(mixed @ features)
        expected = {"H": hidden, "Y": mixed @ (hidden @ weights)}
        for name in outputs:
            np.testing.assert_allclose(results[name].to_numpy(), expected[name], rtol=1e-9, atol=1e-9)

    @pytest.mark.parametrize("dtype", ["float64", "float32"])
    def test_are_handed_over_without_tuples_or_tables(self, db: se.Database, dtype: str) -> None:
        """One process computes T and all that reads it, so that tables of other operands would save no time."""
        rng, nodes, width = np.random.default_rng(0), 6_000, 256
        adjacency = sp.random_array((nodes, nodes), density=0.005, rng=rng).tocsr().astype(dtype)
        scaling = sp.diags_array(np.arange(1.0, nodes + 1, dtype=dtype) / nodes).tocoo()
        features, weights = (rng.standard_normal(shape).astype(dtype) for shape in ((nodes, width), (width, 64)))
        for name, data in {"A": adjacency, "D": scaling, "X": features, "W": weights}.items():
            db.tensor(name, data)
        plan = db.plan(self.PROGRAM, rewrite=False)
        (statement,) = plan.data.statements.for_run
        assert statement.text.count("tensor_product_row") == 1
        assert "ARRAY_AGG" not in statement.text
        mixed = scaling @ adjacency
        expected = mixed @ (np.tanh(mixed @ features) @ weights)
        tolerance = 1e-9 if dtype == "float64" else 1e-3
        for _ in range(3):
            np.testing.assert_allclose(db.run(plan)["Y"].to_numpy(), expected, rtol=tolerance, atol=tolerance)
        with explained(db.connection) as plans:
            db.run(plan)
        (last,) = (text for text in plans if "tensor_product_row" in text)
        assert "tensor_kept" in last  # operands are in memory since earlier runs
        assert "CTE H" not in last  # and PostgreSQL puts queries that read them into others


class TestWholeProducts:
    PROGRAMS: ClassVar = {
        "tensor_gather_sums": "Y[i, k] = sum(A[i, j] * U[j, k])",
        "tensor_sparse_matmul": "Y[i, k] = sum(A[i, j] * U[j, k])",
        "tensor_gather_product_sums": "Y[i, k] = sum(B[i, j, l] * P[j, k] * V[l, k])",
        "tensor_product_numbers": "Y[i] = min(S[i, j] + D[j])",
        "tensor_product_rows": "Y[i, k] = sum(A[i, j] * A[j, k])",
        "tensor_scaled_dot_rows": "Y[i, j] = A[i, j] * sum(U[i, k] * V[j, k])",
        "tensor_with_numbers": "P[i, j] = A[i, j] * sum(U[i, k] * V[j, k])\nY[i, j] = tanh(P[i, j])",
        "tensor_masked_product_rows": "Y[] = sum(A[i, j] * A[j, k] * A[i, k])",
    }

    @pytest.mark.parametrize("in_lists", [False, True], ids=["entries", "lists"])
    @pytest.mark.parametrize("function", PROGRAMS)
    def test_are_computed_in_one_call(self, db: se.Database, function: str, in_lists: bool) -> None:
        """The first run orders entries by a GROUP BY; later ones have them in memory."""
        rng, nodes = np.random.default_rng(0), 3_000
        places = rng.choice(nodes * nodes, 30_000, replace=False)
        entries, indices = rng.standard_normal(len(places)), np.divmod(places, nodes)
        dense, lengths = np.zeros((nodes, nodes)), np.full((nodes, nodes), np.inf)
        dense[indices], lengths[indices] = entries, entries
        left, right, start = (rng.standard_normal(shape) for shape in ((nodes, 16), (nodes, 16), nodes))
        adjacency = sp.coo_array((entries, indices), shape=(nodes, nodes))
        for name, data in {"A": adjacency, "U": left, "V": right, "D": start}.items():
            db.tensor(name, data, layout="A[I, ~j]" if in_lists and name == "A" else None)
        db.tensor("S", adjacency, fill=np.inf, layout="S[I, ~j]" if in_lists else None)
        i, j, k = indices[0], indices[1] // 2, indices[1]
        cube = sp.coo_array((entries, (i, j, k)), shape=(nodes, nodes // 2, nodes))
        db.tensor("B", cube, layout="B[I, ~j, ~k]" if in_lists else None)
        of_cube = np.zeros((nodes, 16))
        np.add.at(of_cube, i, entries[:, None] * left[j] * right[k])
        db.tensor("P", left[: nodes // 2])
        results: dict[str, Callable[[], Array]] = {
            "tensor_gather_sums": lambda: dense @ left,
            "tensor_sparse_matmul": lambda: dense @ left,
            "tensor_gather_product_sums": lambda: of_cube,
            "tensor_product_numbers": lambda: np.min(lengths + start, axis=1),
            "tensor_product_rows": lambda: dense @ dense,
            "tensor_scaled_dot_rows": lambda: dense * (left @ right.T),
            "tensor_with_numbers": lambda: np.tanh(dense * (left @ right.T)),
            "tensor_masked_product_rows": lambda: np.sum((dense @ dense) * dense),
        }
        expected = results[function]()
        promoted: dict[str, tuple[str, ...]] = {"tensor_gather_sums": ("i", "j"), "tensor_sparse_matmul": ()}
        pin = {"Y": promoted[function]} if function in promoted else {}
        plan = db.plan(self.PROGRAMS[function], layout="any", pin=pin)
        db.connection.execute("SET track_functions = 'all'")
        db.connection.execute("SELECT pg_stat_reset()")
        for _ in range(3):
            result = db.run(plan)["Y"].to_numpy()
            np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-9)
        db.connection.execute("SELECT pg_stat_force_next_flush()")
        query = f"SELECT calls FROM pg_stat_user_functions WHERE funcname = '{function}'"
        ((calls,),) = db.connection.execute(query).fetchall()
        assert 1 <= calls <= 3


class TestKeys:
    @pytest.mark.parametrize(
        ("program", "key"),
        [
            ("Y[i, k] = sum(A[i, j] * A[j, k])", ["i", "k"]),
            ("Y[i, K] = sum(A[i, j] * A[j, K])", ["k"]),
            ("Y[i] = sum(A[i, j])", ["i"]),
            ("Y[] = sum(A[i, j])", []),
        ],
    )
    def test_of_result_tables_are_primary_keys(self, db: se.Database, program: str, key: list[str]) -> None:
        db.tensor("A", np.arange(16.0).reshape(4, 4), promoted=["dim_0", "dim_1"])
        query = """
        SELECT attname FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
        WHERE indisprimary AND indrelid = '"Scores"'::regclass ORDER BY attname
        """
        for _ in range(2):  # also if the table exists
            db.run(program, into={"Y": '"Scores"'})
            assert [name for (name,) in db.connection.execute(query).fetchall()] == key


class TestSingleArrays:
    def test_one_statement_computes_those_that_several_read(self, db: se.Database) -> None:
        """A table of each would be compressed and written before anybody reads it."""
        rng = np.random.default_rng(0)
        scores, values = rng.normal(size=(300, 200)), rng.normal(size=(200, 8))
        db.tensor("S", scores)
        db.tensor("V", values)
        text = "P[i, j] = softmax[j](S[i, j] * 0.5)\nY[i, k] = sum(P[i, j] * V[j, k])"
        plan = db.plan(text, layout="any", pin=dict.fromkeys(("Y", "P_value", "P_max", "P_exp", "P_sum", "P"), ()))
        with explained(db.connection) as plans:
            result = db.run(plan)["Y"].to_numpy()
        assert not any("CREATE" in plan for plan in plans)
        powers = np.exp(scores * 0.5)
        np.testing.assert_allclose(result, powers @ values / powers.sum(axis=1, keepdims=True), rtol=1e-12)

    def test_tables_of_arrays_are_not_compressed_slowly(self, db: se.Database) -> None:
        """The method is that of the transaction alone."""
        has_lz4 = "SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'"
        ((is_quick,),) = db.connection.execute(has_lz4).fetchall()
        ((before,),) = db.connection.execute("SHOW default_toast_compression").fetchall()
        with db._engine.transaction():
            ((during,),) = db._engine.rows("SELECT current_setting('default_toast_compression')")
        assert during == ("lz4" if is_quick else before)
        assert db.connection.execute("SHOW default_toast_compression").fetchall() == [(before,)]


class TestNumbersOfEntries:
    """EinSums that read the numbers of a product of sparse matrices, all at once where that is the same."""

    PROGRAMS: ClassVar[dict[str, tuple[str, Callable[[Array, Array], Array]]]] = {
        "function": ("Y[i, k] = abs(P[i, k])", lambda p, a: np.abs(p)),
        "transpose": ("Y[k, i] = abs(P[i, k])", lambda p, a: np.abs(p).T),
        "functions": ("Q[i, k] = abs(P[i, k])\nY[i, k] = min(Q[i, k], 3)", lambda p, a: np.minimum(np.abs(p), 3)),
        "sum": ("Y[] = sum(P[i, k])", lambda p, a: np.sum(p)),
        "sum of squares": ("Y[] = sum(P[i, k] * P[i, k])", lambda p, a: np.sum(p * p)),
        "sum of a function": ("Q[i, k] = abs(P[i, k])\nY[] = sum(Q[i, k])", lambda p, a: np.sum(np.abs(p))),
        "sums of rows": ("Y[i] = sum(P[i, k])", lambda p, a: p.sum(axis=1)),
        "product": (
            "Q[k, i] = abs(P[i, k])\nY[k, j] = sum(Q[k, i] * A[i, j])",
            lambda p, a: sp.csr_array(np.abs(p).T).dot(a).toarray(),
        ),
        "absent": ("Y[i, k] = P[i, k] + 1", lambda p, a: p + 1),
        "sum of absent": ("Y[] = sum(P[i, k] + 1)", lambda p, a: np.sum(p + 1)),
    }

    @pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
    @pytest.mark.parametrize("name", PROGRAMS)
    @pytest.mark.parametrize("count", [0, 4000], ids=["none", "entries"])
    def test_results_are_numpys(self, db: se.Database, name: str, dtype: str, count: int) -> None:
        rng, nodes = np.random.default_rng(0), 1500
        matrices: list[Array] = []
        for matrix in "AB":
            places = rng.choice(nodes * nodes, count, replace=False)
            data = sp.coo_array((rng.integers(-4, 5, count), np.divmod(places, nodes)), shape=(nodes, nodes))
            matrices.append(data.tocsr().astype(dtype))
            db.tensor(matrix, data.tocsr().astype(dtype), layout=f"{matrix}[I, J]")
        product = matrices[0] @ matrices[1]
        text, compute = self.PROGRAMS[name]
        expected = compute(product.toarray(), matrices[0])
        for rewrite in (False, True):
            program, pin = f"P[i, k] = sum(A[i, j] * B[j, k])\n{text}", {"P": ("i", "j", "k")}
            plan = db.plan(program, outputs=["Y"], layout="any", rewrite=rewrite, pin=pin)
            assert count == 0 or rewrite or "tensor_product_row" in plan.sql()
            for _ in range(2):
                np.testing.assert_allclose(db.run(plan)["Y"].to_numpy(), expected, rtol=1e-5)

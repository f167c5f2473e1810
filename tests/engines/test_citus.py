"""Programs on a Citus cluster give numpy's results, leave tables in place, and fail without traces."""

import itertools
from collections.abc import Mapping
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from citus_cluster import Cluster
from hypothesis import given
from hypothesis import strategies as st
from program_cases import check
from random_programs import FAMILIES, cases
from random_runs import random_runs
from reading import engine_of, read_back

import sparseeinsum as se
from sparseeinsum.api.examples import (
    MATRIX_CHAIN,
    attention_inputs,
    attention_program,
    attention_reference,
    citation_graph,
    gcn_inputs,
    gcn_reference,
    matrix_chain_inputs,
    matrix_chain_reference,
)
from sparseeinsum.api.graphs import GCN
from sparseeinsum.decompose.clusters import cluster_tasks
from sparseeinsum.decompose.clusters.local_strategies import contraction_strategies
from sparseeinsum.decompose.places.distribution import Hashed, Replicated, Scattered
from sparseeinsum.render.dialects import write_sql
from sparseeinsum.storage.tensor_placement import distribution_of

PRODUCT = "C[i, k] = sum(A[i, j] * B[j, k])"


@pytest.fixture
def db(citus: se.Database) -> se.Database:
    """A database of the cluster; tensors of one test replace those of others."""
    return citus


def filling_queries(plan: se.Plan) -> list[str]:
    """Queries that fill distributed tables of a run."""
    spread = [
        statement
        for statement in plan.data.statements.for_run
        if statement.stage is not None and statement.distribution is not None
    ]
    return [
        write_sql(statement.query, statement.dialect)
        for statement in spread
        if statement.distribution and statement.distribution.column
    ]


def explained(db: se.Database, query: str) -> str:
    rows = db.connection.execute(f"EXPLAIN (COSTS OFF) {query}").fetchall()
    return "\n".join(line for (line,) in rows)


class TestExtension:
    def test_functions_are_on_all_nodes(self, cluster: Cluster, citus_url: str) -> None:
        for server in (cluster.coordinator, *cluster.workers):
            with server.connect(__name__) as connection:
                assert connection.execute("SELECT tensor_dot(ARRAY[1.0, 2.0], ARRAY[3.0, 4.0])").fetchone() == (11.0,)

    def test_a_node_without_functions_is_named(self, cluster: Cluster) -> None:
        url = cluster.create_database("half")
        with cluster.workers[1].connect("half") as connection:
            connection.execute("SET citus.enable_ddl_propagation = off; DROP EXTENSION sparseeinsum")
        with pytest.raises(se.EngineError, match=f"the machine {cluster.workers[1].folder}:.* lacks the functions"):
            se.connect(url)

    def test_aggregates_are_computed_in_two_phases(self, db: se.Database) -> None:
        """Each site aggregates its tuples before it sends the partial results."""
        db.tensor("A", np.arange(60.0).reshape(20, 3), distribute="dim_0")
        query = "SELECT tensor_sum(val) AS val FROM a"
        assert db.connection.execute(query).fetchone() == (list(np.arange(60.0).reshape(20, 3).sum(axis=0)),)
        verbose = db.connection.execute(f"EXPLAIN (VERBOSE, COSTS OFF) {query}").fetchall()
        assert any("worker_partial_agg" in line for (line,) in verbose)


class TestPlaces:
    def test_tensors_are_distributed_as_users_say(self, db: se.Database) -> None:
        matrix = sp.csr_array(np.arange(12.0).reshape(3, 4))
        for given_place, place in (("dim_0", Hashed(0)), ("dim_1", Hashed(1)), ("replicated", Replicated())):
            stored = db.tensor("A", matrix, distribute=given_place)
            assert distribution_of(stored, engine_of(db)) == place
            np.testing.assert_array_equal(read_back(db, "A"), matrix.toarray())

    def test_small_tensors_are_replicated(self, db: se.Database) -> None:
        assert distribution_of(db.tensor("A", np.eye(3)), engine_of(db)) == Replicated()
        large = db.tensor("B", np.ones((1100, 1000)))
        assert distribution_of(large, engine_of(db)) == Hashed(0)
        assert db.statistics("B").entries == 1_100_000

    def test_an_axis_without_a_key_column_is_refused(self, db: se.Database) -> None:
        with pytest.raises(se.ShapeError, match=r"no key column dim_1 to distribute .* it has dim_0; or pass"):
            db.tensor("A", np.eye(3), distribute="dim_1")
        assert db.tensors() == {}

    def test_results_stay_distributed(self, db: se.Database) -> None:
        db.tensor("A", sp.csr_array(np.eye(5)), distribute="dim_0")
        db.tensor("B", np.arange(10.0).reshape(5, 2))
        db.run(PRODUCT, into={"C": "product"})
        stored = db.tensor_from_table("P", "product", ["i", "k"], "val", shape=(5, 2))
        assert distribution_of(stored, engine_of(db)) == Hashed(0)
        np.testing.assert_array_equal(read_back(db, "P"), np.arange(10.0).reshape(5, 2))
        db.connection.execute("DROP TABLE product")

    def test_tables_of_users_are_read_where_they_are(self, db: se.Database) -> None:
        db.connection.execute("CREATE TABLE local (i INT, v FLOAT8); INSERT INTO local VALUES (0, 2), (2, 4)")
        db.connection.execute("CREATE TABLE spread (i BIGINT, j TEXT, v FLOAT8)")
        db.connection.execute("SELECT create_distributed_table('spread', 'j', colocate_with => 'none')")
        db.connection.execute("INSERT INTO spread VALUES (0, 'a', 1), (1, 'b', 3), (2, 'c', 5)")
        db.tensor_from_table("L", "local", ["i"], "v", shape=(3,))
        db.tensor_from_table("S", "spread", ["i"], "v", shape=(3,))
        results = db.run("T[i] = L[i] + S[i]\nd[] = sum(L[i] * S[i])")
        assert results["T"].to_numpy().tolist() == [3.0, 3.0, 9.0]
        assert results["d"].to_numpy() == 22.0
        db.connection.execute("DROP TABLE local, spread")

    def test_statistics_equal_those_of_one_server(self, db: se.Database) -> None:
        rng = np.random.default_rng(0)
        sparse, dense = sp.csr_array(sp.random_array((40, 30), density=0.1, rng=rng)), rng.integers(0, 3, (8, 5, 4))
        with se.connect() as other:
            for name, data, promoted in (("A", sparse, None), ("B", dense, ["dim_0"]), ("C", dense, {"dim_0": 3})):
                other.tensor(name, data, promoted=promoted)
                for place in ("dim_0", "replicated"):
                    db.tensor(name, data, promoted=promoted, distribute=place)
                    assert db.statistics(name) == other.statistics(name)


class TestRuns:
    @pytest.mark.usefixtures("nothing_is_small")
    def test_joins_and_aggregates_run_where_the_rows_are(self, db: se.Database) -> None:
        """Whole joins are sent to every shard; the coordinator gets only what it broadcasts."""
        db.tensor(
            "A", sp.csr_array(sp.random_array((50, 40), density=0.2, rng=np.random.default_rng(0))), distribute="dim_0"
        )
        db.tensor("B", np.ones((40, 8)), distribute="dim_0")
        plan = db.plan("T[i, k] = sum(A[i, j] * B[j, k])\nY[i, k] = relu(T[i, k])\nZ[i] = sum(A[i, j] * Y[i, k])")
        queries = filling_queries(plan)
        assert len(queries) >= 2
        text = plan.sql("staged")
        with db.connection.transaction(force_rollback=True):
            db.connection.execute("SET LOCAL citus.enable_local_execution = off")
            for command in text.split(";\n"):
                if command.strip().startswith("INSERT"):
                    explanation = explained(db, command)
                    assert explanation.count("Distributed Subplan") == explanation.count('  Seq Scan on "B_by_dim_0_1"')
                    assert "pull to coordinator" not in explanation
                    assert "Task Count: 8" in explanation
                if command.strip():
                    db.connection.execute(command)

    @pytest.mark.parametrize("columns", [100, 1500])
    def test_arrays_are_broadcast_as_bytes(self, db: se.Database, columns: int) -> None:
        """Numbers take eight bytes each, also if arrays are unnested to rows before the join."""
        rng = np.random.default_rng(0)
        left, right = sp.csr_array(sp.random_array((300, 80), density=0.5, rng=rng)), rng.normal(size=(80, columns))
        db.tensor("A", left, distribute="dim_0")
        db.tensor("B", right, distribute="dim_0")
        plan = db.plan(PRODUCT, pin={"C": "ij"})
        gathering, filling = (statement for statement in plan.data.statements.for_run if statement.stage is not None)
        with db.connection.transaction(force_rollback=True):
            assert engine_of(db).stage(gathering) == 80
            query = f"EXPLAIN (ANALYZE) {write_sql(filling.query, filling.dialect)}"
            lines = [line for (line,) in db.connection.execute(query).fetchall()]
        (size,) = (line.split(": ")[1] for line in lines if "Intermediate Data Size: " in line)
        ((sent,),) = db.connection.execute("SELECT pg_size_bytes(%s)", [size]).fetchall()
        assert sent == pytest.approx(8 * right.size, rel=0.05)
        np.testing.assert_allclose(db.run(plan)["C"].to_numpy(), np.asarray(left @ right), rtol=1e-12, atol=1e-12)

    @pytest.mark.parametrize("place", ["dim_0", "replicated"])
    def test_arrays_beyond_a_page_are_fetched_once(self, db: se.Database, place: str) -> None:
        """Arrays are unnested to rows on the workers before the join."""
        rng = np.random.default_rng(0)
        left, right = sp.csr_array(sp.random_array((30, 12), density=0.5, rng=rng)), rng.normal(size=(12, 1500))
        db.tensor("A", left, distribute="dim_1" if place == "dim_0" else "dim_0")
        db.tensor("B", right, distribute=place)
        plan = db.plan("C[j, i, k] = A[i, j] * B[j, k]", pin={"C": "ij"})
        (query,) = filling_queries(plan)
        explanation = explained(db, query)
        assert "Subplan" not in explanation
        assert "Task Count: 8" in explanation
        assert "Subquery Scan on v" in explanation
        result = db.run(plan)["C"].to_numpy()
        np.testing.assert_array_equal(result, left.toarray().T[:, :, None] * right[:, None, :])

    @pytest.mark.parametrize(
        ("left", "right"), list(itertools.product(["dim_0", "dim_1", "replicated"], ["dim_0", "replicated"]))
    )
    def test_product(self, db: se.Database, left: str, right: str) -> None:
        rng = np.random.default_rng(0)
        first, second = sp.csr_array(sp.random_array((30, 40), density=0.2, rng=rng)), rng.normal(size=(40, 5))
        db.tensor("A", first, distribute=left)
        db.tensor("B", second, distribute=right)
        for pin in ("i", "ij", "ijk"):
            result = db.run(PRODUCT, pin={"C": pin})["C"].to_numpy()
            np.testing.assert_allclose(result, np.asarray(first @ second), rtol=1e-12, atol=1e-12)

    @pytest.mark.parametrize("text", ["C[i, k] = sum(A[i, j] * B[j, k])", "C[k] = sum(tanh(A[i, j] * B[j, k]))"])
    def test_all_strategies(self, db: se.Database, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each strategy gives the same result; workers fill tables unless the coordinator gathers partial results."""
        rng = np.random.default_rng(0)
        left, right = rng.normal(size=(12, 20)), rng.normal(size=(20, 30))
        db.tensor("A", left, promoted={"dim_0": 4, "dim_1": 5}, distribute="dim_0")
        db.tensor("B", right, promoted={"dim_0": 5, "dim_1": 6}, distribute="dim_1")
        expected = np.tanh(left[:, :, None] * right).sum(axis=(0, 1)) if "tanh" in text else left @ right
        planned = partial(db.plan, text, pin={"C": {"i": 4, "j": 5, "k": 6}}, rewrite=False)
        (step,) = planned().data.decomposed.steps
        kinds = set()
        strategies = contraction_strategies(step.einsum, step.choice, step.absence.join)
        for strategy in (
            candidate for candidate in strategies if Scattered() not in candidate.operands
        ):  # no operand is scattered here
            with monkeypatch.context() as patched:
                patched.setattr(cluster_tasks, "contraction_strategies", lambda *_, only=strategy: [only])
                plan = planned()
            assert plan.data.decomposed.cluster_plan is not None
            assert plan.data.decomposed.cluster_plan.strategies == {"C": strategy}
            np.testing.assert_allclose(db.run(plan)["C"].to_numpy(), expected, rtol=1e-12, atol=1e-12)
            with db.connection.transaction(force_rollback=True):
                for command in plan.sql("staged").split(";\n"):
                    if command.strip().startswith("INSERT") and not strategy.gathers and not strategy.runs_on_one_site:
                        assert "pull to coordinator" not in explained(db, command)
                    db.connection.execute(command)
            kinds.add((strategy.gathers, strategy.parts_by))
        assert kinds == {(False, None), (True, None), (False, "j")} | ({(False, "i")} if "tanh" in text else set())

    @pytest.mark.parametrize("place", ["dim_0", "dim_1"])
    def test_diagonals(self, db: se.Database, place: str) -> None:
        """Rows may be distributed by either of two equal keys."""
        rng = np.random.default_rng(0)
        left, right = sp.csr_array(sp.random_array((40, 40), density=0.5, rng=rng)), rng.normal(size=(40, 6))
        db.tensor("A", left, distribute=place)
        db.tensor("B", right, distribute="dim_0")
        expected = left.diagonal()[:, None] * right
        programs = {"C[i, k] = A[i, i] * B[i, k]": expected, "C[k] = sum(A[i, i] * B[i, k])": expected.sum(axis=0)}
        for text, wanted in programs.items():
            np.testing.assert_allclose(db.run(text)["C"].to_numpy(), wanted, rtol=1e-12, atol=1e-12)

    def test_groups_of_whole_operands_in_tiles(self, db: se.Database) -> None:
        """Keys come from either operand that has a tuple, and give the extents of the last arrays."""
        rng = np.random.default_rng(0)
        left, right = (np.where(rng.random((3, 3, 2)) < 0.5, 1.0, rng.normal(size=(3, 3, 2))) for _ in range(2))
        db.tensor("A", left, fill=1.0, distribute="dim_0")
        db.tensor("B", right, fill=1.0, distribute="dim_0")
        plan = db.plan("C[k, j] = sum(A[k, i, j] * B[k, i, j])", pin={"C": {"i": 1, "j": 1, "k": 2}})
        assert any("FULL JOIN" in query for query in filling_queries(plan))
        np.testing.assert_allclose(db.run(plan)["C"].to_numpy(), (left * right).sum(axis=1), rtol=1e-12)

    def test_a_label_that_a_tensor_has_twice(self, db: se.Database) -> None:
        """Rows are joined by the first of two equal keys, although the second distributes them."""
        cube = np.random.default_rng(0).random((3, 3, 2)) < 0.8
        expected = (cube[:, :, :, None] & np.einsum("jjl->jl", cube)[None, :, None, :]).all(axis=(1, 3))
        for place in ("dim_0", "dim_1", "dim_2"):
            db.tensor("B", cube, promoted=["dim_0", "dim_1", "dim_2"], distribute=place)
            results = db.run("T[i, k] = prod(B[i, j, k] and B[j, j, l])", optimizer="relational")
            np.testing.assert_array_equal(results["T"].to_numpy(), expected)

    @pytest.mark.usefixtures("nothing_is_small")
    def test_a_program_cut_into_a_grid(self, db: se.Database) -> None:
        """Tuples are keyed by cells of several labels; one of these says on which machine they are."""
        rng = np.random.default_rng(0)
        a, b = rng.normal(size=(64, 64)), rng.normal(size=(64, 64))
        db.tensor("A", a, promoted={"dim_0": 16})
        db.tensor("B", b, promoted={"dim_1": 16})
        plan = db.plan(PRODUCT, workers=16, objective="floats")
        assert plan.partitioned is not None
        assert sum(pieces > 1 for pieces in plan.partitioned.vectors["C"].values()) > 1
        assert plan.partitioned.moved == se.partition(PRODUCT, 16, {"A": (64, 64), "B": (64, 64)}).moved
        (notation,) = plan.notation()
        assert notation.startswith("C[I:16, K:")
        assert plan.transferred_bytes > 0
        np.testing.assert_allclose(db.run(plan)["C"].to_numpy(), a @ b)

    @pytest.mark.usefixtures("nothing_is_small")
    def test_gcn(self, db: se.Database) -> None:
        inputs = gcn_inputs(citation_graph())
        for name, matrix in inputs.items():
            db.tensor(name, matrix)
        expected = np.asarray(gcn_reference(inputs))
        np.testing.assert_allclose(db.run(GCN)["Y"].to_numpy(), expected, rtol=1e-9)

    @pytest.mark.usefixtures("nothing_is_small")
    def test_attention(self, db: se.Database) -> None:
        inputs = attention_inputs(citation_graph(), width=64)
        for name, matrix in inputs.items():
            db.tensor(name, matrix)
        result = db.run(attention_program(64)).popitem()[1].to_scipy()
        expected = attention_reference(inputs)
        np.testing.assert_allclose(result.toarray(), expected.toarray(), rtol=1e-8, atol=1e-12)

    @pytest.mark.usefixtures("nothing_is_small")
    def test_matrix_chain(self, db: se.Database) -> None:
        inputs = matrix_chain_inputs(40)
        for name, matrix in inputs.items():
            db.tensor(name, matrix)
        (result,) = db.run(MATRIX_CHAIN).values()
        np.testing.assert_allclose(result.to_numpy(), matrix_chain_reference(inputs), rtol=1e-9)

    @pytest.mark.usefixtures("nothing_is_small")
    @pytest.mark.parametrize("family", FAMILIES)
    def test_random_programs(self, db: se.Database, family: str) -> None:
        @random_runs(5, "citus")
        @given(st.data())
        def run(data: st.DataObject) -> None:
            optimizer = data.draw(st.sampled_from(["dp", "greedy", "relational", "dense"]))
            speed = data.draw(st.sampled_from(["10", "1e-6"]))  # in the slow network, what is read twice is sent once
            db.connection.execute(f"SET sparseeinsum.network_gbit_per_second = '{speed}'")
            check(db, data.draw(cases(family, optimizer)))

        run()
        db.connection.execute("RESET sparseeinsum.network_gbit_per_second")

    def test_streams(self, db: se.Database) -> None:
        db.tensor("A", np.arange(6.0).reshape(3, 2), distribute="dim_0")
        with db.stream("Y[i, j] = A[i, j] * 2") as results:
            batches = list(results["Y"])
        assert sorted(value for batch in batches for value in batch["val"].to_pylist()) == [2.0, 4.0, 6.0, 8.0, 10.0]

    def test_explain_reports_transfers(self, db: se.Database) -> None:
        db.tensor("A", sp.csr_array(np.eye(5)), distribute="dim_0")
        db.tensor("B", np.ones((5, 2)), distribute="dim_0")
        plan = db.plan(PRODUCT)
        assert plan.data.transferred_bytes > 0
        assert " between machines; planned in " in plan.explain(analyze=True)

    @pytest.mark.usefixtures("nothing_is_small")
    def test_a_slow_network_is_used_less(self, db: se.Database) -> None:
        """The user's network speed is part of the cost: on a slow network plans transfer less."""
        rng = np.random.default_rng(0)
        db.tensor("A", rng.normal(size=(400, 50)), distribute="dim_0")
        db.tensor("B", rng.normal(size=(50, 20)), distribute="replicated")
        moved = []
        for speed in ("", "0.001", "100"):
            db.connection.execute(f"SET sparseeinsum.network_gbit_per_second = '{speed}'")
            moved.append(db.plan(PRODUCT).data.transferred_bytes)
        assert moved[1] < moved[0] == moved[2]
        fewest = db.plan(PRODUCT, objective="floats")
        assert fewest.data.transferred_bytes <= moved[1]
        assert fewest.cost < 10  # seconds at this speed of the network
        np.testing.assert_allclose(db.run(fewest)["C"].to_numpy(), read_back(db, "A") @ read_back(db, "B"), rtol=1e-9)
        db.connection.execute("SET sparseeinsum.network_gbit_per_second = 'fast'")
        with pytest.raises(se.EngineError, match="is 'fast'; it must be a number above 0, such as 10"):
            db.plan(PRODUCT)

    @pytest.mark.parametrize("term", ["B[j, k]", "sum[l](B[j, l] * W[l, k])"])
    def test_what_two_statements_read_is_sent_once(self, db: se.Database, term: str) -> None:
        """Runs with a table on all machines: of a plan, of a program, in a transaction of the user's, analysed."""
        rng = np.random.default_rng(0)
        left, right, weights = rng.normal(size=(2, 40, 30)), rng.normal(size=(30, 20)), rng.normal(size=(20, 20))
        for name, matrix in zip("AEB", (*left, right), strict=True):
            db.tensor(name, matrix, promoted=["dim_0"], distribute="dim_0")
        db.tensor("W", weights)
        text, pins = f"C[i, k] = sum[j](A[i, j] * {term})\nD[i, k] = sum[j](E[i, j] * {term})", {"C": "i", "D": "i"}
        db.connection.execute("SET sparseeinsum.network_gbit_per_second = '0.00001'")
        plan = db.plan(text, pin=pins, rewrite=False)
        assert plan.data.fills_reference_tables
        expected = dict(zip("CD", left @ (right if term == "B[j, k]" else right @ weights), strict=True))
        tables = "SELECT logicalrelid::TEXT FROM pg_dist_partition ORDER BY 1"
        before = db.connection.execute(tables).fetchall()

        def check_results(results: Mapping[str, se.TensorResult]) -> None:
            for name, values in expected.items():
                np.testing.assert_allclose(results[name].to_numpy(), values, rtol=1e-11)

        check_results(db.run(plan))
        check_results(db.run(text, pin=pins, rewrite=False))
        with db.connection.transaction():
            check_results(db.run(plan))
        with db.stream(plan) as results:
            assert sum(len(batch) for batch in results["C"]) == 40 * 20
        with db.stream(text, pin=pins, rewrite=False) as results:
            assert sum(len(batch) for batch in results["D"]) == 40 * 20
        assert " between machines" in plan.explain(analyze=True)
        assert db.connection.execute(tables).fetchall() == before
        db.connection.execute("RESET sparseeinsum.network_gbit_per_second")

    def test_explain_reports_placements(self, db: se.Database) -> None:
        db.tensor("A", sp.csr_array(np.eye(5)), distribute="dim_0")
        db.tensor("B", np.ones((5, 2)), distribute="replicated")
        plan = db.plan(PRODUCT, pin={"C": "ij"})
        assert plan.data.decomposed.cluster_plan is not None
        (step,) = plan.data.decomposed.steps
        assert plan.data.decomposed.cluster_plan.describe(step.einsum) == "A by i, B everywhere -> by i"
        assert "A by i, B everywhere" in plan.explain()

    @pytest.mark.usefixtures("nothing_is_small")
    def test_sql_has_several_statements(self, db: se.Database) -> None:
        db.tensor("A", sp.csr_array(np.eye(5)), distribute="dim_0")
        plan = db.plan("Y[i] = sum(A[i, j])")
        assert "create_distributed_table('\"Y\"', 'i')" in plan.sql("staged")
        with pytest.raises(se.PlanError, match="every operator of a plan fills a table"):
            plan.sql()

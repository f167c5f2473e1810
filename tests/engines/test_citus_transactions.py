"""Runs on a Citus cluster keep users' transactions and settings, and failures leave nothing behind."""

from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse as sp
from citus_cluster import Cluster, connect, missing, start_cluster
from postgres_server import PostgresServer
from reading import contents, engine_of
from writers import SIZE, STATISTICS, check_consistent, writing

import sparseeinsum as se

PRODUCT = "C[i, k] = sum(A[i, j] * B[j, k])"
TABLES = """
SELECT n.nspname || '.' || c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'v') AND c.relname LIKE 'sparseeinsum%'"""


@pytest.fixture
def db(citus: se.Database) -> se.Database:
    """A database of the cluster, empty."""
    return citus


class TestTransactions:
    def test_shards_of_a_node_have_their_own_connections(self, cluster: Cluster, citus_url: str) -> None:
        """Except in a user's transaction, whose uncommitted rows only one connection would see."""
        query = f"SELECT COUNT(*) FROM pg_stat_activity WHERE datname = '{__name__}' AND state = 'idle in transaction'"
        text = f"{PRODUCT}\nY[i, k] = C[i, k] * 2\nZ[k] = sum(Y[i, k])"
        with se.connect(citus_url) as db, cluster.workers[0].connect(__name__) as worker:
            db.connection.execute("SET citus.force_max_query_parallelization = on")
            db.tensor("A", sp.csr_array(np.eye(50)), distribute="dim_0")
            db.tensor("B", np.arange(100.0).reshape(50, 2), distribute="dim_0")
            plan = db.plan(text, pin={"C": "ij"})
            counted = []
            for transaction in (nullcontext(), db.connection.transaction(force_rollback=True)):
                with transaction, db.stream(plan) as results:
                    counted.append(worker.execute(query).fetchone())
                    assert sorted(value for batch in results["Z"] for value in batch["val"].to_pylist()) == [4900, 5000]
            assert counted == [(4,), (1,)]
            for name in db.tensors():
                db.drop_tensor(name)

    def test_shards_of_a_node_share_its_memory(self, db: se.Database) -> None:
        db.connection.execute("SET effective_cache_size = '6400MB'")
        for pool, share in ((16, 4), (2, 2)):
            db.connection.execute(f"SET citus.max_adaptive_executor_pool_size = {pool}")
            with engine_of(db).transaction():
                assert db.connection.execute("SHOW work_mem").fetchone() == (f"{400 // share}MB",)

    def test_settings_of_a_run_apply_on_all_nodes(self, db: se.Database) -> None:
        """They apply until the run ends, in a user's transaction too."""
        query = "SELECT DISTINCT current_setting('enable_sort'), current_setting('work_mem'), val IS NULL FROM a"
        db.tensor("A", np.eye(5), distribute="dim_0")
        db.connection.execute("SET effective_cache_size = '6400MB'")
        (before,) = db.connection.execute(query).fetchall()
        assert before[0] == "on"
        for transaction in (nullcontext(), db.connection.transaction()):
            with transaction:
                with engine_of(db).transaction():
                    assert db.connection.execute(query).fetchall() == [("off", "100MB", False)]
                assert db.connection.execute(query).fetchall() == [before]

    def test_a_run_reads_uncommitted_rows_of_its_transaction(self, db: se.Database) -> None:
        rng = np.random.default_rng(0)
        left, right = sp.csr_array(sp.random_array((30, 40), density=0.2, rng=rng)), rng.normal(size=(40, 5))
        with db.connection.transaction(force_rollback=True):
            db.tensor("A", left, distribute="dim_0")
            db.tensor("B", right, distribute="replicated")
            db.tensor("D", right, distribute="dim_0")
            for text in (PRODUCT, PRODUCT.replace("B", "D")):
                result = db.run(text)["C"].to_numpy()
                np.testing.assert_allclose(result, np.asarray(left @ right), rtol=1e-12, atol=1e-12)
        assert db.tensors() == {}

    def test_a_run_in_a_transaction_of_the_users(self, db: se.Database) -> None:
        with db.connection.transaction(force_rollback=True):
            db.tensor("A", np.arange(6.0).reshape(3, 2), distribute="dim_0")
            assert db.run("s[] = sum(A[i, j])")["s"].to_numpy() == 15.0
        assert db.tensors() == {}


def test_runs_beside_writers_see_one_state(db: se.Database, citus_url: str) -> None:
    """Nodes have no common snapshot: the tables that a run reads are locked against writers until it ends."""
    db.connection.execute("CREATE TABLE x (i BIGINT, v FLOAT8)")
    db.connection.execute(f"INSERT INTO x SELECT i, 1 FROM generate_series(0, {SIZE - 1}) AS t(i)")
    db.connection.execute("SELECT create_distributed_table('x', 'i')")
    db.tensor_from_table("X", "x", ["i"], "v", shape=[SIZE])
    with connect(citus_url) as other, writing(other.execute, "UPDATE x SET v = v + 1") as written:
        for _ in range(10):
            check_consistent(db.run(STATISTICS))
        assert written() > 1
    db.connection.execute("SET default_transaction_isolation = 'repeatable read'")
    check_consistent(db.run(STATISTICS))
    with pytest.raises(se.EngineError, match="no common snapshot"), db.connection.transaction():
        db.run(STATISTICS)
    db.connection.execute("DROP TABLE x")


class TestFailures:
    def test_a_failed_run_leaves_nothing(self, db: se.Database) -> None:
        db.tensor("A", np.full((3, 3), 1e300), distribute="dim_0")
        before = contents(db)
        with pytest.raises(se.EngineError, match="turned NaN or infinite"):
            db.run("T[i, k] = sum(A[i, j] * A[j, k])\nY[i] = sum(T[i, k])")
        assert contents(db) == before
        assert db.connection.execute(TABLES).fetchall() == []

    def test_a_lost_worker_is_reported_and_nothing_is_left(self, postgres: PostgresServer) -> None:
        reason = missing(postgres)
        if reason:
            pytest.skip(reason)
        with start_cluster(postgres, 2) as cluster, se.connect(cluster.create_database("losing")) as db:
            db.tensor("A", sp.csr_array(np.eye(20)), distribute="dim_0")
            db.tensor("B", np.ones((20, 2)), distribute="dim_0")
            plan = db.plan(PRODUCT)
            cluster.workers[0].stop()
            with pytest.raises(se.EngineError, match="a machine of the cluster does not answer"):
                db.run(plan, into={"C": "product"})
            with pytest.raises(se.EngineError, match="a machine of the cluster does not answer"):
                db.tensor("D", np.ones((20, 2)), distribute="dim_0")
            assert list(db.tensors()) == ["A", "B"]
            assert db.connection.execute("SELECT to_regclass('product')").fetchone() == (None,)
            assert db.connection.execute(TABLES).fetchall() == []

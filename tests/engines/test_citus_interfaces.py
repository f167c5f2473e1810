"""Growing tables, natural keys, views, shells and psql work on a Citus cluster."""

from pathlib import Path

import numpy as np
import pandas as pd
import psycopg
import pytest
from citus_cluster import Cluster
from postgres_server import PostgresServer

import sparseeinsum as se
from sparseeinsum import cli
from sparseeinsum.kernels.postgresql.installation import find_server
from sparseeinsum.kernels.postgresql.python import install_python

PRODUCT = "C[i, k] = sum(A[i, j] * B[j, k])"
LEFT, RIGHT = np.arange(12.0).reshape(4, 3), np.arange(6.0).reshape(3, 2)


@pytest.fixture
def db(citus: se.Database) -> se.Database:
    """The database with two matrices, one of them distributed."""
    citus.tensor("A", LEFT, promoted=["dim_0", "dim_1"], distribute="dim_0")
    citus.tensor("B", RIGHT, distribute="dim_0")
    return citus


def is_distributed(db: se.Database, table: str) -> bool:
    query = "SELECT 1 FROM pg_dist_partition WHERE logicalrelid = %s::regclass AND partmethod = 'h'"
    return db.connection.execute(query, [table]).fetchone() is not None


class TestTables:
    def test_rows_are_added_to_a_distributed_table(self, db: se.Database) -> None:
        added = se.Table("products", "append")
        db.run(PRODUCT, into={"C": added})
        assert is_distributed(db, "products")
        with pytest.raises(se.DataError, match=r"has a row at i \d, k \d already"):
            db.run(PRODUCT, into={"C": added})
        db.connection.execute("DELETE FROM products WHERE i < 2")
        db.tensor_from_table("P", "products", ["i", "k"], "val", shape=(4, 2))
        half = LEFT.copy()
        half[2:] = 0
        db.tensor("A", half, promoted=["dim_0", "dim_1"], distribute="dim_0")
        db.run(PRODUCT, into={"C": added})
        np.testing.assert_array_equal(db.run("Y[i, k] = P[i, k] + 0")["Y"].to_numpy(), LEFT @ RIGHT)
        db.connection.execute("DROP TABLE products")

    def test_a_table_is_replaced_under_a_view_that_reads_it(self, db: se.Database) -> None:
        db.run(PRODUCT, into={"C": "viewed"})
        db.connection.execute("CREATE VIEW of_viewed AS SELECT i, k, val FROM viewed")
        db.tensor_from_table("V", "of_viewed", ["i", "k"], "val", shape=(4, 2))
        db.run("C[i, k] = 2 * sum(A[i, j] * B[j, k])", into={"C": "viewed"})
        np.testing.assert_array_equal(db.run("Y[i, k] = V[i, k] + 0")["Y"].to_numpy(), 2 * (LEFT @ RIGHT))
        assert db.statistics("V").entries == np.count_nonzero(LEFT @ RIGHT)
        assert is_distributed(db, "viewed")
        with pytest.raises(se.CatalogueError, match="view of_viewed"):
            db.run("C[i] = sum(A[i, j])", into={"C": "viewed"})
        db.drop_tensor("V")
        db.connection.execute("DROP VIEW of_viewed; DROP TABLE viewed")

    def test_a_tensor_that_a_view_reads_stays(self, db: se.Database) -> None:
        db.connection.execute("CREATE VIEW of_a AS SELECT dim_0 FROM a")
        with pytest.raises(se.EngineError, match="view of_a depends on table a"):
            db.drop_tensor("A")
        assert "A" in db.tensors()
        db.connection.execute("DROP VIEW of_a")

    def test_natural_keys_of_a_distributed_table(self, db: se.Database) -> None:
        """Rows with looked-up keys are redistributed by axis names, whatever the table's columns are called."""
        db.connection.execute("CREATE TABLE likes (who TEXT, whom TEXT, weight FLOAT8)")
        db.connection.execute("SELECT create_distributed_table('likes', 'who')")
        db.connection.execute("INSERT INTO likes VALUES ('a', 'b', 1), ('b', 'c', 2), ('d', 'a', 3)")
        db.tensor_from_table("L", "likes", ["who", "whom"], "weight", keys={"who": "person", "whom": "person"})
        ranks = pd.DataFrame({"person": ["a", "b", "c", "d"], "rank": [1.0, 10.0, 100.0, 1000.0]})
        db.tensor("R", ranks, distribute="person")
        result = db.run("Y[i] = sum(L[i, j] * R[j])")["Y"].df()
        assert dict(zip(result["i"], result["val"], strict=True)) == {"a": 10.0, "b": 200.0, "d": 3.0}
        db.run("Y[i] = sum(L[i, j] * R[j])", into={"Y": "liked"})
        rows = db.connection.execute("SELECT i, val FROM liked ORDER BY i").fetchall()
        assert rows == [("a", 10.0), ("b", 200.0), ("d", 3.0)]
        for name in ("L", "R"):
            db.drop_tensor(name)
        db.drop_dictionary("person")
        db.connection.execute("DROP TABLE likes, liked")

    def test_saved_plans(self, db: se.Database, tmp_path: Path) -> None:
        db.plan(PRODUCT).save(tmp_path / "plan.json")
        result = db.run(db.load_plan(tmp_path / "plan.json"))["C"]
        np.testing.assert_array_equal(result.to_numpy(), LEFT @ RIGHT)

    def test_models_of_dbt_are_refused(self, db: se.Database, tmp_path: Path) -> None:
        with pytest.raises(se.SparseEinsumError, match="dbt models cannot; run the program with"):
            db.write_dbt(db.plan(PRODUCT), tmp_path, "product")

    def test_a_transaction_with_sequential_shard_access(self, db: se.Database) -> None:
        """The documentation shows this transaction."""
        with db.connection.transaction(force_rollback=True):
            db.connection.execute("SET LOCAL citus.multi_shard_modify_mode = 'sequential'")
            assert db.statistics("A").entries == 11
            assert db.connection.execute("SELECT COUNT(*) FROM a").fetchone() == (11,)
            np.testing.assert_array_equal(db.run(db.plan(PRODUCT))["C"].to_numpy(), LEFT @ RIGHT)


class TestCommandLine:
    def test_tensors_are_loaded_where_asked(
        self, db: se.Database, citus_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "edges.csv"
        path.write_text("src,dst,w\n0,1,1.5\n1,2,2.5\n2,0,3.5\n")
        load = ["load", "--database", citus_url, "Edges", str(path), "--index", "src,dst", "--value", "w"]
        assert cli.main([*load, "--distribute", "dst"]) == 0
        query = "SELECT column_to_column_name(logicalrelid, partkey) FROM pg_dist_partition WHERE logicalrelid = "
        assert db.connection.execute(f"{query} 'edges'::regclass").fetchone() == ("dst",)
        assert cli.main([*load, "--distribute", "node"]) == 1
        assert "no key column node to distribute its rows by; it has src, dst" in capsys.readouterr().err
        assert cli.main(["run", "--database", citus_url, "--text", "Y[i] = sum(Edges[i, j])"]) == 0
        assert "2.5" in capsys.readouterr().out
        assert cli.main(["explain", "--database", citus_url, "--text", "Y[i] = sum(Edges[i, j])"]) == 0
        assert "between machines" in capsys.readouterr().out
        compile_it = ["compile", "--database", citus_url, "--text", "Y[i] = sum(Edges[i, j])"]
        assert cli.main(compile_it) == 1
        assert "--style staged" in capsys.readouterr().err
        assert cli.main([*compile_it, "--style", "staged"]) == 0
        assert 'CREATE TEMPORARY TABLE "Y"' in capsys.readouterr().out
        db.drop_tensor("Edges")


class TestPsql:
    @pytest.fixture
    def session(
        self, cluster: Cluster, postgres: PostgresServer, db: se.Database, citus_url: str
    ) -> psycopg.Connection:
        """A session with the coordinator, whose Python runs programs."""
        if not db.connection.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'plpython3u'").fetchone():
            pytest.skip("PL/Python is not installed")
        install_python(find_server(postgres.pg_config), se.__version__)
        connection = psycopg.connect(citus_url, autocommit=True)
        connection.execute("CREATE EXTENSION IF NOT EXISTS sparseeinsum_python CASCADE")
        return connection

    def test_programs(self, session: psycopg.Connection, db: se.Database) -> None:
        query = "SELECT tensor, tuples FROM sparseeinsum.einsum_into(%s)"
        assert session.execute(query, [PRODUCT]).fetchall() == [("C", 8)]
        assert is_distributed(db, "c")
        rows = session.execute("SELECT val FROM c ORDER BY i, k").fetchall()
        assert [value for (value,) in rows] == (LEFT @ RIGHT).ravel().tolist()
        explanation = session.execute("SELECT sparseeinsum.explain('Y[i] = sum(C[i, k])', run => true)").fetchall()
        assert any("between machines" in line for (line,) in explanation)
        with session.transaction(force_rollback=True):  # both in one call
            session.execute("SELECT sparseeinsum.explain('Y[i] = sum(C[i, k])')").fetchall()
            assert session.execute(query, ["Y[i] = sum(C[i, k])"]).fetchall() == [("Y", 4)]
        assert session.execute("SELECT to_regclass('y')").fetchone() == (None,)
        session.execute("DROP TABLE c")
        session.close()

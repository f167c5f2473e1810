"""Runs keep to `memory_limit`, in several passes where needed, and still give numpy's results."""

import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from planned_memory import limit_for
from program_cases import Case
from random_programs import cases
from random_runs import random_runs

import sparseeinsum as se
from sparseeinsum.engines.duckdb.duckdb_engine import DuckDBEngine
from sparseeinsum.engines.duckdb.duckdb_opening import open_duckdb
from sparseeinsum.engines.memory_limit import limited_memory, memory_guard
from sparseeinsum.render.sql_statement import SqlStatement

pytestmark = pytest.mark.engines("duckdb", reason="a server has memory of its own")

PRODUCT = "C[i, k] = sum(A[i, j] * B[j, k])"
GROUPED = {"C": {"i": 1, "j": 1}}


def least_limit(db: se.Database, text: str, **options: Any) -> int:  # noqa: ANN401  # as Database.plan has them
    """A limit for which there is a plan, although there is none for a quarter of it."""
    planned = 1 << 22
    while True:
        try:
            db.plan(text, memory_limit=limit_for(db, planned // 4), **options)
        except se.PlanError:
            return limit_for(db, planned)
        planned //= 4


@pytest.mark.engines("duckdb", "postgresql")
def test_random_programs_in_little_memory(shared_db: se.Database, engine: str) -> None:
    """Programs run within about the smallest sufficient limit, where many EinSums need passes."""

    @random_runs(10, engine)
    @given(st.sampled_from(["float64", "int64", "mixed"]).flatmap(lambda family: cases(family, "dp")))
    def run(case: Case) -> None:
        case.load(shared_db)
        options: dict[str, Any] = {
            "pin": case.pin,
            "outputs": case.outputs,
            "layout": case.layout,
            "nonfinite": "allow",
            "tiles": case.tiles,
        }
        plan = shared_db.plan(case.text, memory_limit=least_limit(shared_db, case.text, **options), **options)
        for name, result in shared_db.run(plan).items():
            case.expect(name, result.to_numpy())

    run()


class TestSettings:
    """Settings of the whole database that a run changes."""

    @staticmethod
    def of(db: se.Database) -> list[Any]:
        names = ("memory_limit", "allocator_bulk_deallocation_flush_threshold", "threads")
        return [db.connection.execute(f"SELECT current_setting('{name}')").fetchall() for name in names]

    @pytest.fixture(params=[None, "7.3GB", "1234567890B"])
    def limited(self, db: se.Database, request: pytest.FixtureRequest) -> se.Database:
        db.tensor("A", np.eye(300))
        if request.param is not None:
            db.connection.execute(f"SET memory_limit = '{request.param}'")
        return db

    def test_restored_after_plans_and_runs(self, limited: se.Database) -> None:
        before = self.of(limited)
        for _ in range(3):
            limited.run("Y[i] = sum(A[i, j])", memory_limit="200MB")
            limited.run(limited.plan("Y[i] = sum(A[i, j])", memory_limit="200MB"))
            assert self.of(limited) == before

    def test_restored_after_errors(self, limited: se.Database) -> None:
        before = self.of(limited)
        with pytest.raises(se.EngineError, match="infinite"):
            limited.run("Y[i] = sum(1 / A[i, j])", memory_limit="200MB")
        assert self.of(limited) == before
        with pytest.raises(se.PlanError):
            limited.run("Y[i, k] = sum(A[i, j] * A[j, k])", memory_limit=10)
        assert self.of(limited) == before
        np.testing.assert_array_equal(limited.run("Y[i] = sum(A[i, j])")["Y"].to_numpy(), 1)

    def test_lowered_meanwhile(self, db: se.Database) -> None:
        engine = open_duckdb(db.connection)
        before = engine.memory_limit()
        with limited_memory(engine, 500_000_000):
            assert 490_000_000 < engine.memory_limit() < 600_000_000
            with limited_memory(engine, 200_000_000):
                assert 190_000_000 < engine.memory_limit() < 300_000_000
            assert 490_000_000 < engine.memory_limit() < 600_000_000
        assert engine.memory_limit() == before

    def test_a_small_limit_takes_few_threads(self, db: se.Database) -> None:
        """Every thread needs vectors and buffers of its own."""
        engine = open_duckdb(db.connection)
        engine.execute("SET threads = 3")
        for limit, threads in ((64_000_000, 1), (150_000_000, 2), (300_000_000, 3)):
            with limited_memory(engine, limit):
                assert engine.threads() == threads
            assert engine.threads() == 3

    def test_a_lower_limit_of_the_user_stays(self, db: se.Database) -> None:
        engine = open_duckdb(db.connection)
        engine.execute("SET memory_limit = '100MB'")
        with limited_memory(engine, 500_000_000):
            assert engine.memory_limit() <= 100_000_000
        assert engine.memory_limit() <= 100_000_000


class TestSettingsOfOthers:
    """Others change settings, or have streams open, while a run keeps to a limit."""

    TEXT = "C[i, k] = sum(A[i, j] * B[j, k])"

    @pytest.fixture
    def product(self, db: se.Database) -> se.Database:
        rng = np.random.default_rng(0)
        db.tensor("A", rng.random((3000, 300)))
        db.tensor("B", rng.random((300, 3000)))
        return db

    def test_a_setting_that_is_refused_leaves_the_others(
        self, product: se.Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        engine = open_duckdb(product.connection)
        before = TestSettings.of(product)
        monkeypatch.setattr("sparseeinsum.engines.duckdb.settings._FLUSHED_BYTES", "no size in ")
        with pytest.raises(se.EngineError, match="no size"), engine.memory_limited_to(50_000_000, threads=1):
            pass
        assert TestSettings.of(product) == before

    def test_external_threads_stay(self, product: se.Database) -> None:
        product.connection.execute("SET threads = 4")
        product.connection.execute("SET external_threads = 2")
        product.run(self.TEXT, into={"C": "product"}, memory_limit="64MB")
        with pytest.raises(se.EngineError, match="external_threads is 2"):
            product.run(self.TEXT, into={"C": "product"}, deterministic=True)

    def test_threads_stay_as_few_as_they_are(self, product: se.Database) -> None:
        product.connection.execute("SET threads = 2")
        plan = product.plan(self.TEXT, memory_limit="200MB")
        product.connection.execute("SET threads = 1")
        engine = open_duckdb(product.connection)
        thread_counts: list[int] = []
        with product.stream(plan):
            thread_counts.append(engine.threads())
        assert thread_counts == [1]

    def test_a_stream_may_be_closed_by_another_thread(self, product: se.Database) -> None:
        stream = product.stream(self.TEXT, deterministic=True)
        closing = threading.Thread(target=stream.close)
        closing.start()
        closing.join()
        results: list[Any] = []
        running = threading.Thread(target=lambda: results.append(product.run("s[] = sum(A[i, j])", deterministic=True)))
        running.start()
        running.join(timeout=300)
        assert len(results) == 1

    def test_each_result_of_a_stream_has_its_own_limit(self, product: se.Database) -> None:
        """The limit of the statement before does not count."""
        text = f"{self.TEXT}\ny[i] = max(C[i, k])\nz[k] = min(C[i, k])"
        plan = product.plan(text, memory_limit="100MB")
        limits = []
        with product.stream(plan) as results:
            for name in ("y", "z", "y"):
                for _ in results[name]:
                    pass
                limits.append(open_duckdb(product.connection).memory_limit())
        assert limits[0] == limits[2]
        assert len(plan.sql("staged").split("CREATE TEMPORARY")) > 1

    def test_a_plan_for_the_rest_keeps_to_the_limit(self, product: se.Database) -> None:
        """So does a run that is planned again halfway: the limit that the run itself lowered does not stop it."""
        plan = product.plan(f"{self.TEXT}\ny[i] = max(C[i, k])", memory_limit="100MB")
        engine = open_duckdb(product.connection)
        with memory_guard(engine, ()) as guard:
            limits = []
            for _ in range(2):
                guard.adopt_plan(plan.data, plan.data.statements.for_run)
                for computed in ("C", "y"):
                    guard.make_room(plan.data, (computed,))
                    limits.append(engine.memory_limit())
        assert limits[0] != limits[1]
        assert limits[:2] == limits[2:]

    def test_more_memory_is_never_refused_where_less_is_enough(self, db: se.Database) -> None:
        """More memory allows more threads, which read more at once."""
        db.tensor("A", np.ones((2048, 2000)))
        db.connection.execute("SET threads = 8")
        accepted = []
        for limit in range(60, 400, 10):
            try:
                db.plan("y[i] = sum(A[i, j])", memory_limit=f"{limit}MB")
                accepted.append(True)
            except se.PlanError:
                accepted.append(False)
        assert accepted == sorted(accepted)
        assert accepted[4]  # with 100 MB


def test_errors_without_spilling_name_the_limit(db: se.Database) -> None:
    """Where DuckDB itself runs out of memory, the error names the limit that the user gave."""
    engine = open_duckdb(db.connection)
    message = r"memory_limit leaves DuckDB 24,000,000 bytes .* raise memory_limit"
    with pytest.raises(se.EngineError, match=message), limited_memory(engine, 1):
        engine.execute("SELECT LIST(range) FROM range(100_000_000)")
    assert engine.rows("SELECT 1") == [(1,)]


class TestRunningOutOfMemory:
    """A statement that needs more memory than expected is planned again for less."""

    @pytest.fixture
    def limited(self, db: se.Database, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """A database whose first statement takes more than it is left; the passes of every statement that ran."""
        stage, passes = DuckDBEngine.stage, []

        def short(engine: DuckDBEngine, statement: SqlStatement) -> int:
            passes.append(1 + len(statement.passes))
            if len(passes) == 1:
                engine.execute("SELECT LIST(range) FROM range(100_000_000)")
            return stage(engine, statement)

        monkeypatch.setattr(DuckDBEngine, "stage", short)
        rng = np.random.default_rng(0)
        db.tensor("A", scipy.sparse.random_array((20_000, 300), density=0.05, rng=rng))
        db.tensor("B", rng.random((300, 200)))
        return passes

    OPTIONS: Mapping[str, Any] = {"pin": GROUPED, "layout": "any", "memory_limit": "100MB"}
    TEXT = "C[i, k] = max(A[i, j] * B[j, k])\ny[i] = sum(C[i, k])"  # a sum would need no states of groups

    def test_programs_and_plans(self, db: se.Database, limited: list[int]) -> None:
        result = db.run(self.TEXT, **self.OPTIONS)["y"].to_numpy()
        assert max(limited[1:]) > limited[0]
        plan = db.plan(self.TEXT, **self.OPTIONS)
        limited.clear()
        np.testing.assert_array_equal(db.run(plan)["y"].to_numpy(), result)
        assert max(limited[1:]) > limited[0]
        np.testing.assert_allclose(result, db.run(self.TEXT)["y"].to_numpy(), rtol=1e-12)

    def test_streams(self, db: se.Database, limited: list[int]) -> None:
        plan = db.plan(self.TEXT, **self.OPTIONS)
        for program, options in ((self.TEXT, self.OPTIONS), (plan, {})):
            limited.clear()
            with db.stream(program, **options) as results:
                total = sum(batch.num_rows for batch in results["y"])
            assert total == 20_000
            assert max(limited[1:]) > limited[0]

    def test_failures_of_every_plan_are_reported(self, db: se.Database, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            DuckDBEngine, "stage", lambda engine, _: engine.execute("SELECT LIST(range) FROM range(100_000_000)")
        )
        rng = np.random.default_rng(0)
        db.tensor("A", scipy.sparse.random_array((20_000, 300), density=0.05, rng=rng))
        db.tensor("B", rng.random((300, 200)))
        with pytest.raises(se.EngineError, match="raise memory_limit"):
            db.run(self.TEXT, **self.OPTIONS)
        assert db.connection.execute("SELECT 1").fetchall() == [(1,)]


def test_arrays_that_cannot_be_read(db: se.Database) -> None:
    db.tensor("A", np.ones((500, 9000)), promoted=["dim_0"])
    with pytest.raises(se.PlanError, match=r"to read A as it is stored needs a memory_limit of at least [\d,]+ bytes"):
        db.plan("y[i] = sum(A[i, j])", memory_limit="50MB")


class TestResults:
    def test_too_large_to_return(self, db: se.Database) -> None:
        db.tensor("A", np.random.default_rng(0).random((3000, 10)), promoted=["dim_0", "dim_1"])
        plan = db.plan("C[i, k] = sum(A[i, j] * A[k, j])", memory_limit="150MB")
        with pytest.raises(se.PlanError, match=r"results that are returned .* most of it C, .*into=\{'C': \.\.\.\}"):
            db.run(plan)
        db.run(plan, into={"C": "product"})
        assert db.connection.execute("SELECT COUNT(*) FROM product").fetchall() == [(9_000_000,)]


MEASURED = """
import json, sys
import numpy as np
import sparseeinsum as se
from bench.memory import come_to_rest, resident_bytes

rng = np.random.default_rng(0)
db = se.connect()
for name in "ABC":
    db.tensor(name, rng.random((6_000, 64)))
text = "P[s, t] = softmax[t](sum(A[s, d] * B[t, d]))\\nO[s, d] = sum(P[s, t] * C[t, d])"
limit = json.loads(sys.argv[1])
db.plan(text)  # loads rules of rewriting, which stay
db.connection.execute("SET memory_limit = '10GB'")  # returns what DuckDB keeps free
come_to_rest()
before = resident_bytes("VmRSS")
total = float(db.run(text, memory_limit=limit, progress=False)["O"].to_numpy().sum())
print(json.dumps([resident_bytes("VmHWM") - before, total]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_peak_stays_below_the_limit() -> None:
    """Planning and running in processes of their own: peak resident memory less that at rest."""

    def run(limit: int | None) -> tuple[int, float]:
        command = [sys.executable, "-c", MEASURED, json.dumps(limit)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        peak, total = json.loads(done.stdout.splitlines()[-1])  # DuckDB may print a progress bar before
        return peak, total

    without = run(None)
    for limit in (64_000_000, 200_000_000):
        peak, total = run(limit)
        assert peak < 1.1 * limit
        assert without[0] > 2 * limit
        assert total == pytest.approx(without[1], rel=1e-12)

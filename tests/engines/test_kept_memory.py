"""Operands that are ordered or put together in memory stay there for later runs, until their tables change."""

import gc
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from indexing import compress_wherever_possible
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.engines.duckdb_prepared import DuckDBCollectedQuery, DuckDBPreparedQuery
from sparseeinsum.engines.kept_memory import NO_ROOM, KeptMemory
from sparseeinsum.errors import EngineError
from sparseeinsum.kernels.duckdb.library import require_library
from sparseeinsum.pipeline.loops import loop
from sparseeinsum.results import kept_operands
from sparseeinsum.results.kept_operands import _written_text

pytestmark = pytest.mark.engines("duckdb", reason="test_kept_arrays has those of PostgreSQL")

PROGRAM = "Y[i, k] = sum(A[i, j] * X[j, k])"


def entries(seed: int, count: int = 3000) -> NDArray[Any]:
    rng = np.random.default_rng(seed)
    places = np.unique(rng.integers(0, 500 * 400, count))
    return np.stack([places // 400, places % 400, rng.integers(1, 9, len(places))])


def dense(coordinates: NDArray[Any]) -> NDArray[Any]:
    array = np.zeros((500, 400))
    array[coordinates[0], coordinates[1]] = coordinates[2]
    return array


@pytest.fixture(autouse=True)
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans put operands into memory wherever they can."""
    compress_wherever_possible(monkeypatch)


@pytest.fixture
def loaded(db: se.Database) -> se.Database:
    """A database with a sparse and a dense matrix."""
    coordinates = entries(0)
    db.tensor("A", (coordinates[:2], coordinates[2].astype(float)), shape=(500, 400))
    db.tensor("X", np.random.default_rng(1).integers(0, 5, (400, 16)).astype(float))
    return db


def kept_count(database: se.Database) -> int:
    kept = database._engine.kept_memory
    assert kept is not None
    return kept.count


def result(database: se.Database, program: str | se.Plan = PROGRAM) -> NDArray[Any]:
    array: NDArray[Any] = database.run(program, progress=False)["Y"].to_numpy()
    return array


@pytest.mark.parametrize("first", [True, False], ids=["from the first run on", "from the second run on"])
def test_results_follow_the_tables(loaded: se.Database, first: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first run keeps small operands, and the second run large ones."""
    if not first:
        monkeypatch.setattr("sparseeinsum.results.kept_operands._FIRST_RUN_BYTES", 400 * 16 * 8)  # X alone
    array, other = dense(entries(0)), np.random.default_rng(1).integers(0, 5, (400, 16)).astype(float)
    plan = loaded.plan(PROGRAM)
    assert "tensor_gather_sum(" in plan.sql()
    for kept in (2 * first, 2, 2):
        np.testing.assert_array_equal(result(loaded, plan), array @ other)
        assert kept_count(loaded) == kept
    loaded.connection.execute("UPDATE A SET val = 2 * val WHERE dim_0 < 100")
    array[:100] *= 2
    for _ in range(3):
        np.testing.assert_array_equal(result(loaded, plan), array @ other)
    loaded.connection.execute("DELETE FROM A WHERE dim_0 = 7")
    array[7] = 0
    for _ in range(3):
        np.testing.assert_array_equal(result(loaded), array @ other)
    loaded.connection.execute("DELETE FROM A")
    for _ in range(3):
        np.testing.assert_array_equal(result(loaded, plan), 0 * (array @ other))
    changed = entries(3)
    loaded.tensor("A", (changed[:2], changed[2].astype(float)), shape=(500, 400))
    for _ in range(3):
        np.testing.assert_array_equal(result(loaded), dense(changed) @ other)
    assert require_library().count_residents() == 0


def test_operands_of_a_kind_are_kept_by_the_same_query(db: se.Database) -> None:
    """It is written once, whatever the names of their tables."""
    rng = np.random.default_rng(4)
    names = ["First", "select", "any_tensor", "order", "t", "val"]
    matrices = {name: rng.integers(0, 5, (30, 30)).astype(float) for name in names}
    for name, matrix in matrices.items():
        db.tensor(name, matrix)
    factors = "*".join(f"{name}[l{place},l{place + 1}]" for place, name in enumerate(names))
    plan = db.plan(f"Y[l0,l6] = sum({factors})")
    _written_text.cache_clear()
    for _ in range(3):
        np.testing.assert_array_equal(result(db, plan), np.linalg.multi_dot(list(matrices.values())))
        assert kept_count(db) == 6
    assert _written_text.cache_info().hits >= 4
    db.connection.execute("UPDATE t SET val = list_transform(val, lambda x: 2 * x)")
    for _ in range(3):
        np.testing.assert_array_equal(result(db, plan), 2 * np.linalg.multi_dot(list(matrices.values())))


def test_tables_that_change_in_every_run_are_kept_once(loaded: se.Database) -> None:
    """Later runs make their operands themselves, in statements that stay the same."""
    array, other = dense(entries(0)), np.random.default_rng(1).integers(0, 5, (400, 16)).astype(float)
    plan = loaded.plan(PROGRAM)
    for kept in (2, 1, 1, 1):
        np.testing.assert_array_equal(result(loaded, plan), array @ other)
        assert kept_count(loaded) == kept
        loaded.connection.execute("UPDATE A SET val = 2 * val")
        array *= 2


def test_nothing_stays_where_an_operand_cannot_be_made(loaded: se.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    library, make = require_library(), kept_operands._making_text
    gc.collect()
    before = library.count_kept()
    texts: list[str] = []

    def fail_last(*arguments: Any) -> str:  # noqa: ANN401
        texts.append(make(*arguments))
        return texts[-1] if len(texts) < 2 else "SELECT error('no memory') AS handle"

    monkeypatch.setattr(kept_operands, "_making_text", fail_last)
    with pytest.raises(EngineError, match="no memory"):
        result(loaded)
    assert len(texts) == 2
    assert library.count_kept() == before
    assert library.count_residents() == 0


def test_prepared_programs_follow_the_tables(loaded: se.Database) -> None:
    array, other = dense(entries(0)), np.random.default_rng(1).integers(0, 5, (400, 16)).astype(float)
    with loaded.prepare(PROGRAM, inputs=[]) as step:

        def check(present: NDArray[Any]) -> None:
            for _ in range(3):
                np.testing.assert_array_equal(step.run()["Y"].to_numpy(), present)

        assert kept_count(loaded) == 2
        check(array @ other)
        loaded.connection.execute("UPDATE A SET val = 2 * val WHERE dim_0 < 100")
        array[:100] *= 2
        check(array @ other)
        assert loaded._engine.kept_memory is not None
        loaded._engine.kept_memory.release_all()
        check(array @ other)
        with loaded.connection.cursor() as cursor:
            cursor.execute("DELETE FROM X WHERE dim_0 < 30")
        other[:30] = 0
        check(array @ other)
        loaded.connection.execute("DELETE FROM A")
        check(0 * (array @ other))
        changed = entries(3)
        loaded.tensor("A", (changed[:2], changed[2].astype(float)), shape=(500, 400))
        check(dense(changed) @ other)


@pytest.mark.parametrize("width", [3, 400], ids=["Arrow", "collected"])
def test_prepared_programs_run_once(db: se.Database, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays are returned in one transaction, or the run would look as if somebody had changed tables."""
    runs: list[type] = []
    for kind in (DuckDBPreparedQuery, DuckDBCollectedQuery):

        def counted(self: Any, run: Any = kind.arrow) -> object:  # noqa: ANN401
            runs.append(type(self))
            return run(self)

        monkeypatch.setattr(kind, "arrow", counted)
    other = np.random.default_rng(1).normal(size=(400, width))
    db.tensor("A", np.eye(500, 400))
    db.tensor("X", other)
    with db.prepare("T[i, k] = sum(A[i, j] * X[j, k])\nY[i, k] = tanh(T[i, k])", ["X"], layout="any") as step:
        step.run()
        runs.clear()
        for scale in (1, 2):
            result = step.run(X=scale * other)["Y"].to_numpy()
            np.testing.assert_allclose(result[:400], np.tanh(scale * other), rtol=1e-12)
    assert runs == [DuckDBCollectedQuery if width == 400 else DuckDBPreparedQuery] * 2


def test_arrays_of_truths_are_computed_once(db: se.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[object] = []
    run = DuckDBPreparedQuery.arrow

    def counted(self: DuckDBPreparedQuery) -> object:
        runs.append(self)
        return run(self)

    monkeypatch.setattr(DuckDBPreparedQuery, "arrow", counted)
    array = np.arange(12.0).reshape(3, 4)
    db.tensor("X", array)
    program = "T[i, k] = sum(X[i, j] * X[k, j])\nY[i, k] = T[i, k] > 40"
    with db.prepare(program, inputs=["X"], layout="any", pin={"T": (), "Y": ()}) as step:
        step.run()
        runs.clear()
        result = step.run()["Y"]
        assert result.schema.list_length == 9
        np.testing.assert_array_equal(result.to_numpy(), array @ array.T > 40)
    assert len(runs) == 1


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int64", "bool"])
def test_whole_arrays(db: se.Database, dtype: str) -> None:
    """A chain of arrays reads those of stored tensors in memory."""
    weights = np.random.default_rng(0).integers(0, 2, (40, 30)).astype(dtype)
    factors = np.random.default_rng(1).integers(0, 2, (20, 40)).astype(dtype)
    db.tensor("W", weights, promoted=["dim_0"])
    db.tensor("F", factors)
    plan = db.plan("T[i, k] = sum(F[i, j] * W[j, k])\nU[i, k] = T[i, k] + 1\nY[i, k] = U[i, k] * U[i, k]", layout="any")

    def expected() -> NDArray[Any]:
        squares: NDArray[Any] = np.square(factors.astype(np.complex128) @ weights + 1)
        return squares

    for _ in range(3):
        np.testing.assert_array_equal(result(db, plan), expected())
    assert kept_count(db) == 2
    db.connection.execute("UPDATE W SET val = (SELECT w.val FROM W AS w WHERE w.dim_0 = 0) WHERE dim_0 < 7")
    weights[:7] = weights[0]
    for _ in range(3):
        np.testing.assert_array_equal(result(db, plan), expected())


@pytest.mark.parametrize("changes", [False, True], ids=["tables that stay", "tables that change"])
def test_loops_keep_what_steps_read(loaded: se.Database, changes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step reads the same memory, until the table changes."""
    array, counts = dense(entries(0)), []
    loaded.tensor("S", np.ones((500, 16)))
    program = "state S\nnext_S[i, k] = 0.5 * S[i, k] + sum(A[i, j] * X[j, k])\ntotal[] = sum(next_S[i, k])"
    state, other, totals = np.ones((500, 16)), np.random.default_rng(1).integers(0, 5, (400, 16)).astype(float), []

    def change(_: object) -> None:
        counts.append(kept_count(loaded))
        if changes:
            loaded.connection.execute("UPDATE A SET val = val + 1 WHERE dim_0 < 9")

    monkeypatch.setattr(loop._Loop, "_show", change)
    result = loaded.iterate(program, steps=5, history=["total"])
    for _ in range(5):
        state = 0.5 * state + array @ other
        totals.append(state.sum())
        array[:9] += changes * (array[:9] != 0)
    np.testing.assert_allclose(result.df()["total"], totals, rtol=1e-12)
    assert min(counts) >= 1


def test_other_runs_keep_and_read_nothing(loaded: se.Database) -> None:
    for options in ({"memory_limit": "200MB"}, {"indexes": False}):
        plan = loaded.plan(PROGRAM, **options)
        for _ in range(3):
            result(loaded, plan)
        assert kept_count(loaded) == 0


def test_changes_of_another_connection(loaded: se.Database) -> None:
    plan = loaded.plan(PROGRAM)
    before = [result(loaded, plan) for _ in range(3)][-1]
    with loaded.connection.cursor() as cursor:
        cursor.execute("UPDATE A SET val = 3 * val")
        np.testing.assert_array_equal(result(loaded, plan), 3 * before)
        cursor.execute("BEGIN")
        cursor.execute("UPDATE A SET val = 5 * val")
        np.testing.assert_array_equal(result(loaded, plan), 3 * before)
        cursor.execute("ROLLBACK")
    np.testing.assert_array_equal(result(loaded, plan), 3 * before)


def test_memory_is_released_with_the_database() -> None:
    library, coordinates = require_library(), entries(0)
    gc.collect()
    before = library.count_kept()
    for closes in (True, False):
        database = se.connect()
        database.tensor("A", (coordinates[:2], coordinates[2].astype(float)), shape=(500, 400))
        database.tensor("X", np.ones((400, 16)))
        for _ in range(2):
            result(database)
        assert library.count_kept() == before + 2
        if closes:
            database.close()
        del database
        gc.collect()
        assert library.count_kept() == before
    assert not library.release(12345)


@dataclass
class Library:
    """A library whose arrays all have ten bytes."""

    has_room: bool
    released: list[int] = field(default_factory=list)
    lost_handles: set[int] = field(default_factory=set)

    def can_keep(self) -> bool:
        return self.has_room

    def kept_bytes(self, handles: Sequence[int]) -> list[int]:
        return [10] * len(handles)

    def lost(self, handles: Sequence[int]) -> frozenset[int]:
        return frozenset(handles).intersection(self.lost_handles)

    def release(self, handle: int) -> bool:
        self.released.append(handle)
        return True


def test_what_was_not_needed_for_the_longest_time_goes_first() -> None:
    library = Library(has_room=True)
    released, made = library.released, iter(range(1, 100))
    memory = KeptMemory(lambda: library)

    def handles(*keys: str, version: int = 0) -> dict[str, int | None]:
        return memory.handles(dict.fromkeys(keys, version), 25, lambda keys: [next(made) for _ in keys])

    assert handles("a", "b") == {}
    assert handles("a", "b") == {"a": 1, "b": 2}
    assert handles("c") == {}
    assert handles("a") == {"a": 1}
    assert handles("c") == {"c": 3}
    assert released == [2]
    assert handles("a", version=1) == {}
    assert released == [2, 1]
    assert handles("a", version=1) == {"a": 4}
    assert memory.size_bytes == 20
    memory.release_all()
    assert sorted(released) == [1, 2, 3, 4]
    assert handles("a", version=1) == {}


def test_what_is_wanted_at_once_is_kept_at_once() -> None:
    library, made = Library(has_room=True), iter(range(1, 100))
    memory = KeptMemory(lambda: library)

    def handles(version: int, at_once: str) -> dict[str, int | None]:
        needed = dict.fromkeys("ab", version)
        return memory.handles(needed, 100, lambda keys: [next(made) for _ in keys], at_once)

    assert not memory.was_needed("a")
    assert handles(0, at_once="a") == {"a": 1}
    assert memory.was_needed("a")
    assert memory.was_needed("b")
    assert handles(1, at_once="") == {}
    assert library.released == [1]
    assert handles(1, at_once="") == {"a": 2, "b": 3}
    assert handles(2, at_once="ab") == {"a": 4, "b": 5}


def test_what_was_made_before_an_error_is_kept_and_released() -> None:
    library, made = Library(has_room=True), iter((1, 2))
    memory = KeptMemory(lambda: library, keeps_together=False)

    def keep(keys: Sequence[str]) -> list[int]:
        (key,) = keys
        if key == "c":
            raise ZeroDivisionError
        return [next(made)]

    with pytest.raises(ZeroDivisionError):
        memory.handles(dict.fromkeys("abc", 0), 100, keep, "abc")
    assert memory.count == 2
    memory.release_all()
    assert library.released == [1, 2]
    with pytest.raises(ZeroDivisionError), memory.during_statement("ca", keep):
        raise AssertionError("nothing was made")
    assert library.released == [1, 2]


def test_what_one_statement_needs_is_released_after_it() -> None:
    library, made = Library(has_room=True), iter((1, NO_ROOM, None))
    memory = KeptMemory(lambda: library)
    with memory.during_statement("abc", lambda keys: [next(made) for _ in keys]) as handles:
        assert handles == {"a": 1, "c": None}
        assert library.released == []
    assert library.released == [1]
    with pytest.raises(ZeroDivisionError), memory.during_statement("a", lambda keys: [2]):
        raise ZeroDivisionError
    assert library.released == [1, 2]
    assert memory.count == 0


def test_what_is_lost_is_made_again() -> None:
    library, made = Library(has_room=True), iter(range(1, 100))
    memory = KeptMemory(lambda: library)

    def handles() -> dict[str, int | None]:
        return memory.handles(dict.fromkeys("ab", 0), 100, lambda keys: [next(made) for _ in keys])

    assert [handles() for _ in range(3)] == [{}, {"a": 1, "b": 2}, {"a": 1, "b": 2}]
    library.lost_handles.add(1)
    assert handles() == {"a": 3, "b": 2}
    assert library.released == []


def test_what_finds_no_room_is_not_made_again() -> None:
    made: list[str] = []
    memory = KeptMemory(lambda: Library(has_room=True))

    def keep(keys: Sequence[str]) -> list[int]:
        made.extend(keys)
        return [NO_ROOM] * len(keys)

    for _ in range(4):
        assert memory.handles({"a": 0}, 100, keep) == {}
    assert made == ["a"]


def test_nothing_is_kept_without_room() -> None:
    memory = KeptMemory(lambda: Library(has_room=False))
    for _ in range(3):
        assert memory.handles({"a": 0}, 100, lambda keys: [1]) == {}


def test_what_does_not_fit_is_not_made_again_and_again() -> None:
    library = Library(has_room=True)
    made: list[tuple[str, int]] = []
    memory = KeptMemory(lambda: library)

    def handles(limit: int, version: int = 0) -> set[str]:
        def keep(keys: Sequence[str]) -> range:
            made.extend((key, version) for key in keys)
            return range(len(made) - len(keys) + 1, len(made) + 1)

        return set(memory.handles(dict.fromkeys("abc", version), limit, keep))

    assert [handles(25) for _ in range(4)] == [set(), {"b", "c"}, {"b", "c"}, {"b", "c"}]
    assert made == [("a", 0), ("b", 0), ("c", 0)]
    assert [handles(25, version=1) for _ in range(3)] == [set(), {"b", "c"}, {"b", "c"}]
    assert made[3:] == [("a", 1), ("b", 1), ("c", 1)]
    assert handles(35, version=1) == {"a", "b", "c"}

"""Sessions of PostgreSQL keep operands in memory from run to run, until their tables change."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import psycopg
import pytest
import scipy.sparse as sp
from indexing import compress_wherever_possible
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.errors import EngineError

pytestmark = pytest.mark.engines("postgresql", reason="test_kept_operands has those of DuckDB")

Array = NDArray[Any]
PROGRAMS = {
    "sparse times sparse": "Y[i, k] = sum(A[i, j] * B[j, k])",
    "sparse times dense": "Y[i, k] = sum(A[i, j] * X[j, k])",
    "at the entries of another": "Y[i, k] = sum(A[i, j] * B[j, k] * A[i, k])",
    "a vector": "Y[i] = min(A[i, j] + V[j])",
}
SIZE = 60


@pytest.fixture(autouse=True)
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans put operands into memory wherever they can."""
    compress_wherever_possible(monkeypatch)


@pytest.fixture
def inputs(db: se.Database) -> dict[str, Array]:
    """The stored tensors: two sparse matrices, a dense one, and a vector."""
    rng = np.random.default_rng(0)
    arrays: dict[str, Array] = {
        name: (rng.integers(1, 9, (SIZE, SIZE)) * (rng.random((SIZE, SIZE)) < 0.1)).astype(float) for name in "AB"
    }
    for name, array in arrays.items():
        db.tensor(name, sp.coo_array(array))
    arrays |= {"X": rng.integers(1, 9, (SIZE, 5)).astype(float), "V": rng.integers(1, 9, SIZE).astype(float)}
    db.tensor("X", arrays["X"])
    db.tensor("V", arrays["V"], promoted=["dim_0"])
    return arrays


def expected(name: str, inputs: dict[str, Array]) -> Array:
    """The result by numpy."""
    first, second = inputs["A"], inputs["B"]
    results: dict[str, Array] = {
        "sparse times sparse": first @ second,
        "sparse times dense": first @ inputs["X"],
        "at the entries of another": (first @ second) * first,
        "a vector": (first + inputs["V"]).min(axis=1),
    }
    return results[name]


def result(db: se.Database, program: str | se.Plan) -> Array:
    array: Array = db.run(program, progress=False)["Y"].to_numpy()
    return array


def kept_count(db: se.Database) -> int:
    kept = db._engine.kept_memory
    assert kept is not None
    return kept.count


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_follow_the_tables(db: se.Database, inputs: dict[str, Array], name: str) -> None:
    program = PROGRAMS[name]

    def check() -> None:
        for _ in range(3):
            np.testing.assert_array_equal(result(db, program), expected(name, inputs))

    check()
    assert kept_count(db) >= 1
    db.connection.execute("UPDATE A SET val = 2 * val WHERE dim_0 < 20")
    inputs["A"][:20] *= 2
    check()
    with db._engine.another_connection() as other:
        other.execute("UPDATE main.A SET val = 3 * val WHERE dim_1 < 20")
    inputs["A"][:, :20] *= 3
    check()
    with pytest.raises(ZeroDivisionError), db.connection.transaction():
        db.connection.execute("UPDATE A SET val = 100")
        result(db, program)
        raise ZeroDivisionError
    check()
    db.connection.execute("DELETE FROM A WHERE dim_0 = 7")
    inputs["A"][7] = 0
    check()
    changed = np.roll(inputs["A"], 1, axis=0)
    inputs["A"] = changed
    db.tensor("A", sp.coo_array(changed))
    check()
    db.connection.execute("TRUNCATE A")
    inputs["A"] = 0 * changed
    check()


@pytest.mark.parametrize("name", PROGRAMS)
def test_prepared_programs(db: se.Database, inputs: dict[str, Array], name: str) -> None:
    with db.prepare(PROGRAMS[name], inputs=[]) as step:
        assert kept_count(db) >= 1
        for scale in (1, 2, 5):
            db.connection.execute(f"UPDATE A SET val = {scale} * val")
            inputs["A"] *= scale
            for _ in range(3):
                np.testing.assert_array_equal(step.run()["Y"].to_numpy(), expected(name, inputs))


def test_a_process_without_the_arrays_makes_them_again(db: se.Database, inputs: dict[str, Array]) -> None:
    """As after a pool of connections has given the session another process."""
    program = PROGRAMS["sparse times sparse"]
    for _ in range(3):
        result(db, program)
    for handle in handles(db):
        assert db.connection.execute(f"SELECT tensor_release({handle})").fetchall() == [(True,)]
    for _ in range(2):
        np.testing.assert_array_equal(result(db, program), expected("sparse times sparse", inputs))
    assert all(size is not None for size in sizes(db))


def test_arrays_end_with_the_database(postgres_urls: dict[str, str], db: se.Database, inputs: dict[str, Array]) -> None:
    with psycopg.connect(postgres_urls["db"], autocommit=True) as connection:
        database = se.connect(connection)
        program = PROGRAMS["sparse times sparse"]
        for _ in range(3):
            np.testing.assert_array_equal(result(database, program), expected("sparse times sparse", inputs))
        kept = handles(database)
        assert len(kept) == 2
        database.close()
        for handle in kept:
            assert connection.execute(f"SELECT tensor_kept_bytes({handle})").fetchall() == [(None,)]


def test_a_role_without_rights_reads_nothing(db: se.Database, inputs: dict[str, Array]) -> None:
    program = PROGRAMS["sparse times sparse"]
    for _ in range(3):
        result(db, program)
    db.connection.execute("CREATE ROLE nobody_reads")
    try:
        db.grant("nobody_reads")
        db.connection.execute("GRANT USAGE ON SCHEMA main TO nobody_reads")
        db.connection.execute("SET ROLE nobody_reads")
        with pytest.raises(EngineError, match="permission denied for table"):
            result(db, program)
    finally:
        db.connection.execute("RESET ROLE")
        db.connection.execute("DROP OWNED BY nobody_reads; DROP ROLE nobody_reads")
    np.testing.assert_array_equal(result(db, program), expected("sparse times sparse", inputs))


def test_memory_limits_and_joins_keep_nothing(db: se.Database, inputs: dict[str, Array]) -> None:
    for options in ({"memory_limit": "200MB"}, {"indexes": False}):
        plan = db.plan(PROGRAMS["sparse times sparse"], **options)
        for _ in range(3):
            np.testing.assert_array_equal(result(db, plan), expected("sparse times sparse", inputs))
        assert kept_count(db) == 0


def handles(db: se.Database) -> list[int]:
    kept = db._engine.kept_memory
    assert kept is not None
    return [state.handle for state in kept._state.kept.values() if state.handle is not None]


def sizes(db: se.Database) -> Iterator[int | None]:
    for handle in handles(db):
        yield db.connection.execute(f"SELECT tensor_kept_bytes({handle})").fetchall()[0][0]


def test_the_functions(db: se.Database) -> None:
    connection = db.connection
    ((handle,),) = connection.execute("SELECT tensor_keep(ARRAY[1.5, 2.5]::FLOAT8[])").fetchall()
    read = f"tensor_kept({handle}, '{{}}'::FLOAT8[])"
    released = f"SELECT {read}, tensor_release({handle}), tensor_release({handle}), {read[:11]}_bytes({handle})"
    assert connection.execute(released).fetchall() == [([1.5, 2.5], True, False, None)]
    assert connection.execute("SELECT tensor_keep(NULL::REAL[])").fetchall() == [(None,)]
    nested = "SELECT tensor_kept(tensor_keep(u), u) = u FROM (VALUES ('[2:3][1:2]={{1,2},{3,4}}'::BIGINT[])) AS t(u)"
    assert connection.execute(nested).fetchall() == [(True,)]


@pytest.mark.parametrize("handle", ["0", "-1", "7", "9223372036854775807", "-9223372036854775808"])
def test_forged_handles(db: se.Database, handle: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="no array is kept under this handle"):
        db.connection.execute(f"SELECT tensor_kept({handle}, '{{}}'::FLOAT8[])")
    assert db.connection.execute(f"SELECT tensor_release({handle})").fetchall() == [(False,)]


def test_arrays_of_another_type(db: se.Database) -> None:
    with pytest.raises(psycopg.errors.DatatypeMismatch, match="elements of another type"):
        db.connection.execute("SELECT tensor_kept(tensor_keep(ARRAY[1]::FLOAT8[]), '{}'::BIGINT[])")


def test_a_session_keeps_so_many(postgres_urls: dict[str, str], db: se.Database) -> None:
    """Another one is not kept; what is kept is read as it was."""
    with psycopg.connect(postgres_urls["db"], autocommit=True) as connection:
        keep = "SELECT tensor_keep(ARRAY[i]::BIGINT[]) FROM generate_series(1, 600) AS i"
        kept = [handle for (handle,) in connection.execute(keep).fetchall()]
        assert kept[512:] == [0] * 88
        assert len(set(kept[:512])) == 512
        read = f"SELECT tensor_kept({kept[99]}, '{{}}'::BIGINT[]), tensor_kept({kept[511]}, '{{}}'::BIGINT[])"
        assert connection.execute(read).fetchall() == [([100], [512])]
        assert connection.execute(f"SELECT tensor_release({kept[99]})").fetchall() == [(True,)]
        ((again,),) = connection.execute("SELECT tensor_keep(ARRAY[5]::BIGINT[])").fetchall()
        assert again > 0


def test_what_is_released_is_read_until_the_transaction_ends(postgres_urls: dict[str, str], db: se.Database) -> None:
    """Statements that began before read it, however much is kept in the meantime; its place is free after that."""
    with psycopg.connect(postgres_urls["db"], autocommit=True) as connection:

        def keep(number: int, count: int) -> list[int]:
            arrays = f"SELECT array_fill({number}::BIGINT, ARRAY[100000]) AS u FROM generate_series(1, {count})"
            return [handle for (handle,) in connection.execute(f"SELECT tensor_keep(u) FROM ({arrays}) AS t")]

        first, *others = keep(7, 512)
        numbers = f"SELECT unnest(tensor_kept({first}, '{{}}'::BIGINT[]))"
        with connection.transaction():
            connection.execute(f"DECLARE numbers CURSOR FOR {numbers}")
            connection.execute(f"DECLARE held CURSOR WITH HOLD FOR {numbers}")
            for cursor in ("numbers", "held"):
                assert connection.execute(f"FETCH {cursor}").fetchall() == [(7,)]
            for handle in (first, *others[:50]):
                assert connection.execute(f"SELECT tensor_release({handle})").fetchall() == [(True,)]
            assert keep(8, 2) == [0, 0]
            with pytest.raises(psycopg.errors.DivisionByZero), connection.transaction():
                connection.execute("SELECT 1 / 0")
            connection.execute("SELECT sum(x) FROM unnest(array_fill(9::BIGINT, ARRAY[100000])) AS x")
            assert set(connection.execute("FETCH ALL FROM numbers").fetchall()) == {(7,)}
        assert len(set(keep(8, 52)) - {0}) == 51
        assert connection.execute("FETCH ALL FROM held").fetchall() == [(7,)] * 99_999


@pytest.mark.parametrize("ends_well", [True, False])
def test_procedures_that_commit_have_copies(db: se.Database, ends_well: bool) -> None:
    """A variable of a procedure outlives the transaction in which it was read, and the array that it was read from."""
    end = "COMMIT" if ends_well else "ROLLBACK"
    db.connection.execute(f"""
        DO $$
        DECLARE kept BIGINT[]; handle BIGINT;
        BEGIN
            handle := tensor_keep(array_fill(7::BIGINT, ARRAY[100000]));
            kept := tensor_kept(handle, '{{}}'::BIGINT[]);
            PERFORM tensor_release(handle);
            {end};
            PERFORM tensor_release(tensor_keep(array_fill(9::BIGINT, ARRAY[100000])));
            IF (SELECT sum(x) FROM unnest(kept) AS x) != 700000 THEN
                RAISE EXCEPTION 'the variable has changed';
            END IF;
        END $$
    """)

"""Databases survive dumps, exports, replication and upgrades from an earlier version."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from postgres_server import PostgresServer, start_standby
from reading import rows_of, stored_result

import sparseeinsum as se
from sparseeinsum import cli

EARLIER = Path(__file__).parent / "earlier_versions"
FRIENDS = pd.DataFrame({"src": ["bob", "al", "zoe"], "dst": ["al", "zoe", "bob"], "w": [1.0, 2.0, 3.0]})
PROGRAM = "Y[i] = sum(Friends[i, j] * B[j])"
FOUND = [("al", 4.0), ("bob", 0.0), ("zoe", 3.0)]


def fill(db: se.Database) -> None:
    """Tensors of several kinds, with natural keys and without."""
    db.tensor("Friends", FRIENDS, keys={"src": "person", "dst": "person"})
    db.tensor("A", np.arange(6.0).reshape(2, 3), promoted=["dim_0", "dim_1"])
    db.tensor("B", np.arange(3.0), keys={"dim_0": "person"})


def check(db: se.Database) -> None:
    """Assert that all tensors are read, and can be added to."""
    assert set(db.tensors()) == {"A", "B", "Friends"}
    assert [row for row in rows_of(db.run(PROGRAM)["Y"]) if row[1]] == [row for row in FOUND if row[1]]
    np.testing.assert_array_equal(stored_result(db, "A").to_numpy(), np.arange(6.0).reshape(2, 3))
    db.tensor("Later", pd.DataFrame({"who": ["new", "al"], "v": [1.0, 2.0]}), keys={"who": "person"})
    db.tensor("A", np.ones(3))
    assert db.run("Y[] = sum(A[i])")["Y"].to_numpy() == 3


@pytest.fixture
def moved(postgres_python: PostgresServer) -> Iterator[PostgresServer]:
    """A server with a database that has all tensors, and an empty database."""
    names = ("moving", "restored")
    with postgres_python.connect() as maintenance:
        for name in names:
            maintenance.execute(f"CREATE DATABASE {name}")
        maintenance.execute("CREATE ROLE analyst")
    try:
        with postgres_python.connect("moving") as connection:
            connection.execute("CREATE EXTENSION sparseeinsum_python CASCADE")
            db = se.connect(connection)
            fill(db)
            db.grant("analyst")
        yield postgres_python
    finally:
        with postgres_python.connect() as maintenance:
            for name in names:
                maintenance.execute(f"DROP DATABASE IF EXISTS {name} (FORCE)")
            maintenance.execute("DROP ROLE analyst")


@pytest.mark.parametrize("form", ["custom", "plain"])
def test_dumped_and_restored(moved: PostgresServer, tmp_path: Path, form: str) -> None:
    file = str(tmp_path / "dump")

    def run(program: str, *arguments: str) -> None:
        where = ["-h", str(moved.folder), "-U", "postgres"]
        command = [str(Path(moved.pg_config).with_name(program)), *where, *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    run("pg_dump", "--format", form, "--file", file, "moving")
    if form == "custom":
        run("pg_restore", "--exit-on-error", "--dbname", "restored", file)
    else:
        run("psql", "-q", "-X", "-v", "ON_ERROR_STOP=1", "-f", file, "restored")
    with moved.connect("restored") as connection:
        check(se.connect(connection))
        query = "SELECT tensor FROM sparseeinsum.einsum_into('Z[i] = 2 * A[i]')"
        assert connection.execute(query).fetchall() == [("Z",)]
        connection.execute("SET ROLE analyst")
        assert "Z" in se.connect(connection).tensors()
        with pytest.raises(se.RightsError, match="the tensor A belongs to the role postgres"):
            se.connect(connection).drop_tensor("A")


def test_a_standby_answers(moved: PostgresServer) -> None:
    with start_standby(moved) as standby:
        with moved.connect("moving") as connection:
            db = se.connect(connection)
            db.tensor("Late", np.ones(3))
            ((place,),) = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchall()
        with standby.connect("moving") as connection:
            waited = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
            while connection.execute(waited, [place]).fetchall() != [(True,)]:
                pass
            replica = se.connect(connection)
            assert list(replica.tensors()) == ["A", "B", "Friends", "Late"]
            assert rows_of(replica.run(PROGRAM)["Y"])[0] == ("al", 4.0)
            assert replica.run("S[] = sum(Late[i])")["S"].to_numpy() == 3
            rows = "SELECT * FROM sparseeinsum.einsum('S[] = sum(Late[i])') AS s(val float8)"
            assert connection.execute(rows).fetchall() == [(3,)]
            with pytest.raises(se.EngineError, match="read-only transaction"):
                replica.tensor("New", np.ones(3))


def test_exported_from_duckdb_and_imported(tmp_path: Path) -> None:
    with se.connect(tmp_path / "a.duckdb") as db:
        fill(db)
        db.connection.execute(f"EXPORT DATABASE '{tmp_path / 'exported'}'")
    with se.connect(tmp_path / "b.duckdb") as db:
        db.connection.execute(f"IMPORT DATABASE '{tmp_path / 'exported'}'")
        check(db)


def test_a_plan_of_version_0_1(tmp_path: Path) -> None:
    with se.connect() as db:
        left, right = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
        db.tensor("A", left, promoted=["dim_0", "dim_1"])
        db.tensor("B", right)
        plan = db.load_plan(EARLIER / "plan_0.1.0.json")
        np.testing.assert_array_equal(db.run(plan)["D"].to_numpy(), (left @ right - 3).clip(0).max(axis=1))


def test_files_on_a_server_are_removed(
    postgres_python: PostgresServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All installed files, of every version, and no others."""
    share, library = tmp_path / "share", tmp_path / "lib"
    (share / "extension").mkdir(parents=True)
    library.mkdir()
    server_files = [share / "extension" / "plpgsql.control", library / "plpgsql.so"]
    own_files = [
        *(share / "extension" / f"sparseeinsum{name}" for name in ("--0.1.0.sql", "--0.1.0--0.2.0.sql", ".control")),
        *(share / "extension" / f"sparseeinsum_python{name}" for name in ("--0.2.0.sql", ".control")),
        library / "sparseeinsum.so",
    ]
    for path in (*server_files, *own_files):
        path.touch()
    program = tmp_path / "pg_config"
    answers = f'--sharedir) echo {share};; --pkglibdir) echo {library};; *) echo "PostgreSQL 15.1";;'
    program.write_text(f"#!/bin/sh\ncase $1 in {answers} esac")
    program.chmod(0o755)
    assert cli.main(["remove", "postgres", "--pg-config", str(program)]) == 0
    assert all(path.exists() for path in server_files)
    assert not any(path.exists() for path in own_files)
    assert "DROP EXTENSION IF EXISTS" in capsys.readouterr().out
    assert cli.main(["remove", "postgres", "--pg-config", str(program)]) == 1
    assert "there are no files of sparseeinsum" in capsys.readouterr().err
    shutil.rmtree(share)

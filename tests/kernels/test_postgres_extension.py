"""The PostgreSQL extension builds, installs and updates, and refuses servers of another version."""

import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psycopg
import pytest
from postgres_server import PostgresServer
from psycopg import errors

import sparseeinsum as se
from sparseeinsum import cli
from sparseeinsum.errors import ExtensionError
from sparseeinsum.kernels.building import linking, processors
from sparseeinsum.kernels.building.postgresql_code import exported_to_postgresql
from sparseeinsum.kernels.platforms import this_platform
from sparseeinsum.kernels.postgresql import installation
from sparseeinsum.kernels.postgresql.declared_functions import (
    aggregates,
    c_functions,
    scalar_functions,
    supported_functions,
)
from sparseeinsum.kernels.postgresql.installation import InstalledServer, find_server, install_extension
from sparseeinsum.kernels.postgresql.linking_names import MAJORS

OLDER = "0.0.9"
LIBRARY = "sparseeinsum.so"


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[psycopg.Connection]:
    """A new empty database for one test."""
    with postgres.connect() as maintenance:
        maintenance.execute("CREATE DATABASE of_one_test")
    try:
        with postgres.connect("of_one_test") as connection:
            yield connection
    finally:
        with postgres.connect() as maintenance:
            maintenance.execute("DROP DATABASE of_one_test (FORCE)")


def extension_files(server: InstalledServer) -> dict[Path, bytes]:
    """The files of the extension that are installed for a server."""
    paths = (server.library_folder / LIBRARY, *server.extension_folder.glob("sparseeinsum[-.]*"))
    return {path: path.read_bytes() for path in paths}


def replace_files(server: InstalledServer, files: dict[Path, bytes]) -> None:
    """Install these files instead of those that are there; none is overwritten: processes may have it in memory."""
    for path in extension_files(server):
        path.unlink()
    for path, content in files.items():
        path.write_bytes(content)


@pytest.fixture(scope="module")
def older_files(postgres: PostgresServer) -> dict[Path, bytes]:
    """The files of an older version of the extension."""
    server = find_server(postgres.pg_config)
    present = extension_files(server)
    for script in server.extension_folder.glob("sparseeinsum--*.sql"):
        script.unlink()
    install_extension(server, OLDER)
    older = extension_files(server)
    replace_files(server, present)
    return older


@pytest.fixture
def older(postgres: PostgresServer, older_files: dict[Path, bytes]) -> Iterator[bytes]:
    """An older version of the extension is installed instead of this one, whose library is returned."""
    server = find_server(postgres.pg_config)
    present = extension_files(server)
    replace_files(server, older_files)
    try:
        yield present[server.library_folder / LIBRARY]
    finally:
        replace_files(server, present)


NOT_STRICT = (
    *("_transition", "_version", "_scaled_dot", "_matched"),
    *("_sparse_matmul", "_sparse_matmul_transposed"),
)


def test_every_function_exists_and_has_a_comment(database: psycopg.Connection) -> None:
    database.execute("CREATE EXTENSION sparseeinsum")
    query = """
        SELECT p.proname, p.prokind, p.provolatile, p.proparallel, p.proisstrict, obj_description(p.oid, 'pg_proc')
        FROM pg_depend AS d JOIN pg_proc AS p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
        WHERE d.deptype = 'e' AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'sparseeinsum')"""
    of_type = "'tensor'::regtype = ANY(ARRAY[p.prorettype] || p.proargtypes::oid[])"
    listed = database.execute(f"{query} AND NOT {of_type}").fetchall()
    for _, kind, volatility, parallel, is_strict, comment in database.execute(f"{query} AND {of_type}").fetchall():
        assert (kind, volatility, parallel, is_strict) == ("f", "i", "s", True)
        assert comment
    keeping = {name: others for name, *others in listed if others[1] != "i"}  # what sessions keep in memory
    volatilities = {"tensor_keep": "v", "tensor_kept": "s", "tensor_kept_bytes": "v", "tensor_release": "v"}
    assert {name: others[1] for name, others in keeping.items()} == volatilities
    assert all(others[2:4] == ["r", True] and others[4].endswith(".") for others in keeping.values())
    listed = [row for row in listed if row[0] not in keeping]
    assert len(listed) == 2 + len(c_functions()) + len(aggregates())  # its version, and sums of numbers
    named = {name for name, *_ in listed if name.startswith("tensor_")}
    assert named == {function.name for function in supported_functions()}
    for name, kind, volatility, parallel, is_strict, comment in listed:
        assert (volatility, parallel) == ("i", "s")
        assert is_strict == (
            kind == "f"
            and not name.endswith(
                ("_transition", "_version", "_scaled_dot", "_matched", "_sparse_matmul", "_sparse_matmul_transposed")
            )
        ), name
        assert comment.endswith(".") or "Example: " in comment
    ((combined,),) = database.execute("SELECT count(*) FROM pg_aggregate WHERE aggcombinefn <> 0").fetchall()
    assert combined >= len(aggregates())


def test_symbols_are_unique() -> None:
    symbols = [function.symbol for function in scalar_functions()] + [
        aggregate.transition.symbol for aggregate in aggregates()
    ]
    assert len(set(symbols)) == len(symbols)
    signatures = [
        (function.name, tuple(parameter.type for parameter in function.parameters)) for function in c_functions()
    ]
    assert len(set(signatures)) == len(signatures)


def test_any_schema_and_dropped_again(database: psycopg.Connection) -> None:
    database.execute("CREATE SCHEMA numbers")
    database.execute("CREATE EXTENSION sparseeinsum SCHEMA numbers")
    assert database.execute("SELECT numbers.tensor_sum(ARRAY[1, 2])").fetchall() == [([1, 2],)]
    database.execute("ALTER EXTENSION sparseeinsum SET SCHEMA public")
    assert database.execute("SELECT tensor_add(ARRAY[1], ARRAY[2])").fetchall() == [([3],)]
    database.execute("DROP EXTENSION sparseeinsum")
    assert database.execute("SELECT count(*) FROM pg_proc WHERE prosrc LIKE 'sparseeinsum%'").fetchall() == [(0,)]
    assert database.execute("SELECT count(*) FROM pg_type WHERE typname ~ 'tensor'").fetchall() == [(0,)]


def test_update(postgres: PostgresServer, older: bytes, database: psycopg.Connection) -> None:
    """Views stay valid, dropped functions disappear, and before the update the library refuses them."""
    database.execute("CREATE EXTENSION sparseeinsum")
    assert database.execute("SELECT sparseeinsum_version()").fetchall() == [(OLDER,)]
    database.execute("CREATE TABLE stored AS SELECT tensor_fill(2, i) AS u FROM generate_series(1, 3) AS i")
    database.execute("CREATE VIEW summed AS SELECT tensor_norm(tensor_sum(u)) FROM stored")
    database.execute("CREATE TABLE tensors AS SELECT u::tensor FROM stored")
    database.execute("CREATE VIEW distances AS SELECT u * 2 <-> '[2, 4]' AS distance FROM tensors")
    for name, arguments, signature in (
        ("gone", "float8[]", "tensor_norm(float8[])"),
        ("gone_transition", "float8[], float8[]", "sparseeinsum_sum_float64_transition(float8[], float8[])"),
    ):
        query = f"SELECT prosrc FROM pg_proc WHERE oid = '{signature}'::regprocedure"
        ((symbol,),) = database.execute(query).fetchall()
        declared = f"FUNCTION {name}({arguments}) RETURNS float8[] AS '$libdir/sparseeinsum', '{symbol}' LANGUAGE C"
        database.execute(f"CREATE {declared}")
        database.execute(f"ALTER EXTENSION sparseeinsum ADD FUNCTION {name}({arguments})")
    database.execute("CREATE AGGREGATE gone_too(float8[]) (SFUNC = gone_transition, STYPE = float8[])")
    database.execute("ALTER EXTENSION sparseeinsum ADD AGGREGATE gone_too(float8[])")
    install_extension(find_server(postgres.pg_config), se.__version__)
    with postgres.connect("of_one_test") as fresh:  # has loaded no library yet
        with pytest.raises(errors.UndefinedFunction, match=r"sparseeinsum_0_0_9_tensor_norm.*sparseeinsum\.so"):
            fresh.execute("SELECT * FROM summed")
        fresh.execute("ALTER EXTENSION sparseeinsum UPDATE")
        assert fresh.execute("SELECT sparseeinsum_version()").fetchall() == [(se.__version__,)]
        assert fresh.execute("SELECT * FROM summed").fetchall() == [(np.hypot(6, 6),)]
        assert fresh.execute("SELECT max(distance) FROM distances").fetchall() == [(np.hypot(4, 2),)]
        assert fresh.execute("SELECT proname FROM pg_proc WHERE proname LIKE 'gone%'").fetchall() == []


def test_a_script_of_another_version_is_refused(
    postgres: PostgresServer, older: bytes, database: psycopg.Connection
) -> None:
    library = find_server(postgres.pg_config).library_folder / LIBRARY
    library.unlink()  # not overwritten: processes may have it in memory
    library.write_bytes(older)
    with pytest.raises(errors.UndefinedFunction, match="sparseeinsum_0_0_9_version"):
        database.execute("CREATE EXTENSION sparseeinsum")
    assert database.execute("SELECT extname FROM pg_extension WHERE extname = 'sparseeinsum'").fetchall() == []


@pytest.mark.parametrize("major", MAJORS)
def test_build_for_every_version(tmp_path: Path, capsys: pytest.CaptureFixture[str], major: int) -> None:
    folder = tmp_path / "extension"
    assert cli.main(["build", "postgres", "--version", str(major), "--output", str(folder)]) == 0
    names = {"sparseeinsum.so", "sparseeinsum.control", f"sparseeinsum--{se.__version__}.sql"}
    assert {file.name for file in folder.iterdir()} == names
    printed = capsys.readouterr().out
    assert all(str(folder / name) in printed for name in names)
    command = ["nm", "-D", str(folder / "sparseeinsum.so")]
    symbols = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    exported = {line.split()[2] for line in symbols.splitlines() if " T " in line}
    assert exported == set(exported_to_postgresql(se.__version__))
    magic = struct.pack("<6i32s", 72 if major == 18 else 56, 100 * major, 100, 32, 64, 1, b"PostgreSQL")
    assert magic in (folder / "sparseeinsum.so").read_bytes()


def test_what_cannot_be_built_is_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*arguments: str) -> str:
        assert cli.main(arguments) == 1
        return capsys.readouterr().err

    older = refused("build", "postgres", "--version", "14", "--output", str(tmp_path))
    assert "PostgreSQL 14 is not supported" in older
    assert "cannot be run" in refused("install", "postgres", "--pg-config", str(tmp_path / "none"))
    assert "does not return a version" in refused("install", "postgres", "--pg-config", "echo")
    assert "failed" in refused("install", "postgres", "--pg-config", "false")
    monkeypatch.setattr(linking, "_LINKERS_OF_LINUX", ("no-such-linker",))
    monkeypatch.setattr(linking, "_has_zig", lambda: False)
    assert "pip install ziglang" in refused("build", "postgres", "--version", "15", "--output", str(tmp_path))


def test_several_servers_are_not_chosen_between(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "_DEBIAN", tmp_path)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ExtensionError, match="no pg_config found"):
        find_server()
    for major in ("15", "17"):
        (tmp_path / major / "bin").mkdir(parents=True)
        (tmp_path / major / "bin" / "pg_config").touch()
    with pytest.raises(ExtensionError, match=r"--pg-config: .*15/bin/pg_config, .*17/bin/pg_config"):
        find_server()


@pytest.mark.skipif(not this_platform().is_x86, reason="this processor has no levels")
def test_a_library_for_another_processor_is_refused(
    postgres: PostgresServer, database: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loading fails with an error, before an unknown instruction crashes the server."""
    server = find_server(postgres.pg_config)
    monkeypatch.setitem(processors._BITS[(1, "ecx")], "reserved", 16)  # a bit that no processor sets
    monkeypatch.setattr(processors, "features", lambda target: frozenset(("sse3", "reserved")))
    install_extension(server, se.__version__)
    monkeypatch.undo()
    try:
        with pytest.raises(errors.FeatureNotSupported, match="another processor"):
            database.execute("CREATE EXTENSION sparseeinsum")
    finally:
        install_extension(server, se.__version__)
    with postgres.connect("of_one_test") as fresh:
        fresh.execute("CREATE EXTENSION sparseeinsum")

"""The files of sparseeinsum_python install only for a matching Python and matching versions."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psycopg
import pytest
from postgres_server import PostgresServer
from psycopg import errors
from server_programs import PRODUCT, einsum_into

import sparseeinsum as se
from sparseeinsum import cli
from sparseeinsum.cli import extensions
from sparseeinsum.errors import ExtensionError
from sparseeinsum.kernels.postgresql import python as files
from sparseeinsum.kernels.postgresql.installation import InstalledServer, find_server
from sparseeinsum.kernels.postgresql.python import install_python

A = np.array([[0.0, 1.5, 0.0], [2.0, 0.0, -3.0]])


@pytest.fixture
def fresh(postgres_python: PostgresServer) -> Iterator[psycopg.Connection]:
    """A database without the extension."""
    with postgres_python.connect() as maintenance:
        maintenance.execute("CREATE DATABASE without_python")
    with postgres_python.connect("without_python") as connection:
        yield connection
    with postgres_python.connect() as maintenance:
        maintenance.execute("DROP DATABASE without_python (FORCE)")
    install_python(find_server(postgres_python.pg_config), se.__version__)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("package_folders", ["/nowhere"], "the server's Python cannot import sparseeinsum: No module named"),
        ("_this_python", "3.99", r"the server's Python is 3\.\d+, and sparseeinsum was installed for 3\.99"),
    ],
)
def test_a_python_that_does_not_fit(
    postgres_python: PostgresServer,
    fresh: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    value: object,
    message: str,
) -> None:
    monkeypatch.setattr(files, "_check_language", lambda _: None)
    monkeypatch.setattr(files, name, lambda: value)
    install_python(find_server(postgres_python.pg_config), se.__version__)
    fresh.execute("CREATE EXTENSION sparseeinsum_python CASCADE")
    with pytest.raises(errors.ObjectNotInPrerequisiteState, match=message) as caught:
        einsum_into(fresh, PRODUCT)
    assert "sparseeinsum install postgres --python" in (caught.value.diag.message_hint or "")


def test_the_catalogue_does_not_belong_to_it(postgres_python: PostgresServer, fresh: psycopg.Connection) -> None:
    fresh.execute("CREATE EXTENSION sparseeinsum")
    se.connect(fresh).tensor("A", A)
    for _ in range(2):
        fresh.execute("CREATE EXTENSION sparseeinsum_python CASCADE")
        einsum_into(fresh, "C[i] = sum(A[i, j])", replace=True)
        fresh.execute("DROP EXTENSION sparseeinsum_python")
    assert set(se.connect(fresh).tensors()) == {"A", "C"}


def test_updates(postgres_python: PostgresServer, fresh: psycopg.Connection) -> None:
    installed = find_server(postgres_python.pg_config)
    install_python(installed, "0.0.9")
    fresh.execute("CREATE EXTENSION sparseeinsum_python VERSION '0.0.9' CASCADE")
    with pytest.raises(errors.ObjectNotInPrerequisiteState, match=r"is of version 0\.0\.9, and Python has"):
        einsum_into(fresh, PRODUCT)
    install_python(installed, se.__version__)
    fresh.execute("ALTER EXTENSION sparseeinsum_python UPDATE")
    with pytest.raises(errors.UndefinedTable, match="there is no tensor A"):
        einsum_into(fresh, PRODUCT)
    for file in installed.extension_folder.glob("sparseeinsum_python--0.0.9*"):
        file.unlink()


def test_by_the_command(
    postgres_python: PostgresServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(extensions, "install_extension", lambda *_: ())  # it exists, and takes a while
    assert cli.main(["install", "postgres", "--pg-config", postgres_python.pg_config, "--python"]) == 0
    printed = capsys.readouterr().out
    assert "sparseeinsum_python.control" in printed
    assert "CREATE EXTENSION sparseeinsum_python CASCADE" in printed


def test_servers_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    server = InstalledServer(15, tmp_path, tmp_path)
    with pytest.raises(ExtensionError, match=r"no PL/Python; .*apt-get install postgresql-plpython3-15"):
        install_python(server, se.__version__)
    (tmp_path / "plpython3u.control").touch()
    (tmp_path / "plpython3.so").write_bytes(b"libc.so.6\0libpython3.99.so.1.0\0")
    with pytest.raises(ExtensionError, match=r"this is Python 3\.\d+, and PostgreSQL's is 3\.99; install sparseeinsum"):
        install_python(server, se.__version__)

"""What README.md and the pages of docs/ show works as it stands there: a page is a test."""

import functools
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pages import Page, blocks_of
from postgres_server import PostgresServer

DATABASE = "graph"  # that pages about PostgreSQL are in
ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_page(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """In an empty folder, with commands of this installation on the path; on PostgreSQL in an empty database."""
    monkeypatch.chdir(tmp_path)
    programs = [Path(sys.executable).parent]
    psql = None
    if any(block.language == "postgresql" for block in blocks_of(path)):
        server = request.getfixturevalue("server")
        monkeypatch.setenv("PGHOST", str(server.folder))
        monkeypatch.setenv("PGUSER", "postgres")
        monkeypatch.setenv("PGDATABASE", DATABASE)
        programs.append(Path(server.pg_config).parent)
        psql = functools.partial(server.psql, DATABASE, aligned=True)
    monkeypatch.setenv("PATH", os.pathsep.join([*map(str, programs), os.environ["PATH"]]))
    Page(path, tmp_path, psql).run()


@pytest.fixture
def server(postgres_python: PostgresServer) -> Iterator[PostgresServer]:
    """A server with the extensions and an empty database."""
    with postgres_python.connect() as maintenance:
        maintenance.execute(f"CREATE DATABASE {DATABASE}")
    yield postgres_python
    with postgres_python.connect() as maintenance:
        maintenance.execute(f"DROP DATABASE {DATABASE} (FORCE)")

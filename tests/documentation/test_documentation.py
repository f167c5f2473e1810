"""Every example of README.md and docs/ runs as printed."""

import functools
import os
import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pages import Page, blocks_of
from postgres_server import PostgresServer

import sparseeinsum as se
from sparseeinsum.environment import assets

DATABASE = "graph"  # in pages about PostgreSQL
ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_page(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Runs in an empty folder with the installed commands on the path; on PostgreSQL in an empty database."""
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


WRONG = {
    "python": "```python\nprint(1 + 1)  # 3\n```",
    "output": "```python\nprint(1 + 1)\n```\n\n```output\n3\n```",
    "console": "```console\n$ echo two \\\n> words\ntwo word\n```",
    "our command": "```console\n$ sparseeinsum stats --database here.duckdb\nA\n```",
    "anything": "```console\n$ ls here.duckdb\n...\n```",
    "file": '```text title="a.txt"\nA\n```\n\n```console\n$ cat a.txt\nB\n```',
    "sql": "```sql\nSELECT 1 AS a;\n-- 2\n```",
    "ein": "```ein\nY[i] = sum(A[i, j]\n```",
    "sh": "```sh\nsparseeinsum run --databases here.duckdb program.ein\n```",
}


@pytest.mark.parametrize("page", WRONG.values(), ids=WRONG)
def test_wrong_output_is_detected(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "page.md").write_text(page)
    with pytest.raises((pytest.fail.Exception, se.ParseError, SystemExit)):
        Page(tmp_path / "page.md", tmp_path, None).run()


RIGHT = """
```python
print(1 + 1)  # 2
```

```output
2
```

```console
$ echo two \\
> words; echo '1.5 s'
two words
0.3 s
```
"""


def test_right_output_passes(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(RIGHT)
    Page(tmp_path / "page.md", tmp_path, None).run()


def test_tables_equal_the_records() -> None:
    """`python docs/tables.py` writes them."""
    tables = runpy.run_path(str(assets.ROOT / "docs" / "tables.py"))
    page = tables["PAGE"].read_text(encoding="utf-8")
    assert page == tables["written"](page)
    assert page.count("<!-- table of") == 3


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_named_files_exist(page: str) -> None:
    """Paths from the root of the project, or from the package."""
    text = (ROOT / page).read_text(encoding="utf-8")
    names = re.findall(r"`([\w./]+/[\w.]*\.(?:py|toml|lark|json)|(?:sparseeinsum|tests|sql|stats|udfs)/[\w./]*)`", text)
    assert names
    assert [name for name in names if not ((ROOT / name).exists() or (ROOT / "sparseeinsum" / name).exists())] == []

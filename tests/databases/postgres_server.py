"""A PostgreSQL server of the tests' own: the one of Debian in a folder of its own, so that nothing of it is changed.

Where SPARSEEINSUM_TEST_POSTGRES names the folder of another one's programs, the extension is installed there.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from sparseeinsum.kernels.postgresql.python import package_folders

INSTALLED = Path("/usr/lib/postgresql/15")
SHARED = Path("/usr/share/postgresql/15")
_OTHER = os.environ.get("SPARSEEINSUM_TEST_POSTGRES")
_PROGRAMS = ("postgres", "initdb", "pg_ctl", "pg_config", "psql", "pg_dump", "pg_restore", "pg_basebackup")
_USER = "postgres"  # the user that runs the server if the tests run as root, which PostgreSQL refuses


@dataclass(frozen=True)
class PostgresServer:
    """A running server; its `pg_config` names folders that the tests may write."""

    pg_config: str
    folder: Path

    def url(self, database: str) -> str:
        return f"postgresql://{_USER}@/{database}?host={self.folder}"

    def psql(self, database: str, commands: str, aligned: bool = False) -> str:
        """Output of psql for text from standard input: for each result a heading, its rows and their number."""
        program = Path(self.pg_config).with_name("psql")
        how = ["-X", "-q", "-v", "ON_ERROR_STOP=1", *([] if aligned else ["--no-align"])]
        where = ["-h", str(self.folder), "-U", _USER, "-d", database]
        finished = subprocess.run([program, *how, *where], input=commands, capture_output=True, text=True, check=False)
        assert finished.returncode == 0, finished.stderr
        return finished.stdout

    @property
    def is_running(self) -> bool:
        """Whether the server has not been stopped."""
        return (self.folder / "data" / "postmaster.pid").exists()

    def stop(self) -> None:
        """Stop the server abruptly, like a crash."""
        program = Path(self.pg_config).with_name("pg_ctl")
        _run(program, "-D", self.folder / "data", "-m", "immediate", "-w", "stop")

    def connect(self, database: str = "postgres") -> psycopg.Connection:
        return psycopg.connect(f"host={self.folder} user={_USER} dbname={database}", autocommit=True)


def missing() -> str:
    """Why no server can be started here, or ''."""
    if _OTHER is None and not (INSTALLED / "bin" / "postgres").exists():
        return "PostgreSQL 15 is not installed: apt-get install postgresql-15"
    return "" if shutil.which("ld") else "no linker is installed: apt-get install binutils"


def missing_python() -> str:
    """Why sparseeinsum_python cannot be tested here, or ''."""
    if not (SHARED / "extension" / "plpython3u.control").exists() or _OTHER is not None:
        return "PL/Python is not installed: apt-get install postgresql-plpython3-15"
    if (
        f"libpython{sys.version_info.major}.{sys.version_info.minor}".encode()
        not in (INSTALLED / "lib" / "plpython3.so").read_bytes()
    ):
        return "PostgreSQL's Python is of another version than this one"
    for folder in package_folders():
        if not _is_readable(folder):
            return f"the server's user cannot read {folder}"
    return ""


@contextmanager
def start_server() -> Iterator[PostgresServer]:
    """A server on a socket in a temporary folder; the folder is removed afterwards."""
    with _temporary_folder() as folder:
        programs = _copy_installation(folder) if _OTHER is None else Path(_OTHER)
        with _running(programs, folder, ["-c max_connections=20"]) as server:
            yield server


@contextmanager
def start_beside(server: PostgresServer, settings: Sequence[str]) -> Iterator[PostgresServer]:
    """Another server that runs the same programs, with its own data and settings."""
    with (
        _temporary_folder() as folder,
        _running(Path(server.pg_config).parent, folder, settings) as other,
    ):
        yield other


@contextmanager
def start_standby(server: PostgresServer) -> Iterator[PostgresServer]:
    """A standby that replays the changes of a server and answers queries."""
    programs = Path(server.pg_config).parent
    with _temporary_folder() as folder:
        data = folder / "data"
        if os.geteuid() == 0:
            shutil.chown(folder, _USER)
        source = ("-h", server.folder, "-U", _USER)
        _run(programs / "pg_basebackup", *source, "-D", data, "-R", "-X", "stream", "-c", "fast")
        whole = ["-c listen_addresses=''", "-c fsync=off", f"-k {folder}", "-c max_connections=20"]
        _run(programs / "pg_ctl", "-D", data, "-l", folder / "log", "-o", " ".join(whole), "-w", "start")
        standby = PostgresServer(server.pg_config, folder)
        try:
            yield standby
        finally:
            standby.stop()


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="sparseeinsum-postgres-"))
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def _running(programs: Path, folder: Path, settings: Sequence[str]) -> Iterator[PostgresServer]:
    data = folder / "data"
    data.mkdir()
    if os.geteuid() == 0:
        for owned in (folder, data):
            shutil.chown(owned, _USER)
    _run(programs / "initdb", "-D", data, "-U", _USER, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
    whole = ["-c listen_addresses=''", "-c fsync=off", f"-k {folder}", *settings]
    _run(programs / "pg_ctl", "-D", data, "-l", folder / "log", "-o", " ".join(whole), "-w", "start")
    server = PostgresServer(str(programs / "pg_config"), folder)
    try:
        yield server
    finally:
        if server.is_running:
            server.stop()


def _copy_installation(folder: Path) -> Path:
    """Copies of the programs and links to all other files; returns the folder of the programs."""
    programs, libraries = folder / INSTALLED.relative_to("/") / "bin", folder / INSTALLED.relative_to("/") / "lib"
    shared = folder / SHARED.relative_to("/")
    programs.mkdir(parents=True)
    for name in _PROGRAMS:
        shutil.copy2(INSTALLED / "bin" / name, programs)
    for source, target in (
        (INSTALLED / "lib", libraries),
        (SHARED, shared),
        (SHARED / "extension", shared / "extension"),
    ):
        target.mkdir(parents=True)
        for file in source.iterdir():
            if file.name != "extension" and "sparseeinsum" not in file.name:
                (target / file.name).symlink_to(file)
    return programs


def _is_readable(folder: str) -> bool:
    """Whether the user that runs the server can read a folder."""
    user = _USER if os.geteuid() == 0 else None
    return subprocess.run(["ls", folder], user=user, cwd="/", capture_output=True, check=False).returncode == 0


def _run(program: Path, *arguments: object) -> None:
    finished = subprocess.run(
        [str(program), *map(str, arguments)],
        user=_USER if os.geteuid() == 0 else None,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,  # not a pipe, which the server would keep open
        stderr=subprocess.DEVNULL,
        timeout=300,
        check=False,
    )
    assert finished.returncode == 0, f"{program.name} failed"

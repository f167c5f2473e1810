"""A Citus cluster on this machine, for as long as a command runs.

    unshare -n python -m bench.local_cluster --programs DIR --workers 2 -- python -m bench.clusters --coordinator {url}

`unshare -n` makes a network namespace in which only these servers use the interface `lo`, so that everything that
arrives there is transfer between them. The client connects by a socket, and so does the coordinator to read its own
reference tables. `{url}` in the command becomes the URL of the coordinator's database.
"""

import argparse
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

_HOST = "127.0.0.1"
_USER = "postgres"  # also who runs the servers where root starts this, which PostgreSQL refuses
_DATABASE = "bench"
_SETTINGS = (
    "shared_preload_libraries=citus",
    "max_connections=100",
    "fsync=off",
    "shared_buffers=256MB",
    "citus.node_conninfo=sslmode=disable",
    "citus.enable_statistics_collection=off",
    f"listen_addresses={_HOST}",
)


@dataclass(frozen=True)
class Server:
    """One of the machines."""

    folder: Path
    port: int

    def connect(self, database: str) -> psycopg.Connection:
        """A connection by the socket, whose bytes do not pass lo."""
        return psycopg.connect(f"host={self.folder} port={self.port} user={_USER} dbname={database}", autocommit=True)

    def url(self, database: str) -> str:
        """Of a database, by the socket."""
        return f"postgresql://{_USER}@/{database}?host={self.folder}&port={self.port}"


@contextmanager
def local_cluster(programs: Path, workers: int, shards: int = 8, first_port: int = 6000) -> Iterator[str]:
    """The URL of a coordinator's database, whose tables the workers hold.

    Args:
        programs: Folder of PostgreSQL's programs, which has Citus and the extension sparseeinsum.
        workers: How many.
        shards: Of a table.
        first_port: Of the coordinator; the workers have the next ones.
    """
    with ExitStack() as servers:
        started = [servers.enter_context(_server(programs, first_port + number)) for number in range(workers + 1)]
        for server in started:
            with server.connect("postgres") as connection:
                connection.execute(f"CREATE DATABASE {_DATABASE}")
            with server.connect(_DATABASE) as connection:
                connection.execute("CREATE EXTENSION citus")
        coordinator, *others = started
        with coordinator.connect(_DATABASE) as connection:
            connection.execute(f"ALTER DATABASE {_DATABASE} SET citus.shard_count = {shards}")
            connection.execute(f"ALTER DATABASE {_DATABASE} SET citus.local_hostname = '{coordinator.folder}'")
        with coordinator.connect(_DATABASE) as connection:
            connection.execute("SELECT citus_set_coordinator_host(%s, %s)", [str(coordinator.folder), coordinator.port])
            for worker in others:
                connection.execute("SELECT citus_add_node(%s, %s)", [_HOST, worker.port])
            connection.execute("CREATE EXTENSION sparseeinsum")
        yield coordinator.url(_DATABASE)


@contextmanager
def _server(programs: Path, port: int) -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="sparseeinsum-cluster-"))
    data = folder / "data"
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, _USER)
        _run(programs / "initdb", "-D", data, "-U", _USER, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
        settings = (*_SETTINGS, f"port={port}", f"unix_socket_directories={folder}")
        options = " ".join(f"-c {setting}" for setting in settings)
        _run(programs / "pg_ctl", "-D", data, "-l", folder / "log", "-o", options, "-w", "start")
        try:
            yield Server(folder, port)
        finally:
            _run(programs / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder)


def _run(program: Path, *arguments: object) -> None:
    user = _USER if os.geteuid() == 0 else None
    quiet = subprocess.DEVNULL  # not a pipe, which the server would keep open
    subprocess.run([program, *map(str, arguments)], user=user, cwd="/", stdout=quiet, stderr=quiet, check=True)


def main() -> int:
    """Start a cluster, run the command, and stop all of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, required=True, help="folder of PostgreSQL's programs")
    parser.add_argument("--workers", type=int, default=2, help="machines that hold shards (default: 2)")
    parser.add_argument("--shards", type=int, default=8, help="of a table (default: 8)")
    parser.add_argument("command", nargs="+", help="what to run; {url} in it is the coordinator's database")
    asked = parser.parse_args()
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with local_cluster(asked.programs, asked.workers, asked.shards) as url:
        return subprocess.run([part.replace("{url}", url) for part in asked.command], check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())

"""A Citus cluster of the tests' own: a coordinator and workers, each a server with a folder and a socket of its own."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import psycopg
from postgres_server import PostgresServer, start_beside

_SETTINGS = (
    "-c shared_preload_libraries=citus",
    "-c max_connections=60",
    "-c citus.node_conninfo=sslmode=disable",
    "-c citus.enable_statistics_collection=off",
    "-c shared_buffers=32MB",
)
_PORT = 5432  # of sockets, each in its own folder


@dataclass(frozen=True)
class Cluster:
    """A coordinator that knows its workers, which hold all shards."""

    coordinator: PostgresServer
    workers: tuple[PostgresServer, ...]

    def create_database(self, name: str, shards: int = 8) -> str:
        """A database on every node, with both extensions, which tables are spread over; returns its URL."""
        for server in (*self.workers, self.coordinator):
            with server.connect() as maintenance:
                maintenance.execute(f"CREATE DATABASE {name}")
            with server.connect(name) as connection:
                connection.execute("CREATE EXTENSION citus")
        with self.coordinator.connect() as maintenance:
            maintenance.execute(f"ALTER DATABASE {name} SET citus.shard_count = {shards}")
            maintenance.execute(f"ALTER DATABASE {name} SET citus.local_hostname = '{self.coordinator.folder}'")
        with self.coordinator.connect(name) as connection:
            connection.execute("SELECT citus_set_coordinator_host(%s, %s)", [str(self.coordinator.folder), _PORT])
            for worker in self.workers:
                connection.execute("SELECT citus_add_node(%s, %s)", [str(worker.folder), _PORT])
            connection.execute("CREATE EXTENSION sparseeinsum")
        return self.coordinator.url(name)


def missing(server: PostgresServer) -> str:
    """Why no cluster can be started with a server's programs, or ''."""
    with server.connect() as connection:
        row = connection.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'citus'").fetchone()
    return "" if row else "Citus is not installed: citus is not among pg_available_extensions"


@contextmanager
def start_cluster(server: PostgresServer, workers: int) -> Iterator[Cluster]:
    """A cluster that runs the programs of a server."""
    with ExitStack() as servers:
        coordinator, *others = (servers.enter_context(start_beside(server, _SETTINGS)) for _ in range(workers + 1))
        yield Cluster(coordinator, tuple(others))


def connect(url: str) -> psycopg.Connection:
    """A connection besides that of the tests."""
    return psycopg.connect(url, autocommit=True)

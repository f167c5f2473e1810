"""What is attacked: a database of an engine, which attacks open as often as they like."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import psycopg

import sparseeinsum as se
from sparseeinsum.kernels.postgresql.installation import find_server, install_extension

MEMORY_LIMIT = "2GB"


@dataclass(frozen=True)
class Target:
    """A database: a URL for PostgreSQL, a folder of files for DuckDB."""

    engine: str
    place: str

    @contextmanager
    def database(self) -> Iterator[se.Database]:
        """An empty database."""
        if self.engine == "duckdb":
            with se.connect() as db:
                db.connection.execute(f"SET memory_limit = '{MEMORY_LIMIT}'")
                yield db
            return
        with se.connect(self.place) as db:
            db.connection.execute("DROP SCHEMA IF EXISTS main, sparseeinsum, sparseeinsum_dictionaries CASCADE")
            db.connection.execute("CREATE SCHEMA main; SET search_path = main, public; SET statement_timeout = '60s'")
            yield db


def is_refusal(error: Exception) -> bool:
    """Whether an error of a driver may occur for a user, and does not mean that the database is broken."""
    if isinstance(error, psycopg.Error):
        is_lost = isinstance(error, psycopg.OperationalError) and error.sqlstate is None
        return not is_lost and not str(error.sqlstate).startswith("XX")
    return isinstance(error, duckdb.Error) and not isinstance(error, duckdb.InternalException | duckdb.FatalException)


@contextmanager
def target_of(engine: str, folder: Path) -> Iterator[Target]:
    """A database to attack, which is removed afterwards."""
    if engine == "duckdb":
        yield Target(engine, str(folder))
        return
    from postgres_server import start_server  # noqa: PLC0415  # needs programs that not every machine has

    with start_server() as server:
        install_extension(find_server(server.pg_config), se.__version__)
        with server.connect() as connection:
            connection.execute("CREATE EXTENSION sparseeinsum")
        yield Target(engine, server.url("postgres"))

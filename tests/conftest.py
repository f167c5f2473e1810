"""Fixtures: databases in memory, settings of their own for every test run; at its end a count of random programs."""

import gc
import os
import secrets
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import citus_cluster
import duckdb
import duckdb_shell
import hypothesis
import postgres_server
import psycopg
import pytest
from any_sql import run_sql
from edge_tables import EDGES
from selection import has_no_checked_test, is_checked, mark_nightly

import sparseeinsum as se
from sparseeinsum import cli
from sparseeinsum.decompose.clusters.costs import TransferCosts
from sparseeinsum.decompose.cost_constants import constants_for, store_constants
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.postgresql import tuple_values
from sparseeinsum.kernels.building.processors import best_level
from sparseeinsum.kernels.duckdb.library import require_library
from sparseeinsum.kernels.platforms import this_platform
from sparseeinsum.kernels.postgresql.installation import find_server
from sparseeinsum.kernels.postgresql.python import install_python
from sparseeinsum.language.lowered_texts import LOWERED_TEXTS
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.user_aggregates import USER_AGGREGATES
from sparseeinsum.pipeline.search_cache import SEARCHES
from sparseeinsum.presentation.tracebacks import VARIABLE
from sparseeinsum.render.sql_statement import SqlStatement
from sparseeinsum.storage import tensor_placement

ENGINES = ("duckdb", "postgresql")

os.environ[VARIABLE] = "full"  # so that failures show their tracebacks
# The same examples in every run, or four times as many of a given seed, as every night.
hypothesis.settings.register_profile("same", max_examples=25, deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.register_profile("seeded", deadline=None, derandomize=False, database=None, print_blob=True)
hypothesis.settings.load_profile("same")


@pytest.fixture(autouse=True, scope="session")
def own_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Calibrated constants of this machine must not affect tests; compiled kernels may stay cached."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        yield


@pytest.fixture(autouse=True)
def no_earlier_searches() -> None:
    """What a test reads and searches does not depend on the tests before it."""
    LOWERED_TEXTS.clear()
    SEARCHES.clear()


@pytest.fixture(scope="module")
def operators_are_free(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Plan small tensors like large ones, for which an additional operator costs little."""
    constants = {name: replace(constants_for(name), fixed_seconds_per_operator=0.0) for name in ENGINES}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        for name in ENGINES:
            store_constants(name, constants[name], "a test")
        yield


@pytest.fixture(scope="session")
def shell(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> duckdb_shell.Shell:
    """A shell with the extension file that `sparseeinsum build duckdb` makes, or with the one that an option names.

    By day the file has code for the level of this processor alone, which is compiled already.
    """
    if command := pytestconfig.option.duckdb_shell:
        return duckdb_shell.shell_of_another_system(command, Path(pytestconfig.option.extension))
    folder = tmp_path_factory.mktemp("extension")
    levels = [] if pytestconfig.option.nightly else ["--processor", best_level(this_platform())]
    assert cli.main(["build", "duckdb", "--output", str(folder), *levels]) == 0
    return duckdb_shell.Shell(folder / "sparseeinsum.duckdb_extension")


@pytest.fixture(autouse=True)
def forget_functions() -> Iterator[None]:
    """Unregister functions that a test registered."""
    registered, aggregates = set(FUNCTIONS), set(USER_AGGREGATES)
    yield
    for name in set(FUNCTIONS) - registered:
        del FUNCTIONS[name]
    for name in set(USER_AGGREGATES) - aggregates:
        del USER_AGGREGATES[name]


@pytest.fixture
def nothing_stays() -> Iterator[None]:
    """Assert that no memory of DuckDB's functions outlives its statement."""
    yield
    assert require_library().count_residents() == 0


@pytest.fixture
def staged_statements(db: se.Database, monkeypatch: pytest.MonkeyPatch) -> list[SqlStatement]:
    """The statements that fill temporary tables of the database from now on, in their order."""
    staged: list[SqlStatement] = []
    engine_type = type(db._engine)
    stage = engine_type.stage

    def watched(engine: Engine, statement: SqlStatement) -> int:
        staged.append(statement)
        return stage(engine, statement)

    monkeypatch.setattr(engine_type, "stage", watched)
    return staged


def pytest_addoption(parser: pytest.Parser) -> None:
    """Which engines the tests of databases run on."""
    parser.addoption("--nightly", action="store_true", help="run the tests that take long, too: see selection.py")
    parser.addoption("--check", action="store_true", help="run a minute of tests: see selection.py")
    parser.addoption("--duckdb-shell", metavar="COMMAND", help="what starts DuckDB's command line of another system")
    parser.addoption("--extension", metavar="FILE", help="the extension file for it")
    parser.addoption(
        "--engines",
        choices=("marked", "all", *ENGINES),
        default="marked",
        help="engines that tests of databases run on: those of their mark, or DuckDB where they have none (the "
        "default); all engines where they have none; or only those tests that run on one engine",
    )


@pytest.fixture(scope="session")
def engine(request: pytest.FixtureRequest) -> str:
    """The engine that a test's databases are of: DuckDB, unless an option or a mark names others."""
    return str(getattr(request, "param", "duckdb"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests of databases on the engines of their mark; without one on all, if the option says so."""
    if "engine" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("engines")
    if marker is not None:
        assert len(marker.args) > 1 or marker.kwargs["reason"], "a test of one engine says why"
        metafunc.parametrize("engine", marker.args, indirect=True, scope="session")
    elif metafunc.config.option.engines != "marked":
        metafunc.parametrize("engine", ENGINES, indirect=True, scope="session")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no module of which `--check` runs no test."""
    return True if config.option.check and has_no_checked_test(collection_path) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests that options ask for.

    Without `--nightly`, tests that are marked so run only if they are asked for by name. `--check` keeps some of the
    others. `--engines` keeps the tests of one engine, and leaves out those without a database.
    """
    mark_nightly(items)
    if not (config.option.nightly or config.option.markexpr or any("::" in name for name in config.args)):
        _keep(config, items, [item.get_closest_marker("nightly") is None for item in items])
    if config.option.check:
        _keep(config, items, is_checked(items))
    if config.option.engines in ENGINES:
        _keep(config, items, [_engine_of(item) == config.option.engines for item in items])


def _keep(config: pytest.Config, items: list[pytest.Item], are_kept: list[bool]) -> None:
    """Deselect the items that are not kept."""
    config.hook.pytest_deselected(items=[item for item, is_kept in zip(items, are_kept, strict=True) if not is_kept])
    items[:] = [item for item, is_kept in zip(items, are_kept, strict=True) if is_kept]


def _engine_of(item: pytest.Item) -> object:
    call = getattr(item, "callspec", None)
    return None if call is None else call.params.get("engine")


@pytest.fixture(scope="session")
def postgres_urls(postgres: postgres_server.PostgresServer) -> dict[str, str]:
    """The URLs of databases that have the extension: one for each test in turn, and one for each module."""
    names = ("db", "shared_db")
    for name in names:
        with postgres.connect() as maintenance:
            maintenance.execute(f"CREATE DATABASE {name}")
        with postgres.connect(name) as connection:
            connection.execute("CREATE EXTENSION sparseeinsum")
    return {name: postgres.url(name) for name in names}


# Schemas and tables that tests made, as objects that DROP takes.
_MADE_BY_TESTS = """
SELECT 'SCHEMA ' || quote_ident(nspname) FROM pg_namespace
WHERE nspname NOT IN ('public', 'information_schema') AND NOT starts_with(nspname, 'pg_')
UNION ALL SELECT 'TABLE ' || oid::regclass FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
    AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = pg_class.oid AND deptype = 'e')"""


def _drop_made_by_tests(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET client_min_messages = error")
        for (dropped,) in connection.execute(_MADE_BY_TESTS).fetchall():
            connection.execute(f"DROP {dropped} CASCADE")


@pytest.fixture
def postgres_url(postgres_urls: dict[str, str]) -> Iterator[str]:
    """The URL of an empty database; what a test makes in it is dropped afterwards."""
    yield postgres_urls["db"]
    _drop_made_by_tests(postgres_urls["db"])


@contextmanager
def _opened(engine: str, request: pytest.FixtureRequest) -> Iterator[se.Database]:
    """An empty database, or an empty PostgreSQL schema, which is dropped afterwards with its catalogue."""
    if engine == "duckdb":
        with se.connect() as database:
            yield database
        return
    url = request.getfixturevalue("postgres_urls")[request.fixturename]
    with se.connect(url) as database:
        database.connection.execute("CREATE SCHEMA main; SET search_path = main, public")
        yield database
    _drop_made_by_tests(url)  # on another connection: the test may have closed its own, or left a transaction open


@pytest.fixture(scope="module")
def shared_db(engine: str, request: pytest.FixtureRequest) -> Iterator[se.Database]:
    """A database that the tests of a module share, each replacing the tensors that it needs."""
    with _opened(engine, request) as database:
        yield database


@pytest.fixture
def db(engine: str, request: pytest.FixtureRequest) -> Iterator[se.Database]:
    """An empty database."""
    with _opened(engine, request) as database:
        yield database


@pytest.fixture
def edges(db: se.Database) -> se.Database:
    """A database with a table of edges."""
    run_sql(db, EDGES)
    return db


@pytest.fixture
def on_four_threads(connection: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """A module's connection on four threads, each of which has states of its own until they are merged."""
    connection.execute("SET threads = 4")
    yield connection
    connection.execute("RESET threads")


@pytest.fixture(scope="module", params=("sqlite", "datafusion", "clickhouse", "spark"))
def other(request: pytest.FixtureRequest) -> Iterator[tuple[str, Any]]:
    """An engine without our functions, of bench/other_engines.py, with its dialect; skipped if it is not installed."""
    engines = pytest.importorskip("bench.other_engines").engines_here()
    if request.param not in engines:
        pytest.skip(f"the package of {request.param} is not installed")
    engine = engines[request.param]()
    yield request.param, engine
    engine.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[postgres_server.PostgresServer]:
    """A PostgreSQL server of the tests' own, with the extension installed."""
    missing = postgres_server.missing()
    if missing:
        pytest.skip(missing)
    with postgres_server.start_server() as server:
        assert cli.main(["install", "postgres", "--pg-config", server.pg_config]) == 0
        yield server


@pytest.fixture(scope="session")
def postgres_python(postgres: postgres_server.PostgresServer) -> postgres_server.PostgresServer:
    """The same server, with the extension sparseeinsum_python installed."""
    missing = postgres_server.missing_python()
    if missing:
        pytest.skip(missing)
    install_python(find_server(postgres.pg_config), se.__version__)
    return postgres


@pytest.fixture(scope="session")
def cluster(postgres: postgres_server.PostgresServer) -> Iterator[citus_cluster.Cluster]:
    """A Citus cluster: a coordinator and two workers, or as many as WORKERS says."""
    reason = citus_cluster.missing(postgres)
    if reason:
        pytest.skip(reason)
    with citus_cluster.start_cluster(postgres, int(os.environ.get("WORKERS", "2"))) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def citus_url(cluster: citus_cluster.Cluster, request: pytest.FixtureRequest) -> str:
    """The URL of a database of the module on the cluster."""
    return cluster.create_database(request.module.__name__)


@pytest.fixture
def citus(citus_url: str) -> Iterator[se.Database]:
    """The module's database on the cluster, empty."""
    with se.connect(citus_url) as database:
        yield database
        for name in database.tensors():
            database.drop_tensor(name)


@pytest.fixture
def set_least(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets from how many expected tuples on PostgreSQL sends results in one value."""
    return lambda least: monkeypatch.setattr(tuple_values, "_LEAST", least)


@pytest.fixture
def nothing_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Distribute small tensors like large ones, for which creating tables costs little."""
    monkeypatch.setattr(tensor_placement, "SMALL_BYTES", -1)
    monkeypatch.setattr(tensor_placement, "TransferCosts", partial(TransferCosts, small_bytes=-1, table_seconds=0.0))


@pytest.fixture(scope="module")
def postgres_connection(
    postgres: postgres_server.PostgresServer, request: pytest.FixtureRequest
) -> Iterator[psycopg.Connection]:
    """A connection to a database of the module with the extension."""
    with _new_database(postgres, request.module.__name__) as connection:
        connection.execute("CREATE EXTENSION sparseeinsum")
        yield connection


@pytest.fixture(scope="module")
def python_connection(
    postgres_python: postgres_server.PostgresServer, request: pytest.FixtureRequest
) -> Iterator[psycopg.Connection]:
    """A connection to a database of the module with the extension that plans programs in the server."""
    with _new_database(postgres_python, request.module.__name__) as connection:
        connection.execute("CREATE EXTENSION sparseeinsum_python CASCADE")
        yield connection


@contextmanager
def _new_database(server: postgres_server.PostgresServer, name: str) -> Iterator[psycopg.Connection]:
    with server.connect() as maintenance:
        maintenance.execute(f"CREATE DATABASE {name}")
    with server.connect(name) as connection:
        yield connection


def _counted() -> Counter[str]:
    """Numbers of random programs that this process ran, by kind."""
    module = sys.modules.get("test_random_language")
    return Counter() if module is None else module.COUNTED


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the counts of a worker process to the process that reports."""
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["random_programs"] = dict(_counted())


class _Collected:
    """Counts of all worker processes."""

    def __init__(self) -> None:
        self.programs: Counter[str] = Counter()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:  # noqa: ANN401  # of pytest-xdist, which need not be there
        self.programs.update(getattr(node, "workeroutput", {}).get("random_programs", {}))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        counted = self.programs + _counted()
        if counted:
            terminalreporter.section("random programs compared with numpy")
            for kind, number in sorted(counted.items(), key=lambda item: -item[1]):
                terminalreporter.write_line(f"{number:>6,} {kind}")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Draw a seed for the night before the plugin of hypothesis reads it; count in the process that reports.

    Worker processes get the options of the process that starts them, and so the same seed.
    """
    if config.option.nightly and config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(secrets.randbits(32))
    if config.option.hypothesis_seed is not None:
        hypothesis.settings.load_profile("seeded")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Collected())


def pytest_sessionstart(session: pytest.Session) -> None:
    """Print the seed, by which the run can be repeated."""
    seed = session.config.option.hypothesis_seed
    if seed is not None and not hasattr(session.config, "workerinput"):
        session.config.get_terminal_writer().line(f"random examples of --hypothesis-seed={seed}")


def pytest_collection_finish() -> None:
    """Keep the garbage collector from looking at thousands of collected tests again and again."""
    gc.collect()
    gc.freeze()

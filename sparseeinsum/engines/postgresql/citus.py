"""Engines: PostgreSQL with Citus, which distributes tables over machines; sessions are with the coordinator."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from sparseeinsum.decompose.clusters.transfers import Cluster
from sparseeinsum.engines.engine import Column
from sparseeinsum.engines.postgresql.installed_functions import Variant
from sparseeinsum.engines.postgresql.postgresql_engine import PostgreSQLEngine
from sparseeinsum.engines.postgresql.read_consistency import ReadConsistency
from sparseeinsum.engines.postgresql.sessions import DatabaseSession, Isolation
from sparseeinsum.engines.postgresql.stage_names import shared_stages
from sparseeinsum.engines.postgresql.transactions import PostgreSQLTransactions
from sparseeinsum.errors import EngineError
from sparseeinsum.render.dialects import CITUS, Dialect, write_sql
from sparseeinsum.render.sql_statement import SqlStatement
from sparseeinsum.render.table_distribution import KEY_TYPE, TableDistribution

_MACHINES = "pg_dist_node WHERE isactive AND shouldhaveshards AND noderole = 'primary'"
_SHARDS = "current_setting('citus.shard_count')::INT"  # per table
_CONNECTIONS = "current_setting('citus.max_adaptive_executor_pool_size')::INT"  # to a machine, at most

# This package's distributed tables are in one colocation group: the first one with the type of their distribution
# column and their number of shards. Tables of another group, such as those of users who ask for a group of their own,
# have equal keys on other machines. A reference table has no distribution column and is replicated by two-phase commit
# ('t'); a local table that Citus knows is not.
_DISTRIBUTION = """
SELECT
  p.partmethod,
  p.repmodel,
  CASE WHEN p.colocationid = ours.id THEN column_to_column_name(p.logicalrelid, p.partkey) END
FROM pg_dist_partition AS p
CROSS JOIN (
  SELECT MIN(colocationid) AS id
  FROM pg_dist_colocation
  WHERE shardcount = current_setting('citus.shard_count')::INT
    AND replicationfactor = current_setting('citus.shard_replication_factor')::INT
    AND distributioncolumntype = 'BIGINT'::REGTYPE
) AS ours
WHERE p.logicalrelid = pg_catalog.to_regclass($1)"""

# A machine that does not answer is no reason to refuse the cluster: statements that need it fail with a message.
_WORKERS_WITHOUT_EXTENSION = """
SELECT nodename, nodeport
FROM run_command_on_workers('SELECT COUNT(*) FROM pg_catalog.pg_extension WHERE extname = ''sparseeinsum''')
WHERE success AND result = '0'
ORDER BY nodename, nodeport"""

# For transactions that this package begins. The first setting must come first: it sends all settings that follow to the
# workers, too. The second one reads the coordinator's copy of a reference table over a connection, as from any other
# machine: a transaction that has read it directly cannot write to all machines afterwards. With the other two, rows of
# tables that only the coordinator has are sent to the machines that need them, however many rows there are.
_SETTINGS = {
    "citus.propagate_set_commands": "local",
    "citus.enable_local_execution": "off",
    "citus.local_table_join_policy": "prefer-local",
    "citus.max_intermediate_result_size": "-1",
}
# For a transaction that the user began, and that may have written reference tables. Rows that are written over several
# connections cannot be joined in the same transaction, because no connection sees what another one has written.
_NESTED_SETTINGS = {**_SETTINGS, "citus.multi_shard_modify_mode": "sequential"}

_NETWORK = "sparseeinsum.network_gbit_per_second"


def _speed(gbit: str) -> float:
    """Return bytes per second from the value of a setting in Gbit per second."""
    try:
        speed = float(gbit) * 1e9 / 8
    except ValueError:
        speed = 0.0
    if 0 < speed < math.inf:
        return speed
    raise EngineError(f"the setting {_NETWORK} is {gbit!r}; it must be a number above 0, such as 10")


class CitusTransactions(PostgreSQLTransactions):
    """Begins and ends the transactions of a session with the coordinator, which all machines take part in."""

    isolation = Isolation.READ_COMMITTED
    # A machine runs one statement per shard at the same time, but no more than it accepts connections.
    statements_per_machine = (
        f"(SELECT LEAST(CEIL({_SHARDS} / GREATEST(COUNT(*), 1)::NUMERIC), {_CONNECTIONS})::INT FROM {_MACHINES})"
    )

    def required_consistency(self, is_nested: bool) -> ReadConsistency:
        """Return that relations are kept unchanged by locks: each machine has a snapshot of its own.

        Raises:
            EngineError: The transaction has snapshots, which may be older than the locks.
        """
        if is_nested and self._session.has_snapshot():
            raise EngineError(
                "machines of a Citus cluster have no common snapshot, so that programs run in no transaction that is "
                "REPEATABLE READ or SERIALIZABLE; begin it with ISOLATION LEVEL READ COMMITTED"
            )
        return ReadConsistency.BY_LOCKS

    def engine_settings(self, is_nested: bool) -> Mapping[str, str]:
        """Return the settings of this engine for a transaction, which is part of the user's if `is_nested`."""
        return _NESTED_SETTINGS if is_nested else _SETTINGS

    def set_local(self, settings: Mapping[str, str]) -> None:
        """Change settings for the rest of the transaction, on all machines."""
        assignments = (
            exp.EQ(this=exp.var(name), expression=exp.Literal.string(value)) for name, value in settings.items()
        )
        commands = (exp.Set(expressions=[exp.SetItem(this=item, kind="LOCAL")]) for item in assignments)
        self._session.write("; ".join(write_sql(command, CITUS) for command in commands))


class CitusEngine(PostgreSQLEngine):
    """A connection to the coordinator of a cluster that has the functions of this package on every machine."""

    title = "PostgreSQL with Citus"
    dialect: Dialect = CITUS
    _transactions_type = CitusTransactions

    def cluster(self) -> Cluster:
        """Return the number of machines with shards, of shards per table, and the speed of the network if it is set.

        Raises:
            EngineError: The setting of the speed is no number above 0.
        """
        speed = f"current_setting('{_NETWORK}', TRUE)"
        ((sites, shards, gbit),) = self.rows(f"SELECT COUNT(*), {_SHARDS}, {speed} FROM {_MACHINES}")
        cluster = Cluster(int(str(sites)), int(str(shards)))
        return replace(cluster, network_bytes_per_second=_speed(str(gbit))) if gbit else cluster

    def state_token(self) -> None:
        """Return None: machines of a cluster write without the coordinator."""

    def table_distribution(self, table: exp.Table) -> TableDistribution | None:
        """Return how a table is distributed over machines; None for a view or if one machine has all rows."""
        for method, replication, column in self._session.fetch(_DISTRIBUTION, table.sql(self.dialect_name)):
            if method == "n":
                return TableDistribution(None, is_replicated=True) if replication == "t" else None
            return TableDistribution(None if column is None else str(column))
        return None

    def stage(self, statement: SqlStatement) -> int:
        """Run a statement that stores its rows in a stage; return their number."""
        if statement.distribution is None:
            return super().stage(statement)
        assert statement.stage is not None
        tuples = 0
        for command in statement.commands:
            written = self._write(command)
            if isinstance(command, exp.Insert):
                tuples += written
        self._analyze_stage(statement.stage, statement.query)
        return tuples

    def stage_namer(self, seconds: float) -> Callable[[str], exp.Table]:
        """Return a function that names the stages of a plan, which cannot be temporary tables on several machines.

        Raises:
            EngineError: The user may not create tables.
        """
        shared = shared_stages(self._session, self._transactions.user_path.first)
        if shared is None:
            raise EngineError(
                "on a Citus cluster a run keeps results in tables of the first schema on the search_path, where this "
                "user may create none; grant CREATE on it, or put another schema first"
            )
        return shared

    def load_table(self, table: exp.Table, rows: pa.Table, distribution: TableDistribution | None = None) -> None:
        """Create a permanent table from an Arrow table, or replace the table of that name, and distribute its rows."""
        if distribution is not None and distribution.column is not None:
            position = rows.schema.get_field_index(distribution.column)
            rows = rows.set_column(position, distribution.column, rows.column(position).cast(pa.int64()))
        super().load_table(table, rows, distribution)

    def _stored_columns(self, columns: Sequence[Column], distribution: TableDistribution | None) -> Sequence[Column]:
        """Return the columns of a table for the rows of a query; all distribution columns have the same type."""
        key = None if distribution is None else distribution.column
        return [Column(column.name, KEY_TYPE) if column.name == key else column for column in columns]

    def _create_permanent(
        self, table: exp.Table, columns: Sequence[Column], distribution: TableDistribution | None
    ) -> None:
        super()._create_permanent(table, columns, distribution)
        if distribution is not None:
            self.execute(distribution.command(table))

    @contextmanager
    def another_connection(self) -> Iterator["CitusEngine"]:
        """Open another connection to the same database, which sees committed data even if this connection failed."""
        with self._session.another_connection() as session:
            yield CitusEngine(session, self._functions)


def has_machines(session: DatabaseSession) -> bool:
    """Return whether a session is connected to the coordinator of a cluster that has machines for shards."""
    if not session.fetch("SELECT 1 FROM pg_catalog.pg_extension WHERE extname = 'citus'"):
        return False
    return len(session.fetch(f"SELECT 1 FROM {_MACHINES} LIMIT 1")) > 0


def check_machines(session: DatabaseSession, variant: Variant) -> None:
    """Check that all machines of a cluster have the functions of this package.

    Args:
        session: A session with the coordinator.
        variant: The functions that the coordinator has.

    Raises:
        EngineError: A machine lacks them, or they are portable functions, which machines do not share.
    """
    if variant is not Variant.EXTENSION:
        raise EngineError(
            "this is the coordinator of a Citus cluster, whose database has portable functions; drop them and run "
            "CREATE EXTENSION sparseeinsum, which Citus does on every machine"
        )
    for host, port in session.fetch(_WORKERS_WITHOUT_EXTENSION):
        raise EngineError(
            f"the machine {host}:{port} of this Citus cluster lacks the functions of this package; run `sparseeinsum "
            "install postgres` on it, and in its database CREATE EXTENSION sparseeinsum"
        )

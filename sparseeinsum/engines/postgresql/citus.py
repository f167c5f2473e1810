"""Engines: PostgreSQL with Citus, whose tables are spread over machines; a session is one with the coordinator."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from sparseeinsum.decompose.clusters.distribution import Cluster
from sparseeinsum.engines.engine import Column
from sparseeinsum.engines.postgresql.engine import PostgreSQL
from sparseeinsum.engines.postgresql.installed_functions import Variant
from sparseeinsum.engines.postgresql.read_consistency import ReadConsistency
from sparseeinsum.engines.postgresql.sessions import Isolation, Session
from sparseeinsum.errors import EngineError
from sparseeinsum.render.dialects import CITUS, Dialect, write_sql
from sparseeinsum.render.statements import Statement
from sparseeinsum.render.table_distribution import KEY_TYPE, TableDistribution

_MACHINES = "pg_dist_node WHERE isactive AND shouldhaveshards AND noderole = 'primary'"
_SHARDS = "current_setting('citus.shard_count')::INT"  # of a table
_CONNECTIONS = "current_setting('citus.max_adaptive_executor_pool_size')::INT"  # with a machine, at most

# Tables with a distribution column of our type are in one colocation group, the first of as many shards: others, such
# as those of users who ask for a group of their own, have equal keys on other machines. A reference table has no
# distribution column, and is replicated by two-phase commit ('t'); a local table that Citus knows is not.
_SPREAD = """
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

# A machine that does not answer is no reason to refuse the others: statements that need it say so.
_LACKING = """
SELECT nodename, nodeport
FROM run_command_on_workers('SELECT COUNT(*) FROM pg_catalog.pg_extension WHERE extname = ''sparseeinsum''')
WHERE success AND result = '0'
ORDER BY nodename, nodeport"""

# For transactions of ours. With the first of them, what is set for the rest of a transaction goes to the workers, too:
# the others, and those of every engine. What the coordinator has of reference tables is read over a connection, as of
# any other machine: a transaction that read it directly cannot write to all machines afterwards. Of tables that only
# the coordinator has, statements that work on all machines have the rows sent there, however many these are.
_SETTINGS = {
    "citus.propagate_set_commands": "local",
    "citus.enable_local_execution": "off",
    "citus.local_table_join_policy": "prefer-local",
    "citus.max_intermediate_result_size": "-1",
}
# Within a transaction that was open before, which may have written reference tables: what was written there over
# several connections cannot be joined, because none of them sees what another one has written.
_SETTINGS_WITHIN = {**_SETTINGS, "citus.multi_shard_modify_mode": "sequential"}


_NETWORK = "sparseeinsum.network_gbit_per_second"


def _speed(gbit: str) -> float:
    """Bytes per second, from the value of a setting."""
    try:
        found = float(gbit) * 1e9 / 8
    except ValueError:
        found = 0.0
    if 0 < found < math.inf:
        return found
    raise EngineError(f"the setting {_NETWORK} is {gbit!r}; it must be a number above 0, such as 10")


class Citus(PostgreSQL):
    """A connection to the coordinator of a cluster that has the functions of this package on every machine."""

    title = "PostgreSQL with Citus"
    dialect: Dialect = CITUS
    # Each shard of a machine has a statement.
    _isolation = Isolation.READ_COMMITTED
    _sharing = f"(SELECT LEAST(CEIL({_SHARDS} / GREATEST(COUNT(*), 1)::NUMERIC), {_CONNECTIONS})::INT FROM {_MACHINES})"

    def cluster(self) -> Cluster:
        """The machines that have shards, how many shards a table has, and what users say of the network.

        Raises:
            EngineError: That is no speed.
        """
        speed = f"current_setting('{_NETWORK}', TRUE)"
        ((sites, parts, gbit),) = self.rows(f"SELECT COUNT(*), {_SHARDS}, {speed} FROM {_MACHINES}")
        found = Cluster(int(str(sites)), int(str(parts)))
        return replace(found, network_bytes_per_second=_speed(str(gbit))) if gbit else found

    def spread_of(self, table: exp.Table) -> TableDistribution | None:
        """How the rows of a table are spread over machines; None where one has them, or where it is a view."""
        for method, replication, column in self._session.fetch(_SPREAD, table.sql(self.dialect_name)):
            if method == "n":
                return TableDistribution(None, is_replicated=True) if replication == "t" else None
            return TableDistribution(None if column is None else str(column))
        return None

    def stage(self, statement: Statement) -> int:
        """Run a statement that keeps its rows in a table of a run; returns how many there are."""
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
        """Names tables that keep results while a plan runs, which cannot be temporary on several machines.

        Raises:
            EngineError: The user may create none.
        """
        shared = self._shared_stages()
        if shared is None:
            raise EngineError(
                "on a Citus cluster a run keeps results in tables of the first schema on the search_path, where this "
                "user may create none; grant CREATE on it, or put another schema first"
            )
        return shared

    def load_table(self, table: exp.Table, rows: pa.Table, spread: TableDistribution | None = None) -> None:
        """Create a permanent table from an Arrow table, in place of one of that name; its rows go to their machines."""
        if spread is not None and spread.column is not None:
            place = rows.schema.get_field_index(spread.column)
            rows = rows.set_column(place, spread.column, rows.column(place).cast(pa.int64()))
        super().load_table(table, rows, spread)

    def _columns_kept(self, columns: Sequence[Column], spread: TableDistribution | None) -> Sequence[Column]:
        """Columns of a table for rows of given columns: the distribution column has the type of all of them."""
        column = None if spread is None else spread.column
        return [Column(each.name, KEY_TYPE) if each.name == column else each for each in columns]

    def _create_permanent(self, table: exp.Table, columns: Sequence[Column], spread: TableDistribution | None) -> None:
        super()._create_permanent(table, columns, spread)
        if spread is not None:
            self.execute(spread.command(table))

    def _how_to_hold(self, is_within: bool) -> ReadConsistency:
        """By locks: machines have a snapshot each, taken at various times, and no common one.

        Raises:
            EngineError: The transaction has snapshots, which may be older than locks.
        """
        if is_within and self._has_snapshot():
            raise EngineError(
                "machines of a Citus cluster have no common snapshot, so that programs run in no transaction that is "
                "REPEATABLE READ or SERIALIZABLE; begin it with ISOLATION LEVEL READ COMMITTED"
            )
        return ReadConsistency.BY_LOCKS

    def _own_settings(self, is_within: bool) -> Mapping[str, str]:
        """Settings of this engine's own, for a transaction that may be within one that was open before."""
        return _SETTINGS_WITHIN if is_within else _SETTINGS

    def _set(self, values: Mapping[str, str]) -> None:
        """Settings for the rest of a transaction, on all machines."""
        assigned = (exp.EQ(this=exp.var(name), expression=exp.Literal.string(to)) for name, to in values.items())
        settings = (exp.Set(expressions=[exp.SetItem(this=each, kind="LOCAL")]) for each in assigned)
        self._session.write("; ".join(write_sql(each, self.dialect) for each in settings))

    @contextmanager
    def another_connection(self) -> Iterator["Citus"]:
        """Another connection to the same database, which sees what is committed, whatever happens on this one."""
        with self._session.another_connection() as other:
            yield Citus(other, self._functions)


def has_machines(session: Session) -> bool:
    """Whether a session is one with the coordinator of a cluster that may have shards."""
    if not session.fetch("SELECT 1 FROM pg_catalog.pg_extension WHERE extname = 'citus'"):
        return False
    return len(session.fetch(f"SELECT 1 FROM {_MACHINES} LIMIT 1")) > 0


def check_machines(session: Session, variant: Variant) -> None:
    """Refuse a cluster that lacks the functions of this package on some machine.

    Raises:
        EngineError: It does, or has portable functions, which machines do not share.
    """
    if variant is not Variant.EXTENSION:
        raise EngineError(
            "this is the coordinator of a Citus cluster, whose database has portable functions; drop them and run "
            "CREATE EXTENSION sparseeinsum, which Citus does on every machine"
        )
    for host, port in session.fetch(_LACKING):
        raise EngineError(
            f"the machine {host}:{port} of this Citus cluster lacks the functions of this package; run `sparseeinsum "
            "install postgres` on it, and in its database CREATE EXTENSION sparseeinsum"
        )

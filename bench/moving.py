"""The cost of tables and transfers on a Citus cluster: the source of the defaults of `TransferCosts`.

    unshare -n python -m bench.local_cluster --programs DIR --workers 2 -- python -m bench.moving --coordinator {url}

Tables of single numbers and of arrays, large and small, are copied in place, shuffled, gathered on the coordinator,
distributed from there, and sent to all machines with a statement that joins them, as runs do. The costs per table,
row and byte of `TransferCosts` are fitted to the times. Last, Citus's aggregates gather groups of one row each. All
servers share one machine: it should be idle and have a processor for each server that works at the same time.
"""

import argparse
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rich.progress import track
from rich.table import Table
from scipy.optimize import nnls

import sparseeinsum as se
from bench.timing import CONSOLE
from sparseeinsum.decompose.clusters.costs import TransferCosts, Volume
from sparseeinsum.decompose.clusters.local_strategies import LocalStrategy
from sparseeinsum.decompose.clusters.transfers import Cluster
from sparseeinsum.decompose.clusters.wire import part_bytes, row_bytes
from sparseeinsum.decompose.places.distribution import Central, Distribution, Hashed, Replicated
from sparseeinsum.language.tensors import Axis, Decomposition, Tensor


@dataclass(frozen=True)
class Payload:
    """A table to move, with two keys.

    Attributes:
        rows: How many.
        numbers: Elements of the array in each; None of a table of numbers.
    """

    rows: int
    numbers: int | None

    @property
    def value_type(self) -> str:
        """SQL type of the values, in tables of runs."""
        return "DOUBLE PRECISION" if self.numbers is None else "BYTEA"

    @property
    def value(self) -> str:
        """SQL of the value in row i, such that compression does not pay."""
        if self.numbers is None:
            return "random()"
        pair = "decode(md5(i::TEXT || n::TEXT), 'hex')"  # 16 bytes
        return f"(SELECT string_agg({pair}, '') FROM generate_series(1, {self.numbers // 2}) AS n)"

    @property
    def volume(self) -> Volume:
        """As the search for plans counts it."""
        return Volume(self.rows, self.rows * row_bytes(*self._relation("ij")))

    @property
    def parts(self) -> Volume:
        """The same of its groups by one key, as shards send them."""
        return Volume(self.rows, self.rows * part_bytes(*self._relation("j")))

    def _relation(self, keys: str) -> tuple[Tensor, Decomposition]:
        promoted = tuple(Axis(key, self.rows) for key in keys)
        inside = () if self.numbers is None else (Axis("k", self.numbers),)
        return Tensor("T", (*promoted, *inside)), Decomposition((1,) * len(promoted) + (0,) * len(inside))


PAYLOADS = (Payload(1, None), Payload(60_000, None), Payload(600_000, None), Payload(200, 1250), Payload(2_000, 1250))


@dataclass(frozen=True)
class Move:
    """A table that is brought elsewhere.

    Attributes:
        before: Where it lies.
        after: Where it is to lie.
        commands: What runs do for that.
    """

    before: Distribution
    after: Distribution
    commands: tuple[str, ...]


def _filled(source: str, column: str) -> tuple[str, ...]:
    """Commands that fill a table with a distribution column."""
    return (
        "CREATE UNLOGGED TABLE moved (i BIGINT, j BIGINT, val {type}) WITH (toast_tuple_target=8160)",
        f"SELECT create_distributed_table('moved', '{column}')",
        f"INSERT INTO moved SELECT i, j, val FROM {source}",
        "ANALYZE moved (i, j)",
    )


_GROUPS = "gathered as groups"
MOVES: Mapping[str, Move] = {
    "copied in place": Move(Hashed(0), Hashed(0), _filled("spread", "i")),
    "shuffled": Move(Hashed(0), Hashed(1), _filled("spread", "j")),
    "gathered": Move(
        Hashed(0), Central(), ("CREATE TEMPORARY TABLE moved AS SELECT i, j, val FROM spread", "ANALYZE moved (i, j)")
    ),
    "spread": Move(Central(), Hashed(0), _filled("central", "i")),
    "sent to all": Move(Central(), Replicated(), ("SELECT COUNT(v.val) FROM few AS u JOIN central AS v ON u.i = v.i",)),
    _GROUPS: Move(
        Hashed(0),
        Central(),
        (
            "CREATE TEMPORARY TABLE moved AS SELECT j, tensor_sum({value}) AS val FROM spread GROUP BY j",
            "ANALYZE moved (j)",
        ),
    ),
}


def prepare(db: se.Database, payload: Payload) -> None:
    """Tables to move: one of the coordinator's, one on all machines, and a few rows of that."""
    columns = f"(i BIGINT, j BIGINT, val {payload.value_type}) WITH (toast_tuple_target=8160)"
    key = f"i * 7919 % {payload.rows + 1} AS j"
    rows = f"SELECT i, {key}, {payload.value} FROM generate_series(1::BIGINT, {payload.rows}) AS i"
    commands = ["DROP TABLE IF EXISTS central, spread, few", f"CREATE TABLE central {columns}"]
    commands.append(f"INSERT INTO central {rows}")
    for name, last in (("spread", payload.rows), ("few", 8)):
        commands += [f"CREATE TABLE {name} {columns}", f"SELECT create_distributed_table('{name}', 'i')"]
        commands.append(f"INSERT INTO {name} SELECT * FROM central WHERE i <= {last}")
    for command in (*commands, "ANALYZE"):
        db.connection.execute(command)


def seconds(db: se.Database, payload: Payload, move: Move) -> float:
    """To move a table, in a transaction as runs have them."""
    with db.connection.transaction(force_rollback=True), db._engine.transaction():
        start = time.perf_counter()
        for command in move.commands:
            value = "val" if payload.numbers is None else "tensor_of_bytes(val, 0::DOUBLE PRECISION)"
            db.connection.execute(command.replace("{type}", payload.value_type).replace("{value}", value))
        return time.perf_counter() - start


@dataclass(frozen=True)
class Figure:
    """What one move took.

    Attributes:
        payload: What was moved.
        move: How.
        seconds: Median.
    """

    payload: Payload
    move: str
    seconds: float


def figures(db: se.Database, repeat: int) -> Iterator[Figure]:
    """All moves of all tables, in turns, after one of each that does not count."""
    for payload in track(PAYLOADS, "tables", console=CONSOLE):
        prepare(db, payload)
        taken: dict[str, list[float]] = {name: [] for name in MOVES}
        for turn in range(repeat + 1):
            for name, move in MOVES.items():
                took = seconds(db, payload, move)
                if turn:
                    taken[name].append(took)
        yield from (Figure(payload, name, statistics.median(each)) for name, each in taken.items())


def fitted(found: Sequence[Figure], cluster: Cluster) -> TransferCosts:
    """The costs of a tuple, a byte and a table that come closest to what was measured, by ratio."""
    names = ("tuple_seconds", "byte_seconds", "table_seconds", "statement_seconds")
    units = [TransferCosts(cluster, **{each: float(each == name) for each in names}) for name in names]
    plain = [each for each in found if each.move != _GROUPS]
    sizes = np.array([[expected(each, unit) / each.seconds for unit in units] for each in plain])
    seconds_of_each, _ = nnls(sizes, np.ones(len(plain)))
    return TransferCosts(cluster, **dict(zip(names, seconds_of_each, strict=True)))


def expected(figure: Figure, costs: TransferCosts) -> float:
    """What a move is expected to take."""
    move = MOVES[figure.move]
    if figure.move == _GROUPS:
        way = LocalStrategy((Hashed(0),), Central(), gathers=True)
        return costs.filling_seconds(figure.payload.volume, way, Central(), figure.payload.parts)
    return costs.transfer_seconds(figure.payload.volume, move.before, move.after)


def report(found: Sequence[Figure], cluster: Cluster) -> None:
    """Print what each move took, and what is expected by the defaults and by the fit."""
    defaults, fit = TransferCosts(cluster), fitted(found, cluster)
    table = Table(title=f"Moving tables between {cluster.sites} machines, in seconds", title_justify="left")
    for heading in ("rows", "numbers in each", "MB", "move"):
        table.add_column(heading)
    for heading in ("measured", "by the defaults", "fitted"):
        table.add_column(heading, justify="right")
    for each in found:
        payload = each.payload
        times = [each.seconds, expected(each, defaults), expected(each, fit)]
        size = f"{payload.volume.size_bytes / 1e6:.1f}"
        table.add_row(f"{payload.rows:,}", f"{payload.numbers or 1:,}", size, each.move, *(f"{t:.4f}" for t in times))
    CONSOLE.print(table)
    for name, costs in (("defaults", defaults), ("fitted", fit)):
        once = f"{costs.tuple_seconds * 1e6:.2f} µs a tuple, {costs.byte_seconds * 1e9:.2f} ns a byte"
        apart = f"{costs.table_seconds * 1e3:.1f} ms a table, {costs.statement_seconds * 1e3:.1f} ms a statement"
        CONSOLE.print(f"{name}: {once}, {apart}")


def main() -> None:
    """Measure, fit and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--coordinator", required=True, help="URL of a database on the coordinator of a cluster")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each move (default: 5)")
    arguments = parser.parse_args()
    with se.connect(arguments.coordinator) as db:
        cluster = db._engine.cluster()
        if cluster is None:
            parser.error(f"{arguments.coordinator} is no coordinator of a cluster")
        report(list(figures(db, arguments.repeat)), cluster)


if __name__ == "__main__":
    main()

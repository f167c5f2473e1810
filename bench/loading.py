"""Loading random entries into a file database: as (coordinates, values), as a pandas frame, and by plain DuckDB.

    python -m bench.loading --entries 10_000_000

Plain DuckDB only copies the columns into a table; ours also checks every row, measures T and V, and records the tensor.
"""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

import sparseeinsum as se
from bench.timing import Figure, race, report


def random_entries(entries: int, seed: int = 0) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Distinct coordinates of a square matrix, ten a row, in random order; and values."""
    rng = np.random.default_rng(seed)
    bound = max(entries // 10, 1000)
    drawn = np.unique(rng.integers(0, bound * bound, entries + entries // 50 + 100))
    positions = rng.permutation(drawn)[:entries]
    return np.vstack(np.divmod(positions, bound)), rng.standard_normal(len(positions))


def run(entries: int, repeat: int) -> list[Figure]:
    """Race the sources, each into a new file, after checking that they load the same."""
    coordinates, values = random_entries(entries)
    frame = pd.DataFrame({"i": coordinates[0], "j": coordinates[1], "val": values})
    columns = pa.table({"i": coordinates[0], "j": coordinates[1], "val": values})
    contenders: dict[str, Callable[[], object]] = {
        "duckdb": lambda: copy_columns(columns),
        "coordinates": lambda: load((coordinates, values)),
        "pandas": lambda: load(frame),
    }
    assert len({contender() for contender in contenders.values()}) == 1
    return race(f"{entries:,} entries", contenders, dict.fromkeys(contenders, repeat), "duckdb")


def load(data: object) -> int:
    """Load a tensor into a database file of its own; how many rows its table has then."""
    with tempfile.TemporaryDirectory() as folder, se.connect(Path(folder) / "loading.duckdb") as database:
        database.tensor("A", data)
        ((rows,),) = database.connection.execute("SELECT COUNT(*) FROM A").fetchall()
        return int(rows)


def copy_columns(columns: pa.Table) -> int:
    """The same without checks, measuring and catalogue."""
    with tempfile.TemporaryDirectory() as folder, duckdb.connect(str(Path(folder) / "copy.duckdb")) as connection:
        connection.register("incoming", columns)
        connection.execute("CREATE TABLE A AS SELECT i::INTEGER AS i, j::INTEGER AS j, val FROM incoming")
        ((rows,),) = connection.execute("SELECT COUNT(*) FROM A").fetchall()
        return int(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=10_000_000, help="how many to load")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each; the median counts")
    parser.add_argument("--output", type=Path, default=Path("bench/results"), help="folder for the figures as JSON")
    asked = parser.parse_args()
    report("Loading into a file database", run(asked.entries, asked.repeat), "duckdb", asked.output / "loading.json")

"""Loading random entries from memory, from streams and from files: seconds, and peaks of memory.

    python -m bench.loading --entries 10_000_000
    python -m bench.loading --url postgresql://user@host/database
    python -m bench.loading --peaks

In `plain`, the database only copies the columns into a table; the other ways are compared with it. They also check
every row, store rows in the order of the axes, and record the tensor. Peaks are measured beyond the memory in use
before, each in a process of its own, as multiples of the data: two whole numbers and a float of 8 bytes per entry.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import psycopg
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray
from pyarrow import csv, parquet
from rich.table import Table

import sparseeinsum as se
from bench.memory import come_to_rest, resident_bytes
from bench.timing import CONSOLE, Figure, race, report
from sparseeinsum.engines.postgresql import copy_format

_ENTRY_BYTES = 24
_INDEX = ["i", "j"]
PLAIN = "plain"


def random_entries(entries: int, seed: int = 0) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Distinct coordinates of a square matrix, ten a row, in random order; and values."""
    rng = np.random.default_rng(seed)
    bound = max(entries // 10, 1000)
    drawn = np.unique(rng.integers(0, bound * bound, entries + entries // 50 + 100))
    positions = rng.permutation(drawn)[:entries]
    return np.vstack(np.divmod(positions, bound)), rng.standard_normal(len(positions))


@dataclass(frozen=True)
class Source:
    """The same entries in one form.

    Attributes:
        data: Makes them, of the table of their columns and a folder that has them as files.
        is_referred: Whether nothing is copied.
    """

    data: Callable[[pa.Table, Path], object]
    is_referred: bool = False


SOURCES = {
    "coordinates": Source(lambda table, _: (_coordinates(table), table["val"].to_numpy())),
    "scipy": Source(lambda table, _: sp.coo_array((table["val"].to_numpy(), tuple(_coordinates(table))))),
    "pandas": Source(lambda table, _: table.to_pandas()),
    "Arrow table": Source(lambda table, _: table),
    "Arrow reader": Source(lambda table, _: table.to_reader(1 << 20)),
    "Parquet": Source(lambda _, folder: folder / "entries.parquet"),
    "Parquet, in order": Source(lambda _, folder: folder / "ordered.parquet"),
    "CSV": Source(lambda _, folder: folder / "entries.csv"),
    "Parquet, no copy": Source(lambda _, folder: folder / "entries.parquet", is_referred=True),
}


def _coordinates(table: pa.Table) -> NDArray[np.int64]:
    return np.vstack([table[column].to_numpy() for column in _INDEX])


def entries_as_files(entries: int, folder: Path) -> pa.Table:
    """A table of random entries, which the folder has as files, too."""
    coordinates, values = random_entries(entries)
    table = pa.table([*coordinates, values], names=[*_INDEX, "val"])
    parquet.write_table(table, folder / "entries.parquet")
    parquet.write_table(table.sort_by([(column, "ascending") for column in _INDEX]), folder / "ordered.parquet")
    csv.write_csv(table, folder / "entries.csv")
    return table


def load(source: Source, table: pa.Table, folder: Path, url: str | None) -> int:
    """Load a tensor into a database file of its own, or a database of a server; how many rows it has then."""
    data = source.data(table, folder)
    with (
        tempfile.TemporaryDirectory(dir=folder) as place,
        se.connect(url or Path(place) / "loading.duckdb") as database,
    ):
        if source.is_referred:
            stored = database.tensor_from_table("A", str(data), _INDEX, "val")
        else:
            stored = database.tensor("A", data)
        return _rows(database.connection.execute(f"SELECT COUNT(*) FROM {stored.relation}").fetchall())


def _rows(counted: list[tuple[int]]) -> int:
    ((rows,),) = counted
    return int(rows)


def copy_plainly(table: pa.Table, folder: Path, url: str | None) -> int:
    """The same without checks, order, measuring and catalogue."""
    if url is None:
        with (
            tempfile.TemporaryDirectory(dir=folder) as place,
            duckdb.connect(str(Path(place) / "plain.duckdb")) as database,
        ):
            database.register("incoming", table)
            database.execute("CREATE TABLE plain AS SELECT i::INTEGER AS i, j::INTEGER AS j, val FROM incoming")
            return _rows(database.execute("SELECT COUNT(*) FROM plain").fetchall())
    narrow = table.cast(pa.schema([("i", pa.int32()), ("j", pa.int32()), ("val", pa.float64())]))
    with psycopg.connect(url) as server:
        server.execute("DROP TABLE IF EXISTS plain; CREATE TABLE plain (i INTEGER, j INTEGER, val DOUBLE PRECISION)")
        with server.cursor() as cursor, cursor.copy("COPY plain FROM STDIN (FORMAT BINARY)") as copy:
            for piece in copy_format.encode(narrow):
                copy.write(piece)
        return _rows(server.execute("SELECT COUNT(*) FROM plain").fetchall())


def contenders(table: pa.Table, folder: Path, url: str | None) -> dict[str, Callable[[], int]]:
    """Ways to load, by name."""
    ours = {
        name: lambda source=source: load(source, table, folder, url)
        for name, source in SOURCES.items()
        if url is None or not source.is_referred
    }
    return {PLAIN: lambda: copy_plainly(table, folder, url), **ours}


def run(entries: int, repeat: int, url: str | None) -> list[Figure]:
    """Race the sources, each into a new file or table, after checking that they load the same."""
    with tempfile.TemporaryDirectory() as folder:
        known = contenders(entries_as_files(entries, Path(folder)), Path(folder), url)
        assert {contender() for contender in known.values()} == {entries}
        return race(f"{entries:,} entries", known, dict.fromkeys(known, repeat), PLAIN)


def peak(name: str, entries: int, url: str | None) -> float:
    """Memory of this process at its peak while it loads, beyond that before, in multiples of the data."""
    with tempfile.TemporaryDirectory() as folder:
        table = entries_as_files(entries, Path(folder))
        loads = contenders(table[:1000].combine_chunks(), Path(folder), url)[PLAIN]
        loads()  # what is imported and compiled once
        load(SOURCES["coordinates"], table[:1000].combine_chunks(), Path(folder), url)
        come_to_rest()
        before = resident_bytes("VmRSS")
        contenders(table, Path(folder), url)[name]()
        return (resident_bytes("VmHWM") - before) / (_ENTRY_BYTES * entries)


def report_peaks(entries: int, url: str | None) -> None:
    """Print a table of peaks, each of a process of its own."""
    shown = Table(title=f"Peak beyond rest, {entries:,} entries, times the data", title_justify="left")
    shown.add_column("contender")
    shown.add_column("times", justify="right")
    for name in [PLAIN, *(name for name, source in SOURCES.items() if url is None or not source.is_referred)]:
        command = [sys.executable, "-m", "bench.loading", "--only", name, "--entries", str(entries)]
        done = subprocess.run(
            [*command, *(["--url", url] if url else [])], check=True, stdout=subprocess.PIPE, text=True
        )
        shown.add_row(name, f"{json.loads(done.stdout.splitlines()[-1]):.2f}")
    CONSOLE.print(shown)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=10_000_000, help="how many to load")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each; the median counts")
    parser.add_argument("--url", help="database of PostgreSQL that has the extension; by default DuckDB files")
    parser.add_argument("--peaks", action="store_true", help="measure memory instead")
    parser.add_argument("--only", metavar="CONTENDER", help="measure the memory of one here, and print it")
    parser.add_argument("--output", type=Path, default=Path("bench/results"), help="folder for the figures as JSON")
    asked = parser.parse_args()
    if asked.only:
        sys.stdout.write(f"{peak(asked.only, asked.entries, asked.url)}\n")
    elif asked.peaks:
        report_peaks(asked.entries, asked.url)
    else:
        figures = run(asked.entries, asked.repeat, asked.url)
        report("Loading", figures, PLAIN, asked.output / "loading.json")

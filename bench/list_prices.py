"""Prices of entries that are ordered by row in memory, in tuples: what to order them takes, and to multiply them.

    python -m bench.list_prices --repeat 7

Functions of the database run on random matrices of 1,000 to 200,000 rows, with 1 to 300 entries in a row. Processor
time is fitted to the numbers of rows, entries, products and results, with relative errors of equal weight. A tuple is
`fixed_seconds_per_tuple` of DuckDB's constants, which are 0.75 times processor time.
"""

import argparse
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.table import Table
from scipy.optimize import nnls

import sparseeinsum as se
from bench.datasets import random_entries
from bench.timing import CONSOLE
from sparseeinsum.decompose.cost_constants import constants_for

# Rows, and entries in a row.
SHAPES = ((1_000, 30), (1_000, 300), (10_000, 3), (10_000, 30), (50_000, 5), (200_000, 1), (200_000, 4))
MASK_SHARES = (0.1, 1.0, 5.0)  # the entries of a mask, relative to those of the matrices that are multiplied
WALL_SHARE = 0.75  # of processor time, as for the constants of DuckDB
NUMBERS = "FROM tensor_row_numbers({rows}, {together})"
CALL = "'sum(u * v)', {left}::BIGINT, row_number, {right}::BIGINT, 0::DOUBLE"
UNITS = {
    "to order": ("statement", "row", "entry"),
    "product": ("statement", "row", "product", "result"),
    "by a vector": ("statement", "row", "product"),
    "masked product": ("statement", "row", "product", "entry of the mask"),
}
RESULTS = "SELECT COUNT(e.val) FROM (SELECT unnest({call}) AS e {numbers})"


@dataclass(frozen=True)
class Timed:
    """What a query did, and its seconds.

    Attributes:
        counts: Units of work.
        seconds: Processor time.
    """

    counts: tuple[float, ...]
    seconds: float


def timed(database: se.Database, query: str, repeat: int) -> tuple[float, int]:
    """The median of the processor time of a query, and the number that it returns."""
    taken = []
    for _ in range(repeat + 1):
        start = time.process_time()
        ((result,),) = database.connection.execute(query).fetchall()
        taken.append(time.process_time() - start)
    return statistics.median(taken[1:]), int(result)


def kept(database: se.Database, rows: int, name: str) -> int:
    """The handle of a tensor in memory, which stays there while the database is open."""
    order = f"SELECT tensor_keep(tensor_compressed(val, i::BIGINT, j::BIGINT, {rows})) FROM {name}"
    ((handle,),) = database.connection.execute(order).fetchall()
    return int(handle)


def measure(rows: int, in_row: int, repeat: int) -> dict[str, list[Timed]]:
    """Order the entries of a matrix; multiply it by itself, by a vector, and by itself where masks have entries."""
    entries = random_entries(rows + in_row, rows * in_row, rows, rows)
    degrees = np.bincount(entries.coords[0], minlength=rows)
    pairs, count = float(degrees[entries.coords[1]].sum()), float(entries.nnz)
    numbers = NUMBERS.format(rows=rows, together=min(max(rows // 64, 1), 2048))
    with se.connect() as database:
        database.tensor("A", entries, axes=["i", "j"])
        database.tensor("X", random_entries(2, rows, rows, 1), axes=["i", "j"])
        order = (
            f"SELECT COUNT(handle) FROM (SELECT tensor_compressed(val, i::BIGINT, j::BIGINT, {rows}) AS handle FROM A)"
        )
        matrix, vector = (kept(database, rows, name) for name in "AX")
        call = CALL.format(left=matrix, right=matrix)
        product = RESULTS.format(call=f"tensor_product_row({call})", numbers=numbers)
        by_vector = f"SELECT COUNT(tensor_product_number({CALL.format(left=matrix, right=vector)})) {numbers}"
        multiplying, results = timed(database, product, repeat)
        masks = []
        for share in MASK_SHARES:
            mask = random_entries(1, min(max(round(count * share), 1), rows * rows // 3), rows, rows)
            database.tensor("M", mask, axes=["i", "j"])
            masked = f"tensor_masked_product_row({call}, {kept(database, rows, 'M')}::BIGINT)"
            masking, _ = timed(database, RESULTS.format(call=masked, numbers=numbers), repeat)
            masks.append(Timed((1, rows, pairs, mask.nnz), masking))
        return {
            "to order": [Timed((1, rows, count), timed(database, order, repeat)[0])],
            "product": [Timed((1, rows, pairs, results), multiplying)],
            "by a vector": [Timed((1, rows, count), timed(database, by_vector, repeat)[0])],
            "masked product": masks,
        }


def fitted(measured: Sequence[Timed]) -> tuple[np.ndarray, float]:
    """Seconds of each unit of work, and the greatest error as a factor."""
    seconds = np.array([one.seconds for one in measured])
    counts = np.array([one.counts for one in measured]) / seconds[:, None]
    prices, _ = nnls(counts, np.ones(len(seconds)))
    expected = counts @ prices
    return prices, float(np.maximum(expected, 1 / expected).max())


def main() -> None:
    """Measure and print the prices."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=7, help="runs of each query; the median counts")
    asked = parser.parse_args()
    measured = [measure(*shape, asked.repeat) for shape in SHAPES]
    tuple_seconds = constants_for("duckdb").fixed_seconds_per_tuple / WALL_SHARE
    table = Table("work", "unit", "ns of the processors", "tuples", "greatest error")
    for work, units in UNITS.items():
        prices, error = fitted([one for of_shape in measured for one in of_shape[work]])
        for unit, price in zip(units, prices, strict=True):
            table.add_row(work, unit, f"{price * 1e9:.1f}", f"{price / tuple_seconds:.2f}", f"{error:.2f}")
    CONSOLE.print(table)


if __name__ == "__main__":
    main()

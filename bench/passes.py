"""The cost of passes: runs of plans that differ only in their passes, and the ratios that were expected.

    python -m bench.passes --repeat 7

Every program has a plan in one pass and, under memory limits, the same plan in several. They run in turns. The limit
of the database is not lowered, so that only the passes make a difference.
"""

import argparse
import statistics
import time
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from rich.table import Table

import sparseeinsum as se
from bench.timing import CONSOLE
from sparseeinsum.api.examples import ExampleMatrix, load

_LIMITS = [int(limit) for limit in np.geomspace(6e7, 1e9, 30)]
_COUNTS = (2, 4, 8, 16)


def programs() -> Mapping[str, tuple[str, Mapping[str, ExampleMatrix], Mapping[str, int]]]:
    """Texts, inputs, and what the result promotes."""
    rng = np.random.default_rng(0)

    def sparse(rows: int, columns: int, density: float) -> sp.csr_array:
        return sp.csr_array(sp.random_array((rows, columns), density=density, rng=rng))

    product, outer = "C[i, k] = sum(A[i, j] * B[j, k])", "C[j, k] = sum(A[i, j] * B[i, k])"
    promoted = {"i": 1, "j": 1}
    return {
        "indexed": (product, {"A": sparse(20_000, 5000, 0.003), "B": rng.random((5000, 256))}, promoted),
        "joined": (outer, {"A": sparse(20_000, 5000, 0.002), "B": rng.random((20_000, 128))}, promoted),
        "joined, wide": (outer, {"A": sparse(8000, 8000, 0.004), "B": rng.random((8000, 256))}, promoted),
        "dense": (product, {"A": rng.random((1000, 1000)), "B": rng.random((1000, 1000))}, promoted),
    }


def _unlimited(plan: se.Plan, database: se.Database) -> se.Plan:
    """The same plan without a memory limit."""
    options = replace(plan.data.options, memory_limit=None)
    return se.Plan(replace(plan.data, options=options), database._engine)


def plans_of(database: se.Database, text: str, promoted: Mapping[str, int]) -> dict[int, se.Plan]:
    """By the number of passes, plans that are alike but for these."""

    def plan(limit: int | None) -> se.Plan:
        return database.plan(text, pin={"C": promoted}, layout="any", memory_limit=limit)

    plans = {1: plan(None)}
    for limit in _LIMITS:
        try:
            (step,) = (made := plan(limit)).data.decomposed.steps
        except se.PlanError:
            continue
        if step.passes is not None and step.indexed == plans[1].data.decomposed.steps[0].indexed:
            plans.setdefault(step.passes.count, _unlimited(made, database))
    return {count: made for count, made in plans.items() if count in (1, *_COUNTS)}


def medians(database: se.Database, plans: Mapping[int, se.Plan], repeat: int) -> dict[int, float]:
    """Seconds of every plan, which run in turns."""
    taken: dict[int, list[float]] = {count: [] for count in plans}
    for _ in range(repeat + 1):
        for count, plan in plans.items():
            start = time.perf_counter()
            database.run(plan, progress=False, replan=False)
            taken[count].append(time.perf_counter() - start)
    return {count: statistics.median(seconds[1:]) for count, seconds in taken.items()}  # the first warms up


def run(repeat: int) -> None:
    """Print for every program and number of passes how many times as long as in one it takes, expected and measured."""
    table = Table(title="Seconds in passes, as multiples of those in one", title_justify="left")
    for heading in ("program", "passes", "expected", "measured"):
        table.add_column(heading, justify="left" if heading == "program" else "right")
    for name, (text, inputs, promoted) in programs().items():
        with se.connect() as database:
            plans = plans_of(load(database, inputs), text, promoted)
            seconds = medians(database, plans, repeat)
        for count in sorted(plans.keys() - {1}):
            expected, measured = plans[count].cost / plans[1].cost, seconds[count] / seconds[1]
            table.add_row(name, str(count), f"{expected:.2f}", f"{measured:.2f}")
    CONSOLE.print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=7, help="runs of every plan, of which the median counts")
    run(parser.parse_args().repeat)

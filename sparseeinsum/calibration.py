"""Calibration: times a small set of real queries on this machine, and fits the cost model's constants to them."""

import platform
import random
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np

from sparseeinsum.database import Database, connect
from sparseeinsum.decompose.constants import constants_for, store_constants
from sparseeinsum.decompose.fit import Fit, Observation, fit_constants
from sparseeinsum.errors import PlanError
from sparseeinsum.examples import GCN, attention_inputs, attention_program, citation_graph, gcn_inputs, load
from sparseeinsum.language.building import program
from sparseeinsum.language.eingraph import Program
from sparseeinsum.plan import Plan

_WIDTH = 128
_DISTANCES = "D[i, k] = sum(abs(X[i, j] - Z[k, j]))\nS[i, k] = exp(-D[i, k])"
_BEST = 8  # plans of every program: so many of the cheapest,
_OTHERS = 16  # and so many with random decompositions, which do other kinds of work
_TOO_SLOW = 0.5  # expected seconds beyond which a plan is not timed, or not again
_REPEAT = 3


@dataclass(frozen=True, slots=True)
class Calibration:
    """What a calibration found.

    Attributes:
        fit: The constants, and the queries behind them.
        origin: Where and when they were measured, in a line.
    """

    fit: Fit
    origin: str

    def store(self) -> Path:
        """Keep the constants for this user's later plans; returns the file written."""
        return store_constants("duckdb", self.fit.constants, self.origin)


def calibrate(progress: Callable[[int, int], None] = lambda done, total: None) -> Calibration:
    """Measure the cost constants of DuckDB on this machine; nothing is kept until `store` is called.

    Plans of a graph network, of sparse attention and of distances, small ones, are run: the cheapest and random others.

    Args:
        progress: Told how many queries were timed, of how many.
    """
    plans = list(_plans())
    observations = []
    for done, (database, plan) in enumerate(plans):
        progress(done, len(plans))
        observations.append(Observation("; ".join(plan.notation()), plan.decomposed.work, _time(database, plan)))
    progress(len(plans), len(plans))
    machine = f"DuckDB {duckdb.__version__}, {platform.machine()}, {_threads(plans[0][0])} threads"
    origin = f"{len(plans)} plans of GCN, sparse attention and distances on {machine}, {time.strftime('%Y-%m-%d')}"
    return Calibration(fit_constants(observations, constants_for("duckdb")), origin)


def _plans() -> Iterator[tuple[Database, Plan]]:
    graph = citation_graph(600, 3000, 300, 12000, seed=1)
    rng = np.random.default_rng(0)
    for text, inputs in (
        (GCN, gcn_inputs(graph, 64, 8)),
        (attention_program(_WIDTH), attention_inputs(graph, _WIDTH)),
        (_DISTANCES, {"X": rng.random((300, _WIDTH)), "Z": rng.random((300, _WIDTH))}),
    ):
        database = load(connect(), inputs)
        chosen = database.plan(text, top=_BEST) + random_plans(database, program(text), _OTHERS)
        yield from ((database, plan) for plan in chosen if plan.cost < _TOO_SLOW)


def random_plans(database: Database, parsed: Program, count: int) -> list[Plan]:
    """Plans with random decompositions, few labels promoted in some and many in others; the same in every call.

    Fewer than `count` where hardly any fit into memory.
    """
    rng = random.Random(0)
    plans: list[Plan] = []
    for _ in range(20 * count):
        if len(plans) == count:
            break
        share = rng.choice((0.4, 0.6, 0.8))
        pin = {
            einsum.output.tensor: [label for label in einsum.labels if rng.random() < share]
            for einsum in parsed.einsums
        }
        try:
            plans.append(database.plan(parsed, pin=pin))
        except PlanError:  # beyond the memory limit
            continue
    return plans


def _time(database: Database, plan: Plan) -> float:
    """Median seconds of a plan, after a run to warm up; a slow plan is run once."""
    taken: list[float] = []
    while len(taken) <= _REPEAT and sum(taken) < _TOO_SLOW:
        start = time.perf_counter()
        database.run(plan, progress=False, replan=False)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken[1:] or taken)


def _threads(database: Database) -> int:
    ((threads,),) = database.connection.execute("SELECT current_setting('threads')").fetchall()
    return int(threads)

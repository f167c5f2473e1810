"""Calibration: times a small set of real queries on this machine, and fits the cost model's constants to them."""

import platform
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np

from sparseeinsum.database import Database, connect
from sparseeinsum.decompose.constants import constants_for, store_constants
from sparseeinsum.decompose.cost import CostConstants
from sparseeinsum.decompose.fit import Fit, Observation, Residual, fit_constants, residuals
from sparseeinsum.errors import PlanError
from sparseeinsum.examples import (
    FEED_FORWARD,
    GCN,
    MATRIX_CHAIN,
    Matrix,
    attention_inputs,
    attention_program,
    citation_graph,
    feed_forward_inputs,
    gcn_inputs,
    load,
    matrix_chain_inputs,
)
from sparseeinsum.language.building import program
from sparseeinsum.language.eingraph import Program
from sparseeinsum.plan import Plan

_WIDTH = 128
_DISTANCES = "D[i, k] = sum(abs(X[i, j] - Z[k, j]))\nS[i, k] = exp(-D[i, k])"
_NEIGHBOURS = "T[i, m] = sum(A[i, j] * H[j, m])"
_SAMPLED = "S[i, j] = A[i, j] * sum(U[i, k] * V[k, j])"
_BEST = 6  # plans of every program: so many of the cheapest,
_OTHERS = 12  # and so many with random decompositions, which do other kinds of work
_TOO_SLOW = 0.15  # expected seconds beyond which a plan is not timed
_RUNS = 3  # of every plan, the first of them double, to warm up
_SLOW = 0.1  # seconds beyond which the first is enough


@dataclass(frozen=True, slots=True)
class Calibration:
    """What a calibration found.

    Attributes:
        fit: The constants, and the queries behind them.
        default: The constants that they were drawn to.
        residuals: How far each of the queries is off.
        origin: Where and when they were measured, in a line.
    """

    fit: Fit
    default: CostConstants
    residuals: tuple[Residual, ...]
    origin: str

    def store(self) -> Path:
        """Keep the constants for this user's later plans; returns the file written."""
        return store_constants("duckdb", self.fit.constants, self.origin)


@dataclass(frozen=True, slots=True)
class _Query:
    """A plan and where it runs."""

    program: str
    database: Database
    plan: Plan

    def seconds(self) -> float:
        """Of one run."""
        start = time.perf_counter()
        self.database.run(self.plan, progress=False, replan=False)
        return time.perf_counter() - start

    def observed(self, seconds: float) -> Observation:
        return Observation(self.program, "; ".join(self.plan.notation()), self.plan.decomposed.work, seconds)


def calibrate(progress: Callable[[int, int], None] = lambda done, total: None) -> Calibration:
    """Measure the cost constants of DuckDB on this machine; nothing is kept until `store` is called.

    Plans of small programs of several kinds are run: the cheapest and random others.

    Args:
        progress: Told how many queries were timed, of how many.
    """
    databases = {name: (text, load(connect(), inputs)) for name, (text, inputs) in _programs().items()}
    queries = [
        _Query(name, database, plan) for name, (text, database) in databases.items() for plan in _plans(text, database)
    ]
    observations = [query.observed(seconds) for query, seconds in zip(queries, _timed(queries, progress), strict=True)]
    default = constants_for("duckdb")
    fit = fit_constants(observations, default)
    machine = f"DuckDB {duckdb.__version__}, {platform.machine()}, {_threads(queries[0].database)} threads"
    origin = f"{len(queries)} plans of {', '.join(databases)} on {machine}, {time.strftime('%Y-%m-%d')}"
    return Calibration(fit, default, residuals(fit, default), origin)


def _programs() -> Mapping[str, tuple[str, Mapping[str, Matrix]]]:
    """Texts and inputs, by name."""
    graph = citation_graph(600, 3000, 300, 12000, seed=1)
    large = citation_graph(2000, 30000, 10, 10, seed=2)  # whose vectors no cache of a core holds
    rng = np.random.default_rng(0)
    return {
        "GCN": (GCN, gcn_inputs(graph, 64, 8)),
        "sparse attention": (attention_program(_WIDTH), attention_inputs(graph, _WIDTH)),
        "neighbours": (_NEIGHBOURS, {"A": large.adjacency, "H": rng.random((2000, 2 * _WIDTH))}),
        "distances": (_DISTANCES, {"X": rng.random((300, _WIDTH)), "Z": rng.random((300, _WIDTH))}),
        "sampled product": (_SAMPLED, {"A": graph.adjacency, "U": rng.random((600, 32)), "V": rng.random((32, 600))}),
        "matrix chain": (MATRIX_CHAIN, matrix_chain_inputs(256)),
        "feed-forward network": (FEED_FORWARD, feed_forward_inputs(128, 256, 128)),
    }


def _plans(text: str, database: Database) -> list[Plan]:
    """The cheapest and some random plans, each once, but those that would take long."""
    chosen = database.plan(text, top=_BEST) + random_plans(database, program(text), _OTHERS)
    return [plan for plan in {tuple(each.notation()): each for each in chosen}.values() if plan.cost < _TOO_SLOW]


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


def _timed(queries: list[_Query], progress: Callable[[int, int], None]) -> list[float]:
    """Seconds of every query, the best of some runs, which are spread over time as a machine is slow for a while."""
    total = (1 + _RUNS) * len(queries)
    best = []
    for done, query in enumerate(queries):
        progress(done, total)
        best.append(min(query.seconds(), query.seconds()))  # the first may compile kernels, and load them
    for run in range(1, _RUNS):
        for number, query in enumerate(queries):
            progress(len(queries) * (run + 1) + number, total)
            if best[number] < _SLOW:
                best[number] = min(best[number], query.seconds())
    progress(total, total)
    return best


def _threads(database: Database) -> int:
    ((threads,),) = database.connection.execute("SELECT current_setting('threads')").fetchall()
    return int(threads)

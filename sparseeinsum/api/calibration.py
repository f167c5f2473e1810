"""Calibration: times a small set of real queries on this machine, and fits the cost model's constants to them."""

import platform
import random
import re
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sparseeinsum.api.database import Database, connect
from sparseeinsum.api.examples import (
    FEED_FORWARD,
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
from sparseeinsum.api.graphs import GCN
from sparseeinsum.api.plans import Plan
from sparseeinsum.decompose.constants import constants_for, store_constants
from sparseeinsum.decompose.cost import CostConstants
from sparseeinsum.decompose.fit import Fit, Observation, Residual, fit_constants, residuals
from sparseeinsum.engines.postgresql.names import is_postgresql
from sparseeinsum.errors import EngineError, PlanError
from sparseeinsum.language.building import program
from sparseeinsum.language.eingraph import Program

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
        costs: Name of the constants.
    """

    fit: Fit
    default: CostConstants
    residuals: tuple[Residual, ...]
    origin: str
    costs: str

    def store(self) -> Path:
        """Keep the constants for this user's later plans; returns the file written."""
        return store_constants(self.costs, self.fit.constants, self.origin)


@dataclass(frozen=True, slots=True)
class _Query:
    """A plan, and whose."""

    program: str
    plan: Plan

    def seconds(self, database: Database) -> float:
        """Of one run."""
        start = time.perf_counter()
        database.run(self.plan, progress=False, replan=False)
        return time.perf_counter() - start

    def observed(self, seconds: float) -> Observation:
        return Observation(self.program, "; ".join(self.plan.notation()), self.plan.data.decomposed.work, seconds)


def calibrate(
    progress: Callable[[int, int], None] = lambda done, total: None, server: str | None = None
) -> Calibration:
    """Measure the cost constants of a database on its machine; nothing is kept until `store` is called.

    Plans of small programs of several kinds are run: the cheapest and random others.

    Args:
        progress: Told how many queries were timed, of how many.
        server: A database of PostgreSQL, as in postgresql://...; nothing is left in it. By default DuckDB here.

    Raises:
        EngineError: The server cannot be reached, or lacks the extension.
    """
    is_unfit = server is not None and not is_postgresql(server)
    if is_unfit:
        raise EngineError(f"{server} is no database of PostgreSQL; DuckDB is calibrated in memory, without a file")
    with connect(server) as database, _leaving_nothing(database, server):
        programs = {name: _loaded(name, *each, database) for name, each in _programs().items()}
        queries = [_Query(name, plan) for name, text in programs.items() for plan in _plans(text, database)]
        timed = zip(queries, _timed(queries, database, progress), strict=True)
        observations = [query.observed(seconds) for query, seconds in timed]
        costs = database.costs
        ((version,),) = database.connection.execute("SELECT version()").fetchall()
    threads = queries[0].plan.data.threads
    default = constants_for(costs)
    fit = fit_constants(observations, default)
    product = f"DuckDB {version}" if server is None else version.split(" (")[0]
    origin = (
        f"{len(queries)} plans of {', '.join(programs)} on {product}, {platform.machine()}, {threads} threads, "
        f"{time.strftime('%Y-%m-%d')}"
    )
    return Calibration(fit, default, residuals(fit, default), origin, costs)


def _leaving_nothing(database: Database, server: str | None) -> AbstractContextManager[object]:
    """A transaction that is rolled back in the end; a database in memory is gone then in any case."""
    return nullcontext() if server is None else database.connection.transaction(force_rollback=True)


def _loaded(name: str, text: str, inputs: Mapping[str, Matrix], database: Database) -> str:
    """Load the inputs of a program under names of its own; its text with these names."""
    own = {tensor: f"{tensor}_of_{name.replace(' ', '_').replace('-', '_')}" for tensor in inputs}
    load(database, {own[tensor]: matrix for tensor, matrix in inputs.items()})
    return re.sub(r"\b(\w+)(?=\[)", lambda found: own.get(found[1], found[1]), text)


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


def _timed(queries: list[_Query], database: Database, progress: Callable[[int, int], None]) -> list[float]:
    """Seconds of every query, the best of some runs, which are spread over time as a machine is slow for a while."""
    total = (1 + _RUNS) * len(queries)
    best = []
    for done, query in enumerate(queries):
        progress(done, total)
        best.append(min(query.seconds(database), query.seconds(database)))  # the first may load kernels
    for run in range(1, _RUNS):
        for number, query in enumerate(queries):
            progress(len(queries) * (run + 1) + number, total)
            if best[number] < _SLOW:
                best[number] = min(best[number], query.seconds(database))
    progress(total, total)
    return best

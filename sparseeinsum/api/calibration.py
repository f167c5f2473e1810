"""Calibration: times a small set of queries on this machine, and fits the constants of the cost model to the times."""

import platform
import random
import re
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sparseeinsum.api.database import Database
from sparseeinsum.api.examples import (
    FEED_FORWARD,
    MATRIX_CHAIN,
    ExampleMatrix,
    attention_inputs,
    attention_program,
    citation_graph,
    feed_forward_inputs,
    gcn_inputs,
    load,
    matrix_chain_inputs,
)
from sparseeinsum.api.graphs import GCN
from sparseeinsum.api.opening import connect
from sparseeinsum.api.plans import Plan
from sparseeinsum.decompose.cost import CostConstants
from sparseeinsum.decompose.cost_constants import constants_for, store_constants
from sparseeinsum.decompose.fit import Fit, Observation, Residual, fit_constants, residuals
from sparseeinsum.engines.postgresql.addresses import is_postgresql
from sparseeinsum.errors import EngineError, PlanError
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.programs import program

_WIDTH = 128
_DISTANCES = "D[i, k] = sum(abs(X[i, j] - Z[k, j]))\nS[i, k] = exp(-D[i, k])"
_NEIGHBOURS = "T[i, m] = sum(A[i, j] * H[j, m])"
_SAMPLED = "S[i, j] = A[i, j] * sum(U[i, k] * V[k, j])"
_BEST = 6  # the number of cheapest plans of every program
_OTHERS = 12  # the number of plans with random decompositions, which do other kinds of work
_TOO_SLOW = 0.15  # plans with more predicted seconds are not timed
_RUNS = 3  # the number of rounds; in the first, every plan runs twice, to warm up
_SLOW = 0.1  # plans that take more seconds run in the first round only


@dataclass(frozen=True, slots=True)
class Calibration:
    """The result of a calibration.

    Attributes:
        fit: The fitted constants, and the measured queries.
        default: The default constants, to which the fit is regularised.
        residuals: The prediction errors of the queries.
        origin: A line of text: where and when the queries were measured.
        costs: The name under which the constants are stored.
    """

    fit: Fit
    default: CostConstants
    residuals: tuple[Residual, ...]
    origin: str
    costs: str

    def store(self) -> Path:
        """Save the constants for this user's later plans; returns the file."""
        return store_constants(self.costs, self.fit.constants, self.origin)


@dataclass(frozen=True, slots=True)
class _Query:
    """A plan to time, and the name of its program."""

    program: str
    plan: Plan

    def seconds(self, database: Database) -> float:
        """The seconds that one run takes."""
        start = time.perf_counter()
        database.run(self.plan, progress=False, replan=False)
        return time.perf_counter() - start

    def observed(self, seconds: float) -> Observation:
        return Observation(self.program, "; ".join(self.plan.notation()), self.plan.data.decomposed.work, seconds)


def calibrate(
    progress: Callable[[int, int], None] = lambda done, total: None, server: str | None = None
) -> Calibration:
    """Measure the cost constants of an engine on its machine. Nothing is saved until `store` is called.

    The cheapest plans and random other plans of several small programs are run.

    Args:
        progress: Called with the number of queries timed so far, and the total number.
        server: A PostgreSQL database, as in postgresql://...; nothing stays in it. By default DuckDB in this process.

    Raises:
        EngineError: The server cannot be reached, or lacks the extension.
    """
    is_unfit = server is not None and not is_postgresql(server)
    if is_unfit:
        raise EngineError(f"{server} is not a PostgreSQL database; DuckDB is calibrated in memory, without a file")
    with connect(server) as database, _leaving_nothing(database, server):
        programs = {name: _load(name, *sample, database) for name, sample in _programs().items()}
        queries = [_Query(name, plan) for name, text in programs.items() for plan in _plans(text, database)]
        timed = zip(queries, _measure(queries, database, progress), strict=True)
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
    """A transaction that is rolled back at the end; none for a database in memory, which ends with the process."""
    return nullcontext() if server is None else database.connection.transaction(force_rollback=True)


def _load(name: str, text: str, inputs: Mapping[str, ExampleMatrix], database: Database) -> str:
    """Load the inputs of a program under names that no other program uses; returns its text with these names."""
    own = {tensor: f"{tensor}_of_{name.replace(' ', '_').replace('-', '_')}" for tensor in inputs}
    load(database, {own[tensor]: matrix for tensor, matrix in inputs.items()})
    return re.sub(r"\b(\w+)(?=\[)", lambda match: own.get(match[1], match[1]), text)


def _programs() -> Mapping[str, tuple[str, Mapping[str, ExampleMatrix]]]:
    """The programs to measure: their texts and their inputs, by name."""
    graph = citation_graph(600, 3000, 300, 12000, seed=1)
    large = citation_graph(2000, 30000, 10, 10, seed=2)  # vectors larger than the caches of a core
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
    """The cheapest plans and some random plans of a program, without duplicates and without slow ones."""
    chosen = database.plan(text, top=_BEST) + random_plans(database, program(text), _OTHERS)
    return [plan for plan in {tuple(plan.notation()): plan for plan in chosen}.values() if plan.cost < _TOO_SLOW]


def random_plans(database: Database, parsed: Program, count: int) -> list[Plan]:
    """Up to `count` plans with random decompositions, with few or many promoted labels; the same in every call.

    There are fewer than `count` if hardly any decompositions fit into memory.
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


def _measure(queries: list[_Query], database: Database, progress: Callable[[int, int], None]) -> list[float]:
    """The least seconds of every query. Its runs are spread over time, because a machine can be slow for a while."""
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

"""The effect of greedy search, wrong cost constants and wrong sizes: tables 9, 11 and 12 of the SparseEinSum paper.

    python -m bench.paper_tables planetoid_cora --data DIR --tables 9,12

Table 9: greedy search instead of the dynamic programme, also for the programs of bench/programs.py. Table 11: one of
the cost constants is too small or too large. Table 12: the estimated entries of every result are multiplied by a
random number of Gamma(a, 1/a), which is 1 on average, ten times each. Plans are searched with the wrong numbers, then
run; rewriting always uses the right costs. A plan is stopped after ten times the time of the chosen one, and counted
as having taken that long.
"""

import argparse
import json
import math
import random
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from rich.table import Table

import sparseeinsum as se
from bench.datasets import chosen_graphs, graph_of, graph_parser
from bench.programs import PROGRAMS, Source, source
from bench.stopping import seconds_within
from bench.timing import CONSOLE, race
from sparseeinsum.api.examples import ExampleGraph, ExampleMatrix, attention_inputs, attention_program, gcn_inputs, load
from sparseeinsum.api.graphs import GCN
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.plans.saved.plan_files import write_plan
from sparseeinsum.statistics.estimate import Statistics

WIDTH = 1024
FACTORS = {"1/10": 0.1, "1/2": 0.5, "2": 2.0, "10": 10.0}
SHAPES = {"1": 1.0, "1/3": 1 / 3, "1/10": 0.1}  # alpha of the Gamma distribution; theta is 1 / alpha
DRAWS = 10
# As the paper calls them; it has no constant of its own for matrix products.
CONSTANTS = {
    "C_xfer": "transfer_seconds_per_byte",
    "C_kernel": "kernel_seconds_per_operation",
    "C_kernel of products": "matrix_seconds_per_operation",
    "C_kernel of expressions": "expression_seconds_per_operation",
    "C_fixed": "fixed_seconds_per_tuple",
    "C_fixed of hashing": "hashing_seconds_per_tuple",
    "C_fixed of operators": "fixed_seconds_per_operator",
}
_SLOWER, _LEAST_LIMIT = 10, 1.0  # a plan is stopped after so many times the chosen one's seconds, but not before

Changes = Mapping[str, Sequence[se.Plan]]


@dataclass(frozen=True)
class Row:
    """What a change of the search does.

    Attributes:
        table: Number of the table in the paper.
        case: Program and graph.
        change: What is changed.
        plans: How many different plans that gave.
        stopped: How many of them took too long.
        expected: Seconds that the unchanged cost model expects of them; the mean over all draws.
        seconds: What they took, likewise; each the median of its runs.
        ratio: To the plan of the unchanged search.
    """

    table: int
    case: str
    change: str
    plans: int
    stopped: int
    expected: float
    seconds: float
    ratio: float


def cases(graph: ExampleGraph, width: int = WIDTH) -> dict[str, tuple[str, Mapping[str, ExampleMatrix]]]:
    """The paper's two programs, with their inputs."""
    return {
        "GCN": (GCN, gcn_inputs(graph, hidden=min(width, 256))),
        "attention": (attention_program(width), attention_inputs(graph, width)),
    }


def greedy(database: se.Database, plan: se.Plan) -> Changes:
    """Table 9."""
    return {"greedy": [database.plan(plan.data.program, optimizer="greedy", rewrite=False)]}


def wrong_constants(database: se.Database, plan: se.Plan) -> Changes:
    """Table 11."""
    model = plan.data.alternatives.model
    changes = {}
    for symbol, constant in CONSTANTS.items():
        right = getattr(model.constants, constant)
        for name, factor in FACTORS.items():
            constants = replace(model.constants, **{constant: right * factor})
            changes[f"{symbol} x {name}"] = [replanned(database, plan, replace(model, constants=constants))]
    return changes


def wrong_sizes(database: se.Database, plan: se.Plan) -> Changes:
    """Table 12."""
    return {
        f"Gamma({name}, {1 / alpha:.0f})": [
            replanned(database, plan, with_noise(plan.data.alternatives.model, alpha, seed)) for seed in range(DRAWS)
        ]
        for name, alpha in SHAPES.items()
    }


TABLES: Mapping[int, Callable[[se.Database, se.Plan], Changes]] = {9: greedy, 11: wrong_constants, 12: wrong_sizes}


def replanned(database: se.Database, plan: se.Plan, model: CostModel) -> se.Plan:
    """The plan that another cost model chooses among the same alternatives; its cost is what the right one expects."""
    (chosen,) = replace(plan.data.alternatives, model=model).best(1)
    return database.load_plan(write_plan(replace(plan.data, decomposed=chosen)))


def with_noise(model: CostModel, alpha: float, seed: int) -> CostModel:
    """A cost model that mistakes the entries of every result by a factor of Gamma(alpha, 1 / alpha)."""
    rng = random.Random(seed)
    noisy = dict(model.statistics)
    for einsum in model.graph.einsums:
        name = einsum.output.tensor
        noisy[name] = mistaken(noisy[name], rng.gammavariate(alpha, 1 / alpha))
    return replace(model, statistics=noisy)


def mistaken(right: Statistics, factor: float) -> Statistics:
    """Statistics with T times a factor, and V times those above 1; each V is at most T and its bound."""
    entries = min(right.entries * factor, float(math.prod(right.shape)))
    widened = (distinct * max(factor, 1.0) for distinct in right.distinct)
    distinct = (min(value, entries, float(bound)) for value, bound in zip(widened, right.shape, strict=True))
    return Statistics(entries, tuple(distinct), right.shape)


def run(graph: ExampleGraph, tables: Sequence[int], repeat: int, width: int = WIDTH) -> Iterator[Row]:
    """The rows of one graph."""
    for program, (text, inputs) in cases(graph, width).items():
        with load(se.connect(), inputs) as database:
            plan = database.plan(text, rewrite=False)
            for table in tables:
                yield from _rows(table, f"{program}, {graph.name}", database, plan, repeat)


def run_programs(source: Source, repeat: int) -> Iterator[Row]:
    """Table 9 for other programs, among them dense ones."""
    for make in PROGRAMS.values():
        case = make(source)
        with case.database() as database:
            yield from _rows(9, case.name, database, database.plan(case.text, rewrite=False), repeat)


def _rows(table: int, case: str, database: se.Database, plan: se.Plan, repeat: int) -> list[Row]:
    """What the changes of one table do to a plan; every plan is timed once, however many changes led to it."""
    changes: Changes = {"none": [plan], **TABLES[table](database, plan)}
    plans = {_notation(plan): plan for changed in changes.values() for plan in changed}
    unchanged, *_ = plans
    seconds, stopped = _timed(case, database, plans, unchanged, repeat)
    rows = []
    for change, changed in changes.items():
        mean = statistics.mean(seconds[_notation(plan)] for plan in changed)
        expected = statistics.mean(plan.cost for plan in changed)
        different = {_notation(plan) for plan in changed}
        row = Row(
            table, case, change, len(different), len(different & stopped), expected, mean, mean / seconds[unchanged]
        )
        rows.append(row)
    return rows


def _timed(
    case: str, database: se.Database, plans: Mapping[str, se.Plan], unchanged: str, repeat: int
) -> tuple[dict[str, float], set[str]]:
    """Median seconds of every plan by notation, and those that were stopped, which count with the limit."""
    seconds_within(database, plans[unchanged], math.inf)  # compiles kernels, and loads them
    limit = max(_SLOWER * seconds_within(database, plans[unchanged], math.inf), _LEAST_LIMIT)
    stopped = {name for name, plan in plans.items() if math.isinf(seconds_within(database, plan, limit))}
    runners = {
        name: partial(database.run, plan, progress=False, replan=False)
        for name, plan in plans.items()
        if name not in stopped
    }
    figures = race(case, runners, dict.fromkeys(runners, repeat), unchanged)
    medians = {figure.contender: figure.seconds for figure in figures}
    return medians | dict.fromkeys(stopped, limit), stopped


def _notation(plan: se.Plan) -> str:
    return "; ".join(plan.notation())


def report(rows: list[Row], path: Path) -> None:
    """Print a table for each of the paper's, and keep the figures."""
    for number in sorted({row.table for row in rows}):
        table = Table(title=f"Table {number}", title_justify="left")
        table.add_column("program, graph")
        table.add_column("change")
        for heading in ("plans", "stopped", "expected ms", "ms", "times unchanged"):
            table.add_column(heading, justify="right")
        for row in (row for row in rows if row.table == number):
            table.add_row(
                row.case,
                row.change,
                str(row.plans),
                str(row.stopped),
                f"{row.expected * 1e3:.1f}",
                f"{row.seconds * 1e3:.1f}",
                f"{'at least ' if row.stopped else ''}{row.ratio:.2f}",
            )
        CONSOLE.print(table)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")


def _table_numbers(text: str) -> list[int]:
    """Numbers of tables, separated by commas."""
    if not set(text.split(",")) <= {str(number) for number in TABLES}:
        raise argparse.ArgumentTypeError(f"{text} is no list of tables; choose from {', '.join(map(str, TABLES))}")
    return [int(number) for number in text.split(",")]


if __name__ == "__main__":
    parser = graph_parser(__doc__ or "", repeat=3)
    parser.add_argument("--tables", type=_table_numbers, default=list(TABLES), help="numbers, separated by commas")
    asked = chosen_graphs(parser, ["planetoid_cora"])
    measured = [row for name in asked.graphs for row in run(graph_of(name, asked.data), asked.tables, asked.repeat)]
    if 9 in asked.tables:
        measured += run_programs(source(asked.data), asked.repeat)
    report(measured, asked.output / "paper_tables.json")

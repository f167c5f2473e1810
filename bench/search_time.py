"""What the time of a search buys: planning and run of every program, beside a search that looks at all choices.

    python -m bench.search_time --data DIR --programs gcn_2,training_step

It runs the twenty programs of bench/programs.py. The two searches take turns. The last columns compare the expected
seconds of the plan that is chosen by default with those of its run.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from rich.table import Table

import sparseeinsum as se
from bench.datasets import add_data_folder
from bench.programs import PROGRAMS, Case, source
from bench.timing import CONSOLE
from sparseeinsum.pipeline.plan_options import plan_options
from sparseeinsum.pipeline.planning import make_plans
from sparseeinsum.pipeline.search_cache import SEARCHES
from sparseeinsum.plans.options import PlanOptions


@dataclass(frozen=True)
class Search:
    """What one search took, and the plan that it chose.

    Attributes:
        planning: Median seconds of planning, of the processor, as others may share the machine.
        running: The same of a run of the plan, all threads together.
        expected: Expected seconds of the plan.
        notation: Its decompositions.
    """

    planning: float
    running: float
    expected: float
    notation: tuple[str, ...]

    @property
    def seconds(self) -> float:
        """Planning and one run."""
        return self.planning + self.running


def compare(case: Case, repeat: int) -> tuple[Search, Search]:
    """The default search and the one that looks at all choices, by turns after one round to warm up."""
    with case.database() as database:
        program = se.program(case.text)
        default = plan_options("dp")

        def planned(options: PlanOptions) -> se.Plan:
            SEARCHES.clear()
            return se.Plan(make_plans(program, database._engine, options)[0], database._engine)

        searches = [partial(planned, options) for options in (default, replace(default, searches_all=True))]
        taken = [[_timed(database, search) for search in searches] for _ in range(1 + repeat)][1:]
        plans = [search() for search in searches]
    first, second = (
        Search(
            statistics.median(turn[number][0] for turn in taken),
            statistics.median(turn[number][1] for turn in taken),
            plan.cost,
            tuple(plan.notation()),
        )
        for number, plan in enumerate(plans)
    )
    return first, second


def _timed(database: se.Database, search: Callable[[], se.Plan]) -> tuple[float, float]:
    """Seconds of a search, and of a run of its plan."""
    start = time.process_time()
    plan = search()
    planned = time.process_time()
    database.run(plan, progress=False, replan=False)
    return planned - start, time.process_time() - planned


def report(searches: dict[str, tuple[Search, Search]]) -> None:
    """Print a table, in milliseconds."""
    table = Table(title="Planning and one run, in ms", title_justify="left")
    table.add_column("program")
    for heading in (
        "plan",
        "run",
        "plan, all",
        "run, all",
        "together / all",
        "same plan",
        "expected",
        "actual / expected",
    ):
        table.add_column(heading, justify="right")
    for name, (default, thorough) in searches.items():
        milliseconds = [default.planning, default.running, thorough.planning, thorough.running]
        table.add_row(
            name,
            *(f"{seconds * 1e3:.1f}" for seconds in milliseconds),
            f"{default.seconds / thorough.seconds:.2f}",
            "yes" if default.notation == thorough.notation else "no",
            f"{default.expected * 1e3:.1f}",
            f"{default.running / default.expected:.1f}",
        )
    CONSOLE.print(table)
    pairs = list(searches.values())
    ratios = [default.seconds / thorough.seconds for default, thorough in pairs]
    CONSOLE.print(f"together / all: median {statistics.median(ratios):.2f}, worst {max(ratios):.2f}")
    runs = [default.running / thorough.running for default, thorough in pairs]
    CONSOLE.print(f"run / run, all: median {statistics.median(runs):.2f}, worst {max(runs):.2f}")
    planning = [default.planning / default.running for default, _ in pairs]
    CONSOLE.print(f"plan / run: median {statistics.median(planning):.2f}, worst {max(planning):.2f}")
    actual = [default.running / default.expected for default, _ in pairs]
    CONSOLE.print(f"actual / expected: median {statistics.median(actual):.1f}, worst {max(actual):.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=lambda text: text.split(","), default=list(PROGRAMS), help="names")
    parser.add_argument("--repeat", type=int, default=7, help="turns; the median counts")
    add_data_folder(parser)
    asked = parser.parse_args()
    data = source(asked.data)
    report({name: compare(PROGRAMS[name](data), asked.repeat) for name in asked.programs})

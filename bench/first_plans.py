"""First and second plans of programs, and their runs: what comes before the first result, beside later runs.

    python -m bench.first_plans --data DIR --programs gcn_2,factors_100,network_60

Programs are those of bench/programs.py and bench/sparse_programs.py, sums of a chain of so many 3 x 3 matrices
(factors_N), and networks of opt_einsum's own tests (network_N). Every plan is of text in a new database. For the first
one, no search of the process had these data, and no text was read; for the second one, a database before had both.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from opt_einsum.testing import rand_equation
from rich.table import Table

import sparseeinsum as se
from bench.datasets import add_data_folder
from bench.programs import PROGRAMS, Case, Source, source
from bench.sparse_programs import SPARSE_PROGRAMS
from bench.timing import CONSOLE
from sparseeinsum.language.lowered_texts import LOWERED_TEXTS
from sparseeinsum.language.parse_trees import forget_trees
from sparseeinsum.pipeline.search_cache import SEARCHES

_ALL = {**PROGRAMS, **SPARSE_PROGRAMS}
_DEFAULT = "gcn_2,multi_head_attention,training_step,factors_20,factors_100,network_20,network_60"
_WARMING = 2
_LATER_RUNS = 5

Seconds = tuple[float, float]  # by the clock, and of the processor


def case_of(name: str, data: Source) -> Case:
    """A program by name, with its data."""
    kind, _, count = name.rpartition("_")
    if kind == "factors":
        return _chain(int(count))
    return _network(int(count)) if kind == "network" else _ALL[name](data)


def _chain(count: int) -> Case:
    rng = np.random.default_rng(0)
    factors = " * ".join(f"M{number}[l{number}, l{number + 1}]" for number in range(count))
    inputs = {f"M{number}": rng.random((3, 3)) for number in range(count)}
    return Case(f"factors_{count}", f"R[l0, l{count}] = sum({factors})", inputs)


def _network(count: int) -> Case:
    rng = np.random.default_rng(0)
    subscripts, shapes = rand_equation(count, 3, n_out=2, d_max=3, seed=1)
    terms, output = subscripts.split("->")
    names = {character: f"l{number}" for number, character in enumerate(dict.fromkeys(terms.replace(",", "")))}

    def labels(term: str) -> str:
        return ", ".join(names[character] for character in term)

    factors = " * ".join(f"M{number}[{labels(term)}]" for number, term in enumerate(terms.split(",")))
    inputs = {f"M{number}": rng.random(shape) for number, shape in enumerate(shapes)}
    return Case(f"network_{count}", f"R[{labels(output)}] = sum({factors})", inputs)


def measure(case: Case, repeat: int) -> dict[str, list[Seconds]]:
    """Seconds of plans and runs by what they are, so many times after some to warm up."""
    taken: dict[str, list[Seconds]] = {}
    for turn in range(_WARMING + repeat):
        SEARCHES.clear()
        LOWERED_TEXTS.clear()
        forget_trees()
        for which in ("first", "second"):
            with case.database() as database:
                plans: list[se.Plan] = []
                steps = {f"{which} plan": [_timed(lambda: plans.append(database.plan(case.text)))]}  # noqa: B023
                run = partial(database.run, plans[0], progress=False)
                steps |= {f"{which} plan, its run {number}": [_timed(run)] for number in (1, 2)}
                steps["later run of a plan"] = [_timed(run) for _ in range(_LATER_RUNS)]
                run = partial(database.run, case.text, progress=False)
                steps["later run of the text"] = [_timed(run) for _ in range(_LATER_RUNS)]
                steps["plan again, nothing changed"] = [_timed(partial(database.plan, case.text))]
            for name, seconds in steps.items() if turn >= _WARMING else ():
                taken.setdefault(name, []).extend(seconds)
    return taken


def _timed(call: Callable[[], object]) -> Seconds:
    clock, processor = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - clock, time.process_time() - processor


def report(name: str, taken: Mapping[str, Sequence[Seconds]]) -> None:
    """Print a table, in milliseconds, and how many times as long as later runs plans take."""
    table = Table(title=f"{name}, ms", title_justify="left")
    table.add_column("")
    for heading in ("processor", "least", "clock", "least", "times a later run"):
        table.add_column(heading, justify="right")
    run = statistics.median(clock for clock, _ in taken["later run of a plan"])
    for what, seconds in taken.items():
        clock, processor = ([value * 1e3 for value in values] for values in zip(*seconds, strict=True))
        figures = statistics.median(processor), min(processor), statistics.median(clock), min(clock)
        table.add_row(what, *(f"{figure:.1f}" for figure in figures), f"{figures[2] / run / 1e3:.2f}")
    CONSOLE.print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", default=_DEFAULT, help="names, separated by commas")
    parser.add_argument("--repeat", type=int, default=12, help="databases; the median counts")
    add_data_folder(parser)
    asked = parser.parse_args()
    data = source(asked.data)
    for name in asked.programs.split(","):
        report(name, measure(case_of(name, data), asked.repeat))

"""How much slower the chosen plan is than the fastest of many: the 200 cheapest and 100 random ones.

    python -m bench.regret

Every plan is timed twice; the fastest few are then timed again, in turn with the chosen one. Small versions of the
graph network and of sparse attention, so that slow plans end.
"""

import argparse
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

import sparseeinsum as se
from bench.timing import CONSOLE, Figure, race, report
from sparseeinsum.calibration import random_plans
from sparseeinsum.examples import (
    GCN,
    Matrix,
    attention_inputs,
    attention_program,
    citation_graph,
    gcn_inputs,
    load,
)

CHEAPEST, RANDOM, FINALISTS = 200, 100, 8
WIDTH = 128
LIMIT_MILLISECONDS = 2000


def cases() -> dict[str, tuple[str, Mapping[str, Matrix]]]:
    """Programs and inputs by name."""
    graph = citation_graph(600, 3000, 300, 12000, seed=1)
    return {
        "GCN": (GCN, gcn_inputs(graph, hidden=64, classes=8)),
        "attention": (attention_program(WIDTH), attention_inputs(graph, WIDTH)),
    }


def run(name: str, text: str, inputs: Mapping[str, Matrix], repeat: int) -> list[Figure]:
    """Time all plans of one program, and race the chosen one against the fastest."""
    database = load(se.connect(), inputs)
    program = se.program(text)
    cheapest = database.plan(program, top=CHEAPEST)
    chosen = cheapest[0]
    others = {"; ".join(plan.notation()): plan for plan in cheapest[1:] + random_plans(database, program, RANDOM)}
    others.pop("; ".join(chosen.notation()), None)
    database.connection.execute(f"SET max_execution_time = {LIMIT_MILLISECONDS}")
    taken = {notation: _seconds(database, plan) for notation, plan in others.items()}
    finalists = sorted(taken, key=lambda notation: taken[notation])[:FINALISTS]
    _describe(name, list(taken.values()))
    plans = {"chosen": chosen} | {f"finalist {place}": others[each] for place, each in enumerate(finalists, 1)}
    figures = race(
        name, {each: _runner(database, plan) for each, plan in plans.items()}, dict.fromkeys(plans, repeat), "chosen"
    )
    fastest = min(figures, key=lambda figure: figure.seconds)
    CONSOLE.print(f"{name}: chosen / fastest = {figures[0].seconds / fastest.seconds:.2f} ({fastest.contender})")
    if fastest.contender != "chosen":
        CONSOLE.print("\n".join(plans[fastest.contender].notation()), markup=False)
    return figures


def _runner(database: se.Database, plan: se.Plan) -> Callable[[], object]:
    return lambda: database.run(plan, progress=False)


def _seconds(database: se.Database, plan: se.Plan) -> float:
    """The better of two runs; infinite where one took too long."""
    taken = []
    for _ in range(2):
        start = time.perf_counter()
        try:
            database.run(plan, progress=False)
        except se.EngineError:
            return float("inf")
        taken.append(time.perf_counter() - start)
    return min(taken)


def _describe(name: str, seconds: list[float]) -> None:
    finite = np.array([each for each in seconds if np.isfinite(each)])
    low, middle, high = np.quantile(finite, (0, 0.5, 1))
    CONSOLE.print(
        f"{name}: {len(seconds)} other plans took {low * 1e3:.0f} ms to {high * 1e3:.0f} ms, half of them more than "
        f"{middle * 1e3:.0f} ms; {len(seconds) - len(finite)} were stopped after {LIMIT_MILLISECONDS} ms"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=15, help="runs of each finalist; the median counts")
    parser.add_argument("--output", type=Path, default=Path("bench/results"), help="folder for the figures as JSON")
    asked = parser.parse_args()
    found = [figure for name, (text, inputs) in cases().items() for figure in run(name, text, inputs, asked.repeat)]
    report("The chosen plan and the fastest others", found, "chosen", asked.output / "regret.json")

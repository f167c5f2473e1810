"""Formulas of machine learning, rewritten and as written, on sparse data of growing size.

    python -m bench.rewriting [--rows 2000 8000 32000] [--only ALS]

X has half as many columns as rows, and one entry in a thousand. The formula as written is left out where it would
compute too many numbers. Results of both are compared. Further tables show planning times and the times of the stages
of rewriting (SPORES, figures 16 and 17): saturation with a limit on the matches of rules that would explode, and
without; and the choice of a formula greedily and by integer programming.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from rich.table import Table

import sparseeinsum as se
from bench.learning import DENSITY, FORMULAS, LOOPS, Formula, loaded, tensors_of
from bench.timing import CONSOLE, Figure, race, report
from sparseeinsum.language.binding import bind
from sparseeinsum.language.lowering import lower_text
from sparseeinsum.language.tensors import Axis, Tensor
from sparseeinsum.rewrite.common_subexpressions import merge_common_subexpressions
from sparseeinsum.rewrite.einsum_groups import find_einsum_groups
from sparseeinsum.rewrite.saturation.eclass_sizes import sizes_of
from sparseeinsum.rewrite.saturation.egraph import SaturationLimits, saturate
from sparseeinsum.rewrite.saturation.extractor import Extractor
from sparseeinsum.rewrite.saturation.term_reading import read_terms

STAGES = (
    "nodes",
    "saturation s",
    "all nodes",
    "all s",
    "sizes s",
    "greedy s",
    "integer program s",
    "its cost to greedy's",
)

_UNBOUNDED = SaturationLimits(seconds=5, nodes=100_000)

T = TypeVar("T")

_MOST_NUMBERS = 2e8  # of one result as written
_ROUNDING = 1e-6


def plans_of(name: str, formula: Formula, rows: int) -> tuple[se.Database, dict[str, se.Plan]]:
    """A database, and plans of the formula there; both have been run and agree."""
    database = loaded(formula, rows)
    outputs = [*(formula.state or ()), *([formula.objective] if formula.objective else [])]
    plans = {"rewritten": database.plan(formula.text, outputs=outputs)}
    written = database.plan(formula.text, outputs=outputs, rewrite=False)
    if largest_result(written) <= _MOST_NUMBERS:
        plans["as written"] = written
        results = [database.run(plan) for plan in plans.values()]
        for result in results[0]:
            check_equal(results[0][result], results[1][result], name)
    return database, plans


def check_equal(first: se.TensorResult, second: se.TensorResult, name: str) -> None:
    """Refuse results that differ by more than rounding; those of matrices stay sparse."""
    arrays: list[Any] = [
        result.to_scipy() if len(result.shape) == 2 else result.to_numpy() for result in (first, second)
    ]
    if abs(arrays[0] - arrays[1]).max() > _ROUNDING * abs(arrays[1]).max():
        raise AssertionError(f"{name}: {first.name} is another one as written")


def largest_result(plan: se.Plan) -> float:
    """Numbers of the largest result that a plan computes."""
    return max(plan.statistics[step.einsum.output.tensor].entries for step in plan.data.decomposed.steps)


def stages(formula: Formula, rows: int) -> dict[str, str]:
    """Seconds that the stages of rewriting take for the largest group of a formula, and how many nodes there are.

    Saturation is measured with all matches of rules, too, until nothing changes or five seconds are over.
    """
    arrays = tensors_of(formula, rows, rows // 2)
    tensors = {
        name: Tensor(name, tuple(Axis(f"a{axis}", bound) for axis, bound in enumerate(array.shape)))
        for name, array in arrays.items()
    }
    graph = bind(lower_text(formula.text, shapes=lambda name: arrays[name].shape), tensors)
    merged = merge_common_subexpressions(graph, {})
    groups = find_einsum_groups(merged, ())
    if not groups:
        return dict.fromkeys(STAGES, "-")  # products alone
    group = max(groups, key=lambda group: len(group.einsums))
    reading = read_terms(group.einsums, group.roots, merged)
    clock = Clock()
    every = clock.time(lambda: saturate(reading.terms, reading.bounds, reading.equal_pairs, _UNBOUNDED))
    classes = clock.time(lambda: saturate(reading.terms, reading.bounds, reading.equal_pairs))
    densities = {leaf: DENSITY if leaf.tensor == "X" else 1.0 for leaf in classes.leaves}
    extractor = clock.time(lambda: Extractor.with_tree_costs(classes, sizes_of(classes, reading.bounds, densities)))
    greedy = clock.time(lambda: extractor.greedy(classes.roots))
    shared = clock.time(lambda: extractor.with_sharing(classes.roots))
    counts = [
        f"{graph_of_classes.count():,}{'' if graph_of_classes.is_saturated else ', limit'}"
        for graph_of_classes in (classes, every)
    ]
    all_seconds, seconds, *rest = clock.seconds
    cells = [counts[0], seconds, counts[1], all_seconds, *rest, f"{shared.cost / greedy.cost:.2f}"]
    return dict(zip(STAGES, cells, strict=True))


class Clock:
    """Notes how long things take, in seconds."""

    def __init__(self) -> None:
        self.seconds: list[str] = []

    def time(self, compute: Callable[[], T]) -> T:
        """Compute something."""
        start = time.perf_counter()
        computed = compute()
        self.seconds.append(f"{time.perf_counter() - start:.3f}")
        return computed


def main(sizes: list[int], only: str, repeat: int, output: Path) -> None:
    """Race all formulas at all sizes, and show what planning took."""
    chosen = {name: formula for name, formula in (FORMULAS | LOOPS).items() if only in name}
    figures: list[Figure] = []
    planning = Table("formula", "rows", "planning s", "rewritten", title="Planning", title_justify="left")
    for name, formula in chosen.items():
        for rows in sizes:
            database, plans = plans_of(name, formula, rows)
            runs = {kind: partial(database.run, plan, replan=False) for kind, plan in plans.items()}
            figures += race(f"{name}, {rows:,} rows", runs, dict.fromkeys(runs, repeat), "rewritten", pause=0)
            start = time.perf_counter()
            plan = database.plan(formula.text)
            seconds = time.perf_counter() - start
            shares = ", ".join(f"{result} {share:.2g}" for result, share in plan.data.rewriting.shares.items())
            planning.add_row(name, f"{rows:,}", f"{seconds:.3f}", shares)
    report("Formulas", figures, "rewritten", output / "rewriting.json")
    CONSOLE.print(planning)
    breakdown = Table("formula", *STAGES, title="Rewriting", title_justify="left")
    for name, formula in chosen.items():
        breakdown.add_row(name, *stages(formula, sizes[-1]).values())
    CONSOLE.print(breakdown)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[2000, 8000, 32000], help="sizes (default: %(default)s)")
    parser.add_argument("--only", default="", help="formulas whose names have this text (default: all)")
    parser.add_argument("--repeat", type=int, default=3, help="runs of every contender (default: 3)")
    parser.add_argument("--output", type=Path, default=Path("bench/results"), help="folder for the figures as JSON")
    asked = parser.parse_args()
    main(asked.rows, asked.only, asked.repeat, asked.output)

"""How much slower the chosen plan is than the fastest of many, and whether expected costs order plans as times do.

    python -m bench.regret --programs gcn_2,distances,spgemm --plans 30 --data DIR

For every program of bench/programs.py and bench/sparse_programs.py, this runs its cheapest plans, half as many random
ones, and the cheapest that keeps no operands in memory. A plan is stopped
after three times the time of the chosen one; a plan that may be among the fastest runs twice. The fastest five are
then timed again, in turn with the chosen one. Results are saved after every program.
"""

import argparse
import json
import math
import statistics
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table
from scipy.stats import spearmanr

import sparseeinsum as se
from bench.datasets import add_data_folder
from bench.programs import PROGRAMS, Case, source
from bench.sparse_programs import SPARSE_PROGRAMS
from bench.stopping import seconds_within
from bench.timing import CONSOLE, race
from sparseeinsum.api.calibration import random_plans

_ALL = {**PROGRAMS, **SPARSE_PROGRAMS}
_FINALISTS = 5
_SLOWER, _LEAST_LIMIT = 3, 0.15  # a plan is stopped after so many times the chosen one's seconds, but not before
_RERUN = 2  # a plan that takes more than so many times the seconds of the fastest is run once


@dataclass(frozen=True)
class Regret:
    """What the plans of one program took.

    Attributes:
        program: Its name.
        plans: How many were run, the chosen one included.
        stopped: How many of them were not waited for.
        chosen: Seconds of the chosen plan, the median of its runs beside the fastest.
        fastest: The same of the fastest plan, which may be the chosen one.
        correlation: Spearman's, of expected costs and seconds; those that were stopped are slower than all others.
        chosen_plan: Its notation.
        fastest_plan: That of the fastest.
        costs: Expected seconds of every plan, by notation.
        seconds: The best of its runs, by notation; None where it was stopped.
        measuring_seconds: What it took to find all of this.
    """

    program: str
    plans: int
    stopped: int
    chosen: float
    fastest: float
    correlation: float
    chosen_plan: str
    fastest_plan: str
    costs: Mapping[str, float]
    seconds: Mapping[str, float | None]
    measuring_seconds: float

    @property
    def ratio(self) -> float:
        """How many times as long as the fastest the chosen plan takes."""
        return self.chosen / self.fastest


def run(case: Case, plans: int, repeat: int) -> Regret:
    """Time the plans of one program, and race the fastest against the chosen one."""
    start = time.perf_counter()
    with case.database() as database:
        program = se.program(case.text)
        chosen, *cheapest = database.plan(program, top=plans)
        # By notation: a random plan may be among the cheapest.
        candidates = {
            _notation(plan): plan for plan in [chosen, *cheapest, *random_plans(database, program, plans // 2)]
        }
        joined = database.plan(program, indexes=False)
        candidates |= {f"{_notation(joined)}, without operands in memory": joined}
        taken = _timed(database, candidates, _notation(chosen))
        medians = _raced(case.name, database, _finalists(candidates, taken, _notation(chosen)), repeat)
    fastest = min(medians, key=lambda notation: medians[notation])
    costs = {notation: plan.cost for notation, plan in candidates.items()}
    return Regret(
        case.name,
        len(candidates),
        sum(map(math.isinf, taken.values())),
        medians[_notation(chosen)],
        medians[fastest],
        rank_correlation(list(costs.values()), list(taken.values())),
        _notation(chosen),
        fastest,
        costs,
        {notation: None if math.isinf(seconds) else seconds for notation, seconds in taken.items()},
        time.perf_counter() - start,
    )


def rank_correlation(costs: list[float], seconds: list[float]) -> float:
    """Spearman's, by average ranks of those that are equal; NaN where all costs or all times are equal."""
    if len(set(costs)) < 2 or len(set(seconds)) < 2:
        return math.nan
    return float(spearmanr(costs, seconds).statistic)


def _notation(plan: se.Plan) -> str:
    return "; ".join(plan.notation())


def _timed(database: se.Database, plans: Mapping[str, se.Plan], chosen: str) -> dict[str, float]:
    """Seconds of every plan, the better of two runs where the first is good; infinite where it was stopped.

    Second runs come after all first ones: a machine that is slow for a while else slows one plan and not the next.
    """
    seconds_within(database, plans[chosen], math.inf)  # compiles kernels, and loads them
    limit = max(_SLOWER * seconds_within(database, plans[chosen], math.inf), _LEAST_LIMIT)
    taken = {notation: seconds_within(database, plan, limit) for notation, plan in plans.items()}
    good = [notation for notation, seconds in taken.items() if seconds <= _RERUN * min(taken.values())]
    again = {notation: seconds_within(database, plans[notation], limit) for notation in good}
    return taken | {notation: min(taken[notation], seconds) for notation, seconds in again.items()}


def _finalists(plans: Mapping[str, se.Plan], taken: Mapping[str, float], chosen: str) -> dict[str, se.Plan]:
    """The chosen plan and the fastest others."""
    others = sorted((notation for notation in plans if notation != chosen), key=lambda notation: taken[notation])
    finite = [notation for notation in others if math.isfinite(taken[notation])]
    return {notation: plans[notation] for notation in [chosen, *finite[:_FINALISTS]]}


def _raced(name: str, database: se.Database, plans: Mapping[str, se.Plan], repeat: int) -> dict[str, float]:
    """Median seconds of every plan, in turn with the others."""
    runners = {notation: partial(database.run, plan, progress=False, replan=False) for notation, plan in plans.items()}
    figures = race(name, runners, dict.fromkeys(plans, repeat), next(iter(plans)), pause=0)
    return {figure.contender: figure.seconds for figure in figures}


def keep(regrets: list[Regret], folder: Path) -> None:
    """Write the figures as JSON, and as text what is printed in the end."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "regret.json").write_text(json.dumps([asdict(regret) for regret in regrets], indent=2) + "\n")
    with (folder / "regret.txt").open("w", encoding="utf-8") as file:
        report(regrets, Console(file=file, width=CONSOLE.width))


def report(regrets: list[Regret], console: Console) -> None:
    """Print a table, and the plans that were beaten."""
    table = Table(title="The chosen plan and the fastest of many", title_justify="left")
    table.add_column("program")
    for heading in ("plans", "stopped", "chosen ms", "fastest ms", "chosen / fastest", "rank correlation"):
        table.add_column(heading, justify="right")
    for regret in regrets:
        table.add_row(
            regret.program,
            str(regret.plans),
            str(regret.stopped),
            f"{regret.chosen * 1e3:.1f}",
            f"{regret.fastest * 1e3:.1f}",
            f"{regret.ratio:.2f}",
            f"{regret.correlation:.2f}",
        )
    console.print(table)
    ratios = [regret.ratio for regret in regrets]
    correlations = [regret.correlation for regret in regrets if not math.isnan(regret.correlation)]
    console.print(f"chosen / fastest: median {statistics.median(ratios):.2f}, worst {max(ratios):.2f}")
    if correlations:
        console.print(f"rank correlation: median {statistics.median(correlations):.2f}, worst {min(correlations):.2f}")
    console.print(f"measured in {sum(regret.measuring_seconds for regret in regrets):.0f} s")
    for regret in regrets:
        if regret.fastest_plan != regret.chosen_plan:
            console.print(f"{regret.program}, chosen:  {regret.chosen_plan}", markup=False)
            console.print(f"{regret.program}, fastest: {regret.fastest_plan}", markup=False)


def _programs(text: str) -> list[str]:
    """Names of programs, separated by commas."""
    names = text.split(",")
    for name in names:
        if name not in _ALL:
            raise argparse.ArgumentTypeError(f"there is no program {name}; choose from {', '.join(_ALL)}")
    return names


def _plan_count(text: str) -> int:
    count = int(text)
    if count < 2:
        raise argparse.ArgumentTypeError(f"{count} plans cannot be compared; ask for 2 or more")
    return count


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=_programs, default=list(_ALL), help="names, separated by commas")
    parser.add_argument("--plans", type=_plan_count, default=100, help="cheapest plans; half as many random ones")
    parser.add_argument("--repeat", type=int, default=7, help="runs of each finalist; the median counts")
    add_data_folder(parser)
    parser.add_argument("--output", type=Path, default=Path("bench/results"), help="folder for the figures")
    asked = parser.parse_args()
    data = source(asked.data)
    regrets: list[Regret] = []
    for number, name in enumerate(asked.programs, 1):
        regrets.append(run(_ALL[name](data), asked.plans, asked.repeat))
        keep(regrets, asked.output)
        latest = regrets[-1]
        CONSOLE.print(
            f"{number} of {len(asked.programs)}, {name}: chosen / fastest {latest.ratio:.2f}, rank correlation "
            f"{latest.correlation:.2f}, {latest.plans} plans in {latest.measuring_seconds:.0f} s"
        )
    report(regrets, CONSOLE)

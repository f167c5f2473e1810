"""The papers' experiments on a Citus cluster: bytes that plans are expected to send, beside those that they send.

    unshare -n python -m bench.local_cluster --programs DIR --workers 2 -- python -m bench.clusters --coordinator {url}

Tables 4, 6 and 9 of the TRA paper: its plans by hand on scaled-down matrices in blocks, the plan that the search over
its rules finds, and the plan that `db.plan` makes of a program. Figures 7 and 8 of EinDecomp: a matrix chain, cut by
its vectors and by rules of thumb. Expected bytes are the floats of the papers' formulas and those of replays, 8 bytes
each, and what the placement of a program on Citus expects. Counted bytes are those that arrive at lo (see
`bench.citus`). Programs are planned for the fewest seconds in a network of 10 Gbit/s, which sends these few megabytes
faster than a table is created, and for the fewest floats. Results go into tables that stay distributed, and are
compared with numpy's.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.table import Table

import sparseeinsum as se
from bench.cluster_chain import CHAIN, cuts, shapes_of
from bench.cluster_plans import Array, Case, Way, neighbour_case, product_case, training_case
from bench.cluster_runs import Counted, load, machines, run_plans, run_program
from bench.timing import CONSOLE
from sparseeinsum.algebra.implementation.operator_costs import Sites, cost_of
from sparseeinsum.algebra.implementation.simulate import replay
from sparseeinsum.decompose.eindecomp.objectives import FLOATS, SECONDS

_FLOAT_BYTES = 8


@dataclass(frozen=True)
class Figure:
    """What one plan moves.

    Attributes:
        case: What is computed.
        plan: How.
        machines: Of the cluster.
        formula: Bytes by the paper's formulas; None of plans that these say nothing of.
        replayed: Bytes that really go from one site to another, replayed.
        placement: Bytes that the placement on Citus expects; None where a plan was made by hand.
        counted: Bytes that arrived at lo.
        seconds: That it took.
    """

    case: str
    plan: str
    machines: int
    formula: float | None
    replayed: float | None
    placement: float | None
    counted: int
    seconds: float

    @property
    def is_chosen(self) -> bool:
        """Whether it is a plan of the system's own."""
        return self.plan == "search" or self.plan.startswith("db.plan")


PRODUCTS: Mapping[str, Callable[[int], Case]] = {
    "two general": lambda sites: product_case("two general", 640, 640, 640, sites),
    "a common large dim": lambda sites: product_case("a common large dim", 128, 8192, 128, sites),
    "two large dims": lambda sites: product_case("two large dims", 1280, 160, 1280, sites),
}
NEIGHBOURS: Mapping[str, Callable[[int], Case]] = {
    "16,000 points of 64 features": lambda sites: neighbour_case("16,000 points of 64 features", 16_000, 64, sites),
    "64 points of 1,024 features": lambda sites: neighbour_case("64 points of 1,024 features", 64, 1024, sites),
}
TRAINING: Mapping[str, Callable[[int], Case]] = {
    "Google 100k": lambda sites: training_case("Google 100k", (400, 64, 4000, 16), sites),
    "Amazon 1k": lambda sites: training_case("Amazon 1k", (40, 24_000, 40, 584), sites),
}
TABLES = {
    "Matrix products (TRA, table 4)": PRODUCTS,
    "Nearest neighbours (TRA, table 6)": NEIGHBOURS,
    "Training steps (TRA, table 9)": TRAINING,
}
OBJECTIVES = {"": SECONDS, ", fewest floats": FLOATS}
_CHAINS_TITLE = "Matrix chains (EinDecomp, figures 7 and 8)"
CHAINS = {"uniform, 640": (640, True), "skewed, 512": (512, False)}


def figures_of(db: se.Database, case: Case) -> Iterator[Figure]:
    """Every way to compute something."""
    sites = machines(db)
    for way in case.ways:
        load(db, way.layout)
        if way.plans:
            counted = run_plans(db, way.plans, list(case.expected.values()))
            formula = cost_of(way.plans, Sites(sites)).transfer * _FLOAT_BYTES
            yield _figure(case.name, way.name, sites, formula, _replayed(way, sites), None, counted)
        else:
            yield from _planned(db, case.name, way.name, case.program, case.expected)


def _planned(
    db: se.Database, case: str, name: str, program: str, expected: Mapping[str, Array], workers: int | None = None
) -> Iterator[Figure]:
    """A program as it is planned by each objective."""
    for ending, objective in OBJECTIVES.items():
        plan = db.plan(program, layout="any", outputs=list(expected), workers=workers, objective=objective)
        counted = run_program(db, plan, expected)
        yield _figure(case, f"{name}{ending}", machines(db), None, None, plan.data.transferred_bytes, counted)


def _replayed(way: Way, sites: int) -> float:
    traffic = {id(each.plan): each.floats for plan in way.plans for each in replay(plan, sites)}
    return sum(traffic.values()) * _FLOAT_BYTES


def _figure(
    case: str,
    plan: str,
    sites: int,
    formula: float | None,
    replayed: float | None,
    placement: float | None,
    counted: Counted,
) -> Figure:
    return Figure(case, plan, sites, formula, replayed, placement, counted.received_bytes, counted.seconds)


def chain_figures(db: se.Database, name: str) -> Iterator[Figure]:
    """EinDecomp's matrix chain, cut in several ways, and as it is planned for so many workers, and without a word."""
    sites = machines(db)
    ways, expected = cuts(shapes_of(*CHAINS[name]))
    for way in ways:
        load(db, way.layout)
        by_calls = Way(way.name, way.layout, (way.plan,))
        counted = run_plans(db, by_calls.plans, list(expected.values()))
        bytes_of = way.floats * _FLOAT_BYTES
        yield _figure(name, f"{way.name}, by calls", sites, bytes_of, _replayed(by_calls, sites), None, counted)
    for way in ways:
        load(db, way.layout)
        plan = db.plan(CHAIN, pin=way.pins, layout="any", rewrite=False)
        counted = run_program(db, plan, expected)
        yield _figure(name, f"{way.name}, placed", sites, None, None, plan.data.transferred_bytes, counted)
    load(db, ways[0].layout)
    yield from _planned(db, name, "db.plan", CHAIN, expected)
    yield from _planned(db, name, f"db.plan, workers={sites}", CHAIN, expected, sites)


def figures_under(db: se.Database, title: str) -> Iterator[Figure]:
    """All of a table."""
    if title == _CHAINS_TITLE:
        for name in CHAINS:
            yield from chain_figures(db, name)
        return
    for case in TABLES[title].values():
        yield from figures_of(db, case(machines(db)))


def report(title: str, figures: Sequence[Figure]) -> None:
    """Print a table, the plans of every case from the one that moves least."""
    table = Table(title=f"{title}: MB on {figures[0].machines} machines", title_justify="left")
    for heading in ("", "plan"):
        table.add_column(heading)
    for heading in ("by formula", "replayed", "placement", "counted", "counted / replayed", "s"):
        table.add_column(heading, justify="right")
    for case in dict.fromkeys(each.case for each in figures):
        of_case = [each for each in figures if each.case == case]
        for number, each in enumerate(of_case):
            expected = (each.formula, each.replayed, each.placement)
            ratio = f"{each.counted / each.replayed:.2f}" if each.replayed else ""
            least = " *" if each.counted == min(other.counted for other in of_case) else ""
            table.add_row(
                "" if number else case,
                f"[bold]{each.plan}[/bold]" if each.is_chosen else each.plan,
                *("" if size is None else f"{size / 1e6:.2f}" for size in expected),
                f"{each.counted / 1e6:.2f}{least}",
                ratio,
                f"{each.seconds:.2f}",
            )
        table.add_section()
    CONSOLE.print(table)
    CONSOLE.print("* moves least of those that were counted")


def main() -> None:
    """Print all tables, and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--coordinator", required=True, help="URL of the database")
    parser.add_argument("--output", type=Path, default=Path("bench/results"), help="folder for the figures as JSON")
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="parts of their titles; all by default")
    asked = parser.parse_args()
    kept: list[Figure] = []
    with se.connect(asked.coordinator) as db:
        for title in [*TABLES, _CHAINS_TITLE]:
            if not asked.tables or any(part in title for part in asked.tables):
                found = list(figures_under(db, title))
                report(title, found)
                kept += found
    asked.output.mkdir(parents=True, exist_ok=True)
    path = asked.output / f"clusters-{kept[0].machines if kept else 0}.json"
    path.write_text(json.dumps([asdict(each) for each in kept], indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

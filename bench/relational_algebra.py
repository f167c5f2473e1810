"""Floats that plans of the tensor relational algebra send: the paper's tables 4, 6 and 9, and up to 1,024 sites.

    python -m bench.relational_algebra

Nothing runs, and nothing is timed: costs are those of section 5.3, and actual transfers are replayed from keys and
bounds. The plans are the paper's, by hand. "chosen" is the plan that the search over the rules finds for the same
expression, starting from the blocks and the placement of the paper's best plan.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.table import Table

from bench.relational_plans import (
    DATA_PARALLEL,
    FFNN_SHAPES,
    MODEL_PARALLEL,
    NEIGHBOURS,
    PRINTED,
    PRINTED_DATA_PARALLEL,
    SHAPES,
    data_parallel,
    data_parallel_parts,
    horizontal,
    matrix,
    model_parallel,
    model_parallel_parts,
    nearest_neighbour,
    product,
    sum_of,
    three_ways,
    training_step,
    vertical,
)
from bench.timing import CONSOLE
from sparseeinsum.algebra.implementation.operator_costs import Sites, cost_of
from sparseeinsum.algebra.implementation.plan_search import best_plans
from sparseeinsum.algebra.implementation.simulate import replay
from sparseeinsum.algebra.implementation.site_operators import SitePlan
from sparseeinsum.algebra.relational.kernels import MATRIX_PRODUCT
from sparseeinsum.algebra.relational.relational_expressions import Expression, Join
from sparseeinsum.decompose.places.distribution import Distribution, Hashed

_MANY = (2, 4, 8, 16, 64, 256, 1024)
_BLOCKS, _SIZE = 16, 16_384  # of the matrices that many sites multiply


@dataclass(frozen=True)
class Figure:
    """What one plan moves.

    Attributes:
        case: What is computed.
        plan: How.
        sites: On how many sites.
        printed: Floats that the paper prints; None where it prints none.
        transfer: Floats, by section 5.3.
        moved: Floats that really go from one site to another.
    """

    case: str
    plan: str
    sites: int
    printed: float | None
    transfer: float
    moved: float


def figure(case: str, name: str, plans: Sequence[SitePlan], sites: int, printed: float | None = None) -> Figure:
    """Cost and replay of a plan."""
    traffic = {id(each.plan): each.floats for plan in plans for each in replay(plan, sites)}
    return Figure(case, name, sites, printed, cost_of(plans, Sites(sites)).transfer, sum(traffic.values()))


def chosen(
    case: str, expressions: Sequence[Expression], distributions: Mapping[str, Distribution], sites: int
) -> Figure:
    """What the search finds."""
    return figure(case, "chosen", best_plans(expressions, distributions, Sites(sites)), sites)


def matrix_products() -> list[Figure]:
    """Table 4."""
    found = []
    for case, shape in SHAPES.items():
        named = zip(("BMM", "CMM", "RMM"), three_ways(shape, 10), PRINTED[case], strict=True)
        found += [figure(case, name, [plan], 10, printed) for name, plan, printed in named]
        rows, inner, columns = shape
        left, right = matrix("X", (rows, inner), (10, 10)), matrix("Y", (inner, columns), (10, 10))
        expression = sum_of(Join(left.input, right.input, (1,), (0,), MATRIX_PRODUCT), [0, 2])
        found.append(chosen(f"{case}, from scattered blocks", [expression], {}, 10))
    return found


def neighbours() -> list[Figure]:
    """Table 6, its two losers exchanged, which it prints the wrong way round."""
    found = []
    for (points, features), printed in NEIGHBOURS.items():
        case = f"{points:,} points of {features:,} features"
        plans = (horizontal(points, features, 8), vertical(points, features, 8))
        names = ("Opt4Horizontal", "Opt4Vertical")
        found += [figure(case, *each[:1], [each[1]], 8, each[2]) for each in zip(names, plans, printed, strict=True)]
        is_by_rows = printed[0] < printed[1]
        by = Hashed(0 if is_by_rows else 1)
        expression, _ = nearest_neighbour(points, features, (8, 1) if is_by_rows else (1, 8))
        found.append(chosen(case, [expression], {"X": by, "A": Hashed(0), "q": Hashed(0)}, 8))
    return found


def training_steps() -> list[Figure]:
    """Table 9; it counts gradients on one site only, and no shuffles of TRA-MP."""
    found = []
    for case, shape in FFNN_SHAPES.items():
        batch, _, hidden, _ = shape
        found.append(figure(case, "TRA-DP", data_parallel(shape, 5), 5, PRINTED_DATA_PARALLEL[case]))
        found.append(figure(case, "TRA-MP", model_parallel(shape, 5), 5, 10.0 * batch * hidden))
        if case.startswith("Google"):
            parts, distributions = data_parallel_parts(5), DATA_PARALLEL
        else:
            parts, distributions = model_parallel_parts(5), MODEL_PARALLEL
        found.append(chosen(case, training_step(shape, parts), distributions, 5))
    return found


def many_sites(most: int) -> list[Figure]:
    """A product of square matrices on more and more sites."""
    found = []
    left = matrix("X", (_SIZE, _SIZE), (_BLOCKS, _BLOCKS))
    right = matrix("Y", (_SIZE, _SIZE), (_BLOCKS, _BLOCKS))
    ways = product(left, right)
    expression = sum_of(Join(left.input, right.input, (1,), (0,), MATRIX_PRODUCT), [0, 2])
    for sites in (each for each in _MANY if each <= most):
        case = f"{sites} sites"
        plans = {"BMM": ways.broadcast(), "CMM": ways.cross(), "RMM": ways.replicated()}
        found += [figure(case, name, [plan], sites) for name, plan in plans.items()]
        found.append(chosen(case, [expression], {}, sites))
    return found


def report(title: str, figures: Sequence[Figure]) -> None:
    """Print a table."""
    table = Table("", "plan", title=title)
    for column in ("floats printed", "floats by 5.3", "floats replayed"):
        table.add_column(column, justify="right")
    for each in figures:
        printed = "" if each.printed is None else f"{each.printed:.1e}"
        table.add_row(each.case, each.plan, printed, f"{each.transfer:.2e}", f"{each.moved:.2e}")
    CONSOLE.print(table)


def main() -> None:
    """Print all tables, and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=1024, help="sites of the largest cases (default: 1024)")
    parser.add_argument("--output", type=Path, default=Path("bench/results"), help="folder for the figures as JSON")
    asked = parser.parse_args()
    tables = {
        "Matrix products on 10 sites (table 4)": matrix_products(),
        "Nearest neighbours on 8 sites (table 6)": neighbours(),
        "Training steps on 5 sites (table 9)": training_steps(),
        f"Square matrices of {_BLOCKS} x {_BLOCKS} blocks on many sites": many_sites(asked.most),
    }
    for title, figures in tables.items():
        report(title, figures)
    asked.output.mkdir(parents=True, exist_ok=True)
    kept = {title: [asdict(each) for each in figures] for title, figures in tables.items()}
    (asked.output / "relational_algebra.json").write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

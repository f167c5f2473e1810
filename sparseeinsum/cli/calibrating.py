"""The command line: cost constants measured on this machine."""

import argparse
import statistics

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from sparseeinsum.api.calibration import Calibration, calibrate
from sparseeinsum.cli.display import duration

_CONSOLE = Console(markup=False, highlight=False)
_STATUS = Console(stderr=True)


def calibrate_machine(asked: argparse.Namespace) -> None:
    """Measure the cost constants, and keep them."""
    with Progress(console=_STATUS, transient=True, disable=not _STATUS.is_terminal) as bar:
        task = bar.add_task("timing queries", total=None)
        found = calibrate(lambda done, total: bar.update(task, completed=done, total=total), asked.database)
    _CONSOLE.print(_constants_table(found))
    _CONSOLE.print(_residuals_table(found))
    _CONSOLE.print(f"fitted to {found.origin}, besides {duration(found.fit.overhead_seconds)} a query; worst:")
    for each in sorted(found.residuals, key=lambda each: -each.fit_error)[:3]:
        query = each.observation
        _CONSOLE.print(f"  took {duration(query.seconds)}, expected {duration(each.expected)}: {query.name}")
    if not asked.dry_run:
        _CONSOLE.print(f"kept in {found.store()}", soft_wrap=True)


def _constants_table(found: Calibration) -> Table:
    constants, default = found.fit.constants, found.default
    table = Table(title="Cost constants of this machine", title_justify="left")
    table.add_column("constant")
    table.add_column("measured", justify="right")
    table.add_column("before", justify="right")
    for meaning, name in (
        ("C_xfer: a byte moved", "transfer_seconds_per_byte"),
        ("C_kernel: a floating-point operation", "kernel_seconds_per_operation"),
        ("C_kernel inside a matrix product", "matrix_seconds_per_operation"),
        ("C_kernel inside an expression", "expression_seconds_per_operation"),
        ("C_fixed: a tuple handled", "fixed_seconds_per_tuple"),
        ("C_fixed: a tuple looked up in a hash table", "hashing_seconds_per_tuple"),
        ("C_fixed: a relational operator", "fixed_seconds_per_operator"),
    ):
        table.add_row(meaning, *(duration(getattr(each, name)) for each in (constants, default)))
    return table


def _residuals_table(found: Calibration) -> Table:
    """By program: how far expectations are off, also those of constants that know no plan of it."""
    table = Table(title="Expected and measured, the larger by the smaller", title_justify="left")
    table.add_column("program")
    for heading in ("plans", "median", "worst", "median, left out", "worst, left out"):
        table.add_column(heading, justify="right")
    programs = dict.fromkeys(each.observation.program for each in found.residuals)
    groups = {name: [each for each in found.residuals if each.observation.program == name] for name in programs}
    for name, group in {**groups, "all": found.residuals}.items():
        cells = [
            f"{summary(factors):.2f}"
            for factors in ([each.fit_error for each in group], [each.prediction_error for each in group])
            for summary in (statistics.median, max)
        ]
        table.add_row(name, str(len(group)), *cells)
    return table

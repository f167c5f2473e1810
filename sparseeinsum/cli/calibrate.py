"""The command line: the command calibrate, which measures cost constants."""

import argparse
import statistics

from rich.progress import Progress
from rich.table import Table

from sparseeinsum.api.calibration import Calibration, calibrate
from sparseeinsum.cli.display import duration
from sparseeinsum.cli.output import print_table, status_console
from sparseeinsum.decompose.fit import Residual


def calibrate_machine(arguments: argparse.Namespace) -> None:
    """Measure the cost constants of a machine, print them, and save them unless `--dry-run` is given."""
    status = status_console()
    with Progress(console=status, transient=True, disable=not status.is_terminal) as bar:
        task = bar.add_task("timing queries", total=None)
        calibration = calibrate(lambda done, total: bar.update(task, completed=done, total=total), arguments.database)
    print_table(_constants_table(calibration))
    print_table(_residuals_table(calibration))
    print(f"fitted to {calibration.origin}; worst:")
    for residual in sorted(calibration.residuals, key=lambda residual: -residual.fit_error)[:3]:
        query = residual.observation
        print(f"  took {duration(query.seconds)}, expected {duration(residual.expected)}: {query.name}")
    if not arguments.dry_run:
        print(f"saved in {calibration.store()}")


def _constants_table(calibration: Calibration) -> Table:
    """The fitted constants next to those before."""
    constants, default = calibration.fit.constants, calibration.default
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
        ("C_fixed: a run", "fixed_seconds_per_run"),
    ):
        table.add_row(meaning, *(duration(getattr(values, name)) for values in (constants, default)))
    return table


def _residuals_table(calibration: Calibration) -> Table:
    """Prediction errors by program: with the fitted constants, and with constants fitted without that program."""
    table = Table(title="Prediction errors: larger by smaller of expected and measured times", title_justify="left")
    table.add_column("program")
    for heading in ("plans", "median", "worst", "median, left out", "worst, left out"):
        table.add_column(heading, justify="right")
    groups: dict[str, list[Residual]] = {}
    for residual in calibration.residuals:
        groups.setdefault(residual.observation.program, []).append(residual)
    for name, group in {**groups, "all": calibration.residuals}.items():
        cells = [
            f"{summary(errors):.2f}"
            for errors in ([query.fit_error for query in group], [query.prediction_error for query in group])
            for summary in (statistics.median, max)
        ]
        table.add_row(name, str(len(group)), *cells)
    return table

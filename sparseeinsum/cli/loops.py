"""The command line: the command iterate."""

import argparse
from collections.abc import Sequence

from rich.table import Table

import sparseeinsum as se
from sparseeinsum.cli.output import print_status, print_table
from sparseeinsum.cli.program_arguments import database_and_program, planning_options
from sparseeinsum.cli.usage import UsageError
from sparseeinsum.presentation.html_tables import cell_text

_ROWS = 10


def iterate(arguments: argparse.Namespace) -> None:
    """Run a program in steps; print the last rows of the history, and why the steps ended."""
    if arguments.plan is not None:
        raise UsageError("a loop plans its program for every state; give the program in place of --plan")
    if arguments.rows is not None and arguments.rows < 1:
        raise UsageError(f"--rows {arguments.rows} shows nothing; give 1 or more")
    with database_and_program(arguments, read_only=False) as (database, program):
        assert program is not None
        result = database.iterate(
            program,
            _pairs("--state", arguments.state),
            arguments.steps,
            arguments.until,
            _pairs("--into", arguments.into),
            arguments.history,
            resume=arguments.resume,
            commit_seconds=arguments.commit_seconds,
            deterministic=arguments.deterministic,
            **planning_options(arguments),
        )
    if arguments.history:
        print_table(_history(result, arguments.rows or _ROWS))
    print_status(f"{repr(result).strip('<>')}; the steps are in {result.table}")


def _pairs(option: str, pairs: Sequence[str]) -> dict[str, str]:
    """The names on both sides of options such as `--state x=next_x`."""
    parts = [pair.partition("=") for pair in pairs]
    for pair, (name, equals, other) in zip(pairs, parts, strict=True):
        if not (name and equals and other):
            raise UsageError(f"{option} {pair!r} is not NAME=NAME, as in {option} x=next_x")
    return {name: other for name, _, other in parts}


def _history(result: se.IterationResult, rows: int) -> Table:
    """The last rows of the history."""
    shown = result.history.slice(max(result.history.num_rows - rows, 0))
    table = Table()
    for name in shown.column_names:
        table.add_column(name, justify="right")
    for row in shown.to_pylist():
        table.add_row(*map(cell_text, row.values()))
    return table

"""The command line: finds the program, the plan and their options in parsed arguments."""

import argparse
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import sparseeinsum as se
from sparseeinsum.cli.database_opening import open_database
from sparseeinsum.cli.usage import UsageError
from sparseeinsum.decompose.eindecomp.objectives import SECONDS
from sparseeinsum.operators.dtypes import Number

STANDARD_INPUT = "-"

# Options of planning: the attribute of the parsed arguments, and its default.
_PLANNING_OPTIONS: Mapping[str, tuple[str, object]] = {
    "--optimizer": ("optimizer", None),
    "--memory-limit": ("memory_limit", None),
    "--nonfinite": ("nonfinite", None),
    "--estimator": ("estimator", None),
    "--tiles": ("tiles", ()),
    "--no-rewrite": ("rewrite", True),
    "--no-indexes": ("indexes", True),
    "--workers": ("workers", None),
    "--objective": ("objective", SECONDS),
    "--set": ("parameters", []),
}


@contextmanager
def database_and_program(
    arguments: argparse.Namespace, read_only: bool
) -> Iterator[tuple[se.Database, se.Program | None]]:
    """The open database, and the program; None if `--plan` gives a plan instead."""
    _check_one_source(arguments)
    text = sys.stdin.read() if arguments.program == STANDARD_INPUT else arguments.text
    with open_database(arguments.database, read_only) as database:
        if arguments.plan is not None:
            yield database, None
        elif text is None:
            yield database, database.read_program(arguments.program, **parameters_of(arguments))
        else:
            yield database, database.program(text, Path(), **parameters_of(arguments))


@contextmanager
def database_and_plan(arguments: argparse.Namespace) -> Iterator[tuple[se.Database, se.Plan]]:
    """The database, open for reading, and the plan: that of `--plan`, or a new one of the program."""
    with database_and_program(arguments, read_only=True) as (database, program):
        if program is None:
            yield database, database.load_plan(arguments.plan)
            return
        options = planning_options(arguments)
        workers, objective = arguments.workers, arguments.objective
        yield (
            database,
            database.plan(program, indexes=arguments.indexes, workers=workers, objective=objective, **options),
        )


def planning_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options of planning, as keywords of `Database.plan` and `Database.run`."""
    return {
        "optimizer": arguments.optimizer or "dp",
        "memory_limit": arguments.memory_limit,
        "nonfinite": arguments.nonfinite or "error",
        "estimator": arguments.estimator or "sketch",
        "tiles": arguments.tiles,
        "rewrite": arguments.rewrite,
    }


def _check_one_source(arguments: argparse.Namespace) -> None:
    """Refuse several programs or plans, or none; and options of planning next to a plan."""
    sources = [source for source in (arguments.program, arguments.text, arguments.plan) if source is not None]
    if len(sources) != 1:
        raise UsageError("give exactly one of a program file, - for standard input, --text and --plan")
    if arguments.plan is not None:
        for option, (attribute, default) in _PLANNING_OPTIONS.items():
            if getattr(arguments, attribute, default) != default:
                raise UsageError(f"{option} is an option of planning, but --plan gives a plan; leave out one of them")


def parameters_of(arguments: argparse.Namespace) -> dict[str, Number]:
    """The values of parameters by name, from options such as `--set eta=0.1`."""
    return dict(_parameter(pair) for pair in arguments.parameters)


def _parameter(pair: str) -> tuple[str, Number]:
    name, equals, text = pair.partition("=")
    truths = {"true": True, "false": False}
    if name and text in truths:
        return name, truths[text]
    for kind in (int, float, complex) if name and equals else ():
        with suppress(ValueError):
            number: Number = kind(text)
            return name, number
    raise UsageError(f"--set {pair!r} is not NAME=NUMBER, as in --set eta=0.1")

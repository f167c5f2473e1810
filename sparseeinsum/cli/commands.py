"""The command line: the commands run, explain, compile, stats and calibrate: parsed arguments in, printed text out."""

import argparse
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

import sparseeinsum as se
from sparseeinsum.cli.display import show_result
from sparseeinsum.extras import imported
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.render.plain_sql.engines import OTHER_DIALECTS

STANDARD_INPUT = "-"

_CONSOLE = Console(markup=False, highlight=False)  # markup would hide notation such as T[i, k]
_STATUS = Console(stderr=True)
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
    "--set": ("parameters", []),
}


def run(arguments: argparse.Namespace) -> None:
    """Plan and run a program, or run a plan."""
    into = dict(_result_and_table(pair) for pair in arguments.into)
    if arguments.append and not into:
        raise ValueError("--append needs tables; name them, as in --into Y=scores")
    with _database_and_program(arguments) as (database, program):
        results = database.run(
            database.load_plan(arguments.plan) if program is None else program,
            into={name: se.Table(table, mode="append") for name, table in into.items()} if arguments.append else into,
            replan=arguments.replan,
            deterministic=arguments.deterministic,
            **_planning_options(arguments),
        )
    for name, table in into.items():
        _CONSOLE.print(f"{name} is in {table}", soft_wrap=True)
    for result in results.values():
        show_result(_CONSOLE, result, arguments.rows)


def explain(arguments: argparse.Namespace) -> None:
    """Print the explanation of a plan or write it as an HTML page; save the plan if `--save` asks for it."""
    with _database_and_plan(arguments) as (_, plan):
        if arguments.algebra:
            print(plan.algebra())
        elif arguments.html is None:
            print(plan.explain(analyze=arguments.analyze))
        else:
            plan.to_html(arguments.html, analyze=arguments.analyze)
            _STATUS.print(f"the page is {arguments.html}", soft_wrap=True)
        if arguments.save is not None:
            plan.save(arguments.save)
            _STATUS.print(f"the plan is in {arguments.save}", soft_wrap=True)


def compile_program(arguments: argparse.Namespace) -> None:
    """Print the SQL of a plan, or write it into a dbt project."""
    if arguments.dbt is None:
        if arguments.name is not None:
            raise ValueError("--name is for dbt models; it needs --dbt")
        if (
            (arguments.dialect or "").lower() in OTHER_DIALECTS
            and arguments.plan is None
            and arguments.optimizer is None
        ):
            arguments.optimizer = "relational"  # the only plans that other engines can run
        with _database_and_plan(arguments) as (_, plan):
            print(plan.sql(arguments.style or "cte", arguments.dialect), end="")
        return
    if arguments.dialect is not None:
        raise ValueError("--dialect is for printed SQL; dbt models are in the dialect of the database")
    if arguments.style is not None:
        raise ValueError("--style is for printed SQL; dbt models are always staged")
    name = arguments.name or _model_prefix(arguments.program)
    with _database_and_plan(arguments) as (database, plan):
        for path in database.write_dbt(plan, arguments.dbt, name):
            print(path)
    _STATUS.print(f"build them with: dbt build --select tag:{name}", soft_wrap=True)


def _model_prefix(program: str | None) -> str:
    """The prefix of the names of dbt models: the name of the program's file, in the characters that dbt allows."""
    if program in (None, "-"):
        raise ValueError("the models need a name, because the program is from no file; add it, as in --name page_rank")
    return re.sub(r"[\s.-]", "_", Path(str(program)).stem).lower()


@contextmanager
def _database_and_plan(arguments: argparse.Namespace) -> Iterator[tuple[se.Database, se.Plan]]:
    """The open database, and the plan: that of `--plan`, or a new one of the program."""
    with _database_and_program(arguments) as (database, program):
        if program is None:
            yield database, database.load_plan(arguments.plan)
            return
        options = _planning_options(arguments)
        yield database, database.plan(program, indexes=arguments.indexes, workers=arguments.workers, **options)


def _planning_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options of planning, as keywords of `Database.plan` and `Database.run`."""
    return {
        "optimizer": arguments.optimizer or "dp",
        "memory_limit": arguments.memory_limit,
        "nonfinite": arguments.nonfinite or "error",
        "estimator": arguments.estimator or "sketch",
        "tiles": arguments.tiles,
        "rewrite": arguments.rewrite,
    }


def stats(arguments: argparse.Namespace) -> None:
    """Print the entries and the distinct indices of tensors (T and V of the SparseEinSum paper)."""
    with open_database(arguments.database) as database:
        stored = database.tensors()
        table = Table(title=f"Tensors of {arguments.database}", title_justify="left")
        for heading in ("tensor", "relation", "entries (T)", "density", "distinct indices (V)"):
            table.add_column(heading, justify="right" if heading in ("entries (T)", "density") else "left")
        names = arguments.tensors or stored
        for name in track(names, "measuring", console=_STATUS, transient=True, disable=not _STATUS.is_terminal):
            table.add_row(*_statistics_cells(database, name))
    _CONSOLE.print(table)


@contextmanager
def _database_and_program(arguments: argparse.Namespace) -> Iterator[tuple[se.Database, se.Program | None]]:
    """The open database, and the program; None if `--plan` gives a plan instead."""
    _check_one_source(arguments)
    text = sys.stdin.read() if arguments.program == STANDARD_INPUT else arguments.text
    with open_database(arguments.database) as database:
        if arguments.plan is not None:
            yield database, None
        elif text is None:
            yield database, database.read_program(arguments.program, **parameters_of(arguments))
        else:
            yield database, database.program(text, Path(), **parameters_of(arguments))


def _check_one_source(arguments: argparse.Namespace) -> None:
    """Refuse several programs or plans, or none; and options of planning next to a plan."""
    sources = [source for source in (arguments.program, arguments.text, arguments.plan) if source is not None]
    if len(sources) != 1:
        raise ValueError("give exactly one of a program file, - for standard input, --text and --plan")
    if arguments.plan is not None:
        for option, (attribute, default) in _PLANNING_OPTIONS.items():
            if getattr(arguments, attribute, default) != default:
                raise ValueError(f"{option} is an option of planning, but --plan gives a plan; leave out one of them")


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
    raise ValueError(f"--set {pair!r} is not NAME=NUMBER, as in --set eta=0.1")


def open_database(target: str) -> se.Database:
    """Open a database that exists: the URL of a server, or a file, so that a mistyped name does not create one."""
    if "://" not in target and not Path(target).is_file():
        raise se.EngineError(f"there is no database file {target}")
    return se.connect(target)


def _result_and_table(pair: str) -> tuple[str, str]:
    """The result and the table of an option such as `--into Y=scores`."""
    name, equals, table = pair.partition("=")
    if not (name and equals and table):
        raise ValueError(f"--into {pair!r} is not RESULT=TABLE, as in --into Y=scores")
    return name, table


def _statistics_cells(database: se.Database, name: str) -> tuple[str, ...]:
    measured = database.statistics(name)
    stored = database.tensors()[name]
    tensor = stored.tensor
    density = f"{measured.entries / tensor.size:.3g}" if tensor.size else "-"
    distinct = ", ".join(
        f"{axis.name}: {round(count):,} of {axis.bound:,}"
        for axis, count in zip(tensor.axes, measured.distinct, strict=True)
    )
    return name, stored.relation, f"{round(measured.entries):,}", density, distinct


def calibrate(arguments: argparse.Namespace) -> None:
    """Measure the cost constants of a machine, and save them."""
    imported("sparseeinsum.cli.calibrate", "scipy", "calibrating").calibrate_machine(arguments)

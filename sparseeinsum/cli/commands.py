"""The command line: one function a command, from parsed arguments to printed text."""

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
from sparseeinsum.operators.dtypes import Number

STANDARD_INPUT = "-"

_CONSOLE = Console(markup=False, highlight=False)  # notation such as T[i, k] is no markup
_STATUS = Console(stderr=True)
# Options, what they ask, and what that is without them.
_OF_PLANNING: Mapping[str, tuple[str, object]] = {
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


def run(asked: argparse.Namespace) -> None:
    """Plan and run a program, or run a plan."""
    into = dict(_assignment(pair) for pair in asked.into)
    if asked.append and not into:
        raise ValueError("--append says how to keep results in tables; name them, as in --into Y=scores")
    with _opened(asked) as (database, program):
        results = database.run(
            database.load_plan(asked.plan) if program is None else program,
            into={name: se.Table(table, mode="append") for name, table in into.items()} if asked.append else into,
            replan=asked.replan,
            deterministic=asked.deterministic,
            **_wishes(asked),
        )
    for name, table in into.items():
        _CONSOLE.print(f"{name} is in {table}", soft_wrap=True)
    for result in results.values():
        show_result(_CONSOLE, result, asked.rows)


def explain(asked: argparse.Namespace) -> None:
    """Print a plan's explanation or write it as a page, and keep the plan where that is asked for."""
    with _planned(asked) as (_, plan):
        if asked.algebra:
            print(plan.algebra())
        elif asked.html is None:
            print(plan.explain(analyze=asked.analyze))
        else:
            plan.to_html(asked.html, analyze=asked.analyze)
            _STATUS.print(f"the page is {asked.html}", soft_wrap=True)
        if asked.save is not None:
            plan.save(asked.save)
            _STATUS.print(f"the plan is in {asked.save}", soft_wrap=True)


def compile_program(asked: argparse.Namespace) -> None:
    """Print a plan's SQL, or write it into a dbt project."""
    if asked.dbt is None:
        if asked.name is not None:
            raise ValueError("--name is of models; it needs --dbt")
        with _planned(asked) as (_, plan):
            print(plan.sql(asked.style or "cte"), end="")
        return
    if asked.style is not None:
        raise ValueError("--style is for SQL that is printed; models are always staged")
    name = asked.name or _name_of_models(asked.program)
    with _planned(asked) as (database, plan):
        for path in database.write_dbt(plan, asked.dbt, name):
            print(path)
    _STATUS.print(f"build them with: dbt build --select tag:{name}", soft_wrap=True)


def _name_of_models(program: str | None) -> str:
    """The name of a program's file, as names of models are spelled."""
    if program in (None, "-"):
        raise ValueError("give the program's models a name, as in --name page_rank")
    return re.sub(r"[\s.-]", "_", Path(str(program)).stem).lower()


@contextmanager
def _planned(asked: argparse.Namespace) -> Iterator[tuple[se.Database, se.Plan]]:
    """The database, and the plan asked for, while it is open."""
    with _opened(asked) as (database, program):
        if program is None:
            yield database, database.load_plan(asked.plan)
            return
        yield database, database.plan(program, indexes=asked.indexes, workers=asked.workers, **_wishes(asked))


def _wishes(asked: argparse.Namespace) -> dict[str, Any]:
    """What planning is asked, for `Database.plan` and `run`."""
    return {
        "optimizer": asked.optimizer or "dp",
        "memory_limit": asked.memory_limit,
        "nonfinite": asked.nonfinite or "error",
        "estimator": asked.estimator or "sketch",
        "tiles": asked.tiles,
        "rewrite": asked.rewrite,
    }


def stats(asked: argparse.Namespace) -> None:
    """Print T and V of tensors."""
    with open_database(asked.database) as database:
        known = database.tensors()
        table = Table(title=f"Tensors of {asked.database}", title_justify="left")
        for heading in ("tensor", "relation", "entries (T)", "density", "distinct indices (V)"):
            table.add_column(heading, justify="right" if heading in ("entries (T)", "density") else "left")
        names = asked.tensors or known
        for name in track(names, "measuring", console=_STATUS, transient=True, disable=not _STATUS.is_terminal):
            table.add_row(*_statistics_cells(database, name))
    _CONSOLE.print(table)


@contextmanager
def _opened(asked: argparse.Namespace) -> Iterator[tuple[se.Database, se.Program | None]]:
    """The database, and the program; None where a plan is given instead."""
    _check_what_is_given(asked)
    text = sys.stdin.read() if asked.program == STANDARD_INPUT else asked.text
    with open_database(asked.database) as database:
        if asked.plan is not None:
            yield database, None
        elif text is None:
            yield database, database.read_program(asked.program, **parameters_of(asked))
        else:
            yield database, database.program(text, Path(), **parameters_of(asked))


def _check_what_is_given(asked: argparse.Namespace) -> None:
    given = [source for source in (asked.program, asked.text, asked.plan) if source is not None]
    if len(given) != 1:
        raise ValueError("give a program file, - for standard input, --text or --plan, one of them")
    if asked.plan is not None:
        for option, (wish, default) in _OF_PLANNING.items():
            if getattr(asked, wish, default) != default:
                raise ValueError(f"{option} is for planning, and --plan brings a plan; leave it out")


def parameters_of(asked: argparse.Namespace) -> dict[str, Number]:
    """Parameters by name, as `--set eta=0.1` gives them."""
    return dict(_parameter(pair) for pair in asked.parameters)


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
    """A server's database, or a file that is there: a mistyped name must not make a new one."""
    if "://" not in target and not Path(target).is_file():
        raise se.EngineError(f"there is no database file {target}")
    return se.connect(target)


def _assignment(pair: str) -> tuple[str, str]:
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

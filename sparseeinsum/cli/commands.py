"""The command line: the commands run, explain, compile, stats and calibrate: parsed arguments in, printed text out."""

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.progress import track
from rich.table import Table

import sparseeinsum as se
from sparseeinsum.cli.database_opening import open_database
from sparseeinsum.cli.output import print_parts, print_status, print_table, status_console
from sparseeinsum.cli.program_arguments import STANDARD_INPUT, database_and_plan, database_and_program, planning_options
from sparseeinsum.cli.result_formats import result_output
from sparseeinsum.cli.usage import UsageError
from sparseeinsum.environment.extras import imported
from sparseeinsum.render.plain_sql.engines import OTHER_DIALECTS


def run(arguments: argparse.Namespace) -> None:
    """Plan and run a program, or run a plan; show, print or write its results."""
    into = dict(_result_and_table(pair) for pair in arguments.into)
    if arguments.append and not into:
        raise UsageError("--append needs tables; name them, as in --into Y=scores")
    output = result_output(arguments)
    with database_and_program(arguments, read_only=not into) as (database, program):
        options = planning_options(arguments)
        if program is not None and arguments.result is not None:
            options["outputs"] = [arguments.result]
        planned_or_program = database.load_plan(arguments.plan) if program is None else program
        shown = _shown_results(planned_or_program.outputs, into, arguments.result)
        output.check_room_for(shown)
        results = database.run(
            planned_or_program,
            into={name: se.Table(table, mode="append") for name, table in into.items()} if arguments.append else into,
            replan=arguments.replan,
            deterministic=arguments.deterministic,
            **options,
        )
    for name, table in into.items():
        print_status(f"{name} is in {table}")
    output.write([results[name] for name in shown])


def _shown_results(outputs: Sequence[str], into: Mapping[str, str], chosen: str | None) -> list[str]:
    """The results to show: the chosen one, or all outputs that go into no table."""
    if chosen is None:
        return [name for name in outputs if name not in into]
    if chosen in into:
        raise UsageError(f"{chosen} goes into {into[chosen]}; leave out --into or --result")
    return [chosen]


def explain(arguments: argparse.Namespace) -> None:
    """Print the explanation of a plan or write it as an HTML page; save the plan if `--save` asks for it."""
    if arguments.format == "json" and (arguments.algebra or arguments.html is not None):
        raise UsageError("--format json is for the explanation; leave it out, or --algebra and --html")
    with database_and_plan(arguments) as (_, plan):
        if arguments.algebra:
            print(plan.algebra())
        elif arguments.html is not None:
            plan.to_html(arguments.html, analyze=arguments.analyze)
            print_status(f"the page is {arguments.html}")
        elif arguments.format == "json":
            print(plan.explanation(arguments.analyze).to_json())
        else:
            print_parts(plan.explanation(arguments.analyze).parts())
        if arguments.save is not None:
            plan.save(arguments.save)
            print_status(f"the plan is in {arguments.save}")


def compile_program(arguments: argparse.Namespace) -> None:
    """Print the SQL of a plan, or write it into a dbt project."""
    is_other = (arguments.dialect or "").lower() in OTHER_DIALECTS
    if is_other and arguments.plan is None and arguments.optimizer is None:
        arguments.optimizer = "relational"  # the only plans that other engines can run
    if arguments.dbt is None:
        if arguments.name is not None:
            raise UsageError("--name is for dbt models; it needs --dbt")
        with database_and_plan(arguments) as (_, plan):
            print(plan.sql(arguments.style or "cte", arguments.dialect), end="")
        return
    if arguments.style is not None:
        raise UsageError("--style is for printed SQL; dbt models are always staged")
    name = arguments.name or _model_prefix(arguments.program)
    with database_and_plan(arguments) as (database, plan):
        for path in database.write_dbt(plan, arguments.dbt, name, arguments.dialect):
            print(path)
    print_status(f"build them with: dbt build --select tag:{name}")


def _model_prefix(program: str | None) -> str:
    """The prefix of the names of dbt models: the name of the program's file, in the characters that dbt allows."""
    if program in (None, STANDARD_INPUT):
        raise UsageError("the models need a name, because the program is from no file; add it, as in --name page_rank")
    return re.sub(r"[\s.-]", "_", Path(str(program)).stem).lower()


def stats(arguments: argparse.Namespace) -> None:
    """Print the entries and the distinct indices of tensors (T and V of the SparseEinSum paper)."""
    with open_database(arguments.database, read_only=True) as database:
        stored = database.tensors()
        table = Table(title=f"Tensors of {arguments.database}", title_justify="left")
        for heading in ("tensor", "relation", "entries (T)", "density", "distinct indices (V)"):
            table.add_column(heading, justify="right" if heading in ("entries (T)", "density") else "left")
        status = status_console()
        names = arguments.tensors or stored
        for name in track(names, "measuring", console=status, transient=True, disable=not status.is_terminal):
            table.add_row(*_statistics_cells(database, name))
    print_table(table)


def _result_and_table(pair: str) -> tuple[str, str]:
    """The result and the table of an option such as `--into Y=scores`."""
    name, equals, table = pair.partition("=")
    if not (name and equals and table):
        raise UsageError(f"--into {pair!r} is not RESULT=TABLE, as in --into Y=scores")
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

"""The command line: load, run, explain, compile, check, shell, stats, drop and others; over the public API alone."""

import argparse
import sys
from collections.abc import Sequence
from typing import TypeAlias

from sparseeinsum import SparseEinsumError
from sparseeinsum.cli import commands, demo, extensions, kernels, loading, shell
from sparseeinsum.cli.check import check
from sparseeinsum.cli.options import bounds, dictionaries, number, tiles, words
from sparseeinsum.extras import imported

_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
_EXAMPLE = 'sparseeinsum run --database graph.duckdb --text "Y[i] = sum(A[i, j] * X[j])"'


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status: 0, or 1 for errors that were printed."""
    asked = _parser().parse_args(arguments)
    try:
        status: int | None = asked.command(asked)
    except (SparseEinsumError, OSError, ValueError) as error:
        print(f"sparseeinsum: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("sparseeinsum: stopped; the database is as it was", file=sys.stderr)
        return 130
    return status or 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sparseeinsum",
        description="Einstein summations over the tables of a DuckDB or PostgreSQL database.",
        epilog=f"example: {_EXAMPLE}",
    )
    commands_of = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_load(commands_of)
    _add_run(commands_of)
    _add_explain(commands_of)
    _add_compile(commands_of)
    _add_check(commands_of)
    _add_shell(commands_of)
    _add_stats(commands_of)
    _add_drop(commands_of)
    _add_grant(commands_of)
    _add_calibrate(commands_of)
    _add_demo(commands_of)
    _add_compile_kernels(commands_of)
    _add_build(commands_of)
    _add_install(commands_of)
    _add_remove(commands_of)
    return parser


def _add(commands_of: _Commands, name: str, text: str, example: str) -> argparse.ArgumentParser:
    return commands_of.add_parser(name, help=text, description=text.capitalize() + ".", epilog=f"example: {example}")


def _add_program(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("program", nargs="?", help="file with program text; - reads standard input")
    parser.add_argument("-t", "--text", help="program text itself, instead of a file")
    parser.add_argument("-p", "--plan", help="a plan that `explain --save` kept, instead of a program")
    _add_set(parser)
    parser.add_argument(
        "-d", "--database", required=True, help="where the tensors are: a DuckDB file, or postgresql://..."
    )
    parser.add_argument("-o", "--optimizer", help="dp (default), or the baselines cover, greedy, relational, dense")
    parser.add_argument("-m", "--memory-limit", help="memory that a run may take, as in 4GB")
    parser.add_argument(
        "--nonfinite",
        choices=("error", "allow"),
        help="what to do where values turn NaN or infinite out of finite ones (default error)",
    )
    parser.add_argument(
        "--tiles",
        default=(),
        type=tiles,
        help="tiles of several indices that labels may have, as in 64,512, or auto; those of stored tensors need no "
        "asking for",
    )
    parser.add_argument(
        "--estimator",
        choices=("uniform", "sketch", "exact"),
        help="how sizes of results are estimated: as if entries were spread evenly, by counts of entries at every "
        "index (default), or counted by a query before planning",
    )
    parser.add_argument(
        "--no-rewrite",
        dest="rewrite",
        action="store_false",
        help="compute products that several statements compute in the order in which they are written",
    )


def _add_set(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-s",
        "--set",
        dest="parameters",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        help="give a parameter of the program a value, in place of that in `param NAME = ...`",
    )


def _add_no_indexes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--no-indexes",
        dest="indexes",
        action="store_false",
        help="keep no operand in memory to read it by index, which DuckDB before version 2 cannot",
    )


def _add_workers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workers",
        type=int,
        metavar="NUMBER",
        help="cut labels among so many workers, a power of two, so that they would send each other little",
    )


def _add_load(commands_of: _Commands) -> None:
    parser = _add(
        commands_of,
        "load",
        "make a tensor of a file, a table or a view, one entry a row",
        "sparseeinsum load --database graph.duckdb A edges.parquet --index src,dst --value weight",
    )
    parser.add_argument("name", help="of the tensor")
    parser.add_argument(
        "source", help="a Parquet, CSV or JSON file, or several as in 'edges/*.parquet'; or the name of a table or view"
    )
    parser.add_argument(
        "-d", "--database", required=True, help="where to: a DuckDB file, made if need be, or postgresql://..."
    )
    parser.add_argument(
        "--index", type=words, help="columns of indices in axis order, as in src,dst (default: all others)"
    )
    parser.add_argument(
        "--value", help="column of values (default: the last one; with --index none, every row counts as 1)"
    )
    parser.add_argument("--shape", type=bounds, help="bounds, as in 100,100 (default: what the indices need)")
    parser.add_argument("--axes", type=words, help="names of the axes, as in i,j (default: the index columns)")
    parser.add_argument(
        "--keys",
        type=dictionaries,
        metavar="AXIS=DICTIONARY,...",
        help="dictionaries of natural keys, as in src=person,dst=person (default for texts, dates, timestamps and "
        "UUIDs: of the axis's name)",
    )
    parser.add_argument("--fill", type=number, help="value of every index that no row has (default 0)")
    parser.add_argument("--dtype", help="of the values, as in float32 (default: that of their column)")
    parser.add_argument(
        "--duplicates",
        choices=("error", "sum"),
        default="error",
        help="what to do where indices stand in several rows: refuse them (default), or add up the values",
    )
    parser.add_argument(
        "--distribute",
        metavar="AXIS",
        help="on a Citus cluster, the axis by whose key the rows are distributed, or replicated (default: small data "
        "are replicated, others distributed by the first axis)",
    )
    parser.add_argument(
        "--no-copy",
        dest="copies",
        action="store_false",
        help="copy nothing: programs read the rows where they are, as they are then",
    )
    parser.set_defaults(command=loading.load)


def _add_drop(commands_of: _Commands) -> None:
    parser = _add(
        commands_of,
        "drop",
        "forget tensors, and drop the tables that they were loaded into; other tables, views and files stay",
        "sparseeinsum drop --database graph.duckdb A",
    )
    parser.add_argument("tensors", nargs="+", help="names of tensors")
    parser.add_argument(
        "-d", "--database", required=True, help="where the tensors are: a DuckDB file, or postgresql://..."
    )
    parser.set_defaults(command=loading.drop)


def _add_grant(commands_of: _Commands) -> None:
    parser = _add(
        commands_of,
        "grant",
        "let a role of PostgreSQL use the tensors of a database: see all, add some, and change its own; rights to "
        "the tables that hold them are granted in SQL",
        "sparseeinsum grant analyst --database postgresql://owner@host/database",
    )
    parser.add_argument("role", help="its name, or public for all")
    parser.add_argument("-d", "--database", required=True, help="postgresql://..., as the owner of its catalogue")
    parser.set_defaults(command=loading.grant)


def _add_run(commands_of: _Commands) -> None:
    parser = _add(commands_of, "run", "plan and run a program, and show its results", _EXAMPLE)
    _add_program(parser)
    parser.add_argument(
        "--into",
        action="append",
        default=[],
        metavar="RESULT=TABLE",
        help="keep a result in a table, or in a file if the name ends in .parquet; what is there is replaced",
    )
    parser.add_argument(
        "--append", action="store_true", help="with --into, add to tables instead, which must have no such rows yet"
    )
    parser.add_argument("--rows", type=int, default=10, help="how many rows of each result to show (default 10)")
    parser.add_argument(
        "--no-replan",
        dest="replan",
        action="store_false",
        help="keep to the plan, even where results on the way turn out larger or smaller than expected",
    )
    parser.add_argument(
        "--deterministic",
        action="store_true",
        help="fold groups in a fixed order, in one thread: two runs on the same tables give equal bits",
    )
    parser.set_defaults(command=commands.run)


def _add_explain(commands_of: _Commands) -> None:
    parser = _add(
        commands_of,
        "explain",
        "show the plan of a program: notation, schemas, expected tuples and cost",
        "sparseeinsum explain --analyze --database graph.duckdb program.ein",
    )
    _add_program(parser)
    _add_no_indexes(parser)
    _add_workers(parser)
    parser.add_argument("--analyze", action="store_true", help="run it, too, and show actual tuples and times")
    parser.add_argument("--algebra", action="store_true", help="show it in the tensor relational algebra instead")
    parser.add_argument("--html", metavar="FILE", help="write it as a page for a browser, with a drawing, instead")
    parser.add_argument("--save", metavar="FILE", help="keep the plan in a file, for --plan")
    parser.set_defaults(command=commands.explain)


def _add_compile(commands_of: _Commands) -> None:
    parser = _add(
        commands_of,
        "compile",
        "print the SQL of a program, or write it into a dbt project",
        "sparseeinsum compile --database graph.duckdb program.ein > program.sql",
    )
    _add_program(parser)
    _add_no_indexes(parser)
    _add_workers(parser)
    parser.add_argument(
        "--style",
        choices=("cte", "staged"),
        help="cte (default): one statement for every result; staged: as it runs, with temporary tables",
    )
    parser.add_argument(
        "--dbt",
        metavar="DIR",
        help="write models into the dbt project in this folder instead, with their tests, which fail where data are no "
        "longer such that the plan is exact for them",
    )
    parser.add_argument("--name", help="with --dbt, what names of models begin with (default: that of the file)")
    parser.set_defaults(command=commands.compile_program)


def _add_check(commands_of: _Commands) -> None:
    parser = _add(
        commands_of,
        "check",
        "say what is wrong with programs, as FILE:LINE:COLUMN: error: MESSAGE, and what of them nothing reads",
        "sparseeinsum check --database graph.duckdb program.ein",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="file with program text; - reads standard input")
    parser.add_argument("-d", "--database", help="where the tensors are that the programs are to fit")
    parser.add_argument("--json", action="store_true", help="write one JSON object a line")
    _add_set(parser)
    parser.set_defaults(command=check)


def _add_shell(commands_of: _Commands) -> None:
    parser = _add(
        commands_of,
        "shell",
        "a prompt for SQL and programs, or a script of them on standard input",
        "sparseeinsum shell graph.duckdb",
    )
    parser.add_argument(
        "database", nargs="?", help="a DuckDB file, or postgresql://...; by default a DuckDB database in memory"
    )
    parser.set_defaults(command=shell.shell)


def _add_stats(commands_of: _Commands) -> None:
    parser = _add(
        commands_of,
        "stats",
        "measure the tensors of a database: entries, and distinct indices of every axis",
        "sparseeinsum stats --database graph.duckdb A X",
    )
    parser.add_argument("tensors", nargs="*", help="names of tensors; all by default")
    parser.add_argument(
        "-d", "--database", required=True, help="where the tensors are: a DuckDB file, or postgresql://..."
    )
    parser.set_defaults(command=commands.stats)


def _add_calibrate(commands_of: _Commands) -> None:
    parser = _add(
        commands_of,
        "calibrate",
        "measure the cost constants of this machine, and keep them for later plans",
        "sparseeinsum calibrate",
    )
    parser.add_argument(
        "-d",
        "--database",
        metavar="URL",
        help="a database of PostgreSQL whose server to measure, postgresql://...; nothing is left in it (default: "
        "DuckDB here)",
    )
    parser.add_argument("--dry-run", action="store_true", help="measure and print, but keep nothing")
    parser.set_defaults(command=_calibrate)


def _calibrate(asked: argparse.Namespace) -> None:
    imported("sparseeinsum.cli.calibrating", "scipy", "calibrating").calibrate_machine(asked)


def _add_demo(commands_of: _Commands) -> None:
    parser = _add(
        commands_of,
        "demo",
        "run a two-layer graph convolutional network, check it, and compare plans",
        "sparseeinsum demo --data planetoid_cora.npz",
    )
    parser.add_argument("--data", help="graph to run on, an .npz file; by default a generated citation network")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each plan; the median is shown (default 3)")
    parser.set_defaults(command=demo.demo)


def _add_compile_kernels(commands_of: _Commands) -> None:
    parser = _add(
        commands_of,
        "compile-kernels",
        "compile the kernels now rather than when a database is first opened, or for this very processor",
        "sparseeinsum compile-kernels --processor native",
    )
    parser.add_argument(
        "--processor",
        help="a level such as x86-64-v3; or native, which is for this very processor and shows what that brings "
        "(default: the best level that this machine has, unless kernels came with the package)",
    )
    parser.set_defaults(command=kernels.compile_kernels)


def _add_build(commands_of: _Commands) -> None:
    parser = _add(
        commands_of,
        "build",
        "make the extension as files: for DuckDB without Python, or for a PostgreSQL server that is elsewhere; or the "
        "package of macros that models of dbt need",
        "sparseeinsum build duckdb --output .",
    )
    parser.add_argument("server", choices=("duckdb", "postgres", "dbt"), help="which database, or dbt")
    parser.add_argument("--output", required=True, metavar="DIR", help="folder for the files; it is made if need be")
    parser.add_argument(
        "--version", type=int, metavar="MAJOR", help="major version of PostgreSQL, 15 to 18; by default the one here"
    )
    parser.add_argument(
        "--processor",
        help="processor where it runs: a level such as x86-64-v3, or native for the very one here; by default the file "
        "has code for all levels, and chooses where it is loaded",
    )
    parser.add_argument(
        "--portable",
        action="store_true",
        help="write a script for psql instead, which creates the functions in PL/pgSQL: slower, but for servers that "
        "load no libraries",
    )
    parser.add_argument("--schema", help="where portable functions go; by default public")
    parser.set_defaults(command=extensions.build)


def _add_install(commands_of: _Commands) -> None:
    parser = _add(
        commands_of,
        "install",
        "put the extension where the database server of this machine finds it",
        "sparseeinsum install postgres --pg-config /usr/lib/postgresql/15/bin/pg_config",
    )
    parser.add_argument("server", choices=("postgres",), help="which database")
    parser.add_argument("--pg-config", metavar="PATH", help="the server's pg_config; by default the one on the path")
    parser.add_argument(
        "--python",
        action="store_true",
        help="put the extension sparseeinsum_python there, too, which runs programs inside the server; it needs "
        "PL/Python with this version of Python, and the server's user must be able to read this installation",
    )
    parser.add_argument(
        "--portable",
        metavar="DATABASE-URL",
        help="create the functions in a database instead, in PL/pgSQL: slower, but for servers that load no libraries",
    )
    parser.add_argument("--schema", help="where portable functions go; by default where new tables go")
    parser.set_defaults(command=extensions.install)


def _add_remove(commands_of: _Commands) -> None:
    parser = _add(
        commands_of,
        "remove",
        "take the files of the extension away from the database server of this machine, or portable functions from a "
        "database; tensors and their tables stay",
        "sparseeinsum remove postgres --pg-config /usr/lib/postgresql/15/bin/pg_config",
    )
    parser.add_argument("server", choices=("postgres",), help="which database")
    parser.add_argument("--pg-config", metavar="PATH", help="the server's pg_config; by default the one on the path")
    parser.add_argument("--portable", metavar="DATABASE-URL", help="drop the portable functions of a database instead")
    parser.set_defaults(command=extensions.remove)

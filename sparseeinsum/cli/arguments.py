"""The command line: the parser of its arguments: commands, options and their help texts."""

import argparse
from typing import TypeAlias

from sparseeinsum.cli import commands, demo, extensions, shell, tensor_commands
from sparseeinsum.cli.check import check
from sparseeinsum.cli.compile_kernels import compile_kernels
from sparseeinsum.cli.option_values import bounds, dictionaries, names, number, tiles
from sparseeinsum.render.plain_sql.engines import OTHER_DIALECTS

_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
_EXAMPLE = 'sparseeinsum run --database graph.duckdb --text "Y[i] = sum(A[i, j] * X[j])"'
_TENSORS = "where the tensors are: a DuckDB file, or postgresql://..."
_SERVER_PROGRAM = "the server's pg_config; by default the one on the path"


def command_parser() -> argparse.ArgumentParser:
    """The parser of the command line; `command` of what it returns is the function that runs the command."""
    parser = argparse.ArgumentParser(
        prog="sparseeinsum",
        description="Einstein summations over the tables of a DuckDB or PostgreSQL database.",
        epilog=f"example: {_EXAMPLE}",
    )
    subparsers = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for add_command in _COMMANDS:
        add_command(subparsers)
    return parser


def _add(subparsers: _Commands, name: str, text: str, example: str) -> argparse.ArgumentParser:
    """Add a command with its help text and an example."""
    return subparsers.add_parser(name, help=text, description=text.capitalize() + ".", epilog=f"example: {example}")


def _add_program(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that plan a program."""
    parser.add_argument("program", nargs="?", help="file with program text; - reads standard input")
    parser.add_argument("-t", "--text", help="program text itself, instead of a file")
    parser.add_argument("-p", "--plan", help="a plan that `explain --save` has written, instead of a program")
    _add_set(parser)
    parser.add_argument("-d", "--database", required=True, help=_TENSORS)
    parser.add_argument("-o", "--optimizer", help="dp (default), or the baselines cover, greedy, relational, dense")
    parser.add_argument("-m", "--memory-limit", help="memory that a run may use, as in 4GB")
    parser.add_argument(
        "--nonfinite",
        choices=("error", "allow"),
        help="what to do if finite values give NaN or infinity (default error)",
    )
    parser.add_argument(
        "--tiles",
        default=(),
        type=tiles,
        help="sizes of tiles that the plan may use, as in 64,512, or auto; tiles of stored tensors are always possible",
    )
    parser.add_argument(
        "--estimator",
        choices=("uniform", "sketch", "exact"),
        help="how sizes of results are estimated: as if entries were uniformly distributed, from sketches of the "
        "tensors (default), or exactly, by a query before planning",
    )
    parser.add_argument(
        "--no-rewrite",
        dest="rewrite",
        action="store_false",
        help="compute statements as they are written, in the order of their operands",
    )


def _add_set(parser: argparse.ArgumentParser) -> None:
    """Add the option that sets parameters of programs."""
    parser.add_argument(
        "-s",
        "--set",
        dest="parameters",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        help="a value for a parameter of the program, instead of the one in `param NAME = ...`",
    )


def _add_plan_only_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that plan a program without running it."""
    parser.add_argument(
        "--no-indexes",
        dest="indexes",
        action="store_false",
        help="do not keep operands in memory to read them by index; DuckDB before version 2 needs this",
    )
    parser.add_argument(
        "--workers",
        type=int,
        metavar="NUMBER",
        help="partition labels among this number of workers, with little transfer between them",
    )


def _add_load(subparsers: _Commands) -> None:
    parser = _add(
        subparsers,
        "load",
        "make a tensor of a file, a table or a view, with one entry in each row",
        "sparseeinsum load --database graph.duckdb A edges.parquet --index src,dst --value weight",
    )
    parser.add_argument("name", help="name of the tensor")
    parser.add_argument(
        "source", help="a Parquet, CSV or JSON file, or several as in 'edges/*.parquet'; or the name of a table or view"
    )
    parser.add_argument(
        "-d", "--database", required=True, help="where to: a DuckDB file, created if missing, or postgresql://..."
    )
    parser.add_argument(
        "--index", type=names, help="index columns in the order of the axes, as in src,dst (default: all others)"
    )
    parser.add_argument("--value", help="column of values (default: the last one; with --index: 1 in every row)")
    parser.add_argument("--shape", type=bounds, help="bounds, as in 100,100 (default: what the indices need)")
    parser.add_argument("--axes", type=names, help="names of the axes, as in i,j (default: the index columns)")
    parser.add_argument(
        "--keys",
        type=dictionaries,
        metavar="AXIS=DICTIONARY,...",
        help="dictionaries of natural keys, as in src=person,dst=person (default: one with the name of the axis)",
    )
    parser.add_argument("--fill", type=number, help="value at every index without a row (default 0)")
    parser.add_argument("--dtype", help="dtype of the values, as in float32 (default: that of their column)")
    parser.add_argument(
        "--duplicates",
        choices=("error", "sum"),
        default="error",
        help="what to do if several rows have the same indices: refuse them (default), or add up their values",
    )
    parser.add_argument(
        "--distribute",
        metavar="AXIS",
        help="on Citus, the axis that distributes the rows, or replicated (default: small data are replicated)",
    )
    parser.add_argument(
        "--no-copy",
        dest="copies",
        action="store_false",
        help="do not copy: programs read the current rows of the source",
    )
    parser.set_defaults(command=tensor_commands.load)


def _add_drop(subparsers: _Commands) -> None:
    parser = _add(
        subparsers,
        "drop",
        "drop tensors, and the tables that they were loaded into; other tables, views and files stay",
        "sparseeinsum drop --database graph.duckdb A",
    )
    parser.add_argument("tensors", nargs="+", help="names of tensors")
    parser.add_argument("-d", "--database", required=True, help=_TENSORS)
    parser.set_defaults(command=tensor_commands.drop)


def _add_grant(subparsers: _Commands) -> None:
    parser = _add(
        subparsers,
        "grant",
        "let a PostgreSQL role list and add tensors, and change its own; rights to their tables are granted in SQL",
        "sparseeinsum grant analyst --database postgresql://owner@host/database",
    )
    parser.add_argument("role", help="name of the role, or public for all roles")
    parser.add_argument("-d", "--database", required=True, help="postgresql://..., as the owner of the catalogue")
    parser.set_defaults(command=tensor_commands.grant)


def _add_run(subparsers: _Commands) -> None:
    parser = _add(subparsers, "run", "plan and run a program, and show its results", _EXAMPLE)
    _add_program(parser)
    parser.add_argument(
        "--into",
        action="append",
        default=[],
        metavar="RESULT=TABLE",
        help="store a result in a table, or in a file if the name ends in .parquet; replaces what is there",
    )
    parser.add_argument("--append", action="store_true", help="with --into, add rows to tables; keys must not repeat")
    parser.add_argument("--rows", type=int, default=10, help="number of rows of every result to show (default 10)")
    parser.add_argument(
        "--no-replan",
        dest="replan",
        action="store_false",
        help="keep the plan, even if intermediates turn out larger or smaller than estimated",
    )
    parser.add_argument(
        "--deterministic",
        action="store_true",
        help="aggregate in a fixed order, in one thread: runs on the same tables give bitwise equal results",
    )
    parser.set_defaults(command=commands.run)


def _add_explain(subparsers: _Commands) -> None:
    parser = _add(
        subparsers,
        "explain",
        "show the plan of a program: notation, schemas, estimated tuples and cost",
        "sparseeinsum explain --analyze --database graph.duckdb program.ein",
    )
    _add_program(parser)
    _add_plan_only_options(parser)
    parser.add_argument("--analyze", action="store_true", help="also run it, and show actual tuples and times")
    parser.add_argument("--algebra", action="store_true", help="show the plan in the tensor relational algebra instead")
    parser.add_argument("--html", metavar="FILE", help="write an HTML page with a drawing of the plan instead")
    parser.add_argument("--save", metavar="FILE", help="also write the plan to a file, for --plan")
    parser.set_defaults(command=commands.explain)


def _add_compile(subparsers: _Commands) -> None:
    parser = _add(
        subparsers,
        "compile",
        "print the SQL of a program, or write it into a dbt project",
        "sparseeinsum compile --database graph.duckdb program.ein > program.sql",
    )
    _add_program(parser)
    _add_plan_only_options(parser)
    parser.add_argument(
        "--style",
        choices=("cte", "staged"),
        help="cte (default): one statement for every result; staged: the statements of a run, with temporary tables",
    )
    parser.add_argument(
        "--dbt",
        metavar="DIR",
        help="write models into the dbt project in this folder instead, with tests that the plan is still exact",
    )
    parser.add_argument(
        "--dialect",
        metavar="NAME",
        help=f"SQL without arrays for tables of the same names in another engine: {', '.join(OTHER_DIALECTS)}",
    )
    parser.add_argument("--name", help="with --dbt, the prefix of models' names (default: the program file's name)")
    parser.set_defaults(command=commands.compile_program)


def _add_check(subparsers: _Commands) -> None:
    parser = _add(
        subparsers,
        "check",
        "report errors of programs, as FILE:LINE:COLUMN: error: MESSAGE, and results and parameters that nothing reads",
        "sparseeinsum check --database graph.duckdb program.ein",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="file with program text; - reads standard input")
    parser.add_argument("-d", "--database", help="database with the tensors that the programs read")
    parser.add_argument("--json", action="store_true", help="print one JSON object for each finding")
    _add_set(parser)
    parser.set_defaults(command=check)


def _add_shell(subparsers: _Commands) -> None:
    parser = _add(
        subparsers,
        "shell",
        "start a prompt for SQL and programs, or run a script of them from standard input",
        "sparseeinsum shell graph.duckdb",
    )
    parser.add_argument(
        "database", nargs="?", help="a DuckDB file, or postgresql://...; by default a DuckDB database in memory"
    )
    parser.set_defaults(command=shell.shell)


def _add_stats(subparsers: _Commands) -> None:
    parser = _add(
        subparsers,
        "stats",
        "measure the tensors of a database: entries, and distinct indices of every axis",
        "sparseeinsum stats --database graph.duckdb A X",
    )
    parser.add_argument("tensors", nargs="*", help="names of tensors; all by default")
    parser.add_argument("-d", "--database", required=True, help=_TENSORS)
    parser.set_defaults(command=commands.stats)


def _add_calibrate(subparsers: _Commands) -> None:
    parser = _add(
        subparsers,
        "calibrate",
        "measure the cost constants of this machine, and save them for later plans",
        "sparseeinsum calibrate",
    )
    parser.add_argument(
        "-d",
        "--database",
        metavar="URL",
        help="a PostgreSQL database whose server to measure, postgresql://...; left unchanged (default: DuckDB here)",
    )
    parser.add_argument("--dry-run", action="store_true", help="measure and print, but do not save")
    parser.set_defaults(command=commands.calibrate)


def _add_demo(subparsers: _Commands) -> None:
    parser = _add(
        subparsers,
        "demo",
        "run a two-layer graph convolutional network, check it, and compare plans",
        "sparseeinsum demo --data planetoid_cora.npz",
    )
    parser.add_argument("--data", help="graph to run on, an .npz file; by default a generated citation network")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each plan; the median is shown (default 3)")
    parser.set_defaults(command=demo.demo)


def _add_compile_kernels(subparsers: _Commands) -> None:
    parser = _add(
        subparsers,
        "compile-kernels",
        "compile the kernels now rather than when a database is first opened, or for the processor of this machine",
        "sparseeinsum compile-kernels --processor native",
    )
    parser.add_argument(
        "--processor",
        help="level such as x86-64-v3, or native for this machine, with a comparison (default: the best level)",
    )
    parser.set_defaults(command=compile_kernels)


def _add_build(subparsers: _Commands) -> None:
    parser = _add(
        subparsers,
        "build",
        "write the extension as files, for DuckDB without Python or a remote PostgreSQL server, or the package for dbt",
        "sparseeinsum build duckdb --output .",
    )
    parser.add_argument("server", choices=("duckdb", "postgres", "dbt"), help="what to build for")
    parser.add_argument("--output", required=True, metavar="DIR", help="folder for the files; created if missing")
    parser.add_argument(
        "--version", type=int, metavar="MAJOR", help="major version of PostgreSQL, 15 to 18; by default the one here"
    )
    parser.add_argument(
        "--processor",
        help="level such as x86-64-v3, or native for this machine (default: code for all levels in one file)",
    )
    parser.add_argument(
        "--portable",
        action="store_true",
        help="write a script for psql instead, with functions in PL/pgSQL: slower, for servers that load no libraries",
    )
    parser.add_argument("--schema", help="schema of portable functions; by default public")
    parser.set_defaults(command=extensions.build)


def _add_install(subparsers: _Commands) -> None:
    parser = _add(
        subparsers,
        "install",
        "install the extension for the database server of this machine",
        "sparseeinsum install postgres --pg-config /usr/lib/postgresql/15/bin/pg_config",
    )
    parser.add_argument("server", choices=("postgres",), help="the database server")
    parser.add_argument("--pg-config", metavar="PATH", help=_SERVER_PROGRAM)
    parser.add_argument(
        "--python",
        action="store_true",
        help="also install the extension sparseeinsum_python, which runs programs inside the server; needs PL/Python "
        "with this version of Python, and the server's user must be able to read this installation",
    )
    parser.add_argument(
        "--portable",
        metavar="DATABASE-URL",
        help="create the functions in a database instead, in PL/pgSQL: slower, for servers that load no libraries",
    )
    parser.add_argument("--schema", help="schema of portable functions; by default that of new tables")
    parser.set_defaults(command=extensions.install)


def _add_remove(subparsers: _Commands) -> None:
    parser = _add(
        subparsers,
        "remove",
        "remove the extension from this machine's server, or portable functions from a database; tensors stay",
        "sparseeinsum remove postgres --pg-config /usr/lib/postgresql/15/bin/pg_config",
    )
    parser.add_argument("server", choices=("postgres",), help="the database server")
    parser.add_argument("--pg-config", metavar="PATH", help=_SERVER_PROGRAM)
    parser.add_argument("--portable", metavar="DATABASE-URL", help="drop the portable functions of a database instead")
    parser.set_defaults(command=extensions.remove)


_COMMANDS = (
    _add_load,
    _add_run,
    _add_explain,
    _add_compile,
    _add_check,
    _add_shell,
    _add_stats,
    _add_drop,
    _add_grant,
    _add_calibrate,
    _add_demo,
    _add_compile_kernels,
    _add_build,
    _add_install,
    _add_remove,
)

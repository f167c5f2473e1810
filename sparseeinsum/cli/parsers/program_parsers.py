"""The command line: parsers of the commands that plan, run and check programs."""

import argparse

from sparseeinsum.cli.parsers.command import RUN_EXAMPLE, TENSORS, Commands, LateFunction, add_command
from sparseeinsum.cli.parsers.option_values import tiles
from sparseeinsum.decompose.eindecomp.objectives import OF_PLANS, SECONDS

_PROGRAM_COMMANDS = "sparseeinsum.cli.commands"
_CHECK = "sparseeinsum.cli.check"
_SHELL = "sparseeinsum.cli.shell"


def _add_program(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that plan a program."""
    parser.add_argument("program", nargs="?", help="file with program text; - reads standard input")
    parser.add_argument("-t", "--text", help="program text itself, instead of a file")
    parser.add_argument("-p", "--plan", help="a plan that `explain --save` has written, instead of a program")
    _add_set(parser)
    parser.add_argument("-d", "--database", required=True, help=TENSORS)
    parser.add_argument(
        "-o",
        "--optimizer",
        choices=("dp", "cover", "greedy", "relational", "dense"),
        help="the search for a plan: dp (default), or one of the baselines",
    )
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
    parser.add_argument(
        "--objective",
        choices=OF_PLANS,
        default=SECONDS,
        help="what a plan for workers, or on a Citus cluster, minimises: its seconds, or the floats that are sent",
    )


def add_run(subparsers: Commands) -> None:
    """Add the command `run`, with its options and help text, to the commands of the parser."""
    parser = add_command(subparsers, "run", "plan and run a program, and show its results", RUN_EXAMPLE)
    _add_program(parser)
    parser.add_argument(
        "--into",
        action="append",
        default=[],
        metavar="RESULT=TABLE",
        help="store a result in a table, or in a file if the name ends in .parquet; replaces what is there",
    )
    parser.add_argument("--append", action="store_true", help="with --into, add rows to tables; keys must not repeat")
    _add_result_options(parser)
    parser.add_argument(
        "--no-replan",
        dest="replan",
        action="store_false",
        help="keep the plan, even if intermediates turn out larger or smaller than estimated",
    )
    _add_deterministic(parser)
    parser.set_defaults(command=LateFunction(_PROGRAM_COMMANDS, "run"))


def _add_deterministic(parser: argparse.ArgumentParser) -> None:
    """Add the option of runs and loops that give equal bits."""
    parser.add_argument(
        "--deterministic",
        action="store_true",
        help="aggregate in a fixed order, in one thread: runs on the same tables give bitwise equal results",
    )


def add_iterate(subparsers: Commands) -> None:
    """Add the command `iterate`, with its options and help text, to the commands of the parser."""
    parser = add_command(
        subparsers,
        "iterate",
        "run a program in steps that replace its state, until a condition holds",
        "sparseeinsum iterate --database graph.duckdb --until 'change < 1e-9' --history change pagerank.ein",
    )
    _add_program(parser)
    parser.add_argument("-n", "--steps", type=int, default=100, help="the most steps (default 100)")
    parser.add_argument("-u", "--until", metavar="CONDITION", help="ends the steps, as in 'loss < 0.1'")
    parser.add_argument(
        "--state",
        action="append",
        default=[],
        metavar="TENSOR=RESULT",
        help="a tensor that a step replaces, and the result that replaces it; by default what `state` lines declare",
    )
    parser.add_argument(
        "--into",
        action="append",
        default=[],
        metavar="TENSOR=NAME",
        help="keep the state of a tensor under another name; the tensor stays as it is",
    )
    parser.add_argument(
        "--history", action="append", default=[], metavar="RESULT", help="show this number of every step, such as loss"
    )
    parser.add_argument("--resume", action="store_true", help="go on where an earlier call ended")
    parser.add_argument(
        "--commit-seconds",
        type=float,
        default=1.0,
        metavar="SECONDS",
        help="store the state so often during the steps, so that a crash loses no more, but in at most a tenth of the "
        "time (default 1; 0: after every one)",
    )
    _add_deterministic(parser)
    parser.add_argument("--rows", type=int, help="number of rows of the history to show (default 10)")
    parser.set_defaults(command=LateFunction("sparseeinsum.cli.loops", "iterate"))


def _add_result_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what to print of results, and how."""
    parser.add_argument("--rows", type=int, help="number of rows of every table to show (default 10)")
    parser.add_argument("--result", metavar="NAME", help="print this result alone; it can be one that others read")
    parser.add_argument(
        "-f",
        "--format",
        choices=("table", "csv", "json", "arrow", "parquet"),
        help="table (default), or all rows of one result: as CSV; as a JSON array of objects, in which NaN and "
        "infinity are texts; as a stream of Arrow's IPC format; or as Parquet",
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        help="write to this file instead of standard output; if its name ends in .csv, .json, .arrow or .parquet, "
        "that is the format",
    )


def add_explain(subparsers: Commands) -> None:
    """Add the command `explain`, with its options and help text, to the commands of the parser."""
    parser = add_command(
        subparsers,
        "explain",
        "show the plan of a program: notation, schemas, estimated tuples and cost",
        "sparseeinsum explain --analyze --database graph.duckdb program.ein",
    )
    _add_program(parser)
    _add_plan_only_options(parser)
    parser.add_argument("--analyze", action="store_true", help="also run it, and show actual tuples and times")
    parser.add_argument("-f", "--format", choices=("table", "json"), help="tables (default), or one JSON object")
    parser.add_argument("--algebra", action="store_true", help="show the plan in the tensor relational algebra instead")
    parser.add_argument("--html", metavar="FILE", help="write an HTML page with a drawing of the plan instead")
    parser.add_argument("--save", metavar="FILE", help="also write the plan to a file, for --plan")
    parser.set_defaults(command=LateFunction(_PROGRAM_COMMANDS, "explain"))


def add_compile(subparsers: Commands) -> None:
    """Add the command `compile`, with its options and help text, to the commands of the parser."""
    parser = add_command(
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
        "--dialect",
        metavar="NAME",
        help="SQL or dbt models without arrays for tables of the same names in another engine, such as spark or sqlite",
    )
    parser.add_argument(
        "--dbt",
        metavar="DIR",
        help="write models into the dbt project in this folder instead, with tests that the plan is still exact",
    )
    parser.add_argument("--name", help="with --dbt, the prefix of models' names (default: the program file's name)")
    parser.set_defaults(command=LateFunction(_PROGRAM_COMMANDS, "compile_program"))


def add_check(subparsers: Commands) -> None:
    """Add the command `check`, with its options and help text, to the commands of the parser."""
    parser = add_command(
        subparsers,
        "check",
        "report errors of programs, as FILE:LINE:COLUMN: error: MESSAGE, and results and parameters that nothing reads",
        "sparseeinsum check --database graph.duckdb program.ein",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="file with program text; - reads standard input")
    parser.add_argument("-d", "--database", help="database with the tensors that the programs read")
    parser.add_argument(
        "-f", "--format", choices=("text", "json"), help="lines of text (default), or a JSON array of objects"
    )
    _add_set(parser)
    parser.set_defaults(command=LateFunction(_CHECK, "check"))


def add_shell(subparsers: Commands) -> None:
    """Add the command `shell`, with its options and help text, to the commands of the parser."""
    parser = add_command(
        subparsers,
        "shell",
        "start a prompt for SQL and programs, or run a script of them from standard input",
        "sparseeinsum shell graph.duckdb",
    )
    parser.add_argument(
        "database", nargs="?", help="a DuckDB file, or postgresql://...; by default a DuckDB database in memory"
    )
    parser.set_defaults(command=LateFunction(_SHELL, "shell"))

"""The command line: parsers of the commands that measure this machine, compile kernels and install extensions."""

from sparseeinsum.cli.parsers.command import Commands, LateFunction, add_command

_PROGRAM_COMMANDS = "sparseeinsum.cli.commands"
_DEMO = "sparseeinsum.cli.demo"
_COMPILE_KERNELS = "sparseeinsum.cli.compile_kernels"
_EXTENSIONS = "sparseeinsum.cli.extensions"
_SERVER_PROGRAM = "the server's pg_config; by default the one on the path"


def add_calibrate(subparsers: Commands) -> None:
    """Add the command `calibrate`, with its options and help text, to the commands of the parser."""
    parser = add_command(
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
    parser.set_defaults(command=LateFunction(_PROGRAM_COMMANDS, "calibrate"))


def add_demo(subparsers: Commands) -> None:
    """Add the command `demo`, with its options and help text, to the commands of the parser."""
    parser = add_command(
        subparsers,
        "demo",
        "run a two-layer graph convolutional network, check it, and compare plans",
        "sparseeinsum demo --data planetoid_cora.npz",
    )
    parser.add_argument("--data", help="graph to run on, an .npz file; by default a generated citation network")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each plan; the median is shown (default 3)")
    parser.add_argument("--train", action="store_true", help="train a graph network instead, and plot its loss")
    parser.add_argument("--steps", type=int, default=60, help="steps of --train (default 60)")
    parser.add_argument("--html", metavar="FILE", help="with --train: write an HTML page with the curves, too")
    parser.set_defaults(command=LateFunction(_DEMO, "demo"))


def add_compile_kernels(subparsers: Commands) -> None:
    """Add the command `compile-kernels`, with its options and help text, to the commands of the parser."""
    parser = add_command(
        subparsers,
        "compile-kernels",
        "compile the kernels now rather than when a database is first opened, or for the processor of this machine",
        "sparseeinsum compile-kernels --processor native",
    )
    parser.add_argument(
        "--processor",
        help="level such as x86-64-v3, or native for this machine, with a comparison (default: the best level)",
    )
    parser.set_defaults(command=LateFunction(_COMPILE_KERNELS, "compile_kernels"))


def add_build(subparsers: Commands) -> None:
    """Add the command `build`, with its options and help text, to the commands of the parser."""
    parser = add_command(
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
    parser.set_defaults(command=LateFunction(_EXTENSIONS, "build"))


def add_install(subparsers: Commands) -> None:
    """Add the command `install`, with its options and help text, to the commands of the parser."""
    parser = add_command(
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
    parser.set_defaults(command=LateFunction(_EXTENSIONS, "install"))


def add_remove(subparsers: Commands) -> None:
    """Add the command `remove`, with its options and help text, to the commands of the parser."""
    parser = add_command(
        subparsers,
        "remove",
        "remove the extension from this machine's server, or portable functions from a database; tensors stay",
        "sparseeinsum remove postgres --pg-config /usr/lib/postgresql/15/bin/pg_config",
    )
    parser.add_argument("server", choices=("postgres",), help="the database server")
    parser.add_argument("--pg-config", metavar="PATH", help=_SERVER_PROGRAM)
    parser.add_argument("--portable", metavar="DATABASE-URL", help="drop the portable functions of a database instead")
    parser.set_defaults(command=LateFunction(_EXTENSIONS, "remove"))

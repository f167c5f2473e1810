"""The command line: parsers of the commands that load, drop and measure tensors."""

from sparseeinsum.cli.parsers.command import TENSORS, Commands, LateFunction, add_command
from sparseeinsum.cli.parsers.option_values import bounds, dictionaries, names, number

_TENSOR_COMMANDS = "sparseeinsum.cli.tensor_commands"
_PROGRAM_COMMANDS = "sparseeinsum.cli.commands"


def add_load(subparsers: Commands) -> None:
    """Add the command `load`, with its options and help text, to the commands of the parser."""
    parser = add_command(
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
    parser.set_defaults(command=LateFunction(_TENSOR_COMMANDS, "load"))


def add_drop(subparsers: Commands) -> None:
    """Add the command `drop`, with its options and help text, to the commands of the parser."""
    parser = add_command(
        subparsers,
        "drop",
        "drop tensors, and the tables that they were loaded into; other tables, views and files stay",
        "sparseeinsum drop --database graph.duckdb A",
    )
    parser.add_argument("tensors", nargs="+", help="names of tensors")
    parser.add_argument("-d", "--database", required=True, help=TENSORS)
    parser.set_defaults(command=LateFunction(_TENSOR_COMMANDS, "drop"))


def add_grant(subparsers: Commands) -> None:
    """Add the command `grant`, with its options and help text, to the commands of the parser."""
    parser = add_command(
        subparsers,
        "grant",
        "let a PostgreSQL role list and add tensors, and change its own; rights to their tables are granted in SQL",
        "sparseeinsum grant analyst --database postgresql://owner@host/database",
    )
    parser.add_argument("role", help="name of the role, or public for all roles")
    parser.add_argument("-d", "--database", required=True, help="postgresql://..., as the owner of the catalogue")
    parser.set_defaults(command=LateFunction(_TENSOR_COMMANDS, "grant"))


def add_stats(subparsers: Commands) -> None:
    """Add the command `stats`, with its options and help text, to the commands of the parser."""
    parser = add_command(
        subparsers,
        "stats",
        "measure the tensors of a database: entries, and distinct indices of every axis",
        "sparseeinsum stats --database graph.duckdb A X",
    )
    parser.add_argument("tensors", nargs="*", help="names of tensors; all by default")
    parser.add_argument("-d", "--database", required=True, help=TENSORS)
    parser.set_defaults(command=LateFunction(_PROGRAM_COMMANDS, "stats"))

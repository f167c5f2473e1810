"""The command line: the parser of its arguments."""

from sparseeinsum.cli.parsers.command import RUN_EXAMPLE, CommandParser, add_verbosity
from sparseeinsum.cli.parsers.completion_options import CompletionAction
from sparseeinsum.cli.parsers.installation_parsers import (
    add_build,
    add_calibrate,
    add_compile_kernels,
    add_demo,
    add_install,
    add_remove,
)
from sparseeinsum.cli.parsers.model_parsers import add_load_network, add_load_weights, add_save_weights
from sparseeinsum.cli.parsers.program_parsers import (
    add_check,
    add_compile,
    add_explain,
    add_iterate,
    add_run,
    add_shell,
)
from sparseeinsum.cli.parsers.tensor_parsers import add_drop, add_grant, add_load, add_stats
from sparseeinsum.version import __version__

_COMMANDS = (
    add_load,
    add_run,
    add_iterate,
    add_explain,
    add_compile,
    add_check,
    add_shell,
    add_stats,
    add_drop,
    add_grant,
    add_load_weights,
    add_save_weights,
    add_load_network,
    add_calibrate,
    add_demo,
    add_compile_kernels,
    add_build,
    add_install,
    add_remove,
)


def command_parser() -> CommandParser:
    """The parser of the command line; `command` of what it returns is the function that runs the command."""
    parser = CommandParser(
        prog="sparseeinsum",
        description="Einstein summations over the tables of a DuckDB or PostgreSQL database.",
        epilog=f"example: {RUN_EXAMPLE}",
    )
    parser.add_argument("--version", action="version", version=f"sparseeinsum {__version__}")
    add_verbosity(parser, "verbosity")
    for option, function, text in (
        ("--show-completion", "write_script", "print the script that completes this command in a shell"),
        ("--install-completion", "install_script", "save that script where the shell looks for it"),
    ):
        parser.add_argument(option, action=CompletionAction, function=function, help=f"{text} (default: yours)")
    subparsers = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for add_to in _COMMANDS:
        add_to(subparsers)
    return parser

"""The command line: what the parsers of all commands share."""

import argparse
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from sparseeinsum.environment.extras import late

Commands: TypeAlias = "argparse._SubParsersAction[CommandParser]"
RUN_EXAMPLE = 'sparseeinsum run --database graph.duckdb --text "Y[i] = sum(A[i, j] * X[j])"'
TENSORS = "where the tensors are: a DuckDB file, or postgresql://..."
USAGE_STATUS = 2  # the exit status for words that are no command line


class CommandParser(argparse.ArgumentParser):
    """A parser whose errors are one line, as those of commands are."""

    def error(self, message: str) -> NoReturn:
        """Print the message to standard error, and exit with the status of a wrong command line."""
        self.exit(USAGE_STATUS, f"sparseeinsum: {message}; see {self.prog} --help\n")


@dataclass(frozen=True, slots=True)
class LateFunction:
    """A function that runs a command; its module is imported when the command runs.

    Attributes:
        module: The full name of the module.
        name: The name of the function, which takes the parsed arguments and returns the exit status; None is 0.
    """

    module: str
    name: str

    def __call__(self, arguments: argparse.Namespace) -> int | None:
        """Import the function, call it with the parsed arguments, and return its exit status."""
        status: int | None = getattr(late(self.module), self.name)(arguments)
        return status


def add_command(subparsers: Commands, name: str, text: str, example: str) -> CommandParser:
    """Add a command with its help text and an example."""
    description = f"{text[0].upper()}{text[1:]}."
    parser = subparsers.add_parser(name, help=text, description=description, epilog=f"example: {example}")
    add_verbosity(parser, "verbosity_of_command")
    return parser


def add_verbosity(parser: CommandParser, destination: str) -> None:
    """Add the option -v, which may be repeated; `destination` is the attribute that counts it."""
    text = "show on standard error what is done; -vv: with timings"
    parser.add_argument("-v", "--verbose", action="count", default=0, dest=destination, help=text)

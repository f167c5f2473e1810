"""The command line: runs one command over the public API, and turns errors into messages and exit statuses."""

import sys
from collections.abc import Sequence

from sparseeinsum import SparseEinsumError
from sparseeinsum.cli.arguments import command_parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: The words of the command line; by default those of this process.

    Returns:
        The exit status: 0, 1 after an error, whose message is printed, or 130 after Ctrl-C.
    """
    parsed = command_parser().parse_args(arguments)
    try:
        status: int | None = parsed.command(parsed)
    except (SparseEinsumError, OSError, ValueError) as error:
        print(f"sparseeinsum: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("sparseeinsum: stopped; the database is unchanged", file=sys.stderr)
        return 130
    return status or 0

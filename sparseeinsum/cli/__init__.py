"""The command line: runs one command over the public API, and turns errors into messages and exit statuses."""

import sys
from collections.abc import Sequence

from sparseeinsum.cli.arguments import command_parser
from sparseeinsum.cli.parsers.command import USAGE_STATUS
from sparseeinsum.cli.standard_output import accept_all_characters, discard_output
from sparseeinsum.cli.usage import UsageError
from sparseeinsum.cli.verbosity import shown_log
from sparseeinsum.errors import SparseEinsumError

_ERROR, _STOPPED, _UNREAD = 1, 130, 141  # as shells report SIGINT and SIGPIPE


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: The words of the command line; by default those of this process.

    Returns:
        The exit status: 0, 1 after an error, 2 if options do not go together, 130 after Ctrl-C, or 141 if the reader of
        the output went away. A message goes to standard error, except in the last case.
    """
    try:
        return _run(arguments)
    except BrokenPipeError:
        discard_output()
        return _UNREAD


def _run(arguments: Sequence[str] | None) -> int:
    try:
        accept_all_characters()
        parsed = command_parser().parse_args(arguments)
        with shown_log(parsed.verbosity + parsed.verbosity_of_command):
            status: int | None = parsed.command(parsed)
    except BrokenPipeError:
        raise
    except UsageError as error:
        return _failed(str(error), USAGE_STATUS)
    except (SparseEinsumError, OSError, ValueError) as error:
        return _failed(str(error), _ERROR)
    except KeyboardInterrupt:
        return _failed("stopped; the database is unchanged", _STOPPED)
    finally:
        sys.stdout.flush()
    return status or 0


def _failed(message: str, status: int) -> int:
    print(f"sparseeinsum: {message}", file=sys.stderr)
    return status

"""The command line: prepares standard output for all characters, and for readers that go away."""

import io
import os
import sys


def accept_all_characters() -> None:
    """Print escapes instead of characters that the encoding of standard output lacks."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def discard_output() -> None:
    """Ignore what is still to be printed: otherwise Python would complain when the process ends."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)

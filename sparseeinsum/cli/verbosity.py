"""The command line: shows what the package logs, on standard error."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)  # by the number of -v


@contextmanager
def shown_log(verbosity: int) -> Iterator[None]:
    """Show messages in the context: warnings; with one -v also what a run does, with two also timings."""
    logger = logging.getLogger("sparseeinsum")
    handler = _StandardError()
    handler.setFormatter(logging.Formatter("sparseeinsum: %(message)s"))
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(_LEVELS[min(verbosity, len(_LEVELS) - 1)])
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


class _StandardError(logging.Handler):
    """Writes to what standard error is at the time; a progress bar puts itself in its place."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record as a line."""
        print(self.format(record), file=sys.stderr)

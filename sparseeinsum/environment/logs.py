"""Logs: one logger `sparseeinsum`, with children by room and module, which show nothing until a user adds a handler."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

_ROOT = logging.getLogger("sparseeinsum")
_ROOT.addHandler(logging.NullHandler())


@contextmanager
def timed(logger: logging.Logger, stage: str) -> Iterator[None]:
    """Log at the level DEBUG how long the context took, unless it ends with an error."""
    if not logger.isEnabledFor(logging.DEBUG):
        yield
        return
    start = time.perf_counter()
    yield
    logger.debug("%s: %.1f ms", stage, (time.perf_counter() - start) * 1e3)

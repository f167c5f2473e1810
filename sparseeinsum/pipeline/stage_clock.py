"""Pipeline: measures how long the stages of planning take."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class StageClock:
    """Measures the seconds of stages.

    Attributes:
        seconds: The seconds of every stage so far, by name.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the seconds that the `with` block takes to those of the stage `name`."""
        start = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

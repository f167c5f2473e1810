"""The growth benchmark checks its results and tells times and memory of every kind of work."""

import pytest

from bench.growth import WORKS, measure


@pytest.mark.parametrize("kind", WORKS)
def test_small_sizes(kind: str) -> None:
    figures = measure(kind, 20)
    assert (figures.kind, figures.size) == (kind, 20)
    assert min(figures.loading, figures.planning, figures.run, figures.peer_seconds) > 0
    assert figures.memory > 10**7

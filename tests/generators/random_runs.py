"""How many random programs a test runs: at night its own number, by day a quarter of it; or what EXAMPLES says."""

import os

from hypothesis import HealthCheck, Phase, settings

_SHARE_OF_POSTGRESQL = 4  # a program takes several times as long on PostgreSQL
_AT_NIGHT = 100  # examples of a test that does not say how many; conftest.py says how many by day


def examples(number: int) -> int:
    """Return how many examples a test draws that draws `number` at night."""
    return int(os.environ.get("EXAMPLES", number * settings().max_examples // _AT_NIGHT))


def random_runs(number: int, engine: str = "duckdb") -> settings:
    """Run a test this many times at night, on PostgreSQL a quarter as often; failing programs are not shrunk."""
    share = _SHARE_OF_POSTGRESQL if engine == "postgresql" else 1
    return settings(
        max_examples=max(1, examples(number) // share),
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )

"""How many random programs a test runs: its own number, or for a longer search what EXAMPLES says."""

import os

from hypothesis import HealthCheck, Phase, settings

_SHARE_OF_POSTGRESQL = 4  # a program takes several times as long on PostgreSQL


def random_runs(number: int, engine: str = "duckdb") -> settings:
    """Run a test this many times, on PostgreSQL a quarter as often; failing programs are not shrunk."""
    examples = int(os.environ.get("EXAMPLES", number))
    share = _SHARE_OF_POSTGRESQL if engine == "postgresql" else 1
    return settings(
        max_examples=max(1, examples // share), suppress_health_check=list(HealthCheck), phases=[Phase.generate]
    )

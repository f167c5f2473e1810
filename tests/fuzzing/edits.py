"""Random edits of tables between and during runs: results are those of numpy for the tables as they are, or errors."""

import tempfile

from edited_tables import run_edits
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from fuzzing.targets import Target

EXAMPLES, EDITS = 5, 24  # sequences per number, and edits of each


def attack(number: int, target: Target) -> int:
    """Make some sequences of edits, the same for the same number; returns how many edits.

    Raises:
        AssertionError: A result differs from numpy's.
    """
    count = 0

    @seed(number)
    @settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        derandomize=False,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def run(data: st.DataObject) -> None:
        nonlocal count
        with tempfile.TemporaryDirectory() as folder, target.database() as db:
            count += run_edits(data, db, target.engine, folder, EDITS).edits

    run()
    return count

"""Random programs: results are those of numpy, whatever was chosen."""

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from program_cases import Case, check
from random_programs import FAMILIES, cases

from fuzzing.targets import Target

EXAMPLES = 10  # per number: hypothesis begins with the simplest


def attack(number: int, target: Target) -> int:
    """Run some programs, the same for the same number; returns how many.

    Raises:
        AssertionError: A result differs from numpy's, or something else than a refusal came.
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
        optimizer = data.draw(st.sampled_from(["dp", "dp", "greedy", "relational", "dense"]))
        case = data.draw(cases(data.draw(st.sampled_from(list(FAMILIES))), optimizer))
        if not _is_settled(case):
            return
        with target.database() as db:
            check(db, case)
        count += 1

    run()
    return count


def _is_settled(case: Case) -> bool:
    """Whether all complex numbers are finite: for others, libraries disagree on which part is NaN or infinite."""
    arrays = (*case.inputs.values(), *case.expected.values())
    return all(np.isfinite(array).all() for array in arrays if array.dtype.kind == "c")

"""Any program, any data: storage, decomposition and optimizer never change what numpy says."""

import os
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from random_programs import FAMILIES, Case, cases

import sparseeinsum as se

EXAMPLES = int(os.environ.get("EXAMPLES", "130"))
COUNTED: Counter[str] = Counter()  # programs run, by kind; conftest.py prints them


@pytest.mark.usefixtures("operators_are_free")  # or hardly a sum would be taken apart
@pytest.mark.parametrize("optimizer", ["dp", "greedy", "relational", "dense"])
@pytest.mark.parametrize("family", FAMILIES)
def test_results_are_numpys(shared_db: se.Database, family: str, optimizer: str) -> None:
    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    @given(st.data())
    def run(data: st.DataObject) -> None:
        case = data.draw(cases(family, optimizer))
        count(case, family)
        check(shared_db, case)

    run()


def check(db: se.Database, case: Case) -> None:
    case.load(db)
    try:
        found = case.run(db)
    except se.SparseEinsumError as error:
        assert may_be_refused(case, error), str(error)
        return
    assert case.nonfinite == "allow" or not must_be_refused(case)
    for name, result in found.items():
        wanted, computed = case.expected[name], result.to_numpy()
        assert (computed.shape, computed.dtype) == (wanted.shape, wanted.dtype), name
        np.testing.assert_allclose(computed, wanted, rtol=0, atol=case.tolerance(name), err_msg=name)


def may_be_refused(case: Case, error: Exception) -> bool:
    """Values that turn NaN or infinite, where that is not allowed; in a part, even where the rest hides it."""
    if case.nonfinite == "allow" or "turned NaN or infinite" not in str(error):
        return False
    is_of_part = re.search(r"T\d_\d+ turned", str(error)) is not None
    return case.turns_nonfinite or (is_of_part and may_hide(case))


def may_hide(case: Case) -> bool:
    """Whether parts of statements may turn NaN or infinite: those of three operands, and real parts of complex ones."""
    has_infinite_fill = any(np.isinf(fill) for fill in case.fills.values())
    return has_infinite_fill or any(
        array.dtype.kind == "c" for array in (*case.inputs.values(), *case.expected.values())
    )


def must_be_refused(case: Case) -> bool:
    """A first statement that makes values NaN or infinite out of finite ones, where it aggregates anything at all."""
    first = case.expected["T0"]
    if any(0 in array.shape for array in case.inputs.values()):
        return False
    is_given = all(np.isfinite(array).all() for array in case.inputs.values())
    return is_given and all(np.isfinite(fill) for fill in case.fills.values()) and not np.isfinite(first).all()


def count(case: Case, family: str) -> None:
    nonfinite = any(not np.isfinite(array).all() for array in case.inputs.values())
    kinds = {
        "in all": True,
        f"of {family}": True,
        f"by {case.optimizer}": True,
        f"of {case.text.count('=')} statements": False,
        "of several statements": len(case.expected) > 1,
        "with a fill that is not 0": any(fill != 0 for fill in case.fills.values()),
        "with labels promoted by hand": bool(case.pin),
        "with tiles pinned by hand": any(tile > 1 for tiles in case.pin.values() for tile in tiles.values()),
        "with tiles in the search": bool(case.tiles),
        "with inputs stored in tiles": any(tile > 1 for tiles in case.stored.values() for tile in tiles.values()),
        "with a bound of 0": any(0 in array.shape for array in case.inputs.values()),
        "with NaN or infinities in the inputs": nonfinite,
        "of three operands": any(line.count("[") > 3 for line in case.text.splitlines()),
    }
    COUNTED.update(kind for kind, holds in kinds.items() if holds)

"""Calls of einsum in tests of numpy and opt_einsum have the same results here, or are refused for a reason."""

import pickle

import numpy as np
import pytest

from bench.call_recorder import Call
from bench.foreign_suites import ACCEPTED, EQUAL, REFUSED, REFUSED_ALIKE, WRONG, record, replay

# Tests that take seconds; the benchmark runs all, and those of sparse.
SAMPLE = {
    "numpy._core.tests.test_einsum": "errors or sorting or views or misc or out_is_res or collapsing or path_e",
    "opt_einsum.tests.test_input": "",
    "opt_einsum.tests.test_edge_cases": "",
}


@pytest.mark.parametrize("tests", SAMPLE)
def test_sample(tests: str) -> None:
    outcomes = [replay(pickle.loads(call)) for call in record([tests], SAMPLE[tests]).calls.values()]
    assert [outcome for outcome in outcomes if outcome.kind == WRONG] == []
    kinds = [outcome.kind for outcome in outcomes]
    assert kinds.count(EQUAL) > 10
    assert kinds.count(REFUSED_ALIKE) > 5
    assert kinds.count(REFUSED) + kinds.count(ACCEPTED) < 0.1 * len(kinds)


def test_what_counts_as_wrong() -> None:
    arguments = ("i->", np.array([1, 2], "int8"))
    for result, kind in (
        (np.int8(3), EQUAL),
        (np.int64(3), WRONG),
        (np.int8(4), WRONG),
        (np.array([3], "int8"), WRONG),
    ):
        assert replay(Call("numpy.einsum", arguments, {}, None, result, ())).kind == kind
    assert replay(Call("numpy.einsum", arguments, {}, None, None, ("ValueError",))).kind == ACCEPTED
    assert replay(Call("numpy.einsum", ("i->", np.eye(2)), {}, None, np.float64(2), ())).kind == REFUSED

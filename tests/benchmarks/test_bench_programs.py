"""Every benchmark program has a name and computes what its reference computes."""

import numpy as np
import pytest
from numpy.typing import NDArray

import sparseeinsum as se
from bench.programs import PROGRAMS, Case, small_source
from bench.sparse_programs import SPARSE_PROGRAMS
from sparseeinsum.semantics.dense import evaluate_program

SHARE = 0.02


def dense(case: Case, name: str) -> NDArray[np.float64]:
    data = case.inputs[name]
    if isinstance(data, np.ndarray):
        return data
    entries = data.tocoo()
    array = np.full(entries.shape, case.fills.get(name, 0.0))
    array[tuple(entries.coords)] = entries.data
    return array


@pytest.mark.parametrize("name", [*PROGRAMS, *SPARSE_PROGRAMS])
def test_program(name: str) -> None:
    case = {**PROGRAMS, **SPARSE_PROGRAMS}[name](small_source(SHARE))
    assert case.name == name
    program = se.program(case.text)
    expected = evaluate_program(program, {tensor: dense(case, tensor) for tensor in case.inputs})
    with case.database() as database:
        results = database.run(program, progress=False)
    assert results
    for tensor, result in results.items():
        np.testing.assert_allclose(result.to_numpy(), expected[tensor], rtol=1e-9, atol=1e-9, err_msg=tensor)
        assert np.ptp(expected[tensor]) > 0 or not expected[tensor].shape, f"{tensor} is the same everywhere"


def test_there_are_twenty_programs_of_each_kind() -> None:
    assert len(PROGRAMS) == len(SPARSE_PROGRAMS) == 20
    assert PROGRAMS.keys().isdisjoint(SPARSE_PROGRAMS)

"""Workloads of the peers: libraries, SQL and our programs compute what numpy does, and the table has a row for each."""

import io
from contextlib import ExitStack, suppress

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from rich.console import Console

import sparseeinsum as se
from bench.peers.libraries import DISTRIBUTIONS, Library, UnavailableError
from bench.peers.racing import OURS, PLANNING, PREPARED, Race, Turns, race_workload
from bench.peers.reporting import table
from bench.peers.results import entries, same
from bench.peers.unfolding import Fibres
from bench.peers.workloads import Workload, makers
from sparseeinsum.semantics.dense import evaluate_program

PEERS = ("scipy", "numpy", "DuckDB")
WORKLOADS = {workload.kind: workload for workload in (make() for make in makers("tiny", None))}


@pytest.fixture(scope="module")
def libraries() -> dict[str, Library]:
    return {other.name: other.library(2) for other in DISTRIBUTIONS if other.name in PEERS}


def dense(workload: Workload, name: str) -> NDArray[np.float64]:
    data = workload.inputs[name]
    if isinstance(data, np.ndarray):
        return data
    array = np.full(data.shape, workload.fills.get(name, 0.0))
    array[tuple(data.coords)] = data.data
    return array


def by_numpy(workload: Workload) -> NDArray[np.float64]:
    arrays = {name: dense(workload, name) for name in workload.inputs}
    *_, result = evaluate_program(se.program(workload.program), arrays).values()
    return np.asarray(result)


def test_arrays_compute_what_numpy_does_on_dense_ones(libraries: dict[str, Library]) -> None:
    for workload in WORKLOADS.values():
        expected, computed = entries(by_numpy(workload)), []
        assert len(expected[0]), workload.name
        for name in ("scipy", "numpy"):
            with ExitStack() as stack, suppress(UnavailableError):
                result = libraries[name].prepare(workload, stack)()
                assert same(libraries[name].plain(result, workload), expected), f"{workload.name}: {name}"
                computed.append(name)
        assert computed, workload.name  # the first is what a race compares others with


def test_a_race_has_a_row_for_every_workload(libraries: dict[str, Library]) -> None:
    races = [race_workload(workload, [*libraries.values()], 2, Turns(1, 0.5, 0)) for workload in WORKLOADS.values()]
    for race in races:
        seconds = {figure.contender: figure.seconds for figure in race.figures}
        assert seconds.keys() | race.unavailable.keys() == {OURS, PREPARED, PLANNING, *PEERS}
        assert "wrong" not in race.unavailable.values()
        assert min(seconds.values()) > 0
        fastest = min(seconds[peer] for peer in PEERS if peer in seconds)
        for contender in (OURS, PREPARED):
            assert race.ratio(contender) == pytest.approx(seconds[contender] / fastest)
    text = printed(races)
    for workload in WORKLOADS.values():
        assert workload.kind.split()[0] in text
    assert "torch is missing: pip install torch" in text


def printed(races: list[Race]) -> str:
    console = Console(width=200, file=io.StringIO(), color_system=None)
    console.print(table(races, [*PEERS, "torch"], {"torch": "torch"}))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_wrong_result_is_no_peer(libraries: dict[str, Library]) -> None:
    workload = WORKLOADS["SpMM"]
    slower = libraries["scipy"]
    wrong = Library("wrong", lambda workload, stack: lambda: np.ones(workload.shape), lambda result, _: result)
    race = race_workload(workload, [slower, wrong], 2, Turns(1, 0.5, 0))
    assert race.best == "scipy"
    assert race.unavailable == {"wrong": "wrong"}


def test_results_of_all_forms_are_compared() -> None:
    array = np.array([[0.0, 1.0, 2.0], [0.0, 0.0, 0.0], [3.0, 0.0, 4.0]])
    expected = entries(array)
    assert same(sp.csr_array(array), expected)
    assert same(Fibres(np.array([2, 0]), array[[2, 0]]), expected)
    assert same(array * (1 + 1e-12), expected)
    assert not same(array * (1 + 1e-6), expected)
    assert not same(sp.csr_array(array.T), expected)
    assert not same(array[:1], expected)

"""Partitions made by simple rules are priced correctly, and never beat those that the search finds."""

import itertools
from dataclasses import replace

import pytest
from partitioned_programs import bounds_of, small_tasks, task_of

import sparseeinsum as se
from sparseeinsum.api.examples import FEED_FORWARD, MULTI_HEAD_ATTENTION
from sparseeinsum.decompose.eindecomp.baselines import even_choices, named_scheme, scheme_choices
from sparseeinsum.decompose.eindecomp.partition_vectors import pieces_of
from sparseeinsum.decompose.eindecomp.vector_search import TransferTask, search

ATTENTION = {"X": (64, 48), **dict.fromkeys(("WQ", "WK", "WV"), (48, 8, 6)), "WO": (8, 6, 48)}
TRAINING = (
    "H[b, h] = relu(sum(X[b, m] * W1[m, h]))\n"
    "D[b, o] = sum(H[b, h] * W2[h, o]) - L[b, o]\n"
    "G2[h, o] = sum(H[b, h] * D[b, o])\n"
    "E[b, h] = sum(D[b, o] * W2[h, o]) * (H[b, h] > 0)\n"
    "G1[m, h] = sum(X[b, m] * E[b, h])\n"
    "V1[m, h] = W1[m, h] - 0.1 * G1[m, h]\n"
    "V2[h, o] = W2[h, o] - 0.1 * G2[h, o]\n"
)
NETWORK = {"X": (128, 64), "W1": (64, 32), "W2": (32, 16), "L": (128, 16)}


def pieces(task: TransferTask, name: str) -> list[dict[str, int]]:
    """All vectors that a result may have, by label."""
    graph = task.model.graph
    einsum = graph.producer_of(name)
    assert einsum is not None
    bounds = bounds_of(graph, einsum)
    return [dict(zip(einsum.labels, pieces_of(tiles, bounds), strict=True)) for tiles in task.choices[name]]


def with_scheme(task: TransferTask, workers: int, **axes: int | str) -> TransferTask:
    graph = task.model.graph
    return replace(task, choices=scheme_choices(graph, workers, named_scheme(graph, axes)))


def test_even_vectors_of_a_product_are_those_of_the_3d_algorithm() -> None:
    task = task_of("Z[i, k] = sum(X[i, j] * Y[j, k])", 64, {"X": (64, 64), "Y": (64, 64)})
    even = replace(task, choices=even_choices(task.model.graph, 64))
    assert pieces(even, "Z") == [{"i": 4, "j": 4, "k": 4}]


def test_data_parallel_cuts_every_einsum_that_has_the_batch() -> None:
    task = with_scheme(task_of(TRAINING, 8, NETWORK), 8, X=0)
    for name in ("H", "E", "G1", "G2"):
        (vector,) = pieces(task, name)
        assert vector == dict.fromkeys(vector, 1) | {"b": 8}
    assert len(pieces(task, "V1")) > 1  # does not depend on weights


def test_data_parallel_adds_up_gradients() -> None:
    task = with_scheme(task_of(TRAINING, 8, NETWORK), 8, X=0)
    optimum = search(task)
    gradient = task.model.graph.producer_of("G1")
    assert gradient is not None
    assert task.model.moved(gradient, optimum.best["G1"]).aggregation == 7 * 64 * 32


def test_heads_are_cut_where_there_are_heads() -> None:
    task = with_scheme(task_of(MULTI_HEAD_ATTENTION, 4, ATTENTION), 4, WQ=1)
    for name in ("Q", "K", "V", "O"):
        assert all(vector["h"] == 4 for vector in pieces(task, name))


def test_more_workers_than_heads_cut_another_label_too() -> None:
    task = with_scheme(task_of(MULTI_HEAD_ATTENTION, 32, ATTENTION), 32, WQ=1)
    assert {vector["h"] for vector in pieces(task, "Q")} == {8}
    assert {vector["s"] for vector in pieces(task, "Q")} == {1, 2, 4}


def test_sequences_are_cut_along_the_label_of_the_result() -> None:
    """Scores have two labels along the sequence."""
    task = with_scheme(task_of(MULTI_HEAD_ATTENTION, 4, ATTENTION), 4, X="dim_0")
    scores = next(einsum for einsum in task.model.graph.einsums if set(einsum.output.labels) == {"h", "s", "t"})
    assert {(vector["s"], vector["t"]) for vector in pieces(task, scores.output.tensor)} == {(4, 1)}


def test_of_two_axes_the_first_is_cut() -> None:
    task = task_of(FEED_FORWARD, 4, {"X": (64, 32), "W1": (32, 16), "B1": (16,), "W2": (16, 8), "B2": (8,)})
    first, second = with_scheme(task, 4, X=0, W1=1), with_scheme(task, 4, W1=1, X=0)
    assert {(vector["b"], vector["n"]) for vector in pieces(first, "H")} == {(4, 1)}
    assert {(vector["b"], vector["n"]) for vector in pieces(second, "H")} == {(1, 4)}


def test_no_scheme_moves_fewer_floats_than_the_best_vectors() -> None:
    for task in itertools.islice(small_tasks(is_tree=False, count=30, workers=4), 10):
        graph = task.model.graph
        best = task.floats(search(task).best)
        assert best <= task.floats(search(task.narrowed(even_choices(graph, 4))).best)
        for name, tensor in graph.tensors.items():
            for axis in range(len(tensor.axes)):
                scheme = replace(task, choices=scheme_choices(graph, 4, [(name, axis)]))
                assert best <= task.floats(search(scheme).best) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"Q": 0}, "Q is cut, which the program does not have; it has X, W1"),
        ({"X": 2}, "X is cut along axis 2; it has dim_0, dim_1, by name, or by position from 0"),
        ({"X": "batch"}, "X is cut along axis 'batch'"),
    ],
)
def test_missing_axes_are_refused(axes: dict[str, int | str], message: str) -> None:
    graph = task_of(TRAINING, 4, NETWORK).model.graph
    with pytest.raises(se.PlanError, match=message):
        named_scheme(graph, axes)

"""The replay of a partitioned program moves what real workers move, and what the search priced."""

import itertools
import math
import random
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from partitioned_execution import Cluster
from partitioned_programs import all_vectors, small_tasks, task_of, tiles_of
from random_runs import examples

import sparseeinsum as se
from sparseeinsum.api.examples import FEED_FORWARD, MATRIX_CHAIN, MULTI_HEAD_ATTENTION
from sparseeinsum.decompose.eindecomp.moves import Moves
from sparseeinsum.decompose.eindecomp.moves_search import search_moves
from sparseeinsum.decompose.eindecomp.partitioning import Partitioning, least_partition, partition_graph
from sparseeinsum.decompose.eindecomp.replay import KINDS, Replay, replay, replay_choices
from sparseeinsum.decompose.eindecomp.sendings import shared_tensors
from sparseeinsum.decompose.eindecomp.vector_search import TransferTask, Vectors, search
from sparseeinsum.decompose.places.blocks import BlockPlacement, Blocks
from sparseeinsum.decompose.places.distribution import Central, Distribution, Hashed, Replicated, Scattered
from sparseeinsum.decompose.places.traffic import sent_copies
from sparseeinsum.decompose.short_lists import search_in_lists
from sparseeinsum.semantics.dense import evaluate_program
from sparseeinsum.statistics.estimate import Statistics

CASES: dict[str, tuple[str, dict[str, tuple[int, ...]]]] = {
    "chain": (MATRIX_CHAIN, {"A": (8, 4), "B": (4, 16), "C": (8, 2), "D": (2, 8), "E": (8, 16)}),
    "ragged": ("Z[i, k] = sum(X[i, j] * Y[j, k])\nW[k, i] = max(Z[i, l] + Z[l, k])", {"X": (7, 5), "Y": (5, 7)}),
    "feed forward": (FEED_FORWARD, {"X": (6, 8), "W1": (8, 4), "B1": (4,), "W2": (4, 5), "B2": (5,)}),
    "attention": (
        MULTI_HEAD_ATTENTION,
        {"X": (4, 6), **dict.fromkeys(("WQ", "WK", "WV"), (6, 2, 3)), "WO": (2, 3, 6)},
    ),
    "diagonal": ("T[i] = A[i, i] * B[i]\nS[] = sum(T[i] * B[j])\nU[j] = S[] * B[j]", {"A": (8, 8), "B": (8,)}),
    "empty": ("Z[i, k] = sum(X[i, j] * Y[j, k])\nW[k] = sum(Z[i, k])", {"X": (0, 3), "Y": (3, 4)}),
}


def drawn(task: TransferTask | Moves, rng: random.Random) -> Vectors:
    return {name: rng.choice(choices) for name, choices in task.choices.items()}


def as_partitioned(task: TransferTask, vectors: Vectors, workers: int) -> Partitioning:
    return partition_graph(task, vectors, workers)


@pytest.mark.parametrize("name", CASES)
def test_workers_move_what_the_replay_counts(name: str) -> None:
    text, shapes = CASES[name]
    inputs = {tensor: np.random.default_rng(0).standard_normal(shape) for tensor, shape in shapes.items()}
    rng = random.Random(0)
    for workers in (1, 2, 4, 8, 3, 6):
        task = task_of(text, workers, shapes)
        expected = evaluate_program(task.model.graph, inputs)
        for vectors in (search(task).best, *(drawn(task, rng) for _ in range(5))):
            moves = Moves.of_vectors(task.model, {result: (tiles,) for result, tiles in vectors.items()}, workers)
            best = replay(task.model, as_partitioned(task, vectors, workers)).choices
            for choices in (best, drawn(moves, rng)):
                cluster = Cluster(moves, choices, inputs)
                for result, array in cluster.run().items():
                    np.testing.assert_allclose(array, expected[result], rtol=1e-12, atol=1e-12)
                assert_moved(replay_choices(moves, choices), cluster)


def assert_moved(replayed: Replay, cluster: Cluster) -> None:
    for kind in KINDS:
        traffic = replayed.traffic[kind]
        sent, received = np.zeros_like(traffic.sent), np.zeros_like(traffic.sent)
        for (of, source, target), floats in cluster.moved.items():
            if of == kind:
                sent[source] += floats
                received[target] += floats
        np.testing.assert_allclose(traffic.received, received, rtol=1e-12)
        if shared_tensors(cluster.moves.graph):  # several workers have what others lack, and the replay takes of all
            np.testing.assert_allclose(traffic.sent.sum(), sent.sum(), rtol=1e-12)
        else:
            np.testing.assert_allclose(traffic.sent, sent, rtol=1e-12)


@pytest.mark.parametrize("name", ["chain", "feed forward", "attention"])
def test_costs_are_upper_bounds_of_transfers(name: str) -> None:
    text, shapes = CASES[name]
    rng = random.Random(1)
    for workers in (2, 4, 8, 5, 12):
        task = task_of(text, workers, shapes)
        for _ in range(20):
            partitioning = as_partitioned(task, drawn(task, rng), workers)
            replayed = replay(task.model, partitioning)
            assert replayed.traffic["join"].floats + replayed.traffic["repartition"].floats <= partitioning.join
            assert replayed.traffic["aggregation"].floats == pytest.approx(partitioning.aggregation, rel=1e-12)


def test_a_product_by_rows_moves_one_operand_to_all_others() -> None:
    task = task_of("Z[i, k] = sum(X[i, j] * Y[j, k])", 4, {"X": (8, 8), "Y": (8, 8)})
    replayed = replay(task.model, as_partitioned(task, {"Z": tiles_of(task, "Z", i=4)}, 4))
    np.testing.assert_array_equal(replayed.traffic["join"].received, [0, 64, 64, 64])
    np.testing.assert_array_equal(replayed.traffic["join"].sent, [192, 0, 0, 0])
    np.testing.assert_array_equal(replayed.operations, [128] * 4)
    assert (replayed.total.floats, replayed.imbalance) == (192, 1)


def test_a_tensor_that_several_operands_read_is_sent_once() -> None:
    """To all workers for two products; and from rows, where one statement reads it, to columns for another."""
    task = task_of(
        "Y[i, k] = sum(X[i, j] * A[j, k])\nZ[i, k] = sum(X[i, j] * B[j, k])", 4, dict.fromkeys("XAB", (8, 8))
    )
    by_columns = {name: tiles_of(task, name, k=4) for name in "YZ"}
    replayed = replay(task.model, as_partitioned(task, by_columns, 4))
    assert (replayed.total.floats, replayed.moved["Y"].read, replayed.moved["Z"].read) == (192, (192, 0), (0, 0))
    task = task_of("Y[i, k] = exp(X[i, k])\nZ[i, k] = relu(X[i, k])", 4, {"X": (8, 8)})
    across = {"Y": tiles_of(task, "Y", i=4), "Z": tiles_of(task, "Z", k=4)}
    assert replay(task.model, as_partitioned(task, across, 4)).total.floats == 48


def test_heads_of_attention_share_their_input() -> None:
    """One head a worker: X goes to the three others once, and three partial results of the output to the fourth."""
    shapes = {"X": (32, 16), **dict.fromkeys(("WQ", "WK", "WV"), (16, 4, 8)), "WO": (4, 8, 16)}
    partitioned = se.partition(MULTI_HEAD_ATTENTION, 4, shapes)
    by_heads = partitioned.replay(partitioned.along({"WQ": 1})).total.floats
    assert partitioned.moved <= by_heads == 2 * 3 * 32 * 16


def test_results_with_unchanged_partitions_are_not_moved() -> None:
    task = task_of("Z[i, k] = relu(X[i, k])\nW[i, k] = exp(Z[i, k])", 8, {"X": (64, 64)})
    for vectors in all_vectors(task):
        replayed = replay(task.model, as_partitioned(task, vectors, 8))
        assert (replayed.total.floats == 0) == (vectors["Z"] == vectors["W"])


def test_sparse_tensors_move_their_entries() -> None:
    sparse = Statistics(16.0, (8.0, 8.0), (8, 8))
    task = task_of("Z[i, k] = sum(X[i, j] * Y[j, k])\nW[k] = sum(Z[i, k])", 4, {"X": (8, 8)}, Y=sparse)
    partitioning = as_partitioned(task, {"Z": tiles_of(task, "Z", i=4), "W": tiles_of(task, "W", k=4)}, 4)
    replayed = replay(task.model, partitioning)
    floats = task.model.floats("Z")
    assert 0 < floats < 64
    assert replayed.traffic["join"].floats == pytest.approx(3 * 16)
    assert replayed.traffic["repartition"].floats == pytest.approx(floats * 3 / 4)


def test_replays_of_sparse_tensors_keep_to_the_costs() -> None:
    for task in itertools.chain(small_tasks(True, 40, 8), small_tasks(False, 20, 8)):
        partitioning = least_partition(task, 8)
        moved = replay(task.model, partitioning).traffic
        assert moved["aggregation"].floats == pytest.approx(partitioning.aggregation)


@given(st.data())
def test_inputs_are_sent_from_where_they_are_stored(data: st.DataObject) -> None:
    """Workers receive what they lack, of inputs that are cut along an axis, everywhere, or on no worker."""
    shape, workers = data.draw(st.tuples(st.integers(1, 9), st.integers(1, 9))), data.draw(st.integers(1, 6))
    places: tuple[Distribution, ...] = (Hashed(0), Hashed(1), Replicated(), Scattered(), Central())
    stored, needed = (
        BlockPlacement.of_distribution(data.draw(st.sampled_from(places)), shape, workers).blocks(shape, workers)
        for _ in range(2)
    )
    traffic = sent_copies(stored, needed, 1.0)
    owned, required = ([set(indices_of(blocks, worker)) for worker in range(workers)] for blocks in (stored, needed))
    assert traffic.received.tolist() == [len(required[worker] - owned[worker]) for worker in range(workers)]
    if set().union(*owned) == set(np.ndindex(*shape)):
        assert traffic.sent.sum() == pytest.approx(traffic.received.sum())
    assert np.isfinite(traffic.sent).all()


def indices_of(blocks: Blocks, worker: int) -> Iterator[tuple[int, ...]]:
    (*starts, _), (*ends, has_block) = (of.T[worker].astype(int).tolist() for of in (blocks.starts, blocks.ends))
    return itertools.product(*map(range, starts, ends)) if has_block else iter(())


def test_a_thousand_workers() -> None:
    task = task_of(MATRIX_CHAIN, 1024, dict.fromkeys("ABCDE", (4096, 4096)))
    partitioning = least_partition(task, 1024)
    replayed = replay(task.model, partitioning)
    assert len(replayed.operations) == 1024
    assert 0 < replayed.total.floats < partitioning.floats
    assert replayed.total.sent.sum() == replayed.total.received.sum()
    assert replayed.imbalance == 1


def test_costs_of_choices_are_what_their_replay_counts() -> None:
    rng = random.Random(2)
    for task in itertools.chain(small_tasks(True, 20, 6), small_tasks(False, 20, 6)):
        moves = Moves.of_vectors(task.model, task.choices, 6)
        (best,) = search_in_lists(moves, moves.vertices, 1, math.inf).candidates
        assert replay_choices(moves, dict(best.choices)).total.floats == pytest.approx(best.cost, rel=1e-9, abs=1e-9)
        assert best.cost <= replay_choices(moves, drawn(moves, rng)).total.floats * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("workers", [2, 3, 4, 6])
def test_fewest_moves_by_brute_force(workers: int) -> None:
    """Every vector, numbering and place of results of small graphs, trees or not."""
    count = 0
    number = examples(120)
    for task in itertools.chain(small_tasks(True, number, workers, 100), small_tasks(False, number, workers, 100)):
        moves = Moves.of_vectors(task.model, task.choices, workers)
        if math.prod(map(len, moves.choices.values())) > 250:
            continue
        best = next(search_moves(task, workers))
        fewest = min(
            replay_choices(moves, dict(zip(moves.choices, choices, strict=True))).total.floats
            for choices in itertools.product(*moves.choices.values())
        )
        moved = replay(task.model, partition_graph(task, best, workers)).total.floats
        assert moved == pytest.approx(fewest, rel=1e-9, abs=1e-9)
        count += 1
    assert count > 5


@pytest.mark.parametrize("workers", [4, 16])
def test_other_assignments_move_little_more(workers: int) -> None:
    task = task_of(MATRIX_CHAIN, workers, dict.fromkeys("ABCDE", (640, 640)))
    assignments = list(itertools.islice(search_moves(task, workers), 4))
    assert len({tuple(vectors.items()) for vectors in assignments}) == len(assignments) > 1
    graphs = [partition_graph(task, vectors, workers) for vectors in assignments]
    moved = [replay(task.model, graph).total.floats for graph in graphs]
    assert moved == pytest.approx(sorted(moved))
    assert moved[-1] <= 1.25 * moved[0] * (1 + 1e-9)
    best = next(search_moves(task, workers))
    assert replay(task.model, partition_graph(task, best, workers)).total.floats == pytest.approx(moved[0])

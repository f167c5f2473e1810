"""Programs to partition, and what the formulas of the EinDecomp paper say of them, written down once more."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from evaluated_programs import evaluated
from planning_problems import drawn

from sparseeinsum.decompose.eindecomp.partition_vectors import pieces_of, viable_choices
from sparseeinsum.decompose.eindecomp.transfer import TransferModel
from sparseeinsum.decompose.eindecomp.vector_search import TransferTask, Vectors
from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.statistics.estimate import Statistics, dense_statistics, estimate

Shape = tuple[int, ...]


def task_of(text: str, workers: int, shapes: Mapping[str, Shape], **sparse: Statistics) -> TransferTask:
    """The search task of a program with dense inputs, and sparse inputs of the given statistics."""
    statistics = {name: dense_statistics(shape) for name, shape in shapes.items()} | sparse
    graph, evaluations = evaluated(text, statistics)
    model = TransferModel(graph, estimate(graph, statistics, evaluations), evaluations)
    return task_of_model(model, workers)


def task_of_model(model: TransferModel, workers: int) -> TransferTask:
    return TransferTask(
        model,
        {
            einsum.output.tensor: viable_choices(bounds_of(model.graph, einsum), workers)
            for einsum in model.graph.einsums
        },
    )


def bounds_of(graph: EinGraph, einsum: EinSum) -> list[int]:
    return [graph.bound_of(einsum, label) for label in einsum.labels]


def tiles_of(task: TransferTask, name: str, **pieces: int) -> tuple[int, ...]:
    """The choice that cuts labels into these numbers of pieces."""
    graph = task.model.graph
    einsum = graph.producer_of(name)
    assert einsum is not None
    bounds = bounds_of(graph, einsum)
    counts = [pieces.get(label, 1) for label in einsum.labels]
    return tuple(-(-bound // count) if count > 1 else 0 for bound, count in zip(bounds, counts, strict=True))


def small_tasks(is_tree: bool, count: int, workers: int, most: int = 3000) -> Iterator[TransferTask]:
    """Random programs on sparse inputs with few enough vectors to try all combinations."""
    for problem in drawn(is_tree, count):
        model = TransferModel(problem.model.graph, problem.model.statistics, problem.model.evaluations)
        task = task_of_model(model, workers)
        if math.prod(map(len, task.choices.values())) <= most:
            yield task


def all_vectors(task: TransferTask) -> Iterator[Vectors]:
    """Every way to give all EinSums vectors."""
    for vectors in itertools.product(*task.choices.values()):
        yield dict(zip(task.choices, vectors, strict=True))


def floats_of_paper(graph: EinGraph, vectors: Vectors) -> float:
    """Section 7 for dense tensors whose bounds are powers of two, as it is printed, with the errata."""
    total = 0.0
    pieces: dict[str, list[int]] = {}
    for einsum in graph.einsums:
        bounds = bounds_of(graph, einsum)
        d = dict(zip(einsum.labels, pieces_of(vectors[einsum.output.tensor], bounds), strict=True))
        b = dict(zip(einsum.labels, bounds, strict=True))
        p = math.prod(d.values())
        total += p * sum(_sub_tensor(operand.labels, b, d) for operand in einsum.operands)
        n_agg = math.prod(d[label] for label in einsum.aggregated)
        total += p / n_agg * (n_agg - 1) * _sub_tensor(einsum.output.labels, b, d)
        for operand in einsum.operands:
            if operand.tensor in pieces:
                shape = [b[label] for label in operand.labels]
                total += _repartition(shape, pieces[operand.tensor], [d[label] for label in operand.labels])
        pieces[einsum.output.tensor] = [d[label] for label in einsum.output.labels]
    return total


def _sub_tensor(labels: Sequence[str], b: Mapping[str, int], d: Mapping[str, int]) -> float:
    return math.prod(b[label] / d[label] for label in labels)


def _repartition(bound: Sequence[int], d_z: Sequence[int], d_x: Sequence[int]) -> float:
    n_p = math.prod(b / d for b, d in zip(bound, d_z, strict=True))
    n_c = math.prod(b / d for b, d in zip(bound, d_x, strict=True))
    n_int = math.prod(min(b / z, b / x) for b, z, x in zip(bound, d_z, d_x, strict=True))
    n = math.prod(bound)
    return (n_c / n_int - 1) * n / n_c * (n_c + n_p) + (n_p * n / n_c if n_p != n_int else 0)

"""EinDecomp: the partition vectors that move the fewest floats, rather than those of the least bound of the paper.

The bound assumes that no worker has what its calls read. So its optimum may move more than vectors with a higher bound,
such as those that cut all labels alike. Here vectors, the numbers of the workers that run calls, and the places of
results are chosen together: first with one numbering of calls, to find good vectors, then with all numberings of these
vectors and of those that common rules make. Each of the two searches is exact unless its tables grow too large.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.eindecomp.baselines import even_choices, scheme_choices
from sparseeinsum.decompose.eindecomp.moves import Moves, exact_moves, fewest_moves
from sparseeinsum.decompose.eindecomp.vector_search import TransferTask, VectorAssignment, Vectors, search
from sparseeinsum.decompose.search_tasks import Candidate
from sparseeinsum.language.eingraph import EinSum

_BEAM = 64  # the most vectors of an EinSum: those of the least bounds
_COARSE = 8  # assignments of vectors whose numberings are searched
_PER_ASSIGNMENT = 4  # candidates to search for every assignment, as several have the same vectors


def search_moves(task: TransferTask, workers: int, k: int = 1) -> list[VectorAssignment]:
    """The k assignments of vectors found that move the fewest floats, best first.

    Args:
        task: The possible vectors; `floats` of a result is the bound of its vectors.
        workers: The number of workers.
        k: The number of assignments.
    """
    coarse = fewest_moves(Moves.of_vectors(task.model, _beam(task), workers, is_coarse=True), _COARSE)
    promising = [*map(_vectors, coarse), *filter(partial(_is_allowed, task), _rules(task, workers))]
    union = {name: dict.fromkeys(vectors[name] for vectors in promising) for name in task.choices}
    candidates = exact_moves(Moves.of_vectors(task.model, union, workers), _PER_ASSIGNMENT * k)
    if candidates is None:
        single = [{name: (tiles,) for name, tiles in vectors.items()} for vectors in promising]
        moves = [Moves.of_vectors(task.model, vectors, workers) for vectors in single]
        candidates = sorted(candidate for choices in moves for candidate in fewest_moves(choices, 1))
    distinct = dict.fromkeys(tuple(_vectors(candidate).items()) for candidate in candidates)
    assignments = [dict(vectors) for vectors in distinct][:k]
    return [VectorAssignment(vectors, task.floats(vectors), is_optimal=False) for vectors in assignments]


def _beam(task: TransferTask) -> Mapping[str, Sequence[Choice]]:
    """The vectors of every EinSum that move least if no worker has any of its operands."""
    model = task.model

    def bound(einsum: EinSum, tiles: Choice) -> float:
        return model.moved(einsum, tiles).floats

    return {
        einsum.output.tensor: heapq.nsmallest(_BEAM, task.choices[einsum.output.tensor], partial(bound, einsum))
        for einsum in model.graph.einsums
    }


def _vectors(candidate: Candidate) -> Vectors:
    """The vectors of a candidate among `Moves`."""
    return {name: choice[:-2] for name, choice in candidate.choices}


def _is_allowed(task: TransferTask, vectors: Vectors) -> bool:
    """Whether all vectors are among those of the task, such as those of labels that are pinned."""
    return all(tiles in task.choices[name] for name, tiles in vectors.items())


def _rules(task: TransferTask, workers: int) -> Iterator[Vectors]:
    """The vectors of the least bound, of SQRT, and of a cut along each axis of an input."""
    graph = task.model.graph
    yield search(task).vectors
    yield search(replace(task, choices=even_choices(graph, workers))).vectors
    computed = {einsum.output.tensor for einsum in graph.einsums}
    for name, tensor in graph.tensors.items():
        for axis in range(len(tensor.axes)) if name not in computed else ():
            yield search(replace(task, choices=scheme_choices(graph, workers, [(name, axis)]))).vectors

"""EinDecomp: the partition vectors that move the fewest floats, rather than those of the least bound of the paper.

The bound assumes that no worker has what its calls read. So its optimum may move more than vectors with a higher bound,
such as those that cut all labels alike. Here vectors, the numbers of the workers that run calls, and the places of
results are chosen together. If there are many vectors, they are searched first with one numbering of calls, and then
the best of them, and those of common rules, with all numberings. Each of the two searches is exact unless its tables
grow too large.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.connected_axes import ConnectedAxes
from sparseeinsum.decompose.eindecomp.baselines import even_choices, scheme_choices
from sparseeinsum.decompose.eindecomp.choice_search import cheapest_moves, exact_moves, improved, sent_apart
from sparseeinsum.decompose.eindecomp.moves import Moves
from sparseeinsum.decompose.eindecomp.vector_search import (
    TransferTask,
    Vectors,
    search,
)
from sparseeinsum.decompose.places.computed_blocks import ComputedBlocks
from sparseeinsum.decompose.search_tasks import Candidate
from sparseeinsum.decompose.short_lists import cheapest_choices
from sparseeinsum.language.eingraph import EinSum

_BEAM = 64  # the most vectors of an EinSum: those of the least bounds
_FEW = 25  # vectors of an EinSum that are all searched with all numberings
_SLACK = 1.5  # how many times the fewest floats other assignments may move
_COARSE = 4  # assignments of vectors whose numberings are searched


def search_moves(task: TransferTask, workers: int, computed: ComputedBlocks | None = None) -> Iterator[Vectors]:
    """The assignments of vectors found that move the fewest floats, then others that move not many more; best first.

    Args:
        task: The possible vectors.
        workers: The number of workers.
        computed: Blocks that were computed before, for this graph or others.
    """
    computed = ComputedBlocks() if computed is None else computed
    einsums = task.graph.einsums
    beam = cheapest_choices(task, einsums, _BEAM)
    moves = Moves.of_vectors(task.model, beam, workers, is_coarse=True, computed=computed)
    vectors_of = partial(_vectors, einsums)
    coarse = cheapest_moves(moves, _COARSE)
    has_many = max(map(len, task.choices.values()), default=0) > _FEW
    thorough = [improved(moves, coarse.candidates[0])] if has_many and not coarse.is_exact else []
    rules = filter(partial(_is_allowed, task), _rules(task, workers))
    promising = _distinct([*map(vectors_of, (*thorough, *coarse.candidates)), *rules])
    combined: Mapping[str, Collection[Choice]] = task.choices
    if has_many:
        combined = {name: dict.fromkeys(vectors[name] for vectors in promising) for name in task.choices}
    moves = Moves.of_vectors(task.model, combined, workers, computed=computed)
    best = exact_moves(moves, 1) or []
    yield from map(vectors_of, best)  # no others move fewer
    candidates = list(best)
    for vectors in promising:
        single = {name: (tiles,) for name, tiles in vectors.items()}
        fixed = Moves.of_vectors(task.model, single, workers, computed=computed)
        candidates += cheapest_moves(fixed, 1).candidates
    if not best:
        candidates += [improved(moves, start) for start in (min(candidates), *sent_apart(moves, 1))]
    most = min(candidate.cost for candidate in candidates) * _SLACK
    near = sorted(candidate for candidate in candidates if candidate.cost <= most)
    before = list(map(vectors_of, best))
    yield from (vectors for vectors in _distinct(map(vectors_of, near)) if vectors not in before)


def _distinct(assignments: Iterable[Vectors]) -> list[Vectors]:
    """The assignments without repetitions, in order."""
    return [dict(vectors) for vectors in dict.fromkeys(tuple(sorted(vectors.items())) for vectors in assignments)]


def _vectors(einsums: Iterable[EinSum], candidate: Candidate) -> Vectors:
    """The vectors of a candidate among `Moves`."""
    choices = dict(candidate.choices)
    return {einsum.output.tensor: choices[einsum.output.tensor][:-2] for einsum in einsums}


def _is_allowed(task: TransferTask, vectors: Vectors) -> bool:
    """Whether all vectors are among those of the task, such as those of labels that are pinned."""
    return all(tiles in task.choices[name] for name, tiles in vectors.items())


def _rules(task: TransferTask, workers: int) -> Iterator[Vectors]:
    """The vectors of the least bound, of SQRT, and of a cut along each axis of an input, and all connected with it."""
    graph = task.model.graph
    yield search(task).best
    yield search(replace(task, choices=even_choices(graph, workers))).best
    connected = ConnectedAxes(graph)
    axes = [(name, axis) for name, tensor in graph.inputs.items() for axis in range(len(tensor.axes))]
    for axis in dict.fromkeys(map(connected.representative, axes)):
        yield search(replace(task, choices=scheme_choices(graph, workers, [axis]))).best

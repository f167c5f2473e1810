"""Programs of sparse inputs of which only statistics are known, bound and evaluated."""

from collections.abc import Iterable, Mapping

from sparseeinsum.language.binding import bind
from sparseeinsum.language.eingraph import EinGraph
from sparseeinsum.language.lowering import lower_text
from sparseeinsum.language.tensors import Axis, Tensor
from sparseeinsum.operators.ranges import Range
from sparseeinsum.semantics.exactness import Evaluation, ValueFacts, decide_evaluations
from sparseeinsum.statistics.estimate import Statistics

Evaluations = Mapping[str, Evaluation]


def evaluated(text: str, statistics: Mapping[str, Statistics]) -> tuple[EinGraph, Evaluations]:
    """The graph of a program on inputs of these shapes with fill 0, and its exact evaluation."""
    tensors = {
        name: Tensor(name, tuple(Axis(f"dim_{axis}", bound) for axis, bound in enumerate(array.shape)))
        for name, array in statistics.items()
    }
    graph = bind(lower_text(text), tensors)
    return graph, evaluations_of(graph, tensors)


def evaluations_of(graph: EinGraph, inputs: Iterable[str]) -> Evaluations:
    """The exact evaluation of a graph whose inputs are sparse and have small numbers."""
    return decide_evaluations(graph, dict.fromkeys(inputs, ValueFacts(Range(-9, 9), has_fill=True))).evaluations

"""Statistics: the ways to estimate results, by name."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from sparseeinsum.errors import PlanError
from sparseeinsum.language.eingraph import EinGraph
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.semantics.exactness import Evaluation
from sparseeinsum.statistics.counts import Counts
from sparseeinsum.statistics.estimate import Statistics, estimate
from sparseeinsum.statistics.exact import ExactEstimator
from sparseeinsum.statistics.measure import Executor
from sparseeinsum.statistics.sketch_estimates import SketchEstimator

ESTIMATORS = ("uniform", "sketch", "exact")
DEFAULT_ESTIMATOR = "sketch"


class Estimator(Protocol):
    """Tells what the results of a graph will be like.

    Attributes:
        name: Of the way in which it does: one of ESTIMATORS.
    """

    name: ClassVar[str]

    def __call__(
        self, graph: EinGraph, measured: Mapping[str, Statistics], evaluations: Mapping[str, Evaluation]
    ) -> dict[str, Statistics]:
        """Statistics of every tensor: the measured ones, and estimates for results.

        Args:
            graph: EinSums of one or two operands, in topological order.
            measured: Statistics of the inputs.
            evaluations: What is exact for each EinSum.
        """

    def knowing(self, stored: Mapping[str, StoredTensor], counts: Mapping[str, tuple[Counts, ...]]) -> "Estimator":
        """The estimator for graphs that read further stored tensors, too.

        Args:
            stored: Those tensors.
            counts: The entries at every index of their axes, of those that are countable.
        """


@dataclass(frozen=True, slots=True)
class UniformEstimator:
    """Takes entries to be spread evenly (SparseEinSum, section 8.2)."""

    name: ClassVar[str] = "uniform"

    def __call__(
        self, graph: EinGraph, measured: Mapping[str, Statistics], evaluations: Mapping[str, Evaluation]
    ) -> dict[str, Statistics]:
        """Statistics of every tensor of a graph."""
        return estimate(graph, measured, evaluations)

    def knowing(
        self, stored: Mapping[str, StoredTensor], counts: Mapping[str, tuple[Counts, ...]]
    ) -> "UniformEstimator":
        """Itself: statistics are all that it needs."""
        return self


def make_estimator(
    name: str, stored: Mapping[str, StoredTensor], measured: Mapping[str, Statistics], executor: Executor
) -> Estimator:
    """An estimator for programs on stored tensors.

    Args:
        name: `uniform`: entries are spread evenly (SparseEinSum, section 8.2); `sketch`: by counts of entries at every
            index, measured here; `exact`: counted by a query, which computes where results have entries.
        stored: The inputs.
        measured: Their statistics.
        executor: Runs queries.

    Raises:
        PlanError: There is no estimator of that name.
        EngineError: A relation cannot be read.
    """
    match name:
        case "uniform":
            return UniformEstimator()
        case "sketch":
            return SketchEstimator.measuring(stored, measured, executor)
        case "exact":
            return ExactEstimator(stored, executor)
        case _:
            raise PlanError(f"there is no estimator {name!r}; choose from {', '.join(ESTIMATORS)}")

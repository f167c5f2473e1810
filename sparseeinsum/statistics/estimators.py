"""Statistics: the estimators of results, by name."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Protocol

from sparseeinsum.errors import PlanError
from sparseeinsum.language.eingraph import EinGraph
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.presentation.spelling import did_you_mean
from sparseeinsum.semantics.exactness import Evaluation
from sparseeinsum.statistics.axis_counts import AxisCounts, CountEntries, count_entries
from sparseeinsum.statistics.estimate import Statistics, estimate
from sparseeinsum.statistics.exact import ExactEstimator
from sparseeinsum.statistics.executor import Executor
from sparseeinsum.statistics.sketch_estimates import SketchEstimator

ESTIMATORS = ("uniform", "sketch", "exact")
DEFAULT_ESTIMATOR = "sketch"


class Estimator(Protocol):
    """Estimates the statistics of the results of a graph.

    Attributes:
        name: Its name, one of ESTIMATORS.
    """

    name: ClassVar[str]

    @property
    def fingerprint(self) -> str | None:
        """The same for estimators whose estimates are the same for the same statistics; None if it is not known."""

    def __call__(
        self, graph: EinGraph, measured: Mapping[str, Statistics], evaluations: Mapping[str, Evaluation]
    ) -> dict[str, Statistics]:
        """Statistics of every tensor: the measured ones, and estimates for results.

        Args:
            graph: EinSums of one or two operands, in topological order.
            measured: Statistics of the inputs.
            evaluations: The exact evaluations of every EinSum.
        """

    def with_tensors(
        self, stored: Mapping[str, StoredTensor], counts: Mapping[str, tuple[AxisCounts, ...]]
    ) -> "Estimator":
        """An estimator for graphs that read further stored tensors, too.

        Args:
            stored: The further tensors.
            counts: Counts of the axes of those that are countable.
        """


@dataclass(frozen=True, slots=True)
class UniformEstimator:
    """Assumes that entries are spread evenly (SparseEinSum, section 8.2)."""

    name: ClassVar[str] = "uniform"
    fingerprint: ClassVar[str] = ""

    def __call__(
        self, graph: EinGraph, measured: Mapping[str, Statistics], evaluations: Mapping[str, Evaluation]
    ) -> dict[str, Statistics]:
        """Statistics of every tensor of a graph."""
        return estimate(graph, measured, evaluations)

    def with_tensors(
        self, stored: Mapping[str, StoredTensor], counts: Mapping[str, tuple[AxisCounts, ...]]
    ) -> "UniformEstimator":
        """Return the estimator itself, as statistics are all that it needs."""
        return self


def make_estimator(
    name: str,
    stored: Mapping[str, StoredTensor],
    measured: Mapping[str, Statistics],
    executor: Executor,
    count: CountEntries | None = None,
) -> Estimator:
    """Make an estimator for programs on stored tensors.

    Args:
        name: `uniform` assumes that entries are spread evenly (SparseEinSum, section 8.2); `sketch` uses counts of
            entries at every index, which it measures now; `exact` counts by a query where results have entries.
        stored: The inputs.
        measured: Their statistics.
        executor: Runs queries.
        count: Counts entries for `sketch`; by default a query does.

    Raises:
        PlanError: There is no estimator of that name.
        EngineError: A relation cannot be read.
    """
    match name:
        case "uniform":
            return UniformEstimator()
        case "sketch":
            return SketchEstimator.from_tensors(stored, measured, count or partial(count_entries, executor=executor))
        case "exact":
            return ExactEstimator(stored, executor)
        case _:
            hint = did_you_mean(name, ESTIMATORS, otherwise="choose from")
            raise PlanError(f"there is no estimator {name!r}; {hint}")

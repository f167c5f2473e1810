"""Plans: cuts a graph among workers: rewritten in several ways, of which the one that sends the least is kept."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from sparseeinsum.decompose.cost_constants import constants_for
from sparseeinsum.decompose.eindecomp.moves_search import search_moves
from sparseeinsum.decompose.eindecomp.objectives import BOUND, FLOATS
from sparseeinsum.decompose.eindecomp.partition_vectors import partition_choices
from sparseeinsum.decompose.eindecomp.partitioning import least_partition, partition_graph
from sparseeinsum.decompose.eindecomp.replay import replay
from sparseeinsum.decompose.eindecomp.rewritings import rewritings_for
from sparseeinsum.decompose.eindecomp.transfer import TransferModel
from sparseeinsum.decompose.eindecomp.vector_search import TransferTask
from sparseeinsum.decompose.places.blocks import BlockPlacement
from sparseeinsum.decompose.places.computed_blocks import ComputedBlocks
from sparseeinsum.language.eingraph import EinGraph
from sparseeinsum.operators.ranges import finite_range
from sparseeinsum.plans.partitioned_program import PartitionedProgram
from sparseeinsum.rewrite.annotated_graphs import GraphAnnotator
from sparseeinsum.rewrite.rewrite_summary import RewriteSummary
from sparseeinsum.rewrite.stages import Rewriting, RewritingOptions, RewrittenGraph, rewrite_graph
from sparseeinsum.semantics.exactness import ValueFacts
from sparseeinsum.statistics.estimate import Statistics, estimate

_ENGINE = "duckdb"  # whose cost constants price what rewriting compares


@dataclass(frozen=True, slots=True)
class PartitionSource:
    """A graph as it is written, and its inputs.

    Attributes:
        bound: EinSums of any number of operands.
        statistics: The statistics of the inputs.
        stored: Where inputs are, by name; others are available in any partition.
        uncut_axes: For inputs, axes that are never cut; nor are labels that stand for one.
    """

    bound: EinGraph
    statistics: Mapping[str, Statistics]
    stored: Mapping[str, BlockPlacement] = field(default_factory=dict)
    uncut_axes: Mapping[str, Iterable[int]] = field(default_factory=dict)

    def partitioned(self, workers: int, rewrite: bool = True, objective: str = FLOATS) -> PartitionedProgram:
        """The partition that transfers the fewest floats.

        Args:
            workers: The number of workers.
            rewrite: Whether other formulas and orders of products may compute several EinSums together.
            objective: What to minimise; see `partition`.
        """
        rewritings = rewritings_for(workers, constants_for(_ENGINE), rewrite)
        distinct = {rewritten.graph.einsums: rewritten for rewritten in self._rewritten(rewritings)}
        computed = ComputedBlocks()
        candidates = [self._partition(rewritten, workers, objective, computed) for rewritten in distinct.values()]
        return min(candidates, key=partial(_moved_floats, objective=objective, computed=computed))

    def _rewritten(self, rewritings: Iterable[Rewriting]) -> list[RewrittenGraph]:
        """For each way to rewrite, EinSums of one or two operands."""
        values = {
            name: ValueFacts(finite_range(self.bound.tensors[name].dtype), has_fill=not statistics.is_dense)
            for name, statistics in self.statistics.items()
        }
        annotator = GraphAnnotator.for_inputs(self.bound.tensors, self.statistics, values)
        allowed = RewritingOptions()
        return [rewrite_graph(self.bound, annotator, rewriting, allowed).merged({}) for rewriting in rewritings]

    def _partition(
        self, rewritten: RewrittenGraph, workers: int, objective: str, computed: ComputedBlocks
    ) -> PartitionedProgram:
        """The partition of a graph that transfers the fewest floats, by an objective; `computed` grows."""
        exact = rewritten.annotated.exact
        graph, evaluations = exact.graph, exact.evaluations
        model = TransferModel(graph, estimate(graph, self.statistics, evaluations), evaluations, self.stored)
        cut = _labels_to_cut(graph, self.uncut_axes) if self.uncut_axes else {}
        task = TransferTask(model, partition_choices(graph, workers, cut))
        summary = RewriteSummary.compare(self.bound, graph, rewritten.derivations, rewritten.unsearched)
        if objective == BOUND:
            return PartitionedProgram(task, least_partition(task, workers), summary)
        best = next(search_moves(task, workers, computed))
        return PartitionedProgram(task, partition_graph(task, best, workers), summary)


def _labels_to_cut(graph: EinGraph, uncut_axes: Mapping[str, Iterable[int]]) -> dict[str, dict[str, int]]:
    """For every EinSum, by the name of its result, the labels that stand for no uncut axis, each with the tile 1."""
    uncut = {(name, axis) for name, axes in uncut_axes.items() for axis in axes}
    cut = {}
    for einsum in graph.einsums:
        name = einsum.output.tensor
        axes = [(label, (read.tensor, axis)) for read in einsum.operands for axis, label in enumerate(read.labels)]
        whole = {label for label, axis in axes if axis in uncut}
        uncut |= {(name, axis) for axis, label in enumerate(einsum.output.labels) if label in whole}
        cut[name] = {label: 1 for label in einsum.labels if label not in whole}
    return cut


def _moved_floats(partitioned: PartitionedProgram, objective: str, computed: ComputedBlocks) -> float:
    """The floats that an objective minimises."""
    if objective == BOUND:
        return partitioned.floats
    return replay(partitioned.task.model, partitioned.best, computed).total.floats

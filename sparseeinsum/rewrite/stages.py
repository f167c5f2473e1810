"""Rewriting: all stages in their order: a graph as it is written in, EinSums of one or two operands out.

Plans on a database and partitions from shapes alone are made of the graph that comes out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sparseeinsum.language.eingraph import EinGraph
from sparseeinsum.rewrite.aggregation_pull_up import pull_up_sums
from sparseeinsum.rewrite.algebraic import rewrite_algebraically
from sparseeinsum.rewrite.annotated_graphs import AnnotatedGraph, GraphAnnotator
from sparseeinsum.rewrite.binarise import binarise
from sparseeinsum.rewrite.common_subexpressions import merge_common_subexpressions
from sparseeinsum.rewrite.compensation import compensate
from sparseeinsum.rewrite.decided_conditions import decide_conditions
from sparseeinsum.rewrite.derivations import Derivation
from sparseeinsum.rewrite.elementwise_merging import merge_elementwise
from sparseeinsum.rewrite.equal_formulas import EqualFormulas
from sparseeinsum.rewrite.first_match import rewrite_first_matches
from sparseeinsum.rewrite.masked_aggregation import mask_sums
from sparseeinsum.rewrite.predicted_costs import CostPredictor
from sparseeinsum.rewrite.reassociation import reassociate_products
from sparseeinsum.rewrite.scaled_products import scale_operands
from sparseeinsum.rewrite.sparse_selections import select_sparsely
from sparseeinsum.rewrite.unique_names import UniqueNames
from sparseeinsum.rewrite.zero_guards import without_zero_guards


@dataclass(frozen=True, slots=True)
class Rewriting:
    """A way to rewrite a graph.

    Attributes:
        is_free: Whether equal formulas and other orders of products may compute several statements together.
        cost: Predicts the cost of EinSums, by which they are compared.
    """

    is_free: bool
    cost: CostPredictor


@dataclass(frozen=True, slots=True)
class RewritingOptions:
    """What rewriting must leave or may use.

    Attributes:
        pinned: For some results, labels to promote and their tiles; these stay as they are written.
        successors: For a vector of indices, the name of the generated tensor that maps every index to the next one.
        index_maps: The names of the index maps.
        equal: The equal formulas that were found so far, for all rewritings of a program.
    """

    pinned: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    successors: Mapping[str, str] = field(default_factory=dict)
    index_maps: frozenset[str] = frozenset()
    equal: EqualFormulas = field(default_factory=EqualFormulas)


@dataclass(frozen=True, slots=True)
class RewrittenGraph:
    """A rewritten graph, and how it differs from what was written.

    Attributes:
        annotated: EinSums of one or two operands.
        derivations: For each result that has another formula than the written one, that formula.
        unsearched: Results for which no other formulas were searched, because packages are not installed.
        merges: Whether EinSums that compute elementwise may also compute what only they read.
    """

    annotated: AnnotatedGraph
    derivations: Mapping[str, Derivation] = field(default_factory=dict)
    unsearched: tuple[str, ...] = ()
    merges: bool = False

    @property
    def graph(self) -> EinGraph:
        """EinSums of one or two operands."""
        return self.annotated.graph

    def merged(self, pinned: Mapping[str, Mapping[str, int]]) -> "RewrittenGraph":
        """A copy that computes once what several EinSums compute, and elementwise functions in as few as possible.

        See `merge_common_subexpressions` and `merge_elementwise`.
        """
        einsums = merge_common_subexpressions(self.graph, pinned).einsums
        annotated = self.annotated if einsums == self.graph.einsums else self.annotated.with_einsums(einsums)
        return replace(self, annotated=merge_elementwise(annotated, pinned) if self.merges else annotated)


def rewrite_graph(
    bound: EinGraph, annotator: GraphAnnotator, rewriting: Rewriting, options: RewritingOptions
) -> RewrittenGraph:
    """Rewrite a graph into EinSums of one or two operands in a cheap order.

    Args:
        bound: EinSums of any number of operands, in topological order.
        annotator: Annotates the inputs.
        rewriting: Which other EinSums may be taken, and what is compared.
        options: What rewriting must leave or may use.
    """
    cost = rewriting.cost
    binary = binarise(bound, annotator, cost.pair_cost)
    if annotator.allows_nonfinite:
        return RewrittenGraph(binary)
    derivations: Mapping[str, Derivation] = {}
    unsearched: tuple[str, ...] = ()
    if rewriting.is_free:
        pinned = options.pinned.keys()
        unguarded = without_zero_guards(bound, binary, pinned)
        if unguarded is not bound:
            binary = binarise(unguarded, annotator, cost.pair_cost)
        improved = rewrite_algebraically(unguarded, binary, cost, options.pinned, options.equal)
        binary = reassociate_products(improved.graph, improved.binary, cost, pinned)
        names = UniqueNames({*bound.tensors, *binary.graph.tensors})  # also those of results that are not computed
        binary = pull_up_sums(binary, cost, pinned, names)
        binary = scale_operands(binary, cost, pinned, names)
        binary = decide_conditions(mask_sums(binary, cost, pinned, names), pinned)
        derivations, unsearched = improved.derivations, improved.unsearched
    # Last, since the stages before look for products and sums as they are written.
    compensated = rewrite_first_matches(compensate(binary, cost), options.successors, cost)
    selected = select_sparsely(compensated, options.index_maps, cost)
    return RewrittenGraph(selected, derivations, unsearched, merges=rewriting.is_free)

"""Rewriting: what became of every EinSum of a program."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sparseeinsum.language.eingraph import EinGraph
from sparseeinsum.rewrite.assumption_checks import rewritten_results
from sparseeinsum.rewrite.common_subexpressions import ExpressionClasses
from sparseeinsum.rewrite.derivations import Derivation
from sparseeinsum.rewrite.einsum_parts import part_names
from sparseeinsum.rewrite.inlining import inlined_results


@dataclass(frozen=True, slots=True)
class RewriteSummary:
    """How the EinSums that are computed came from those that were written.

    Attributes:
        parts: For every EinSum as written, the intermediate results that it was split into.
        rewritten: Results of EinSums that are not as they were written.
        merged: Results as written that are computed once with others, by the names of those.
        inlined: Results as written that are not computed; for each, the result that contains it.
        derivations: For each result that has another formula than the written one, that formula.
        unsearched: Results for which no other formulas were searched, because packages are not installed.
    """

    parts: Mapping[str, tuple[str, ...]]
    rewritten: tuple[str, ...]
    merged: Mapping[str, str]
    inlined: Mapping[str, str]
    derivations: Mapping[str, Derivation]
    unsearched: tuple[str, ...] = ()

    @property
    def shares(self) -> dict[str, float]:
        """For each result with another formula, its predicted seconds divided by those of the written one."""
        return {name: derivation.share for name, derivation in self.derivations.items()}

    @classmethod
    def compare(
        cls,
        written: EinGraph,
        graph: EinGraph,
        derivations: Mapping[str, Derivation],
        unsearched: tuple[str, ...] = (),
    ) -> "RewriteSummary":
        """Compare a graph with the one that was written.

        Args:
            written: EinSums of any number of operands, in topological order.
            graph: The same after rewriting and merging, of one or two operands each.
            derivations: For each result that has another formula than the written one, that formula.
            unsearched: Results for which no other formulas were searched, because packages are not installed.
        """
        classes = ExpressionClasses(written, {})
        merged = classes.merged_results(graph)
        results = {einsum.output.tensor for einsum in written.einsums}
        return cls(
            part_names(results, graph),
            rewritten_results(written, classes.merged_graph(), graph),
            merged,
            inlined_results(written, graph, merged),
            derivations,
            unsearched,
        )

    def with_parts_in(self, graph: EinGraph) -> "RewriteSummary":
        """The summary for another graph, in which the EinSums were split into other parts."""
        return replace(self, parts=part_names(self.parts.keys(), graph))

    @property
    def all_parts(self) -> frozenset[str]:
        """The names of all intermediate results that rewriting invented."""
        return frozenset(part for parts in self.parts.values() for part in parts)

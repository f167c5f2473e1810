"""Rewriting: a graph as it was written and as it is computed in, what became of every EinSum out."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sparseeinsum.language.eingraph import EinGraph
from sparseeinsum.rewrite.assumptions import rewritten_results
from sparseeinsum.rewrite.common_subexpressions import merged_results
from sparseeinsum.rewrite.composition import composed_results
from sparseeinsum.rewrite.derivations import Derivation
from sparseeinsum.rewrite.parts import part_names


@dataclass(frozen=True, slots=True)
class Rewriting:
    """How the EinSums that are computed came from those that were written.

    Attributes:
        parts: For every EinSum as written, the results of EinSums that it was taken apart into.
        rewritten: Results of EinSums that are not as they were written.
        merged: Results as written that are computed once with others, by the names of those.
        composed: Results as written that are not computed, by the names of those that are computed without them.
        derivations: Of results that another formula computes, that formula.
        unsearched: Results for which no other formulas were looked for, because packages are not installed.
    """

    parts: Mapping[str, tuple[str, ...]]
    rewritten: tuple[str, ...]
    merged: Mapping[str, str]
    composed: Mapping[str, str]
    derivations: Mapping[str, Derivation]
    unsearched: tuple[str, ...] = ()

    @property
    def shares(self) -> dict[str, float]:
        """Of results that another formula computes, the share of the time that it is expected to take."""
        return {name: derivation.share for name, derivation in self.derivations.items()}

    @classmethod
    def between(
        cls,
        written: EinGraph,
        graph: EinGraph,
        derivations: Mapping[str, Derivation],
        unsearched: tuple[str, ...] = (),
    ) -> "Rewriting":
        """What was done.

        Args:
            written: EinSums of any number of operands, in topological order.
            graph: The same, merged, of one or two operands each.
            derivations: Of results that another formula computes, that formula.
            unsearched: Results for which none was looked for, because packages are not installed.
        """
        merged = merged_results(written, graph)
        results = {einsum.output.tensor for einsum in written.einsums}
        return cls(
            part_names(results, graph),
            rewritten_results(written, graph),
            merged,
            composed_results(written, graph, merged),
            derivations,
            unsearched,
        )

    def taken_apart_as(self, graph: EinGraph) -> "Rewriting":
        """The same, where the EinSums as written were taken apart otherwise."""
        return replace(self, parts=part_names(self.parts.keys(), graph))

    @property
    def all_parts(self) -> frozenset[str]:
        """Results that rewriting invented."""
        return frozenset(part for parts in self.parts.values() for part in parts)

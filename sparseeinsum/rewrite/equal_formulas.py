"""Rewriting: equal formulas of groups of EinSums, found once for all rewritings of a graph.

Which formulas are equal, and which of them are small, does not depend on the costs by which a rewriting compares them.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from sparseeinsum.language.eingraph import Reference
from sparseeinsum.rewrite.annotated_graphs import AnnotatedGraph
from sparseeinsum.rewrite.saturation.eclass_sizes import sizes_of
from sparseeinsum.rewrite.saturation.egraph import EClasses, SaturationLimits, saturate
from sparseeinsum.rewrite.saturation.extraction import terms_of
from sparseeinsum.rewrite.saturation.extractor import Extractor
from sparseeinsum.rewrite.saturation.term_reading import GroupTerms
from sparseeinsum.rewrite.saturation.terms import Term


@dataclass(frozen=True, slots=True)
class ExtractedTerms:
    """The terms that greedy extraction and integer programming choose.

    Attributes:
        choices: For each of the two, a term for every root.
        is_saturated: Whether saturation was completed.
    """

    choices: tuple[tuple[Term, ...], ...]
    is_saturated: bool


@dataclass(frozen=True, slots=True, eq=False)
class EqualFormulas:
    """The formulas that were found so far; they grow."""

    _classes: dict[Hashable, EClasses] = field(default_factory=dict)
    _extracted: dict[Hashable, ExtractedTerms] = field(default_factory=dict)

    def of(self, group_terms: GroupTerms, annotated: AnnotatedGraph, limits: SaturationLimits) -> ExtractedTerms:
        """The formulas of a group.

        Args:
            group_terms: The formulas as written.
            annotated: Annotations of the tensors that they read.
            limits: When saturation ends.
        """
        written = group_terms.roots, tuple(sorted(group_terms.bounds.items())), group_terms.equal_pairs, limits
        classes = self._classes.get(written)
        if classes is None:
            classes = saturate(group_terms.terms, group_terms.bounds, group_terms.equal_pairs, limits)
            self._classes[written] = classes
        densities = {leaf: _density(leaf, annotated) for leaf in classes.leaves}
        key = written, tuple(densities.items())
        extracted = self._extracted.get(key)
        if extracted is None:
            extracted = self._extracted[key] = _extracted(group_terms, classes, densities)
        return extracted


def _extracted(group_terms: GroupTerms, classes: EClasses, densities: Mapping[Reference, float]) -> ExtractedTerms:
    extractor = Extractor.with_tree_costs(classes, sizes_of(classes, group_terms.bounds, densities))
    extractions = extractor.greedy(classes.roots), extractor.with_sharing(classes.roots)
    return ExtractedTerms(
        tuple(tuple(terms_of(extraction, classes)) for extraction in extractions), classes.is_saturated
    )


def _density(leaf: Reference, annotated: AnnotatedGraph) -> float:
    """The share of entries that are not 0; 1 for tensors of another fill."""
    tensor = annotated.tensor(leaf.tensor)
    if tensor.tensor.fill != 0 or not tensor.tensor.size:
        return 1.0
    return min(1.0, tensor.statistics.entries / tensor.tensor.size)

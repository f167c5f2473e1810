"""Rewriting: searches for cheaper EinSums that compute the same as a group of them, by equality saturation."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.language.inference import result_tensor
from sparseeinsum.rewrite.annotated_graphs import AnnotatedGraph
from sparseeinsum.rewrite.binarise import binarise
from sparseeinsum.rewrite.common_subexpressions import merge_common_subexpressions
from sparseeinsum.rewrite.compensation import compensate
from sparseeinsum.rewrite.derivations import Derivation
from sparseeinsum.rewrite.einsum_groups import EinSumGroup
from sparseeinsum.rewrite.equal_formulas import EqualFormulas
from sparseeinsum.rewrite.predicted_costs import CostPredictor
from sparseeinsum.rewrite.saturation.egraph import SaturationLimits
from sparseeinsum.rewrite.saturation.einsum_building import build_einsums
from sparseeinsum.rewrite.saturation.term_reading import GroupTerms, read_terms
from sparseeinsum.rewrite.saturation.terms import NumberTerm, Term, free_labels
from sparseeinsum.rewrite.unique_names import UniqueNames

# Another formula is chosen only where it is expected to take at most this share of the time: to multiply sums out can
# lose digits, because terms cancel.
_MOST_SHARE = 0.5

# The search takes about 0.1 s, so that formulas that take less than this are left as they are.
LEAST_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class CheaperFormulas:
    """EinSums that compute the roots of a group.

    Attributes:
        einsums: In topological order.
        derivations: For each root that has another formula than the written one, that formula.
    """

    einsums: Sequence[EinSum]
    derivations: Mapping[str, Derivation]


def find_cheaper_formulas(
    group: EinSumGroup,
    graph: EinGraph,
    annotated: AnnotatedGraph,
    cost: CostPredictor,
    names: UniqueNames,
    equal: EqualFormulas,
) -> CheaperFormulas | None:
    """The cheapest EinSums that saturation finds for a group; None where none is cheap enough to be chosen.

    Args:
        group: The EinSums as written.
        graph: The graph of the group.
        annotated: Annotations of all its tensors, results as written included.
        cost: Predicts the seconds of EinSums.
        names: Invents the names of further results.
        equal: The equal formulas that other rewritings of the graph have found; they grow.
    """
    computed = {einsum.output.tensor for einsum in group.einsums}
    if not all(annotated.tensor(name).is_all_finite for name in group.inputs | computed):
        return None
    group_cost = _GroupCost(group, annotated, cost)
    before = group_cost.seconds_of(group.einsums)
    if before < LEAST_SECONDS:
        return None
    group_terms = read_terms(group.einsums, group.roots, graph)
    # The rules may not use that a tensor is constant or empty: the plan can run on other data later.
    extracted = equal.of(group_terms, annotated, SaturationLimits())
    choice = _cheapest_choice(group, group_terms, extracted.choices, group_cost, names)
    if not extracted.is_saturated and len(group.roots) > 1 and len(choice.derivations) < len(group.roots):
        alternatives = _with_roots_searched_alone(group_terms, choice, annotated, equal)
        other = _cheapest_choice(group, group_terms, alternatives, group_cost, names)
        choice = min(choice, other, key=lambda candidate: candidate.seconds)
    return _as_formulas(choice, names)


@dataclass(frozen=True, slots=True)
class _FormulaChoice:
    """A candidate, the roots for which it has other formulas, and its predicted seconds."""

    candidate: "_FormulaCandidate | None"
    derivations: Mapping[str, Derivation]
    seconds: float


def _cheapest_choice(
    group: EinSumGroup,
    group_terms: GroupTerms,
    term_tuples: Iterable[tuple[Term, ...]],
    group_cost: "_GroupCost",
    names: UniqueNames,
) -> _FormulaChoice:
    """The cheapest candidate of some terms for all roots, without formulas that gain too little.

    Args:
        group: The EinSums as written.
        group_terms: Their terms.
        term_tuples: Candidates: a term for every root.
        group_cost: Predicts the seconds of candidates.
        names: Invents the names of further results.
    """
    candidates: dict[tuple[EinSum, ...], _FormulaCandidate] = {}  # the first of those that give the same EinSums
    for terms, keeps_shared in itertools.product(dict.fromkeys(term_tuples), (False, True)):
        candidate = _FormulaCandidate(
            group, group_terms, terms, keeps_shared, _roots_lacking_labels(group_terms, terms)
        )
        candidates.setdefault(tuple(candidate.einsums(names)), candidate)
    priced = {group_cost.seconds_of(einsums): candidate for einsums, candidate in candidates.items() if einsums}
    if not priced:
        return _FormulaChoice(None, {}, math.inf)
    return _without_small_gains(priced[min(priced)], min(priced), group_cost, names)


def _as_formulas(choice: _FormulaChoice, names: UniqueNames) -> CheaperFormulas | None:
    if choice.candidate is None or not choice.derivations:
        return None
    einsums = choice.candidate.einsums(names)
    names.reserve(einsum.output.tensor for einsum in einsums)
    return CheaperFormulas(einsums, choice.derivations)


def _roots_lacking_labels(group_terms: GroupTerms, terms: Sequence[Term]) -> frozenset[str]:
    """The roots whose terms lack labels of theirs: no tensor would give the results those labels."""
    pairs = zip(group_terms.roots, terms, strict=True)
    return frozenset(
        root.output.tensor
        for root, term in pairs
        if isinstance(term, NumberTerm) or free_labels(term) != frozenset(root.labels)
    )


def _with_roots_searched_alone(
    group_terms: GroupTerms, choice: _FormulaChoice, annotated: AnnotatedGraph, equal: EqualFormulas
) -> Iterator[tuple[Term, ...]]:
    """Terms of all roots: those of `choice`, or what a shorter search finds for a root on its own."""
    limits = replace(SaturationLimits(), seconds=SaturationLimits().seconds / len(group_terms.roots))
    terms_by_root: list[Sequence[Term]] = []
    for root in group_terms.roots:
        derivation = choice.derivations.get(root.output.tensor)
        if derivation is not None:
            terms_by_root.append([derivation.computed] * 2)
        else:
            root_terms = replace(group_terms, roots=(root,), equal_pairs=group_terms.equal_pairs_of(root))
            terms_by_root.append([term for (term,) in equal.of(root_terms, annotated, limits).choices])
    yield from zip(*terms_by_root, strict=True)


@dataclass(frozen=True, slots=True)
class _FormulaCandidate:
    """Terms for the roots of a group; some roots are computed by them, the others as they were written.

    Attributes:
        group: The EinSums as written.
        group_terms: The terms as written.
        terms: A term for each root.
        keeps_shared: Whether subterms that occur several times become EinSums of their own.
        as_written: Names of the roots that are computed as they were written.
        omitted: Names of roots that are not computed at all, to find out what they add to the cost.
    """

    group: EinSumGroup
    group_terms: GroupTerms
    terms: tuple[Term, ...]
    keeps_shared: bool
    as_written: frozenset[str]
    omitted: frozenset[str] = frozenset()

    def einsums(self, names: UniqueNames) -> list[EinSum]:
        """The EinSums; none where a term cannot be written as a function of tensors."""
        written = self.group.needed_for(self.as_written)
        not_built = {einsum.output.tensor for einsum in written} | self.omitted
        pairs = zip(self.group_terms.roots, self.terms, strict=True)
        computed = [(root, term) for root, term in pairs if root.output.tensor not in not_built]
        roots, terms = [root for root, _ in computed], [term for _, term in computed]
        built = build_einsums(terms, roots, self.group_terms.bounds, names.copy(), self.keeps_shared)
        return [] if built is None else [*written, *built]


def _without_small_gains(
    candidate: _FormulaCandidate, seconds: float, group_cost: "_GroupCost", names: UniqueNames
) -> _FormulaChoice:
    """The candidate, but roots that gain little by their terms are computed as they were written.

    Args:
        candidate: Terms for all roots.
        seconds: Its predicted seconds.
        group_cost: Predicts the seconds of other candidates.
        names: Invents the names of further results.
    """
    group_terms = candidate.group_terms
    derivations = {}
    for root, term in zip(group_terms.roots, candidate.terms, strict=True):
        name = root.output.tensor
        if name in candidate.as_written:
            continue
        written = replace(candidate, as_written=candidate.as_written | {name})
        without = group_cost.seconds_of(replace(candidate, omitted=frozenset([name])).einsums(names))
        seconds_written = group_cost.seconds_of(written.einsums(names))
        if seconds - without < _MOST_SHARE * (seconds_written - without):
            own = max(0.0, seconds - without)
            derivations[name] = Derivation(
                root.term, term, group_terms.bounds, group_terms.equal_pairs, seconds_written - without, own
            )
        else:
            candidate, seconds = written, seconds_written
    written_too = {einsum.output.tensor for einsum in candidate.group.needed_for(candidate.as_written)}
    derivations = {name: derivation for name, derivation in derivations.items() if name not in written_too}
    return _FormulaChoice(candidate, derivations, seconds)


@dataclass(frozen=True, slots=True)
class _GroupCost:
    """Predicts the seconds of EinSums that compute roots of a group."""

    group: EinSumGroup
    annotated: AnnotatedGraph
    cost: CostPredictor

    def seconds_of(self, einsums: Sequence[EinSum]) -> float:
        """Predicted seconds of `einsums`; EinSums that compute the same are counted once."""
        if not einsums:
            return 0.0
        tensors = {name: self.annotated.graph.tensors[name] for name in self.group.inputs}
        roots = {root.output.tensor for root in self.group.roots}
        outputs = tuple(einsum.output.tensor for einsum in einsums if einsum.output.tensor in roots)
        for einsum in einsums:
            tensors[einsum.output.tensor] = result_tensor(einsum, tensors)
        graph = EinGraph(MappingProxyType(tensors), tuple(einsums), outputs)
        compensated = compensate(
            binarise(graph, self.annotated.annotator_for(self.group.inputs), self.cost.pair_cost), self.cost
        )
        merged = merge_common_subexpressions(compensated.graph, {})
        return self.cost.seconds(compensated.with_einsums(merged.einsums))

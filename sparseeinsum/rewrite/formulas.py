"""Rewriting: a group of EinSums in; others that compute the same in much less time out, found by saturation."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference
from sparseeinsum.language.inference import result_tensor
from sparseeinsum.rewrite.binarise import binarise
from sparseeinsum.rewrite.common_subexpressions import merge_common_subexpressions
from sparseeinsum.rewrite.derivations import Derivation
from sparseeinsum.rewrite.groups import Group
from sparseeinsum.rewrite.known import Known
from sparseeinsum.rewrite.names import Names
from sparseeinsum.rewrite.prices import Pricer, exact_chain, price_of
from sparseeinsum.rewrite.saturation.building import build
from sparseeinsum.rewrite.saturation.choices import terms_of
from sparseeinsum.rewrite.saturation.egraph import Limits, saturate
from sparseeinsum.rewrite.saturation.extraction import Extractor
from sparseeinsum.rewrite.saturation.reading import Reading, read
from sparseeinsum.rewrite.saturation.sizes import sizes_of
from sparseeinsum.rewrite.saturation.terms import Number, Term, free_labels
from sparseeinsum.rewrite.sparse_sums import compensate

# Sums are multiplied out only where that is expected to take at most this share of the time: terms that cancel leave
# fewer digits.
_WORTH = 0.5

# To look takes some 0.1 s.
_WORTH_LOOKING_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Formulas:
    """EinSums that compute the roots of a group.

    Attributes:
        einsums: In topological order.
        derivations: Of roots that another formula computes, that formula.
    """

    einsums: Sequence[EinSum]
    derivations: Mapping[str, Derivation]


def better_formulas(group: Group, graph: EinGraph, known: Known, price: Pricer, names: Names) -> Formulas | None:
    """The cheapest EinSums that saturation finds; None where none is so much cheaper that it is worth it.

    Args:
        group: What to compute.
        graph: Has the tensors.
        known: All of them, results as written included.
        price: Knows what EinSums cost.
        names: For further results.
    """
    computed = {einsum.output.tensor for einsum in group.einsums}
    if not all(known.tensors[name].is_all_finite for name in group.inputs | computed):
        return None
    prices = _Prices(group, known, price)
    before = prices.of(group.einsums)
    if before < _WORTH_LOOKING_SECONDS:
        return None
    reading = read(group.einsums, group.roots, graph)
    candidates = [
        _Candidate(group, reading, terms, keeps_shared, _of_fewer_labels(reading, terms))
        for terms in _equal_terms(reading, known)
        for keeps_shared in (False, True)
    ]
    priced = [(prices.of(einsums), candidate) for candidate in candidates if (einsums := candidate.einsums(names))]
    if not priced:
        return None
    seconds, cheapest = min(priced, key=lambda pair: pair[0])
    return _worth_it(cheapest, seconds, prices, names)


def _of_fewer_labels(reading: Reading, terms: Sequence[Term]) -> frozenset[str]:
    """Roots whose terms lack labels of theirs, which no tensor would give them then."""
    pairs = zip(reading.roots, terms, strict=True)
    return frozenset(
        root.output.tensor
        for root, term in pairs
        if isinstance(term, Number) or free_labels(term) != frozenset(root.labels)
    )


def _equal_terms(reading: Reading, known: Known) -> Iterator[tuple[Term, ...]]:
    """Terms of all roots that promise to be cheap together; where limits are hit, those of each on its own, too."""
    # That a tensor is constant or empty is not told: plans are run on other data, too.
    found: dict[tuple[Term, ...], None] = {}
    together, is_saturated = _extracted(reading, reading.terms, known, Limits())
    found |= dict.fromkeys(together)
    if not is_saturated and len(reading.roots) > 1:
        limits = replace(Limits(), seconds=Limits().seconds / len(reading.roots))
        alone = [_extracted(reading, [term], known, limits)[0] for term in reading.terms]
        found |= dict.fromkeys(tuple(terms[way][0] for terms in alone) for way in range(len(together)))
    yield from found


def _extracted(
    reading: Reading, terms: Sequence[Term], known: Known, limits: Limits
) -> tuple[list[tuple[Term, ...]], bool]:
    """Terms as they are chosen greedily, and by integer programming; and whether saturation came to its end."""
    classes = saturate(terms, reading.bounds, reading.same, limits)
    densities = {leaf: _density(leaf, known) for leaf in classes.leaves}
    extractor = Extractor.of(classes, sizes_of(classes, reading.bounds, densities))
    choices = [extractor.greedy(classes.roots), extractor.shared(classes.roots)]
    return [tuple(terms_of(choice, classes)) for choice in choices], classes.is_saturated


def _density(leaf: Reference, known: Known) -> float:
    """The share of entries that are not 0; of other fills, all."""
    tensor = known.tensors[leaf.tensor]
    if tensor.tensor.fill != 0 or not tensor.tensor.size:
        return 1.0
    return min(1.0, tensor.statistics.entries / tensor.tensor.size)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """Terms for the roots of a group, some of which are computed by them, the others as they were written."""

    group: Group
    reading: Reading
    terms: tuple[Term, ...]
    keeps_shared: bool
    as_written: frozenset[str]
    left_out: frozenset[str] = frozenset()

    def einsums(self, names: Names) -> list[EinSum]:
        """The EinSums; none where a term is no function of tensors."""
        written = self.group.needed_for(self.as_written)
        others = {einsum.output.tensor for einsum in written} | self.left_out
        pairs = zip(self.reading.roots, self.terms, strict=True)
        kept = [(root, term) for root, term in pairs if root.output.tensor not in others]
        roots, terms = [root for root, _ in kept], [term for _, term in kept]
        built = build(terms, roots, self.reading.bounds, names.copy(), self.keeps_shared)
        return [] if built is None else [*written, *built]


def _worth_it(candidate: _Candidate, seconds: float, prices: "_Prices", names: Names) -> Formulas | None:
    """A candidate that takes so long, in which roots that gain little are computed as they were written."""
    reading = candidate.reading
    found = {}
    for root, term in zip(reading.roots, candidate.terms, strict=True):
        name = root.output.tensor
        if name in candidate.as_written:
            continue
        written = replace(candidate, as_written=candidate.as_written | {name})
        without = prices.of(replace(candidate, left_out=frozenset([name])).einsums(names))
        seconds_written = prices.of(written.einsums(names))
        if seconds - without < _WORTH * (seconds_written - without):
            own = max(0.0, seconds - without)
            found[name] = Derivation(root.term, term, reading.bounds, reading.same, seconds_written - without, own)
        else:
            candidate, seconds = written, seconds_written
    written_too = {einsum.output.tensor for einsum in candidate.group.needed_for(candidate.as_written)}
    found = {name: derivation for name, derivation in found.items() if name not in written_too}
    if not found:
        return None
    einsums = candidate.einsums(names)
    names.take(einsum.output.tensor for einsum in einsums)
    return Formulas(einsums, found)


@dataclass(frozen=True, slots=True)
class _Prices:
    """Expected seconds of EinSums that compute roots of a group."""

    group: Group
    known: Known
    price: Pricer

    def of(self, einsums: Sequence[EinSum]) -> float:
        """Expected seconds of some; those that compute the same are counted once."""
        if not einsums:
            return 0.0
        inputs = {name: self.known.tensors[name] for name in self.group.inputs}
        tensors = {name: each.tensor for name, each in inputs.items()}
        statistics = {name: each.statistics for name, each in inputs.items()}
        values = {name: each.values for name, each in inputs.items()}
        roots = {root.output.tensor for root in self.group.roots}
        outputs = tuple(each.output.tensor for each in einsums if each.output.tensor in roots)
        for einsum in einsums:
            tensors[einsum.output.tensor] = result_tensor(einsum, tensors)
        graph = EinGraph(MappingProxyType(tensors), tuple(einsums), outputs)
        whole = compensate(binarise(graph, statistics, values), statistics, values, self.price)
        before = Known(inputs, self.known.allows_nonfinite)
        return price_of(exact_chain(merge_common_subexpressions(whole, {}).einsums, before), before, self.price)

"""Rewriting: a group of EinSums in; others that compute the same in much less time out, found by saturation."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference
from sparseeinsum.language.inference import result_tensor
from sparseeinsum.rewrite.binarise import binarise
from sparseeinsum.rewrite.common_subexpressions import merge_common_subexpressions
from sparseeinsum.rewrite.derivations import Derivation
from sparseeinsum.rewrite.groups import Group
from sparseeinsum.rewrite.known import KnownGraph
from sparseeinsum.rewrite.names import Names
from sparseeinsum.rewrite.prices import Pricer, price_of
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


def better_formulas(group: Group, graph: EinGraph, known: KnownGraph, price: Pricer, names: Names) -> Formulas | None:
    """The cheapest EinSums that saturation finds; None where none is so much cheaper that it is worth it.

    Args:
        group: What to compute.
        graph: Has the tensors.
        known: All of them, results as written included.
        price: Knows what EinSums cost.
        names: For further results.
    """
    computed = {einsum.output.tensor for einsum in group.einsums}
    if not all(known.tensor(name).is_all_finite for name in group.inputs | computed):
        return None
    prices = _Prices(group, known, price)
    before = prices.of(group.einsums)
    if before < _WORTH_LOOKING_SECONDS:
        return None
    reading = read(group.einsums, group.roots, graph)
    # That a tensor is constant or empty is not told: plans are run on other data, too.
    together, is_saturated = _extracted(reading, known, Limits())
    chosen = _chosen(group, reading, together, prices, names)
    if not is_saturated and len(group.roots) > 1 and len(chosen.derivations) < len(group.roots):
        ways = _some_alone(reading, chosen, known)
        chosen = min(chosen, _chosen(group, reading, ways, prices, names), key=lambda each: each.seconds)
    return _formulas(chosen, names)


@dataclass(frozen=True, slots=True)
class _Chosen:
    """A candidate, the roots that it computes by other formulas, and the seconds that it takes."""

    candidate: "_Candidate | None"
    derivations: Mapping[str, Derivation]
    seconds: float


def _chosen(
    group: Group, reading: Reading, ways: Iterable[tuple[Term, ...]], prices: "_Prices", names: Names
) -> _Chosen:
    """The cheapest of some ways to compute all roots, but for those that gain too little."""
    found: dict[tuple[EinSum, ...], _Candidate] = {}
    for terms, keeps_shared in itertools.product(dict.fromkeys(ways), (False, True)):
        candidate = _Candidate(group, reading, terms, keeps_shared, _of_fewer_labels(reading, terms))
        found.setdefault(tuple(candidate.einsums(names)), candidate)
    priced = {prices.of(einsums): candidate for einsums, candidate in found.items() if einsums}
    if not priced:
        return _Chosen(None, {}, math.inf)
    return _worth_it(priced[min(priced)], min(priced), prices, names)


def _formulas(chosen: _Chosen, names: Names) -> Formulas | None:
    if chosen.candidate is None or not chosen.derivations:
        return None
    einsums = chosen.candidate.einsums(names)
    names.take(einsum.output.tensor for einsum in einsums)
    return Formulas(einsums, chosen.derivations)


def _of_fewer_labels(reading: Reading, terms: Sequence[Term]) -> frozenset[str]:
    """Roots whose terms lack labels of theirs, which no tensor would give them then."""
    pairs = zip(reading.roots, terms, strict=True)
    return frozenset(
        root.output.tensor
        for root, term in pairs
        if isinstance(term, Number) or free_labels(term) != frozenset(root.labels)
    )


def _some_alone(reading: Reading, chosen: _Chosen, known: KnownGraph) -> Iterator[tuple[Term, ...]]:
    """Terms of all roots: where one was chosen that; else what is found for the root on its own, looking less far."""
    limits = replace(Limits(), seconds=Limits().seconds / len(reading.roots))
    ways: list[Sequence[Term]] = []
    for root in reading.roots:
        derivation = chosen.derivations.get(root.output.tensor)
        if derivation is not None:
            ways.append([derivation.computed] * 2)
        else:
            alone = replace(reading, roots=(root,), same=reading.same_of(root))
            ways.append([term for (term,) in _extracted(alone, known, limits)[0]])
    yield from zip(*ways, strict=True)


def _extracted(reading: Reading, known: KnownGraph, limits: Limits) -> tuple[list[tuple[Term, ...]], bool]:
    """Terms as they are chosen greedily, and by integer programming; and whether saturation came to its end."""
    classes = saturate(reading.terms, reading.bounds, reading.same, limits)
    densities = {leaf: _density(leaf, known) for leaf in classes.leaves}
    extractor = Extractor.of(classes, sizes_of(classes, reading.bounds, densities))
    choices = [extractor.greedy(classes.roots), extractor.shared(classes.roots)]
    return [tuple(terms_of(choice, classes)) for choice in choices], classes.is_saturated


def _density(leaf: Reference, known: KnownGraph) -> float:
    """The share of entries that are not 0; of other fills, all."""
    tensor = known.tensor(leaf.tensor)
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


def _worth_it(candidate: _Candidate, seconds: float, prices: "_Prices", names: Names) -> _Chosen:
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
    return _Chosen(candidate, found, seconds)


@dataclass(frozen=True, slots=True)
class _Prices:
    """Expected seconds of EinSums that compute roots of a group."""

    group: Group
    known: KnownGraph
    price: Pricer

    def of(self, einsums: Sequence[EinSum]) -> float:
        """Expected seconds of some; those that compute the same are counted once."""
        if not einsums:
            return 0.0
        tensors = {name: self.known.graph.tensors[name] for name in self.group.inputs}
        roots = {root.output.tensor for root in self.group.roots}
        outputs = tuple(each.output.tensor for each in einsums if each.output.tensor in roots)
        for einsum in einsums:
            tensors[einsum.output.tensor] = result_tensor(einsum, tensors)
        graph = EinGraph(MappingProxyType(tensors), tuple(einsums), outputs)
        whole = compensate(binarise(graph, self.known.of(self.group.inputs)), self.price)
        merged = merge_common_subexpressions(whole.graph, {})
        return price_of(whole.with_einsums(merged.einsums), self.price)

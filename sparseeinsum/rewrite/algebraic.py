"""Rewriting: EinSums of sums and products in; equal ones that are expected to be cheaper out, found by saturation.

In the place of results that alone read one another, such as sum((X - U V')^2), which needs no product of U and V.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference
from sparseeinsum.language.inference import result_tensor
from sparseeinsum.language.scalar import Call, Scalar
from sparseeinsum.language.tensors import Tensor
from sparseeinsum.rewrite.binarise import binarise
from sparseeinsum.rewrite.known import Known
from sparseeinsum.rewrite.names import Names
from sparseeinsum.rewrite.prices import Pricer, exact_chain, price_of
from sparseeinsum.rewrite.saturation.building import build
from sparseeinsum.rewrite.saturation.choices import terms_of
from sparseeinsum.rewrite.saturation.egraph import saturate
from sparseeinsum.rewrite.saturation.extraction import Extractor
from sparseeinsum.rewrite.saturation.reading import Reading, is_readable, read
from sparseeinsum.rewrite.saturation.sizes import sizes_of
from sparseeinsum.rewrite.sparse_sums import compensate
from sparseeinsum.semantics.exactness import Values
from sparseeinsum.statistics.estimate import Statistics

# Sums are multiplied out only where that is expected to take at most this share of the time: terms that cancel leave
# fewer digits.
_WORTH = 0.5

# To look takes some 0.1 s.
_WORTH_LOOKING_SECONDS = 0.05

_MOST_EINSUMS = 12


@dataclass(frozen=True, slots=True)
class Improved:
    """A graph, and which of its results are computed by another formula than was written.

    Attributes:
        graph: EinSums of any number of operands.
        apart: The same of one or two operands each.
        shares: Of those results, the share of the time that is expected with the new formula.
    """

    graph: EinGraph
    apart: EinGraph
    shares: Mapping[str, float]


def improve(
    graph: EinGraph,
    apart: EinGraph,
    statistics: Mapping[str, Statistics],
    values: Mapping[str, Values],
    price: Pricer,
    pinned: Collection[str],
) -> Improved:
    """Replace sums of products by equal ones where those are much cheaper (SPORES).

    Numbers must be finite, real, and of one dtype; what is promoted by hand or pinned stays as it was written.

    Args:
        graph: EinSums of any number of operands, in topological order; values that turn NaN or infinite are detected.
        apart: The same of one or two operands each.
        statistics: Statistics of the inputs.
        values: What is known of the inputs' values.
        price: Knows what EinSums cost.
        pinned: Results whose labels to promote are given.
    """
    groups = list(_groups(graph, pinned))
    if not groups:
        return Improved(graph, apart, {})
    known = Known.of_graph(apart, statistics, values)
    names = Names(graph.tensors)
    replaced: dict[str, list[EinSum]] = {}
    shares: dict[str, float] = {}
    for group in groups:
        share, better = _better(group, graph, known, price, names)
        if better:
            shares[group[-1].output.tensor] = share
            replaced |= {einsum.output.tensor: [] for einsum in group}
            replaced[group[-1].output.tensor] = better
    if not replaced:
        return Improved(graph, apart, {})
    einsums = tuple(each for einsum in graph.einsums for each in replaced.get(einsum.output.tensor, [einsum]))
    computed = {einsum.output.tensor for einsum in graph.einsums}
    inputs = {name: tensor for name, tensor in graph.tensors.items() if name not in computed}
    better_graph = _graph(einsums, inputs, graph.outputs)
    return Improved(better_graph, binarise(better_graph, statistics, values), shares)


def _groups(graph: EinGraph, pinned: Collection[str]) -> Iterator[tuple[EinSum, ...]]:
    """EinSums that alone read one another, in topological order, where sums of several terms are summed."""
    inside: dict[str, tuple[EinSum, ...]] = {}
    for einsum in graph.einsums:
        name = einsum.output.tensor
        below = [inside.pop(operand.tensor) for operand in einsum.operands if operand.tensor in inside]
        if name in pinned or not is_readable(einsum, graph):
            yield from filter(_has_sums_of_terms, below)
            continue
        group = (*(each for part in below for each in part), einsum)
        if len(group) > _MOST_EINSUMS:
            yield from filter(_has_sums_of_terms, below)
            group = (einsum,)
        if name not in graph.outputs and graph.readers_of(name) == 1:
            inside[name] = group
        elif _has_sums_of_terms(group):
            yield group
    yield from filter(_has_sums_of_terms, inside.values())


def _has_sums_of_terms(group: Sequence[EinSum]) -> bool:
    """Whether something is to be gained beyond the order of products."""
    return any(each.aggregate == "sum" for each in group) and any(_has_terms(each.join) for each in group)


def _has_terms(expression: Scalar) -> bool:
    match expression:
        case Call(function, arguments):
            return function in ("add", "sub") or any(map(_has_terms, arguments))
        case _:
            return False


def _better(
    group: Sequence[EinSum], graph: EinGraph, known: Known, price: Pricer, names: Names
) -> tuple[float, list[EinSum]]:
    """EinSums that compute what the last of a group does, and the share of the time; none where that is too little."""
    computed = {einsum.output.tensor for einsum in group}
    inputs = {operand.tensor for einsum in group for operand in einsum.operands} - computed
    if not all(known.tensors[name].is_all_finite for name in inputs | computed):
        return 1.0, []
    before = _price(group, inputs, known, price)
    if before < _WORTH_LOOKING_SECONDS:
        return 1.0, []
    found = [
        (_price(einsums, inputs, known, price), einsums)
        for einsums in _candidates(read(group, graph), group[-1].output, known, names)
    ]
    seconds, cheapest = min(found, key=lambda pair: pair[0], default=(before, []))
    share = seconds / before
    return (share, cheapest) if share < _WORTH else (1.0, [])


def _candidates(reading: Reading, output: Reference, known: Known, names: Names) -> Iterator[list[EinSum]]:
    # That a tensor is constant or empty is not told: plans are run on other data, too.
    classes = saturate([reading.term], reading.bounds, reading.same)
    densities = {leaf: _density(leaf, known) for leaf in classes.leaves}
    sizes = sizes_of(classes, reading.bounds, densities)
    extractor = Extractor.of(classes, sizes)
    choices = [extractor.greedy(classes.roots), extractor.shared(classes.roots)]
    for term in dict.fromkeys(terms_of(choice, classes)[0] for choice in choices):
        einsums = build(term, output, reading.bounds, names)
        if einsums is not None:
            yield einsums


def _density(leaf: Reference, known: Known) -> float:
    """The share of entries that are not 0; of other fills, all."""
    tensor = known.tensors[leaf.tensor]
    if tensor.tensor.fill != 0 or not tensor.tensor.size:
        return 1.0
    return min(1.0, tensor.statistics.entries / tensor.tensor.size)


def _price(einsums: Sequence[EinSum], inputs: Collection[str], known: Known, price: Pricer) -> float:
    statistics = {name: known.tensors[name].statistics for name in inputs}
    values = {name: known.tensors[name].values for name in inputs}
    tensors = {name: known.tensors[name].tensor for name in inputs}
    graph = _graph(tuple(einsums), tensors, (einsums[-1].output.tensor,))
    whole = compensate(binarise(graph, statistics, values), statistics, values, price)
    before = Known({name: known.tensors[name] for name in inputs}, known.allows_nonfinite)
    return price_of(exact_chain(whole.einsums, before), before, price)


def _graph(einsums: tuple[EinSum, ...], inputs: Mapping[str, Tensor], outputs: tuple[str, ...]) -> EinGraph:
    """A graph with the tensors that its EinSums compute."""
    tensors = dict(inputs)
    for einsum in einsums:
        tensors[einsum.output.tensor] = result_tensor(einsum, tensors)
    return EinGraph(MappingProxyType(tensors), einsums, outputs)

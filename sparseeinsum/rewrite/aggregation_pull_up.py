"""Rewriting: aggregation pull-up: sums are taken after a join with a further factor, where that is cheaper.

A sum that is taken before another factor is met needs groups of its own. Where that factor leaves few of them, as in
A[i, k] * sum(B[i, j] * C[j, k]) with a sparse A, its terms are better met with the factor one by one, and summed after
that: what databases call a join before an aggregation.
"""

import itertools
import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference
from sparseeinsum.operators.expressions import Call, Operand
from sparseeinsum.rewrite.chains import chain_of, substituted
from sparseeinsum.rewrite.composition import chain_in, composed
from sparseeinsum.rewrite.known import Known, KnownGraph
from sparseeinsum.rewrite.names import Names
from sparseeinsum.rewrite.parts import labels_among, part_of
from sparseeinsum.rewrite.prices import Pricer, exact_chain, price_of

# What is computed otherwise must be expected to take at most this share of the time.
_WORTH = 0.9

_LEAST_ENTRIES = 1_000  # of a sum, below which starting operators takes longer than all that they do

# Of int64, a term may be beyond all numbers where the sum is not; what may be larger than this is not looked at.
_LARGEST = 2**62


def pull_up_sums(whole: KnownGraph, price: Pricer, pinned: Collection[str]) -> KnownGraph:
    """Pull sums that one product alone reads above that product, where that is cheaper.

    Only where factors close a cycle of labels: of others, another order needs no more groups, and is found by
    `binarise`. Numbers must be surely finite; what is promoted by hand or pinned stays as it is.

    Args:
        whole: The EinSums; values that turn NaN or infinite are detected.
        price: Knows what EinSums cost.
        pinned: Results whose labels to promote are given.
    """
    graph = whole.graph
    sums = frozenset(_sums(graph, pinned))
    if not sums:
        return whole
    known = whole.anew()
    later = _Later(graph, known, price, Names(graph.tensors))
    done: dict[str, EinSum] = {}
    for einsum in graph.einsums:
        written: tuple[EinSum, ...] = (einsum,)
        for name in (operand.tensor for operand in einsum.operands if operand.tensor in sums):
            better = later.cheaper(done[name], einsum)
            if better is not None:
                del done[name]
                written = better
                break
        for each in written:
            known.learn(each)
            done[each.output.tensor] = each
    return known.graph_of(done.values(), graph.outputs)


def _sums(graph: EinGraph, pinned: Collection[str]) -> Iterator[str]:
    """Sums of products that another product alone reads, with a factor that closes a cycle."""
    producers = {einsum.output.tensor: einsum for einsum in graph.einsums}
    for reader in graph.einsums:
        if len(reader.operands) != 2 or not _is_product(graph, reader) or reader.output.tensor in pinned:
            continue
        for operand, factor in (reader.operands, reversed(reader.operands)):
            part = producers.get(operand.tensor)
            if (
                part is not None
                and part.aggregate is not None
                and operand.tensor not in {*pinned, *graph.outputs}
                and graph.tensors[operand.tensor].size >= _LEAST_ENTRIES
                and graph.count_readers(operand.tensor) == 1
                and _is_product(graph, part)
                and _closes_cycle(part, operand, factor)
            ):
                yield operand.tensor


def _is_product(graph: EinGraph, einsum: EinSum) -> bool:
    if einsum.promoted or einsum.aggregate not in (None, "sum") or len(einsum.operands) != 2:
        return False
    chain = chain_in(graph, einsum)
    dtypes = {graph.tensors[operand.tensor].dtype for operand in einsum.operands}
    return chain is not None and chain.operator == "mul" and len(dtypes) == 1


def _closes_cycle(part: EinSum, operand: Reference, factor: Reference) -> bool:
    """Whether a factor has labels of a sum that no single operand of that has."""
    names = dict(zip(part.output.labels, operand.labels, strict=True))
    shared = frozenset(factor.labels) & frozenset(operand.labels)
    return not any(shared <= {names.get(label) for label in each.labels} for each in part.operands)


@dataclass(frozen=True, slots=True)
class _Later:
    """Looks for cheaper ways to compute a sum and the product that reads it.

    Attributes:
        graph: Where they stand.
        known: Tensors computed so far.
        price: Knows what EinSums cost.
        names: That are taken.
    """

    graph: EinGraph
    known: Known
    price: Pricer
    names: Names

    def cheaper(self, part: EinSum, reader: EinSum) -> tuple[EinSum, ...] | None:
        """Two EinSums in the place of two, of which the second alone sums; None where none are cheaper."""
        read = [self.known.tensors[operand.tensor] for operand in (*part.operands, *reader.operands)]
        is_small = self.known.tensors[part.output.tensor].statistics.entries < _LEAST_ENTRIES
        if is_small or not all(tensor.is_all_finite for tensor in read):
            return None
        name = self.names.invent(reader.output.tensor)
        exact = [exact_chain(way, self.known) for way in self._ways(part, reader, name)]
        ways = {price_of(each, self.price): each for each in exact if _is_surely_within_numbers(each)}
        if not ways or min(ways) >= _WORTH * price_of(exact_chain([part, reader], self.known), self.price):
            return None
        return ways[min(ways)].graph.einsums

    def _ways(self, part: EinSum, reader: EinSum, name: str) -> Iterator[tuple[EinSum, EinSum]]:
        """The product of all factors, two of them joined first under a name, and all sums taken with the third."""
        tensors = {**self.graph.tensors, **self.known.shapes()}
        (whole, *others) = composed(
            EinGraph(tensors, (part, reader), (reader.output.tensor,)), [part.output.tensor]
        ).einsums
        chain = chain_of(whole.join, whole.aggregate, [tensors[operand.tensor].dtype for operand in whole.operands])
        if others or chain is None or not all(isinstance(factor, Operand) for factor in chain.factors):
            return
        for first, second in itertools.combinations(chain.factors, 2):
            (third,) = (factor for factor in chain.factors if factor not in (first, second))
            labels = labels_among(Call(chain.operator, (first, second)), whole.operands)
            output = Reference(name, tuple(label for label in whole.labels if label in labels))
            joined = part_of(whole, whole.operands, output, Call(chain.operator, (first, second)), None)
            references = (*whole.operands, output)
            product = Call(chain.operator, (Operand(len(whole.operands)), third))
            yield (
                joined,
                part_of(whole, references, whole.output, substituted(chain.around, {0: product}), whole.aggregate),
            )


def _is_surely_within_numbers(chain: KnownGraph) -> bool:
    """Whether no value that the EinSums compute can be NaN or infinite, or overflow."""
    tensors = chain.tensors
    for name, evaluation in chain.evaluations.items():
        entries = tensors[name].values.entries
        most = _LARGEST if tensors[name].tensor.dtype == "int64" else math.inf
        if evaluation.detects_nonfinite or not entries.is_finite or entries.magnitude > most:
            return False
    return True

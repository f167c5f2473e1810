"""Rewriting: masked aggregation: sums of products are computed only where a sparse tensor has entries.

Of X * log(sum(W * H)) with a sparse X, the sum matters only where X is not 0: there it is a sum of products that begin
with a mask of X, which is 1 at its entries. Numerical libraries call such sums sampled products of dense matrices.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference
from sparseeinsum.language.scalar import PRODUCT
from sparseeinsum.operators.expressions import Call, Literal, Operand
from sparseeinsum.rewrite.known import KnownGraph
from sparseeinsum.rewrite.names import Names
from sparseeinsum.rewrite.prices import Pricer, exact_chain, price_of
from sparseeinsum.semantics.exactness import Evaluation

# What is computed otherwise must be expected to take at most this share of the time.
_WORTH = 0.5

_LEAST_ENTRIES = 10_000  # of a sum, below which it takes no time to speak of


def mask_sums(whole: KnownGraph, price: Pricer, pinned: Collection[str]) -> KnownGraph:
    """Compute sums of products only where the sparse tensor has entries that all their readers join them with.

    Only where what the readers compute of the sum is surely finite and does not matter where that tensor is absent;
    what is promoted by hand or pinned stays as it is.

    Args:
        whole: The EinSums; values that turn NaN or infinite are detected.
        price: Knows what EinSums cost.
        pinned: Results whose labels to promote are given.
    """
    graph = whole.graph
    sums = [einsum for einsum in graph.einsums if _is_sum(einsum, graph, pinned)]
    if not sums:
        return whole
    names = Names(graph.tensors)
    replaced: dict[str, Sequence[EinSum]] = {}
    for einsum in sums:
        masked = _Masking(einsum, whole, price).cheapest(names)
        if masked is not None:
            replaced[einsum.output.tensor] = masked
    if not replaced:
        return whole
    return whole.with_einsums(
        each for einsum in graph.einsums for each in replaced.get(einsum.output.tensor, (einsum,))
    )


def _is_sum(einsum: EinSum, graph: EinGraph, pinned: Collection[str]) -> bool:
    """Whether it is a large sum of products that nobody asks for."""
    name = einsum.output.tensor
    dtypes = {graph.tensors[each.tensor].dtype for each in (einsum.output, *einsum.operands)}
    is_product = einsum.aggregate == "sum" and einsum.join == PRODUCT and dtypes == {"float64"}
    is_free = name not in graph.outputs and name not in pinned and not einsum.promoted
    return is_product and is_free and graph.tensors[name].size >= _LEAST_ENTRIES


@dataclass(frozen=True, slots=True)
class _Masking:
    """Looks for a mask of a sum.

    Attributes:
        einsum: The sum.
        whole: Where it stands.
        price: Knows what EinSums cost.
    """

    einsum: EinSum
    whole: KnownGraph
    price: Pricer

    def cheapest(self, names: Names) -> Sequence[EinSum] | None:
        """EinSums in the place of the sum, of a mask, by the order of its factors; None where none are cheaper."""
        masks = [self._mask(reader) for reader in self._readers()]
        if not masks or any(mask is None or mask != masks[0] for mask in masks):
            return None
        (mask, *_) = masks
        assert mask is not None
        mask_name, name = names.invent(self.einsum.output.tensor), names.invent(self.einsum.output.tensor)
        ways = list(self._ways(mask, mask_name, name))
        chains = [exact_chain([*way, *self._readers()], self.whole) for way in ways]
        priced = [
            (price_of(chain, self.price), way) for chain, way in zip(chains, ways, strict=True) if self._is_right(chain)
        ]
        before = price_of(exact_chain([self.einsum, *self._readers()], self.whole), self.price)
        seconds, cheapest = min(priced, key=lambda pair: pair[0], default=(before, None))
        return cheapest if seconds < _WORTH * before else None

    def _readers(self) -> list[EinSum]:
        name = self.einsum.output.tensor
        return [each for each in self.whole.graph.einsums if any(operand.tensor == name for operand in each.operands)]

    def _mask(self, reader: EinSum) -> Reference | None:
        """The tensor that tells where a reader needs the sum, under labels of the sum; None where none does."""
        if len(reader.operands) != 2 or reader.promoted:
            return None
        name = self.einsum.output.tensor
        ((at, read),) = [(at, each) for at, each in enumerate(reader.operands) if each.tensor == name][:1]
        other = reader.operands[1 - at]
        if (
            other.tensor == name
            or sorted(other.labels) != sorted(set(read.labels))
            or len(read.labels) != len(set(read.labels))
        ):
            return None
        if not _leaves_out(self._evaluation(reader), 1 - at):
            return None
        labels = dict(zip(read.labels, self.einsum.output.labels, strict=True))
        return Reference(other.tensor, tuple(labels[label] for label in other.labels))

    def _evaluation(self, reader: EinSum) -> Evaluation:
        return self.whole.learned[reader.output.tensor].evaluation

    def _ways(self, masked: Reference, mask_name: str, name: str) -> Iterator[list[EinSum]]:
        tensor = self.whole.graph.tensors[masked.tensor]
        is_entry = Call("ne", (Operand(0), Literal(tensor.fill)))
        mask = EinSum(Reference(mask_name, masked.labels), (masked,), Call("where", (is_entry, _ONE, _ZERO)), None)
        for first, second in (self.einsum.operands, tuple(reversed(self.einsum.operands))):
            labels = tuple(dict.fromkeys((*masked.labels, *first.labels)))
            joined = EinSum(Reference(name, labels), (mask.output, first), PRODUCT, None)
            yield [mask, joined, EinSum(self.einsum.output, (joined.output, second), PRODUCT, "sum")]

    def _is_right(self, chain: KnownGraph) -> bool:
        """Whether readers find nothing that is not finite, and as before nothing where the mask is absent."""
        for reader in self._readers():
            name = reader.output.tensor
            now, before = chain.evaluations[name], self._evaluation(reader)
            at = next(at for at, each in enumerate(reader.operands) if each.tensor != self.einsum.output.tensor)
            if not _leaves_out(now, at) or now.constant != before.constant:
                return False
        return all(not each.detects_nonfinite for each in chain.evaluations.values())


def _leaves_out(evaluation: Evaluation, operand: int) -> bool:
    """Whether what an operand lacks is left out of a join, whatever the other operand holds there."""
    return not (evaluation.matters[operand] or evaluation.both_absent_matter) and evaluation.constant is not None


_ONE, _ZERO = Literal(1.0), Literal(0.0)

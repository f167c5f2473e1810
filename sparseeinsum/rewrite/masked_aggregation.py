"""Rewriting: masked aggregation: sums of products are computed only where a sparse tensor has entries.

In X * log(sum(W * H)) with a sparse X, the sum matters only where X is not 0. There it is replaced by a sum of products
that start with a mask, which is 1 at the entries of X. Numerical libraries call this SDDMM, a sampled product of dense
matrices.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference
from sparseeinsum.language.scalar import PRODUCT
from sparseeinsum.operators.expressions import Call, Literal, Operand
from sparseeinsum.rewrite.annotated_graphs import AnnotatedGraph
from sparseeinsum.rewrite.predicted_costs import CostPredictor, annotated_subgraph
from sparseeinsum.rewrite.unique_names import UniqueNames
from sparseeinsum.semantics.exactness import Evaluation

# A masked sum is chosen where it is expected to take at most this share of the time.
_MOST_SHARE = 0.5

_LEAST_ENTRIES = 10_000  # smaller sums take hardly any time


def mask_sums(
    annotated: AnnotatedGraph, cost: CostPredictor, pinned: Collection[str], names: UniqueNames
) -> AnnotatedGraph:
    """Compute sums of products only where the sparse tensor has entries that all their readers join them with.

    A sum is masked only if the results of its readers are surely finite and do not depend on the sum where that tensor
    is absent. Sums whose labels are promoted by hand or pinned stay as they are.

    Args:
        annotated: The EinSums; a run detects values that turn NaN or infinite.
        cost: Predicts the seconds of EinSums.
        pinned: Results whose promoted labels the user chose.
        names: Invents names of results.
    """
    graph = annotated.graph
    sums = [einsum for einsum in graph.einsums if _is_sum(einsum, graph, pinned)]
    if not sums:
        return annotated
    replaced: dict[str, Sequence[EinSum]] = {}
    for einsum in sums:
        masked = _MaskSearch(einsum, annotated, cost).cheapest(names)
        if masked is not None:
            replaced[einsum.output.tensor] = masked
    if not replaced:
        return annotated
    return annotated.with_einsums(
        part for einsum in graph.einsums for part in replaced.get(einsum.output.tensor, (einsum,))
    )


def _is_sum(einsum: EinSum, graph: EinGraph, pinned: Collection[str]) -> bool:
    """Whether an EinSum is a large sum of products of float64 that is neither an output nor pinned."""
    name = einsum.output.tensor
    dtypes = {graph.tensors[reference.tensor].dtype for reference in (einsum.output, *einsum.operands)}
    is_product = einsum.aggregate == "sum" and einsum.join == PRODUCT and dtypes == {"float64"}
    is_free = name not in graph.outputs and name not in pinned and not einsum.promoted
    return is_product and is_free and graph.tensors[name].size >= _LEAST_ENTRIES


@dataclass(frozen=True, slots=True)
class _MaskSearch:
    """Searches for a mask of a sum.

    Attributes:
        einsum: The sum.
        annotated: The graph of the sum.
        cost: Predicts the seconds of EinSums.
    """

    einsum: EinSum
    annotated: AnnotatedGraph
    cost: CostPredictor

    def cheapest(self, names: UniqueNames) -> Sequence[EinSum] | None:
        """The cheapest EinSums that compute the sum at a mask only; None where none are cheap enough."""
        masks = [self._mask(reader) for reader in self._readers()]
        if not masks or any(mask is None or mask != masks[0] for mask in masks):
            return None
        (mask, *_) = masks
        assert mask is not None
        if not self._is_sparse(mask):  # to price the masked sums takes longer than many sums
            return None
        before = annotated_subgraph([self.einsum, *self._readers()], self.annotated)
        if not self.cost.is_worth_replacing(before):
            return None
        tried = names.copy()
        mask_name, name = tried.invent(self.einsum.output.tensor), tried.invent(self.einsum.output.tensor)
        candidates = list(self._masked_sums(mask, mask_name, name))
        subgraphs = [annotated_subgraph([*candidate, *self._readers()], self.annotated) for candidate in candidates]
        priced = [
            (self.cost.seconds(subgraph), candidate)
            for subgraph, candidate in zip(subgraphs, candidates, strict=True)
            if self._is_exact(subgraph)
        ]
        seconds, cheapest = min(priced, key=lambda pair: pair[0], default=(math.inf, None))
        if seconds >= _MOST_SHARE * self.cost.seconds(before):
            return None
        names.reserve([mask_name, name])
        return cheapest

    def _is_sparse(self, mask: Reference) -> bool:
        """Whether a sum at the entries of a mask computes at most _MOST_SHARE of the products."""
        tensor = self.annotated.tensor(mask.tensor)
        return tensor.statistics.entries <= _MOST_SHARE * tensor.tensor.size

    def _readers(self) -> list[EinSum]:
        name = self.einsum.output.tensor
        return [
            einsum
            for einsum in self.annotated.graph.einsums
            if any(operand.tensor == name for operand in einsum.operands)
        ]

    def _mask(self, reader: EinSum) -> Reference | None:
        """The tensor whose entries tell where a reader needs the sum, with labels of the sum; None if there is none."""
        if len(reader.operands) != 2 or reader.promoted:
            return None
        name = self.einsum.output.tensor
        ((position, read),) = [
            (position, reference) for position, reference in enumerate(reader.operands) if reference.tensor == name
        ][:1]
        other = reader.operands[1 - position]
        if (
            other.tensor == name
            or sorted(other.labels) != sorted(set(read.labels))
            or len(read.labels) != len(set(read.labels))
        ):
            return None
        if not _ignores_absent(self._evaluation(reader), 1 - position):
            return None
        return other.relabelled(dict(zip(read.labels, self.einsum.output.labels, strict=True)))

    def _evaluation(self, reader: EinSum) -> Evaluation:
        return self.annotated.annotated[reader.output.tensor].evaluation

    def _masked_sums(self, sampled: Reference, mask_name: str, name: str) -> Iterator[list[EinSum]]:
        """The EinSums of a masked sum, for either order of its two factors: mask, masked factor, sum."""
        tensor = self.annotated.graph.tensors[sampled.tensor]
        is_entry = Call("ne", (Operand(0), Literal(tensor.fill)))
        mask = EinSum(Reference(mask_name, sampled.labels), (sampled,), Call("where", (is_entry, _ONE, _ZERO)), None)
        for first, second in (self.einsum.operands, tuple(reversed(self.einsum.operands))):
            labels = tuple(dict.fromkeys((*sampled.labels, *first.labels)))
            joined = EinSum(Reference(name, labels), (mask.output, first), PRODUCT, None)
            yield [mask, joined, EinSum(self.einsum.output, (joined.output, second), PRODUCT, "sum")]

    def _is_exact(self, subgraph: AnnotatedGraph) -> bool:
        """Whether the readers surely stay finite, and their results where the mask is absent stay the same."""
        for reader in self._readers():
            name = reader.output.tensor
            evaluation, before = subgraph.evaluations[name], self._evaluation(reader)
            position = next(
                position
                for position, operand in enumerate(reader.operands)
                if operand.tensor != self.einsum.output.tensor
            )
            if not _ignores_absent(evaluation, position) or evaluation.constant != before.constant:
                return False
        return all(not evaluation.detects_nonfinite for evaluation in subgraph.evaluations.values())


def _ignores_absent(evaluation: Evaluation, operand: int) -> bool:
    """Whether a join leaves out the absent entries of an operand, whatever the other operand holds there."""
    return not (evaluation.matters[operand] or evaluation.joint_absence_matters) and evaluation.constant is not None


_ONE, _ZERO = Literal(1.0), Literal(0.0)

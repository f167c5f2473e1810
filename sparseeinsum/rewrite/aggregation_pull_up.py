"""Rewriting: aggregation pull-up: sums are taken after a join with a further factor, where that is cheaper.

A sum that is taken before the join with another factor has a group for each of its own results. Where few of those
match that factor, as in A[i, k] * sum(B[i, j] * C[j, k]) with a sparse A, it is cheaper to join each term with the
factor first and to sum afterwards. Databases call this aggregation pull-up.
"""

import itertools
import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference
from sparseeinsum.operators.expressions import Call, Operand
from sparseeinsum.rewrite.annotated_graphs import AnnotatedGraph, GraphAnnotator
from sparseeinsum.rewrite.chains import as_chain, substitute
from sparseeinsum.rewrite.einsum_parts import labels_among, part_of
from sparseeinsum.rewrite.inlining import chain_in_graph, inline
from sparseeinsum.rewrite.predicted_costs import CostPredictor, annotated_subgraph
from sparseeinsum.rewrite.unique_names import UniqueNames

# A sum is pulled up where that is expected to take at most this share of the time.
_MOST_SHARE = 0.9

# A term of int64 may overflow where the sum does not; sums whose values may be larger than this are not pulled up.
_LARGEST = 2**62


def pull_up_sums(
    annotated: AnnotatedGraph, cost: CostPredictor, pinned: Collection[str], names: UniqueNames
) -> AnnotatedGraph:
    """Pull sums that only one product reads above that product, where that is cheaper.

    This is done only where the factor of that product closes a cycle of labels. Elsewhere, another contraction order
    needs no more groups, and `binarise` finds it. Numbers must be surely finite. EinSums that are promoted by hand or
    pinned stay as they are.

    Args:
        annotated: The EinSums; a run detects values that turn NaN or infinite.
        cost: Predicts the seconds of EinSums.
        pinned: Results whose promoted labels the user chose.
        names: Invents names of results.
    """
    graph = annotated.graph
    sums = frozenset(_sums(graph, pinned))
    if not sums:
        return annotated
    annotator = annotated.annotator()
    pull_up = _PullUp(graph, annotator, cost, names)
    rewritten: dict[str, EinSum] = {}
    for einsum in graph.einsums:
        statements: tuple[EinSum, ...] = (einsum,)
        for name in (operand.tensor for operand in einsum.operands if operand.tensor in sums):
            pair = pull_up.cheaper_pair(rewritten[name], einsum)
            if pair is not None:
                del rewritten[name]
                statements = pair
                break
        for statement in statements:
            annotator.add(statement)
            rewritten[statement.output.tensor] = statement
    return annotator.graph_of(rewritten.values(), graph.outputs)


def _sums(graph: EinGraph, pinned: Collection[str]) -> Iterator[str]:
    """The sums of products that only one other product reads, whose further factor closes a cycle."""
    readers = graph.count_readers()
    parts = {
        einsum.output.tensor: einsum
        for einsum in graph.einsums
        if einsum.aggregate is not None
        and readers[einsum.output.tensor] == 1
        and einsum.output.tensor not in {*pinned, *graph.outputs}
    }
    for reader in graph.einsums:
        if len(reader.operands) != 2 or reader.output.tensor in pinned:
            continue
        for operand, factor in (reader.operands, reversed(reader.operands)):
            part = parts.get(operand.tensor)
            is_cycle = part is not None and _closes_cycle(part, operand, factor)
            if part is not None and is_cycle and _is_product(graph, part) and _is_product(graph, reader):
                yield operand.tensor


def _is_product(graph: EinGraph, einsum: EinSum) -> bool:
    if einsum.promoted or einsum.aggregate not in (None, "sum") or len(einsum.operands) != 2:
        return False
    chain = chain_in_graph(graph, einsum)
    dtypes = {graph.tensors[operand.tensor].dtype for operand in einsum.operands}
    return chain is not None and chain.operator == "mul" and len(dtypes) == 1


def _closes_cycle(part: EinSum, operand: Reference, factor: Reference) -> bool:
    """Whether the labels that `factor` shares with the result of `part` belong to no single operand of `part`."""
    names = dict(zip(part.output.labels, operand.labels, strict=True))
    shared = frozenset(factor.labels) & frozenset(operand.labels)
    return not any(shared <= {names.get(label) for label in inner.labels} for inner in part.operands)


@dataclass(frozen=True, slots=True)
class _PullUp:
    """Searches for a cheaper way to compute a sum and the product that reads it.

    Attributes:
        graph: The graph of both.
        annotator: Has the tensors computed so far.
        cost: Predicts the seconds of EinSums.
        names: Invents names of results.
    """

    graph: EinGraph
    annotator: GraphAnnotator
    cost: CostPredictor
    names: UniqueNames

    def cheaper_pair(self, part: EinSum, reader: EinSum) -> tuple[EinSum, ...] | None:
        """Two EinSums in the place of `part` and `reader`, only the second of which sums; None where not cheaper."""
        read = [self.annotator.tensors[operand.tensor] for operand in (*part.operands, *reader.operands)]
        if not all(tensor.is_all_finite for tensor in read):
            return None
        least, pair = self.cost.least_seconds_of(2), (part, reader)
        if least >= _MOST_SHARE * sum(map(self.cost.most_seconds, map(self.annotator.annotation_of, pair))):
            return None
        before = annotated_subgraph(pair, self.annotator)
        if least >= _MOST_SHARE * self.cost.seconds(before):
            return None
        name = self.names.invent(reader.output.tensor)
        candidates = [annotated_subgraph(pair, self.annotator) for pair in self._pulled_up(part, reader, name)]
        by_seconds = {
            self.cost.seconds(candidate): candidate for candidate in candidates if _is_surely_within_numbers(candidate)
        }
        if not by_seconds or min(by_seconds) >= _MOST_SHARE * self.cost.seconds(before):
            return None
        return by_seconds[min(by_seconds)].graph.einsums

    def _pulled_up(self, part: EinSum, reader: EinSum, name: str) -> Iterator[tuple[EinSum, EinSum]]:
        """Pairs of EinSums: the first joins two of the three factors, the second joins the third and sums.

        Args:
            part: The sum of a product of two factors.
            reader: The product of that sum and the third factor.
            name: The name of the result of the first EinSum.
        """
        tensors = {**self.graph.tensors, **self.annotator.plain_tensors()}
        (product, *not_inlined) = inline(
            EinGraph(tensors, (part, reader), (reader.output.tensor,)), [part.output.tensor]
        ).einsums
        chain = as_chain(
            product.join, product.aggregate, [tensors[operand.tensor].dtype for operand in product.operands]
        )
        if not_inlined or chain is None or not all(isinstance(factor, Operand) for factor in chain.factors):
            return
        for first, second in itertools.combinations(chain.factors, 2):
            (third,) = (factor for factor in chain.factors if factor not in (first, second))
            labels = labels_among(Call(chain.operator, (first, second)), product.operands)
            output = Reference(name, tuple(label for label in product.labels if label in labels))
            joined = part_of(product, product.operands, output, Call(chain.operator, (first, second)), None)
            references = (*product.operands, output)
            last_join = Call(chain.operator, (Operand(len(product.operands)), third))
            yield (
                joined,
                part_of(
                    product, references, product.output, substitute(chain.enclosing, {0: last_join}), product.aggregate
                ),
            )


def _is_surely_within_numbers(annotated: AnnotatedGraph) -> bool:
    """Whether no value that the EinSums compute can be NaN or infinite, or overflow."""
    tensors = annotated.tensors
    for name, evaluation in annotated.evaluations.items():
        entries = tensors[name].values.entries
        most = _LARGEST if tensors[name].tensor.dtype == "int64" else math.inf
        if evaluation.detects_nonfinite or not entries.is_finite or entries.magnitude > most:
            return False
    return True

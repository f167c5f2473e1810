"""Rewriting: keeps the search for the first index at which a condition holds sparse, as in argmax.

P[i] = min[j](where(C(x[i, j], m[i]), j, n)) over n indices asks for every index of x whether C holds, also where x has
its fill f. But C(f, m[i]) does not depend on j: where it holds, all absent indices of x match, and the first of them is
0 or follows a stored index of x. So, with E[i, j] = x[i, j] != f and C(f, m[i]),

    S[i] = min[j](where(x[i, j] != f and C(x[i, j], m[i]), j, n))
    G[i] = min[j](where(E[i, j] and not E[i, j + 1], j + 1, n)), or 0 where not E[i, 0]
    P[i] = min(S[i], where(C(f, m[i]), G[i], n))

These read stored entries only. A generated tensor of successors has the pairs of indices j, j + 1.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from sparseeinsum.language.eingraph import EinGraph, EinSum, Promoted, Reference, needed_einsums
from sparseeinsum.language.scalar import operands_of
from sparseeinsum.language.tensors import Axis, Tensor
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar
from sparseeinsum.rewrite.annotated_graphs import AnnotatedGraph, GraphAnnotator
from sparseeinsum.rewrite.chains import substitute
from sparseeinsum.rewrite.predicted_costs import CostPredictor, annotated_subgraph
from sparseeinsum.rewrite.unique_names import UniqueNames

_U, _V = Operand(0), Operand(1)
_FOLLOWING = "following"  # the second axis of a tensor of successors

# The rewritten search is chosen where it is expected to take at most this share of the time: predicted costs lack the
# time to plan and start more EinSums.
_MOST_SHARE = 0.5


def successors_needed(graph: EinGraph, indices: Mapping[str, str]) -> dict[str, Tensor]:
    """The tensors of successors that rewriting may need, by the vector of indices that they belong to.

    Args:
        graph: The graph as it is written.
        indices: Labels of the generated vectors of indices, by the names of the vectors.
    """
    names = UniqueNames(graph.tensors)
    successors: dict[str, Tensor] = {}
    for einsum in graph.einsums:
        match einsum.join:
            case Call("where", (_, Operand(position), Literal())) if einsum.aggregate == "min":
                vector = einsum.operands[position].tensor
                if vector in indices and vector not in successors:
                    (axis,) = graph.tensors[vector].axes
                    axes = (axis, Axis(_FOLLOWING, axis.bound))
                    successors[vector] = Tensor(names.invent(f"after_{indices[vector]}"), axes, "bool", fill=False)
    return successors


def rewrite_first_matches(
    annotated: AnnotatedGraph, successors: Mapping[str, str], cost: CostPredictor
) -> AnnotatedGraph:
    """Replace searches that make a sparse operand dense by searches of its stored entries, where that is cheaper.

    Args:
        annotated: The EinSums; a run detects values that turn NaN or infinite.
        successors: Names of tensors of successors, by the vector of indices that they belong to.
        cost: Predicts the seconds of EinSums.
    """
    if not successors:
        return annotated
    graph, annotator = annotated.graph, annotated.annotator()
    names = UniqueNames(graph.tensors)
    earlier: dict[str, EinSum] = {}
    einsums: list[EinSum] = []
    for einsum in graph.einsums:
        search = _as_search(einsum, earlier, successors, annotator)
        replacement = None if search is None else _if_cheaper(search, annotator, names, cost)
        for part in replacement or (einsum,):
            annotator.add(part)
            einsums.append(part)
        earlier[einsum.output.tensor] = einsum
    return annotator.graph_of(needed_einsums(einsums, graph.outputs), graph.outputs)


@dataclass(frozen=True, slots=True)
class _FirstMatchSearch:
    """The EinSum min[j](where(condition(x, m), index, bound)).

    Attributes:
        einsum: The EinSum itself.
        condition: The EinSum that computes its condition.
        x: The operand of the condition that has the label j.
        m: The other operand of the condition, which lacks j.
        test: The condition as an expression of x and m.
        fill: The fill of x.
        index: The vector of indices.
        successor: Name of the tensor of successors.
        bound: The number of indices.
    """

    einsum: EinSum
    condition: EinSum
    x: Reference
    m: Reference
    test: Scalar
    fill: Literal
    index: Reference
    successor: str
    bound: Literal

    def at_fill(self, m: Scalar) -> Scalar:
        """The condition where x holds its fill."""
        return substitute(self.test, {0: self.fill, 1: m})

    @property
    def label(self) -> str:
        """The label whose indices are searched."""
        return self.index.labels[0]


def _as_search(
    einsum: EinSum, earlier: Mapping[str, EinSum], successors: Mapping[str, str], annotator: GraphAnnotator
) -> _FirstMatchSearch | None:
    """An EinSum as a search for the first match; None where it is none that can be rewritten.

    Args:
        einsum: Any EinSum.
        earlier: The EinSums before it, by their results.
        successors: Names of tensors of successors, by the vector of indices that they belong to.
        annotator: Has the operands.
    """
    match einsum.join:
        case Call("where", (Operand(first), Operand(second), Literal() as bound)) if einsum.aggregate == "min":
            condition_result, index = einsum.operands[first], einsum.operands[second]
        case _:
            return None
    condition = earlier.get(condition_result.tensor)
    if condition is None or index.tensor not in successors or einsum.aggregated != index.labels:
        return None
    if condition.aggregate is not None or len(condition.operands) != 2 or bound.value != _bound(index, annotator):
        return None
    renamed = dict(zip(condition.output.labels, condition_result.labels, strict=True))
    operands = [reference.relabelled(renamed) for reference in condition.operands]
    (label,) = index.labels
    with_label = [position for position, reference in enumerate(operands) if label in reference.labels]
    if len(with_label) != 1 or any(
        len(set(reference.labels)) < len(reference.labels) for reference in (condition_result, *operands)
    ):
        return None
    x, m = operands[with_label[0]], operands[1 - with_label[0]]
    test = substitute(condition.join, {with_label[0]: _U, 1 - with_label[0]: _V})
    fill = Literal(annotator.tensors[x.tensor].tensor.fill)
    successor = successors[index.tensor]
    return _FirstMatchSearch(einsum, condition, x, m, test, fill, index, successor, bound)


def _bound(index: Reference, annotator: GraphAnnotator) -> int:
    (bound,) = annotator.tensors[index.tensor].tensor.shape
    return bound


def _if_cheaper(
    search: _FirstMatchSearch, annotator: GraphAnnotator, names: UniqueNames, cost: CostPredictor
) -> tuple[EinSum, ...] | None:
    """The EinSums that do the `search` on stored entries, if they are cheaper; None where they are not."""
    if search.bound.value == 0 or not annotator.tensors[search.x.tensor].values.has_fill:
        return None
    if operands_of(search.at_fill(_V)) != {1}:
        return None
    sparse_einsums = tuple(_SparseSearch(search, names).einsums())
    written, rewritten = (
        annotated_subgraph([search.condition, search.einsum], annotator),
        annotated_subgraph(sparse_einsums, annotator),
    )
    return sparse_einsums if cost.seconds(rewritten) < _MOST_SHARE * cost.seconds(written) else None


@dataclass(slots=True)
class _SparseSearch:
    """Writes the EinSums that search stored entries only."""

    search: _FirstMatchSearch
    names: UniqueNames
    sparse_einsums: list[EinSum] = field(default_factory=list)

    def einsums(self) -> Iterator[EinSum]:
        """The EinSums in topological order; the last one computes the result."""
        search, label = self.search, self.search.label
        result_labels = search.einsum.output.labels
        all_labels = tuple(dict.fromkeys((*search.x.labels, *search.m.labels)))
        is_entry = Call("ne", (_U, search.fill))
        following = self._new_label(all_labels)

        stored_match = self._add(all_labels, (search.x, search.m), Call("and", (is_entry, search.test)))
        first_stored = self._add(
            result_labels, (stored_match, search.index), Call("where", (_U, _V, search.bound)), "min"
        )
        occupied = self._add(all_labels, (search.x, search.m), Call("and", (is_entry, search.at_fill(_V))))
        shifted = Reference(occupied.tensor, tuple(following if name == label else name for name in all_labels))
        successor = Reference(search.successor, (label, following))
        followed_by_occupied = self._add(all_labels, (shifted, successor), Call("and", (_U, _V)), "any")
        run_end = self._add(all_labels, (occupied, followed_by_occupied), Call("and", (_U, Call("not", (_V,)))))
        after = Call("where", (_U, Call("add", (_V, Literal(1))), search.bound))
        first_after_run = self._add(result_labels, (run_end, search.index), after, "min")
        starts_occupied = self._add(
            result_labels, (occupied, search.index), Call("and", (_U, Call("eq", (_V, Literal(0))))), "any"
        )
        first_absent = self._add(result_labels, (starts_occupied, first_after_run), Call("where", (_U, _V, Literal(0))))
        if_absent_match = Call("where", (search.at_fill(_U), _V, search.bound))
        first_absent_match = self._add(result_labels, (search.m, first_absent), if_absent_match)
        yield from self.sparse_einsums
        yield replace(
            search.einsum, operands=(first_stored, first_absent_match), join=Call("min", (_U, _V)), aggregate=None
        )

    def _new_label(self, labels: tuple[str, ...]) -> str:
        label = _FOLLOWING
        while label in labels:
            label += "_"
        return label

    def _add(
        self, labels: tuple[str, ...], operands: tuple[Reference, ...], join: Scalar, aggregate: str | None = None
    ) -> Reference:
        einsum = self.search.einsum
        output = Reference(self.names.invent(einsum.output.tensor), labels)
        used = frozenset(labels).union(*(operand.labels for operand in operands))
        promoted: Promoted = einsum.promoted_among(used)
        self.sparse_einsums.append(EinSum(output, operands, join, aggregate, promoted))
        return output

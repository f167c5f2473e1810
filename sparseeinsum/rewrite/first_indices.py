"""Rewriting: the least index at which a condition holds in; the same without making what is absent present out.

P[i] = min[j](where(C(x[i, j], m[i]), j, n)) over n indices, as argmax is, asks for every index of x whether C(f, m[i])
holds, where f is the fill. But that does not depend on j: where it holds, all indices that x lacks count, and the first
of them is 0, or follows an index that x has. So, with E[i, j] = x[i, j] != f and C(f, m[i]),

    S[i] = min[j](where(x[i, j] != f and C(x[i, j], m[i]), j, n))
    G[i] = min[j](where(E[i, j] and not E[i, j + 1], j + 1, n)), or 0 where not E[i, 0]
    P[i] = min(S[i], where(C(f, m[i]), G[i], n))

which read entries alone, for all values. A generated tensor tells which index follows which.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from sparseeinsum.language.eingraph import EinGraph, EinSum, Promoted, Reference
from sparseeinsum.language.scalar import operands_of
from sparseeinsum.language.tensors import Axis, Tensor
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar
from sparseeinsum.rewrite.chains import substituted
from sparseeinsum.rewrite.known import Known, KnownGraph
from sparseeinsum.rewrite.names import Names
from sparseeinsum.rewrite.prices import Pricer, exact_chain, price_of

_U, _V = Operand(0), Operand(1)
_FOLLOWING = "following"  # the second axis of a tensor of successors

# More results take more to plan and to run than a price says: they must be cheaper by so much.
_WORTH = 0.5


def successors_needed(graph: EinGraph, indices: Mapping[str, str]) -> dict[str, Tensor]:
    """Tensors that tell which index follows which, which rewriting may need, by the vector of those indices.

    Args:
        graph: As it is written.
        indices: Labels of the generated vectors of indices, by their names.
    """
    names = Names(graph.tensors)
    found: dict[str, Tensor] = {}
    for einsum in graph.einsums:
        match einsum.join:
            case Call("where", (_, Operand(position), Literal())) if einsum.aggregate == "min":
                vector = einsum.operands[position].tensor
                if vector in indices and vector not in found:
                    (axis,) = graph.tensors[vector].axes
                    axes = (axis, Axis(_FOLLOWING, axis.bound))
                    found[vector] = Tensor(names.invent(f"after_{indices[vector]}"), axes, "bool", fill=False)
    return found


def find_first_indices(whole: KnownGraph, successors: Mapping[str, str], price: Pricer) -> KnownGraph:
    """Replace searches for the least index that make what is absent present, where it is cheaper not to.

    Args:
        whole: The EinSums; values that turn NaN or infinite are detected.
        successors: Names of tensors that tell which index follows which, by the vector of those indices.
        price: Knows what EinSums cost.
    """
    if not successors:
        return whole
    graph, known = whole.graph, whole.anew()
    names = Names(graph.tensors)
    before: dict[str, EinSum] = {}
    einsums: list[EinSum] = []
    for einsum in graph.einsums:
        search = _search(einsum, before, successors, known)
        parts = None if search is None else _cheaper(search, known, names, price)
        for part in parts or (einsum,):
            known.learn(part)
            einsums.append(part)
        before[einsum.output.tensor] = einsum
    return known.graph_of(_read(einsums, graph), graph.outputs)


def _read(einsums: list[EinSum], graph: EinGraph) -> list[EinSum]:
    """Those whose results are read, or returned."""
    needed = set(graph.outputs)
    kept = []
    for einsum in reversed(einsums):
        if einsum.output.tensor in needed:
            kept.append(einsum)
            needed |= {operand.tensor for operand in einsum.operands}
    return kept[::-1]


@dataclass(frozen=True, slots=True)
class _Search:
    """min[j](where(condition(x, m), index, bound)).

    Attributes:
        einsum: As it stands.
        condition: The EinSum that its condition is the result of.
        x: The operand of the condition that has the label; its fill.
        m: The one that lacks it.
        test: The condition, of x and m.
        fill: Of x.
        index: The vector of indices.
        successor: Name of the tensor that tells which index follows which.
        bound: How many indices there are.
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
        return substituted(self.test, {0: self.fill, 1: m})

    @property
    def label(self) -> str:
        """The label whose indices are searched."""
        return self.index.labels[0]


def _search(
    einsum: EinSum, before: Mapping[str, EinSum], successors: Mapping[str, str], known: Known
) -> _Search | None:
    """An EinSum as a search for the least index; None where it is none, or none that this room knows to rewrite."""
    match einsum.join:
        case Call("where", (Operand(first), Operand(second), Literal() as bound)) if einsum.aggregate == "min":
            asked, index = einsum.operands[first], einsum.operands[second]
        case _:
            return None
    condition = before.get(asked.tensor)
    if condition is None or index.tensor not in successors or einsum.aggregated != index.labels:
        return None
    if condition.aggregate is not None or len(condition.operands) != 2 or bound.value != _bound(index, known):
        return None
    renamed = dict(zip(condition.output.labels, asked.labels, strict=True))
    operands = [Reference(each.tensor, tuple(renamed[label] for label in each.labels)) for each in condition.operands]
    (label,) = index.labels
    having = [position for position, each in enumerate(operands) if label in each.labels]
    if len(having) != 1 or any(len(set(each.labels)) < len(each.labels) for each in (asked, *operands)):
        return None
    x, m = operands[having[0]], operands[1 - having[0]]
    test = substituted(condition.join, {having[0]: _U, 1 - having[0]: _V})
    fill = Literal(known.tensors[x.tensor].tensor.fill)
    successor = successors[index.tensor]
    return _Search(einsum, condition, x, m, test, fill, index, successor, bound)


def _bound(index: Reference, known: Known) -> int:
    (bound,) = known.tensors[index.tensor].tensor.shape
    return bound


def _cheaper(search: _Search, known: Known, names: Names, price: Pricer) -> tuple[EinSum, ...] | None:
    """EinSums that find the same, if they are cheaper."""
    if search.bound.value == 0 or not known.tensors[search.x.tensor].values.has_fill:
        return None
    if operands_of(search.at_fill(_V)) != {1}:
        return None
    parts = tuple(_Parts(search, names).einsums())
    together, apart = exact_chain([search.condition, search.einsum], known), exact_chain(parts, known)
    return parts if price_of(apart, price) < _WORTH * price_of(together, price) else None


@dataclass(slots=True)
class _Parts:
    """EinSums that search without making what is absent present."""

    search: _Search
    names: Names
    done: list[EinSum] = field(default_factory=list)

    def einsums(self) -> Iterator[EinSum]:
        """All of them; the last one computes the result."""
        search, label = self.search, self.search.label
        out = search.einsum.output.labels
        both = tuple(dict.fromkeys((*search.x.labels, *search.m.labels)))
        is_entry = Call("ne", (_U, search.fill))
        following = self._label_beside(both)

        met = self._add(both, (search.x, search.m), Call("and", (is_entry, search.test)))
        stored = self._add(out, (met, search.index), Call("where", (_U, _V, search.bound)), "min")
        taken = self._add(both, (search.x, search.m), Call("and", (is_entry, search.at_fill(_V))))
        shifted = Reference(taken.tensor, tuple(following if each == label else each for each in both))
        successor = Reference(search.successor, (label, following))
        followed = self._add(both, (shifted, successor), Call("and", (_U, _V)), "any")
        ending = self._add(both, (taken, followed), Call("and", (_U, Call("not", (_V,)))))
        after = Call("where", (_U, Call("add", (_V, Literal(1))), search.bound))
        free = self._add(out, (ending, search.index), after, "min")
        begins = self._add(out, (taken, search.index), Call("and", (_U, Call("eq", (_V, Literal(0))))), "any")
        absent = self._add(out, (begins, free), Call("where", (_U, _V, Literal(0))))
        counted = Call("where", (search.at_fill(_U), _V, search.bound))
        wanted = self._add(out, (search.m, absent), counted)
        yield from self.done
        yield replace(search.einsum, operands=(stored, wanted), join=Call("min", (_U, _V)), aggregate=None)

    def _label_beside(self, labels: tuple[str, ...]) -> str:
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
        self.done.append(EinSum(output, operands, join, aggregate, promoted))
        return output

"""Rewriting: an EinGraph whose EinSums have any number of operands in, one of EinSums of one or two operands out."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference
from sparseeinsum.language.inference import bounds_of
from sparseeinsum.language.scalar import evaluate, operands_of
from sparseeinsum.language.tensors import Tensor
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.records import Law
from sparseeinsum.rewrite.chains import Chain, chain_of, substituted
from sparseeinsum.rewrite.contraction import find_order, steps
from sparseeinsum.rewrite.known import Known, KnownGraph, KnownTensor
from sparseeinsum.rewrite.names import Names
from sparseeinsum.rewrite.network import Estimates, Network, is_as_precise
from sparseeinsum.rewrite.parts import labels_among, part_of
from sparseeinsum.rewrite.real_parts import with_real_parts
from sparseeinsum.statistics.estimate import LabelStatistics, dense_statistics

MOST_OPERANDS = 2

# Sums of these may be multiplied by a constant afterwards: but for rounding, that is the same.
_ROUNDED = frozenset(("float64", "float32", "complex128", "complex64"))

# An aggregate over a label that one factor alone has is taken first where it leaves at most this share of the entries.
_WORTH_REDUCING = 0.5


def binarise(graph: EinGraph, known: Known) -> KnownGraph:
    """Replace every EinSum of more than two operands by several of one or two, which compute the same.

    Intermediate results get names that no tensor has. Operands that one associative operator joins are contracted in
    the order that is expected to be cheapest; other expressions are computed from the inside out.

    Args:
        graph: EinSums in topological order.
        known: The inputs.
    """
    known = known.of(known.tensors)  # what is learned here is handed on in the graph alone
    names = Names(graph.tensors)
    einsums: list[EinSum] = []
    for written in graph.einsums:
        for einsum in with_real_parts(written, known, names):
            parts = _Breaking(einsum, known, names).parts() if _may_break(einsum, known) else [einsum]
            known.learn(parts[-1])
            einsums.extend(parts)
    return known.graph_of(einsums, graph.outputs)


def _may_break(einsum: EinSum, known: Known) -> bool:
    """Whether there are too many operands, or one of two that may lose a label first, or constants in a sum of two."""
    if not einsum.is_rewritable:
        return False
    if len(einsum.operands) != MOST_OPERANDS:
        return len(einsum.operands) > MOST_OPERANDS
    chain = chain_of(
        einsum.join, einsum.aggregate, [known.tensors[each.tensor].tensor.dtype for each in einsum.operands]
    )
    if einsum.aggregate == "sum" and chain is not None and chain.operator == "mul" and chain.around != Operand(0):
        return True
    first, second = (frozenset(operand.labels) for operand in einsum.operands)
    return not (first ^ second) <= frozenset(einsum.output.labels)


@dataclass(slots=True)
class _Breaking:
    """Breaks one EinSum up.

    Expressions are of references, by their position; every intermediate result adds one.
    """

    einsum: EinSum
    known: Known
    names: Names
    references: list[Reference] = field(default_factory=list)
    done: list[EinSum] = field(default_factory=list)

    def parts(self) -> list[EinSum]:
        """EinSums in topological order; the last one computes the result and is not learnt yet."""
        self.references = list(self.einsum.operands)
        output = self.einsum.output
        join = self._joined(self.einsum.join, self.einsum.aggregate, frozenset(output.labels))
        return [*self.done, self._einsum(output, join, self.einsum.aggregate)]

    def _narrowed(self, expression: Scalar, aggregate: str | None, wanted: frozenset[str]) -> Scalar:
        """An expression of at most two references with the same aggregate over the labels that are not wanted."""
        few = len(operands_of(expression)) <= MOST_OPERANDS
        return expression if few else self._joined(expression, aggregate, wanted)

    def _joined(self, expression: Scalar, aggregate: str | None, wanted: frozenset[str]) -> Scalar:
        """The same, of two or more references."""
        chain = chain_of(expression, aggregate, [self._tensor(reference).dtype for reference in self.references])
        if chain is not None:
            return self._contracted(chain, aggregate, wanted)
        if len(operands_of(expression)) <= MOST_OPERANDS:
            return expression
        assert isinstance(expression, Call)
        with_operands = [argument for argument in expression.arguments if operands_of(argument)]
        if len(with_operands) == 1:
            narrow = [
                self._narrowed(argument, None, self._labels(argument)) if argument in with_operands else argument
                for argument in expression.arguments
            ]
        else:
            narrow = [self._materialised(argument) for argument in expression.arguments]
        narrowed = Call(expression.function, tuple(narrow))
        return narrowed if len(operands_of(narrowed)) <= MOST_OPERANDS else self._chosen(narrowed)

    def _chosen(self, where: Call) -> Scalar:
        """where(c, a, b) of three operands, by two: what holds where c does, and what holds elsewhere."""
        condition, first, second = where.arguments
        nothing = Literal(False)
        halves = (Call("where", (condition, first, nothing)), Call("where", (condition, nothing, second)))
        return Call("add", tuple(self._materialised(half) for half in halves))

    def _materialised(self, expression: Scalar) -> Scalar:
        """The expression as an operand of its own, where it has more than one."""
        if len(operands_of(expression)) <= 1:
            return expression
        return self._computed(expression, None, self._labels(expression))

    def _computed(self, expression: Scalar, aggregate: str | None, wanted: frozenset[str]) -> Scalar:
        """A new result: the aggregate of an expression over the labels that are not wanted."""
        join = self._narrowed(expression, aggregate, wanted)
        name = self.names.invent(self.einsum.output.tensor)
        labels = tuple(label for label in self.einsum.labels if label in wanted)
        einsum = self._einsum(Reference(name, labels), join, aggregate)
        self.known.learn(einsum)
        self.done.append(einsum)
        self.references.append(einsum.output)
        return Operand(len(self.references) - 1)

    def _einsum(self, output: Reference, join: Scalar, aggregate: str | None) -> EinSum:
        return part_of(self.einsum, self.references, output, join, aggregate)

    def _labels(self, expression: Scalar) -> frozenset[str]:
        return labels_among(expression, self.references)

    def _tensor(self, reference: Reference) -> Tensor:
        return self.known.tensors[reference.tensor].tensor

    def _contracted(self, chain: Chain, aggregate: str | None, wanted: frozenset[str]) -> Scalar:
        """The last pair of a chain, after all others are computed."""
        factors = [
            self._materialised(factor) if len(operands_of(factor)) > MOST_OPERANDS else self._masked(factor, chain)
            for factor in chain.factors
        ]
        results = [self._result(factor) for factor in factors]
        is_early = chain.distributes(aggregate) and self._is_safe(chain.operator, aggregate, wanted, results)
        dtypes = [result.tensor.dtype for result in results]
        for position, factor in enumerate(factors):
            labels = [self._labels(each) for each in factors]
            needed = labels[position].intersection(wanted.union(*labels[:position], *labels[position + 1 :]))
            is_reducible = is_early and is_as_precise(dtypes[position : position + 1], dtypes)
            factors[position] = self._single(factor, aggregate, needed if is_reducible else labels[position])
        return self._last_pair(chain, factors, aggregate, wanted, is_early)

    def _masked(self, factor: Scalar, chain: Chain) -> Scalar:
        """A factor of two operands, computed only where another factor is not 0, if that is less.

        As of A[i, j] * (X[i] - Y[j]) ^ 2: all differences are many more than A has entries.
        """
        if chain.operator not in ("mul", "and") or len(operands_of(factor)) < MOST_OPERANDS:
            return factor
        operands = [Operand(position) for position in sorted(operands_of(factor))]
        nothing = evaluate(factor, [0] * len(self.references))
        if not np.isfinite(nothing) or not all(self._result(each).is_all_finite for each in (factor, *operands)):
            return factor
        for mask in sorted((each for each in chain.factors if len(operands_of(each)) == 1), key=self._entries):
            labels = self._labels(mask) | self._labels(factor)
            if all(self._labels(mask) | self._labels(operand) == labels for operand in operands):
                return self._where(mask, factor, operands) if self._is_narrow(mask, factor, operands[0]) else factor
        return factor

    def _is_narrow(self, mask: Scalar, factor: Scalar, operand: Operand) -> bool:
        output = Reference(self.einsum.output.tensor, self._ordered(self._labels(mask) | self._labels(operand)))
        masked = self.known.result(self._einsum(output, _masked(operand, mask), None))
        work = (1 + MOST_OPERANDS) * masked.statistics.entries  # either operand masked, and the factor of them
        return masked.tensor.fill == 0 and work < self._entries(factor)

    def _where(self, mask: Scalar, factor: Scalar, operands: list[Operand]) -> Scalar:
        found = {operand.index: self._materialised(_masked(operand, mask)) for operand in operands}
        return substituted(factor, found)

    def _entries(self, factor: Scalar) -> float:
        return self._result(factor).statistics.entries

    def _result(self, factor: Scalar) -> KnownTensor:
        """What a factor of one or two operands has for values, entries and labels."""
        if isinstance(factor, Operand) and not _repeats(self.references[factor.index]):
            return self.known.tensors[self.references[factor.index].tensor]
        output = Reference(self.einsum.output.tensor, self._result_labels(factor))
        return self.known.result(self._einsum(output, factor, None))

    def _is_safe(
        self, operator: str, aggregate: str | None, wanted: frozenset[str], factors: Iterable[KnownTensor]
    ) -> bool:
        """Whether values are such that aggregating a part first gives the same.

        Not where 0 meets infinity or infinities of both signs meet, which gives NaN only at some indices; nor where a
        label has no index, since the int64 that max and min of nothing give is as large as can be.
        """
        bounds = bounds_of(self.einsum, self.known.shapes())
        orders = aggregate is not None and FUNCTIONS[AGGREGATES[aggregate].combine].law == Law.ORDER
        if orders and not all(bounds[label] for label in bounds if label not in wanted):
            return False
        match operator:
            case "mul":
                return all(factor.is_all_finite for factor in factors)
            case "add":
                return all(factor.has_none_of(-math.inf if aggregate == "min" else math.inf) for factor in factors)
            case _:
                return True

    def _single(self, factor: Scalar, aggregate: str | None, wanted: frozenset[str]) -> Scalar:
        """A factor of one operand, which has only the labels that are wanted where dropping the others pays."""
        if len(operands_of(factor)) == MOST_OPERANDS:
            return self._computed(factor, aggregate, wanted)
        if wanted == self._labels(factor):
            return factor
        reduced = self._einsum(Reference(self.einsum.output.tensor, self._ordered(wanted)), factor, aggregate)
        before, after = self._result(factor).statistics, self.known.result(reduced).statistics
        pays = after.entries <= _WORTH_REDUCING * before.entries
        return self._computed(factor, aggregate, wanted) if pays else factor

    def _last_pair(
        self, chain: Chain, factors: list[Scalar], aggregate: str | None, wanted: frozenset[str], is_early: bool
    ) -> Scalar:
        estimates = Estimates(self._network(chain, factors, wanted, is_early))
        tree = find_order(estimates)
        parts = {1 << position: factor for position, factor in enumerate(factors)}
        for group in steps(tree):
            first, second = tree[group]
            pair = Call(chain.operator, (parts[first], parts[second]))
            if group == estimates.network.everything:
                return substituted(chain.around, {0: self._unscaled(pair, chain, aggregate, wanted)})
            parts[group] = self._computed(pair, aggregate, frozenset(estimates.labels(group)))
        raise AssertionError("a chain has two factors")

    def _unscaled(self, pair: Scalar, chain: Chain, aggregate: str | None, wanted: frozenset[str]) -> Scalar:
        """A sum of products alone, where constants are to be multiplied with it: kernels are much faster without."""
        if chain.around == Operand(0) or aggregate != "sum" or chain.operator != "mul" or self._labels(pair) <= wanted:
            return pair
        output = Reference(self.einsum.output.tensor, self._ordered(wanted & self._labels(pair)))
        return (
            self._computed(pair, aggregate, wanted)
            if self.known.is_surely_finite(self._einsum(output, pair, aggregate), _ROUNDED)
            else pair
        )

    def _network(self, chain: Chain, factors: list[Scalar], wanted: frozenset[str], is_early: bool) -> Network:
        results = [self._result(factor) for factor in factors]
        fills = [chain.annihilates(result.tensor.fill) for result in results]
        sizes = [
            self._size(factor, result, is_sparse or not any(fills))
            for factor, result, is_sparse in zip(factors, results, fills, strict=True)
        ]
        return Network(
            tuple(sizes),
            tuple(result.tensor.dtype for result in results),
            wanted,
            bounds_of(self.einsum, self.known.shapes()),
            is_early,
            any(fills),
        )

    def _size(self, factor: Scalar, result: KnownTensor, is_sparse: bool) -> LabelStatistics:
        statistics = result.statistics if is_sparse else dense_statistics(result.tensor.shape)
        return LabelStatistics(self._result_labels(factor), statistics)

    def _result_labels(self, factor: Scalar) -> tuple[str, ...]:
        if isinstance(factor, Operand) and not _repeats(self.references[factor.index]):
            return self.references[factor.index].labels
        return self._ordered(self._labels(factor))

    def _ordered(self, labels: frozenset[str]) -> tuple[str, ...]:
        return tuple(label for label in self.einsum.labels if label in labels)


def _masked(operand: Operand, mask: Scalar) -> Scalar:
    return Call("mul", (operand, Call("ne", (mask, Literal(0)))))


def _repeats(reference: Reference) -> bool:
    return len(set(reference.labels)) < len(reference.labels)

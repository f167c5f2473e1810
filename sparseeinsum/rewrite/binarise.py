"""Rewriting: splits every EinSum of more than two operands into EinSums of one or two."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference
from sparseeinsum.language.inference import bounds_of
from sparseeinsum.language.scalar import evaluate, operands_of
from sparseeinsum.language.tensors import Tensor
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.records import Law
from sparseeinsum.rewrite.annotated_graphs import AnnotatedGraph, AnnotatedTensor, GraphAnnotator
from sparseeinsum.rewrite.chains import INEXACT_DTYPES, Chain, as_chain, substitute
from sparseeinsum.rewrite.common_subexpressions import compute_same
from sparseeinsum.rewrite.contraction_network import ContractionEstimates, ContractionNetwork, PairCost, is_as_precise
from sparseeinsum.rewrite.contraction_order import find_contraction_order, groups_in_order
from sparseeinsum.rewrite.einsum_parts import labels_among, part_of
from sparseeinsum.rewrite.long_expressions import split_long_expressions
from sparseeinsum.rewrite.real_subexpressions import split_real_subexpressions
from sparseeinsum.rewrite.repeated_factors import repeated_factors
from sparseeinsum.rewrite.result_labels import labels_in_order
from sparseeinsum.rewrite.unique_names import UniqueNames
from sparseeinsum.statistics.estimate import LabelStatistics, dense_statistics

MOST_OPERANDS = 2

# An aggregate over a label of a single factor is taken first where it leaves at most this share of the entries.
_MOST_REDUCED_SHARE = 0.5

# The search for an order may take this share of the time that the contraction is expected to take.
_MOST_SEARCH_SHARE = 0.1


def binarise(graph: EinGraph, annotator: GraphAnnotator, pair_cost: PairCost | None = None) -> AnnotatedGraph:
    """Replace every EinSum of more than two operands by several of one or two, which compute the same.

    Operands that one associative operator joins are contracted in the order with the least expected work. Other
    expressions are computed from the inside out. Intermediate results get names that no tensor has.

    Args:
        graph: EinSums in topological order.
        annotator: Has the inputs.
        pair_cost: By what orders are compared, if not by their work.
    """
    annotator = annotator.annotator_for(annotator.tensors)  # a copy: only the returned graph holds the results
    names = UniqueNames(graph.tensors)
    einsums: list[EinSum] = []
    for written in graph.einsums:
        for einsum in split_real_subexpressions(written, annotator, names):
            for part in _of_two_operands(einsum, annotator, names, pair_cost):
                short = split_long_expressions(part, annotator, names)
                for step in short:
                    einsums += [step] if step is part else _of_two_operands(step, annotator, names, pair_cost)
    return annotator.graph_of(einsums, graph.outputs)


def _of_two_operands(
    einsum: EinSum, annotator: GraphAnnotator, names: UniqueNames, pair_cost: PairCost | None
) -> list[EinSum]:
    """The EinSum as it is, or several of one or two operands, all of which are annotated."""
    needs_splitting = _needs_splitting(einsum, annotator)
    einsums = _OperandSplitter(einsum, annotator, names, pair_cost).split() if needs_splitting else [einsum]
    annotator.add(einsums[-1])
    return einsums


def _needs_splitting(einsum: EinSum, annotator: GraphAnnotator) -> bool:
    """Whether an EinSum has more than two operands, or two and a part that is better computed on its own.

    Such a part is a factor that can lose a label before the join, a function that the join would compute repeatedly, or
    a sum that is multiplied by constants afterwards.
    """
    if not einsum.is_rewritable:
        return False
    if len(einsum.operands) != MOST_OPERANDS:
        return len(einsum.operands) > MOST_OPERANDS
    chain = as_chain(
        einsum.join, einsum.aggregate, [annotator.tensors[operand.tensor].tensor.dtype for operand in einsum.operands]
    )
    if einsum.aggregate == "sum" and chain is not None and chain.operator == "mul" and chain.enclosing != Operand(0):
        return True
    if chain is not None and repeated_factors(einsum, chain, einsum.aggregate, einsum.operands, annotator):
        return True
    first, second = (frozenset(operand.labels) for operand in einsum.operands)
    return not (first ^ second) <= frozenset(einsum.output.labels)


@dataclass(slots=True)
class _OperandSplitter:
    """Splits one EinSum.

    Operands of expressions are positions in `references`, to which every intermediate result is added.
    """

    einsum: EinSum
    annotator: GraphAnnotator
    names: UniqueNames
    pair_cost: PairCost | None
    references: list[Reference] = field(default_factory=list)
    einsums: list[EinSum] = field(default_factory=list)

    def split(self) -> list[EinSum]:
        """EinSums in topological order; the last one computes the result and is not annotated yet."""
        self.references = list(self.einsum.operands)
        output = self.einsum.output
        join = self._rewritten(self.einsum.join, self.einsum.aggregate, frozenset(output.labels))
        return [*self.einsums, self._einsum(output, join, self.einsum.aggregate)]

    def _within_two_operands(self, expression: Scalar, aggregate: str | None, kept_labels: frozenset[str]) -> Scalar:
        """The expression, or an equal one of at most two references; all but the kept labels are aggregated."""
        few = len(operands_of(expression)) <= MOST_OPERANDS
        return expression if few else self._rewritten(expression, aggregate, kept_labels)

    def _rewritten(self, expression: Scalar, aggregate: str | None, kept_labels: frozenset[str]) -> Scalar:
        """An equal expression of at most two references; what it reads besides operands is added as new results.

        Args:
            expression: An expression of `references`.
            aggregate: The aggregate that follows it, or None.
            kept_labels: The labels that the aggregate keeps.
        """
        chain = as_chain(expression, aggregate, [self._tensor(reference).dtype for reference in self.references])
        if chain is not None:
            return self._contract(chain, aggregate, kept_labels)
        if len(operands_of(expression)) <= MOST_OPERANDS:
            return expression
        assert isinstance(expression, Call)
        with_operands = [argument for argument in expression.arguments if operands_of(argument)]
        if len(with_operands) == 1:
            arguments = [
                self._within_two_operands(argument, None, self._labels(argument))
                if argument in with_operands
                else argument
                for argument in expression.arguments
            ]
        else:
            arguments = [self._as_operand(argument) for argument in expression.arguments]
        call = Call(expression.function, tuple(arguments))
        return call if len(operands_of(call)) <= MOST_OPERANDS else self._split_where(call)

    def _split_where(self, where: Call) -> Scalar:
        """where(c, a, b) of three operands, as the sum of two results: a where c holds, and b elsewhere."""
        condition, first, second = where.arguments
        zero = Literal(False)
        halves = (Call("where", (condition, first, zero)), Call("where", (condition, zero, second)))
        return Call("add", tuple(self._as_operand(half) for half in halves))

    def _as_operand(self, expression: Scalar) -> Scalar:
        """The expression as one operand: a new result, where it has more than one."""
        if len(operands_of(expression)) <= 1:
            return expression
        return self._aggregated(expression, None, self._labels(expression))

    def _aggregated(self, expression: Scalar, aggregate: str | None, kept_labels: frozenset[str]) -> Scalar:
        """A new result: the aggregate of an expression over all but the kept labels."""
        join = self._within_two_operands(expression, aggregate, kept_labels)
        name = self.names.invent(self.einsum.output.tensor)
        einsum = self._einsum(Reference(name, self._ordered(kept_labels, join)), join, aggregate)
        self.annotator.add(einsum)
        self.einsums.append(einsum)
        self.references.append(einsum.output)
        return Operand(len(self.references) - 1)

    def _einsum(self, output: Reference, join: Scalar, aggregate: str | None) -> EinSum:
        return part_of(self.einsum, self.references, output, join, aggregate)

    def _labels(self, expression: Scalar) -> frozenset[str]:
        return labels_among(expression, self.references)

    def _tensor(self, reference: Reference) -> Tensor:
        return self.annotator.tensors[reference.tensor].tensor

    def _contract(self, chain: Chain, aggregate: str | None, kept_labels: frozenset[str]) -> Scalar:
        """The last join of a chain; all intermediate results before it are added.

        Args:
            chain: The factors, expressions of `references`.
            aggregate: The aggregate that follows the chain, or None.
            kept_labels: The labels that the aggregate keeps.
        """
        factors = [
            self._as_operand(factor) if len(operands_of(factor)) > MOST_OPERANDS else self._mask_factor(factor, chain)
            for factor in chain.factors
        ]
        for position in repeated_factors(
            self.einsum, replace(chain, factors=tuple(factors)), aggregate, self.references, self.annotator
        ):
            factors[position] = self._aggregated(factors[position], None, self._labels(factors[position]))
        results = [self._result(factor) for factor in factors]
        is_early = chain.distributes(aggregate) and self._is_safe(chain.operator, aggregate, kept_labels, results)
        dtypes = [result.tensor.dtype for result in results]
        factors_with = Counter(label for factor in factors for label in self._labels(factor))
        for position, factor in enumerate(factors):
            labels = self._labels(factor)
            needed = frozenset(label for label in labels if label in kept_labels or factors_with[label] > 1)
            is_reducible = is_early and is_as_precise(dtypes[position : position + 1], dtypes)
            factors[position] = self._reduced(factor, aggregate, needed if is_reducible else labels)
        return self._last_pair(chain, factors, aggregate, kept_labels, is_early)

    def _mask_factor(self, factor: Scalar, chain: Chain) -> Scalar:
        """A factor of two operands, computed only where another factor is not 0, if that is less.

        As of A[i, j] * (X[i] - Y[j]) ^ 2: all differences are many more than A has entries. What another EinSum
        computes anyway, as the mask of a dropout that a gradient reads again, takes no time.
        """
        if chain.operator not in ("mul", "and") or len(operands_of(factor)) < MOST_OPERANDS:
            return factor
        operands = [Operand(position) for position in sorted(operands_of(factor))]
        value_at_zeros = evaluate(factor, [0] * len(self.references))
        if not np.isfinite(value_at_zeros) or not all(self._result(term).is_all_finite for term in (factor, *operands)):
            return factor
        for mask in sorted(
            (candidate for candidate in chain.factors if len(operands_of(candidate)) == 1), key=self._entries
        ):
            labels = self._labels(mask) | self._labels(factor)
            if all(self._labels(mask) | self._labels(operand) == labels for operand in operands):
                masks = self._is_narrow(mask, factor, operands[0]) and not self._is_computed(factor)
                return self._where(mask, factor, operands) if masks else factor
        return factor

    def _is_narrow(self, mask: Scalar, factor: Scalar, operand: Operand) -> bool:
        """Whether masked operands and the factor of them have fewer entries than the unmasked factor."""
        product = _masked(operand, mask)
        output = Reference(self.einsum.output.tensor, self._ordered(self._labels(product), product))
        masked = self.annotator.result_of(self._einsum(output, product, None))
        work = (1 + MOST_OPERANDS) * masked.statistics.entries  # of both masked operands, and of the factor of them
        return masked.tensor.fill == 0 and work < self._entries(factor)

    def _is_computed(self, factor: Scalar) -> bool:
        """Whether an earlier EinSum computes a factor of two operands as it is."""
        output = Reference(self.einsum.output.tensor, self._ordered(self._labels(factor), factor))
        einsum = self._einsum(output, factor, None)
        return any(compute_same(einsum, other.einsum) for other in self.annotator.annotated.values())

    def _where(self, mask: Scalar, factor: Scalar, operands: list[Operand]) -> Scalar:
        """The `factor`, computed of operands that are 0 where `mask` is 0."""
        masked_operands = {operand.index: self._as_operand(_masked(operand, mask)) for operand in operands}
        return substitute(factor, masked_operands)

    def _entries(self, factor: Scalar) -> float:
        return self._result(factor).statistics.entries

    def _result(self, factor: Scalar) -> AnnotatedTensor:
        """The annotated result of a factor of one or two operands."""
        if isinstance(factor, Operand) and not _repeats(self.references[factor.index]):
            return self.annotator.tensors[self.references[factor.index].tensor]
        output = Reference(self.einsum.output.tensor, self._result_labels(factor))
        return self.annotator.result_of(self._einsum(output, factor, None))

    def _is_safe(
        self, operator: str, aggregate: str | None, kept_labels: frozenset[str], factors: Iterable[AnnotatedTensor]
    ) -> bool:
        """Whether the values are such that the aggregate of a part may be taken before the rest is joined.

        They are not where 0 meets infinity or infinities of both signs meet, which gives NaN at some indices only.
        Neither are they where a label that is aggregated has no index: the max or min of no int64 is an extreme of
        int64, and to add to that overflows.

        Args:
            operator: Joins the factors.
            aggregate: The aggregate of the joined factors, or None.
            kept_labels: The labels that the aggregate keeps.
            factors: The annotated factors.
        """
        bounds = bounds_of(self.einsum, self.annotator.plain_tensors())
        orders = aggregate is not None and FUNCTIONS[AGGREGATES[aggregate].combine].law == Law.ORDER
        if orders and not all(bounds[label] for label in bounds if label not in kept_labels):
            return False
        match operator:
            case "mul":
                return all(factor.is_all_finite for factor in factors)
            case "add":
                return all(factor.has_none_of(-math.inf if aggregate == "min" else math.inf) for factor in factors)
            case _:
                return True

    def _reduced(self, factor: Scalar, aggregate: str | None, kept_labels: frozenset[str]) -> Scalar:
        """The factor, where it pays as a new result without labels that are not kept; always so for two operands."""
        if len(operands_of(factor)) == MOST_OPERANDS:
            return self._aggregated(factor, aggregate, kept_labels)
        if kept_labels == self._labels(factor):
            return factor
        reduced = self._einsum(
            Reference(self.einsum.output.tensor, self._ordered(kept_labels, factor)), factor, aggregate
        )
        before, after = self._result(factor).statistics, self.annotator.result_of(reduced).statistics
        pays = after.entries <= _MOST_REDUCED_SHARE * before.entries
        return self._aggregated(factor, aggregate, kept_labels) if pays else factor

    def _last_pair(
        self, chain: Chain, factors: list[Scalar], aggregate: str | None, kept_labels: frozenset[str], is_early: bool
    ) -> Scalar:
        """The last join of the cheapest contraction order; the results of all earlier joins are added.

        Args:
            chain: The chain of the factors.
            factors: Expressions of one or two references.
            aggregate: The aggregate of the joined factors, or None.
            kept_labels: The labels that the aggregate keeps.
            is_early: Whether to aggregate a label as soon as no other factor has it.
        """
        estimates = ContractionEstimates(self._network(chain, factors, kept_labels, is_early), self.pair_cost)
        tree = find_contraction_order(estimates, _MOST_SEARCH_SHARE)
        split = {1 << position: factor for position, factor in enumerate(factors)}
        for group in groups_in_order(tree):
            first, second = tree[group]
            pair = Call(chain.operator, (split[first], split[second]))
            if group == estimates.network.everything:
                return substitute(chain.enclosing, {0: self._unscaled(pair, chain, aggregate, kept_labels)})
            split[group] = self._aggregated(pair, aggregate, frozenset(estimates.labels(group)))
        raise AssertionError("a chain has two factors")

    def _unscaled(self, pair: Scalar, chain: Chain, aggregate: str | None, kept_labels: frozenset[str]) -> Scalar:
        """The pair, or its sum as a new result where constants multiply it: kernels are faster without them."""
        if (
            chain.enclosing == Operand(0)
            or aggregate != "sum"
            or chain.operator != "mul"
            or self._labels(pair) <= kept_labels
        ):
            return pair
        output = Reference(self.einsum.output.tensor, self._ordered(kept_labels & self._labels(pair), pair))
        return (
            self._aggregated(pair, aggregate, kept_labels)
            if self.annotator.is_surely_finite(self._einsum(output, pair, aggregate), INEXACT_DTYPES)
            else pair
        )

    def _network(
        self, chain: Chain, factors: list[Scalar], kept_labels: frozenset[str], is_early: bool
    ) -> ContractionNetwork:
        """The network of the factors, in which those whose absent entries count are dense."""
        results = [self._result(factor) for factor in factors]
        fills = [chain.annihilates(result.tensor.fill) for result in results]
        sizes = [
            self._size(factor, result, is_sparse or not any(fills))
            for factor, result, is_sparse in zip(factors, results, fills, strict=True)
        ]
        return ContractionNetwork(
            tuple(sizes),
            tuple(result.tensor.dtype for result in results),
            kept_labels,
            bounds_of(self.einsum, self.annotator.plain_tensors()),
            is_early,
            any(fills),
        )

    def _size(self, factor: Scalar, result: AnnotatedTensor, is_sparse: bool) -> LabelStatistics:
        statistics = result.statistics if is_sparse else dense_statistics(result.tensor.shape)
        return LabelStatistics(self._result_labels(factor), statistics)

    def _result_labels(self, factor: Scalar) -> tuple[str, ...]:
        if isinstance(factor, Operand) and not _repeats(self.references[factor.index]):
            return self.references[factor.index].labels
        return self._ordered(self._labels(factor), factor)

    def _ordered(self, labels: frozenset[str], expression: Scalar) -> tuple[str, ...]:
        """Labels in the order in which the new result of an expression has them."""
        read = [self.references[index] for index in operands_of(expression)]
        return labels_in_order(labels, read, self.einsum.output.labels)


def _masked(operand: Operand, mask: Scalar) -> Scalar:
    """A factor of two operands that is computed only where another factor is not 0, if that is less work.

    An example is A[i, j] * (X[i] - Y[j]) ^ 2 with a sparse A: there are many more differences than entries of A.
    """
    return Call("mul", (operand, Call("ne", (mask, Literal(0)))))


def _repeats(reference: Reference) -> bool:
    return len(set(reference.labels)) < len(reference.labels)

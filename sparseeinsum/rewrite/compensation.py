"""Rewriting: compensation: a sum to which absent entries contribute becomes sums to which none does.

sum f(u, v) = sum g(u, v) + sum over V of f(fu, v) - c + sum over U of f(u, fv) - c + N c, where fu and fv are the
fills, c = f(fu, fv), N is the number of all indices, and g(u, v) = f(u, v) - f(u, fv) - f(fu, v) + c is 0 at either
fill.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from sparseeinsum.language.eingraph import EinSum, Reference
from sparseeinsum.language.inference import bounds_of, join_dtype, result_tensor
from sparseeinsum.language.scalar import evaluated_dtype, operands_in_order, operands_of
from sparseeinsum.language.tensors import Tensor
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar
from sparseeinsum.rewrite.annotated_graphs import AnnotatedGraph, GraphAnnotator
from sparseeinsum.rewrite.chains import substitute
from sparseeinsum.rewrite.polynomials import as_fraction, polynomial_expression, polynomial_of, split_by_operands
from sparseeinsum.rewrite.predicted_costs import CostPredictor, annotated_subgraph
from sparseeinsum.rewrite.simplify import constant_value, evaluate_partially
from sparseeinsum.rewrite.unique_names import UniqueNames

# Compensated sums can lose digits, because parts cancel: they are chosen where they are expected to take at most this
# share of the time of the dense sum.
_MOST_SHARE = 0.5

_ZERO = Literal(0)
_SUM = Call("add", (Operand(0), Operand(1)))
_LARGEST = 2**63 - 1


def compensate(annotated: AnnotatedGraph, cost: CostPredictor) -> AnnotatedGraph:
    """Compensate sums whose operands would have to be dense, where that is cheaper.

    Args:
        annotated: The EinSums; a run detects values that turn NaN or infinite.
        cost: Predicts the seconds of EinSums.
    """
    if not any(any(evaluation.matters) for evaluation in annotated.evaluations.values()):
        return annotated
    annotator = annotated.annotator()
    einsums: list[EinSum] = []
    for einsum in annotated.graph.einsums:
        needs_dense = any(annotator.add(einsum).matters)
        compensating = _cheaper(einsum, annotator, annotated, cost) if needs_dense else None
        for part in compensating or ():
            annotator.add(part)
        einsums += compensating or (einsum,)
    return annotator.graph_of(einsums, annotated.graph.outputs)


def _cheaper(
    einsum: EinSum, annotator: GraphAnnotator, annotated: AnnotatedGraph, cost: CostPredictor
) -> tuple[EinSum, ...] | None:
    """EinSums that compensate a sum and are cheaper than it is with dense operands; None where there are none.

    Args:
        einsum: The sum.
        annotator: Has its operands.
        annotated: The graph of the sum; new names differ from the names in it.
        cost: Predicts the seconds of EinSums.
    """
    dense = annotated_subgraph([einsum], annotator)
    if not cost.is_worth_replacing(dense):
        return None
    compensating = compensated(einsum, {**annotated.graph.tensors, **annotator.plain_tensors()})
    if compensating is None or cost.least_seconds_of(len(compensating)) >= _MOST_SHARE * cost.seconds(dense):
        return None
    sparse = annotated_subgraph(compensating, annotator)
    is_exact = _is_surely_finite(dense) and _is_surely_finite(sparse)
    return compensating if is_exact and cost.seconds(sparse) < _MOST_SHARE * cost.seconds(dense) else None


def _is_surely_finite(annotated: AnnotatedGraph) -> bool:
    """Whether no value that the EinSums read or compute can be NaN or infinite."""
    tensors = annotated.tensors
    read = {operand.tensor for einsum in annotated.graph.einsums for operand in einsum.operands}
    detects = any(evaluation.detects_nonfinite for evaluation in annotated.evaluations.values())
    return not detects and all(tensors[name].is_finite for name in read)


def compensated(einsum: EinSum, tensors: Mapping[str, Tensor]) -> tuple[EinSum, ...] | None:
    """A sum of two operands as sums of parts that are 0 wherever an operand of theirs holds its fill.

    For finite values the result differs by rounding only, but digits can cancel where a sum of large parts is small.
    The caller has to make sure that all parts are finite.

    Args:
        einsum: Any EinSum.
        tensors: All tensors of its graph; the new names differ from theirs.

    Returns:
        EinSums of one or two operands under new names, the last of which computes the result. None where `einsum` is no
            sum
        of two operands, where nothing is gained, or where the result is not known to be right.
    """
    if einsum.aggregate != "sum" or len(einsum.operands) != 2:
        return None
    join_parts = _split_join(einsum, tensors)
    if join_parts is None or join_parts.is_useless():
        return None
    einsums = _PartSums(einsum, tensors, UniqueNames(tensors)).einsums_for(join_parts)
    return einsums if einsums and _are_equivalent(einsums, einsum, tensors) else None


@dataclass(frozen=True, slots=True)
class _JoinParts:
    """The terms that a join is the sum of: one of both operands, one of u alone, one of v alone, and a number."""

    of_both: Scalar
    of_u: Scalar
    of_v: Scalar
    constant: Number

    def is_useless(self) -> bool:
        """Whether the sum is as sparse without compensation, or the join has only terms of one operand."""
        if not operands_of(self.of_both):
            return not (operands_of(self.of_u) and operands_of(self.of_v))
        return self.constant == 0 and not operands_of(self.of_u) and not operands_of(self.of_v)


def _split_join(einsum: EinSum, tensors: Mapping[str, Tensor]) -> _JoinParts | None:
    """The parts of the join of a sum; None where it has none that are known to be exact."""
    operands = [tensors[operand.tensor] for operand in einsum.operands]
    dtypes = [tensor.dtype for tensor in operands]
    fills = operands[0].fill, operands[1].fill
    join, dtype = einsum.join, join_dtype(einsum, tensors)
    if dtype == "bool":
        join, dtype = Call("mul", (join, Literal(1))), "int64"  # True as 1, which can be subtracted
    try:
        constant = constant_value(join, dict(enumerate(fills)), dtypes)
        if not np.isfinite(constant):
            return None
        return _split_polynomial(join, fills, dtypes, dtype, constant) or _split_any_join(
            join, fills, dtypes, dtype, constant
        )
    except ValueError:  # the value at the fills is beyond int64
        return None


def _split_polynomial(
    join: Scalar, fills: tuple[Number, Number], dtypes: list[str], dtype: str, constant: Number
) -> _JoinParts | None:
    """The parts of an expanded polynomial, so that (u - v)^2 has the part -2 u v, not a difference of squares.

    Args:
        join: An expression of u and v.
        fills: The fills of u and v.
        dtypes: The dtypes of u and v.
        dtype: The dtype of the join.
        constant: The value of the join at the fills.

    Returns:
        None where the join is no polynomial whose parts are computed exactly.
    """
    numbers = as_fraction(fills[0]), as_fraction(fills[1])
    polynomial = polynomial_of(join)
    if polynomial is None or numbers[0] is None or numbers[1] is None or set(dtypes) != {dtype}:
        return None  # + and * of bools do not follow the rules of polynomials
    if max(map(max, polynomial)) > 2 and not {*numbers} <= {-1, 0, 1}:
        return None  # a higher power of a fill may differ from its literal in the last digit
    exact = numbers[0], numbers[1]
    of_both, of_u, of_v = (
        polynomial_expression(part, exact, dtype == "int64") for part in split_by_operands(polynomial, exact)
    )
    return _JoinParts(of_both, of_u, of_v, constant)


def _split_any_join(
    join: Scalar, fills: tuple[Number, Number], dtypes: list[str], dtype: str, constant: Number
) -> _JoinParts | None:
    """The parts of any join, as differences of its values with one operand or both at their fills.

    The arguments are those of `_split_polynomial`.
    """
    alone_u, alone_v = (evaluate_partially(join, {1 - index: fills[1 - index]}, dtypes) for index in (0, 1))
    if any(operands_of(alone) and evaluated_dtype(alone, dtypes) != dtype for alone in (alone_u, alone_v)):
        return None  # for example, the join of an int64 u and a float32 v is float64
    of_u, of_v = (_minus_constant(alone, constant) for alone in (alone_u, alone_v))
    # In this order of operations, the part is x - x at either fill, which is 0 in spite of rounding.
    subtracted = alone_u if operands_of(alone_u) else Literal(constant)
    remainder = join if subtracted == _ZERO else Call("sub", (join, subtracted))
    of_both = remainder if not operands_of(of_v) else Call("sub", (remainder, of_v))
    return _JoinParts(of_both, of_u, of_v, constant)


def _minus_constant(alone: Scalar, constant: Number) -> Scalar:
    """The term that one operand adds to the constant; 0 where it adds nothing."""
    if not operands_of(alone):
        return _ZERO
    return Call("sub", (alone, Literal(constant))) if constant else alone


@dataclass(slots=True)
class _PartSums:
    """Writes the EinSums that sum the parts of a join."""

    einsum: EinSum
    tensors: Mapping[str, Tensor]
    names: UniqueNames
    einsums: list[EinSum] = field(default_factory=list)

    def einsums_for(self, parts: _JoinParts) -> tuple[EinSum, ...]:
        """The EinSums in topological order; the last one computes the result."""
        bounds = bounds_of(self.einsum, self.tensors)
        total = Literal(parts.constant * math.prod(bounds[label] for label in self.einsum.aggregated))
        used = [part for part in (parts.of_u, parts.of_v, parts.of_both) if operands_of(part)]
        if len(used) == 1 and total.value == 0:
            return (self._sum_of_part(used[0], bounds, self.einsum.output.tensor),)
        for part in used:
            self.einsums.append(self._sum_of_part(part, bounds, self._name()))
        references = [einsum.output for einsum in self.einsums]
        if len(references) == 3:
            self._add(self._name(), references[:2], _SUM)
            references = [self.einsums[-1].output, references[2]]
        plain = _SUM if len(references) == 2 else Operand(0)
        self._add(self.einsum.output.tensor, references, Call("add", (plain, total)) if total.value else plain)
        return tuple(self.einsums)

    def _name(self) -> str:
        return self.names.invent(self.einsum.output.tensor)

    def _sum_of_part(self, part: Scalar, bounds: Mapping[str, int], name: str) -> EinSum:
        """The sum of one part, multiplied by the number of the indices of aggregated labels that it lacks."""
        used = operands_in_order(part)
        operands = [self.einsum.operands[position] for position in used]
        join = substitute(part, {position: Operand(number) for number, position in enumerate(used)})
        labels = frozenset().union(*(operand.labels for operand in operands))
        repetitions = math.prod(bounds[label] for label in self.einsum.aggregated if label not in labels)
        if repetitions != 1:
            join = Call("mul", (join, Literal(repetitions)))
        return self._einsum(name, operands, join)

    def _add(self, name: str, operands: list[Reference], join: Scalar) -> None:
        self.einsums.append(self._einsum(name, operands, join))

    def _einsum(self, name: str, operands: list[Reference], join: Scalar) -> EinSum:
        labels = frozenset().union(*(operand.labels for operand in operands))
        output = tuple(label for label in self.einsum.output.labels if label in labels)
        aggregate = "sum" if labels - frozenset(output) else None
        return EinSum(Reference(name, output), tuple(operands), join, aggregate, self.einsum.promoted_among(labels))


def _are_equivalent(einsums: tuple[EinSum, ...], einsum: EinSum, tensors: Mapping[str, Tensor]) -> bool:
    """Whether the last EinSum has the dtype of the one that they replace, and all literals are within int64."""
    all_tensors = dict(tensors)
    if not all(_has_only_int64(part.join) for part in einsums):
        return False
    for part in einsums:
        all_tensors[part.output.tensor] = result_tensor(part, all_tensors)
    return all_tensors[einsum.output.tensor].dtype == result_tensor(einsum, tensors).dtype


def _has_only_int64(expression: Scalar) -> bool:
    match expression:
        case Literal(int() as value):
            return abs(value) <= _LARGEST
        case Call(_, arguments):
            return all(map(_has_only_int64, arguments))
        case _:
            return True

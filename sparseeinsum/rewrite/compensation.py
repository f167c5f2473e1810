"""Rewriting: a sum over pairs to which absent entries contribute in, sums to which none does out.

sum f(u, v) = sum g(u, v) + sum over V of f(fu, v) - c + sum over U of f(u, fv) - c + N c, where fu and fv are the
fills, c = f(fu, fv), N the number of all indices, and g(u, v) = f(u, v) - f(u, fv) - f(fu, v) + c is 0 at either fill.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from sparseeinsum.language.eingraph import EinSum, Reference
from sparseeinsum.language.inference import bounds_of, join_dtype, result_tensor
from sparseeinsum.language.scalar import operands_in_order, operands_of
from sparseeinsum.language.tensors import Tensor
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar
from sparseeinsum.rewrite.chains import dtype_of, substituted
from sparseeinsum.rewrite.names import Names
from sparseeinsum.rewrite.polynomials import as_fraction, polynomial_of, without_fills, written
from sparseeinsum.rewrite.simplify import number_of, with_operands_set

_ZERO = Literal(0)
_SUM = Call("add", (Operand(0), Operand(1)))
_LARGEST = 2**63 - 1


def compensated(einsum: EinSum, tensors: Mapping[str, Tensor]) -> tuple[EinSum, ...] | None:
    """A sum over two operands as sums of parts that are 0 wherever an operand of theirs holds its fill.

    It is the same number for finite values, but for rounding: where a sum of large parts is small, digits cancel. So
    the caller has to make sure that all parts come out finite.

    Args:
        einsum: Any EinSum.
        tensors: All tensors of its graph, whose names are taken.

    Returns:
        EinSums of one or two operands under new names, the last of which computes the result; None where that is no sum
        over two operands, or nothing is gained or known to be right.
    """
    if einsum.aggregate != "sum" or len(einsum.operands) != 2:
        return None
    parts = _parts(einsum, tensors)
    if parts is None or parts.gain_nothing():
        return None
    einsums = _Sums(einsum, tensors, Names(tensors)).of(parts)
    return einsums if einsums and _compute_same(einsums, einsum, tensors) else None


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a join is the sum of: of both operands, of u alone, of v alone, and a number."""

    both: Scalar
    of_u: Scalar
    of_v: Scalar
    constant: Number

    def gain_nothing(self) -> bool:
        """Whether absent entries contribute nothing as it is, or one operand says all."""
        if not operands_of(self.both):
            return not (operands_of(self.of_u) and operands_of(self.of_v))
        return self.constant == 0 and not operands_of(self.of_u) and not operands_of(self.of_v)


def _parts(einsum: EinSum, tensors: Mapping[str, Tensor]) -> _Parts | None:
    operands = [tensors[operand.tensor] for operand in einsum.operands]
    dtypes = [tensor.dtype for tensor in operands]
    fills = operands[0].fill, operands[1].fill
    join, dtype = einsum.join, join_dtype(einsum, tensors)
    if dtype == "bool":
        join, dtype = Call("mul", (join, Literal(1))), "int64"  # True as 1, which can be subtracted
    try:
        constant = number_of(join, dict(enumerate(fills)), dtypes)
        if not np.isfinite(constant):
            return None
        return _of_polynomial(join, fills, dtypes, dtype, constant) or _of_any(join, fills, dtypes, dtype, constant)
    except ValueError:  # the fills alone give no int64
        return None


def _of_polynomial(
    join: Scalar, fills: tuple[Number, Number], dtypes: list[str], dtype: str, constant: Number
) -> _Parts | None:
    """Parts multiplied out, so that (u - v)^2 leaves -2 u v rather than a difference of squares."""
    numbers = as_fraction(fills[0]), as_fraction(fills[1])
    polynomial = polynomial_of(join)
    if polynomial is None or numbers[0] is None or numbers[1] is None or set(dtypes) != {dtype}:
        return None  # of bools, sums and products are others
    if max(map(max, polynomial)) > 2 and not {*numbers} <= {-1, 0, 1}:
        return None  # the cube of a fill may differ from its literal in the last digit
    exact = numbers[0], numbers[1]
    both, of_u, of_v = (written(part, exact, dtype == "int64") for part in without_fills(polynomial, exact))
    return _Parts(both, of_u, of_v, constant)


def _of_any(
    join: Scalar, fills: tuple[Number, Number], dtypes: list[str], dtype: str, constant: Number
) -> _Parts | None:
    alone_u, alone_v = (with_operands_set(join, {1 - index: fills[1 - index]}, dtypes) for index in (0, 1))
    if any(operands_of(alone) and dtype_of(alone, dtypes) != dtype for alone in (alone_u, alone_v)):
        return None  # as of an int64 u and a float32 v, whose join is float64
    of_u, of_v = (_without(alone, constant) for alone in (alone_u, alone_v))
    # In this order either fill gives x - x, which is 0 whatever was rounded.
    beside_u = alone_u if operands_of(alone_u) else Literal(constant)
    remainder = join if beside_u == _ZERO else Call("sub", (join, beside_u))
    both = remainder if not operands_of(of_v) else Call("sub", (remainder, of_v))
    return _Parts(both, of_u, of_v, constant)


def _without(alone: Scalar, constant: Number) -> Scalar:
    """What one operand adds to the constant; 0 where it adds nothing."""
    if not operands_of(alone):
        return _ZERO
    return Call("sub", (alone, Literal(constant))) if constant else alone


@dataclass(slots=True)
class _Sums:
    """EinSums for the parts of one sum."""

    einsum: EinSum
    tensors: Mapping[str, Tensor]
    names: Names
    done: list[EinSum] = field(default_factory=list)

    def of(self, parts: _Parts) -> tuple[EinSum, ...]:
        """The EinSums; the last one computes the result."""
        bounds = bounds_of(self.einsum, self.tensors)
        total = Literal(parts.constant * math.prod(bounds[label] for label in self.einsum.aggregated))
        used = [part for part in (parts.of_u, parts.of_v, parts.both) if operands_of(part)]
        if len(used) == 1 and total.value == 0:
            return (self._part(used[0], bounds, self.einsum.output.tensor),)
        for part in used:
            self.done.append(self._part(part, bounds, self._name()))
        references = [einsum.output for einsum in self.done]
        if len(references) == 3:
            self._add(self._name(), references[:2], _SUM)
            references = [self.done[-1].output, references[2]]
        plain = _SUM if len(references) == 2 else Operand(0)
        self._add(self.einsum.output.tensor, references, Call("add", (plain, total)) if total.value else plain)
        return tuple(self.done)

    def _name(self) -> str:
        return self.names.invent(self.einsum.output.tensor)

    def _part(self, part: Scalar, bounds: Mapping[str, int], name: str) -> EinSum:
        """The sum of one part; what it does not depend on it is repeated for."""
        used = operands_in_order(part)
        operands = [self.einsum.operands[position] for position in used]
        join = substituted(part, {position: Operand(number) for number, position in enumerate(used)})
        labels = frozenset().union(*(operand.labels for operand in operands))
        repeated = math.prod(bounds[label] for label in self.einsum.aggregated if label not in labels)
        if repeated != 1:
            join = Call("mul", (join, Literal(repeated)))
        return self._einsum(name, operands, join)

    def _add(self, name: str, operands: list[Reference], join: Scalar) -> None:
        self.done.append(self._einsum(name, operands, join))

    def _einsum(self, name: str, operands: list[Reference], join: Scalar) -> EinSum:
        labels = frozenset().union(*(operand.labels for operand in operands))
        output = tuple(label for label in self.einsum.output.labels if label in labels)
        aggregate = "sum" if labels - frozenset(output) else None
        return EinSum(Reference(name, output), tuple(operands), join, aggregate, self.einsum.promoted_among(labels))


def _compute_same(einsums: tuple[EinSum, ...], einsum: EinSum, tensors: Mapping[str, Tensor]) -> bool:
    """Whether the last of these has the dtype of the EinSum that they replace, and no number is beyond int64."""
    known = dict(tensors)
    if not all(_fits(each.join) for each in einsums):
        return False
    for each in einsums:
        known[each.output.tensor] = result_tensor(each, known)
    return known[einsum.output.tensor].dtype == result_tensor(einsum, tensors).dtype


def _fits(expression: Scalar) -> bool:
    match expression:
        case Literal(int() as value):
            return abs(value) <= _LARGEST
        case Call(_, arguments):
            return all(map(_fits, arguments))
        case _:
            return True

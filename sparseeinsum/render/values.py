"""Render: what an EinSum computes for one pair of tuples, and over a group of them, as SQL expressions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sqlglot import exp

from sparseeinsum.algebra.operators import Compensation
from sparseeinsum.errors import PlanError
from sparseeinsum.language.eingraph import EinSum, aggregate_arguments
from sparseeinsum.language.inference import aggregate_repeated
from sparseeinsum.language.scalar import operands_in_order, write
from sparseeinsum.language.tensors import Tensor
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.dtypes import Number, is_complex
from sparseeinsum.operators.expressions import Call, Operand, Scalar, U, V
from sparseeinsum.operators.picks import PICKS
from sparseeinsum.operators.users_aggregates import USERS_AGGREGATES
from sparseeinsum.render.calls import (
    call,
    constant,
    converted,
    first_element,
    function_named,
    in_parentheses,
    integer,
    integers,
    text,
)
from sparseeinsum.render.conditions import truth_as_number
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.render.scalars import aggregated_number, compensating_number, number_expression
from sparseeinsum.statistics.columns import IS_TRUTH, NUMBER_TYPES, array_type, number_type
from sparseeinsum.statistics.extents import Extent, product

_LETTERS = "ijklmnopqrstuvwxyzabcdefghIJKLMNOPQRSTUVWXYZABCDEFGH"
MAX_LABELS_INSIDE = 16  # of udfs/contraction.py


@dataclass(frozen=True, slots=True)
class Term:
    """An operand's value in one tuple.

    Attributes:
        value: SQL of a number or an array.
        inside: Labels inside the array, in axis order; none for a number.
        dtype: Of the value.
    """

    value: exp.Expr
    inside: tuple[str, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Value:
    """What a tuple of a result holds.

    Attributes:
        einsum: What is computed.
        terms: The operands' values.
        inside: Labels inside the result's arrays, in axis order.
        extents: Indices that an array holds of every label inside it.
        is_grouped: Whether tuples are aggregated.
        has_keys: Whether the result has a tuple for every one of several keys.
        output: The tensor computed.
        computed_in: Dtype of the arithmetic.
        compensation: What is put in for pairs of tuples that are left out.
        detects_nonfinite: Whether a value that is NaN or infinite, and not the fill, ends the run.
        dialect: Of the engine.
    """

    einsum: EinSum
    terms: Sequence[Term]
    inside: tuple[str, ...]
    extents: Mapping[str, Extent]
    is_grouped: bool
    has_keys: bool
    output: Tensor
    computed_in: str
    compensation: Compensation | None
    detects_nonfinite: bool
    dialect: Dialect

    def write(self) -> exp.Expr:
        """As SQL, of the result's type.

        Raises:
            PlanError: There are more labels inside arrays than kernels take.
        """
        if len(self.extents) > MAX_LABELS_INSIDE:
            name = self.einsum.output.tensor
            raise PlanError(f"{name} has {len(self.extents)} labels inside arrays; kernels take {MAX_LABELS_INSIDE}")
        terms = [_converted(term, self.computed_in) for term in self.terms]
        writer = _Writer(self.einsum, terms, self.inside, self.extents, self.computed_in, self.dialect)
        value = writer.number(self.is_grouped) if writer.is_number else writer.array(self.is_grouped)
        if self.compensation is not None and self.is_grouped:
            value = self._compensated(value, self.compensation, writer)
        value = self._of_result(value, writer.is_number)
        return self._watched(value) if self.detects_nonfinite else value

    def _compensated(self, value: exp.Expr, compensation: Compensation, writer: "_Writer") -> exp.Expr:
        """The value folded with what the pairs contribute that are not in the group."""
        aggregate = self.einsum.aggregate
        assert aggregate is not None
        times = product(extent for label, extent in self.extents.items() if label not in self.inside)
        if isinstance(times, int):
            if times == 0:
                return value
            missing = exp.Sub(this=integer(compensation.pairs), expression=exp.Count(this=exp.Star()))
        else:  # arrays differ in size: indices are counted, instead of pairs of tuples
            present = exp.cast(exp.Sum(this=times), "bigint")
            counted = exp.func("coalesce", present, integer(0))
            missing, times = exp.Sub(this=integer(compensation.indices), expression=counted), 1
        if aggregate in USERS_AGGREGATES:
            number = integer(times) if isinstance(times, int) else times
            folded = writer.merged(
                value, compensation.constant, exp.Mul(this=in_parentheses(missing), expression=number)
            )
            return self._unless_complete(value, folded, compensation.pairs)
        one = aggregate_repeated(aggregate, np.asarray(compensation.constant), times, self.computed_in)
        folded = writer.folded(value, aggregate, one, missing)
        if aggregate == "sum" and np.isfinite(one):  # nothing times a finite number adds nothing
            return folded
        return self._unless_complete(value, folded, compensation.pairs)

    def _unless_complete(self, value: exp.Expr, folded: exp.Expr, pairs: int) -> exp.Expr:
        """What is folded, but the value alone where no pair is missing."""
        cases = exp.case()
        if not self.has_keys:  # one group also of no rows, which holds the fill
            cases = cases.when(exp.EQ(this=exp.Count(this=exp.Star()), expression=integer(0)), exp.null())
        none_is_missing = exp.EQ(this=exp.Count(this=exp.Star()), expression=integer(pairs))
        return cases.when(none_is_missing, value.copy()).else_(folded)

    def _of_result(self, value: exp.Expr, is_number: bool) -> exp.Expr:
        """From the type computed in to that of the result."""
        wanted = self.output.dtype
        if is_complex(self.computed_in) and not is_complex(wanted):
            value = call("tensor_complex_real", value)
            value = value if self.inside else first_element(value)
            is_number = not self.inside
        if NUMBER_TYPES[self.computed_in] == NUMBER_TYPES[wanted]:
            return value
        if value.meta.get(IS_TRUTH):
            return truth_as_number(value.this.unnest(), wanted)
        return converted(value, number_type(wanted) if is_number else array_type(wanted))

    def _watched(self, value: exp.Expr) -> exp.Expr:
        fill = constant(self.output.fill, self.output.dtype)
        return call(function_named("finite", self.output.dtype), text(self.output.name), value, fill)


def _converted(term: Term, dtype: str) -> Term:
    """A term of the dtype computed in."""
    if is_complex(dtype) and not is_complex(term.dtype):
        array = term.value if term.inside else exp.array(term.value)
        real = array if NUMBER_TYPES[term.dtype] == NUMBER_TYPES[dtype] else converted(array, array_type(dtype))
        return Term(call("tensor_complex_from", real), term.inside, dtype)
    if NUMBER_TYPES[term.dtype] == NUMBER_TYPES[dtype]:
        return Term(term.value, term.inside, dtype)
    is_array = bool(term.inside) or is_complex(dtype)
    return Term(converted(term.value, array_type(dtype) if is_array else number_type(dtype)), term.inside, dtype)


@dataclass(frozen=True, slots=True)
class _Writer:
    einsum: EinSum
    terms: Sequence[Term]
    inside: tuple[str, ...]
    extents: Mapping[str, Extent]
    dtype: str
    dialect: Dialect

    @property
    def is_number(self) -> bool:
        """Whether the result is a number; complex ones are arrays of their two parts."""
        return not self.inside and not is_complex(self.dtype)

    def number(self, is_grouped: bool) -> exp.Expr:
        """A result that is a number."""
        if self.einsum.aggregate in USERS_AGGREGATES:
            return first_element(self._states(is_grouped))
        if self.einsum.along is not None:
            return first_element(self._along(self.einsum.along))
        value = self._number_of_pair()
        if not is_grouped:
            return value
        return aggregated_number(self.einsum.aggregate or "sum", value, self.dtype, self.dialect)

    def array(self, is_grouped: bool) -> exp.Expr:
        """A result that is an array."""
        if is_grouped and self.einsum.is_multilinear and len(self.terms) == 2:
            return self._sum_of_products()
        if self.einsum.aggregate in USERS_AGGREGATES:
            return self._states(is_grouped)
        if self.einsum.along is not None:
            return self._along(self.einsum.along)
        value = self._array_of_pair()
        return self._call(str(self.einsum.aggregate), value) if is_grouped else value

    def _along(self, along: str) -> exp.Expr:
        """The values of one operand up to each index of a label, folded; or those at one index of it."""
        pick = PICKS.get(str(self.einsum.aggregate))
        inside = self.inside if pick is None else (*self.inside, along)
        extents = [self.extents[label] for label in inside]
        axis, values = integer(inside.index(along)), self._rearranged(inside)
        if pick is None:
            return self._call("scan", text(str(self.einsum.base_aggregate)), values, axis, integers(extents))
        extent = extents[-1]
        assert isinstance(extent, int), "the label is demoted"
        if extent == 0:  # then the result is as empty
            return values
        return self._call("slice", values, axis, integer(pick.position % extent), integers(extents))

    def _states(self, is_grouped: bool) -> exp.Expr:
        """States of a user's aggregate, whose numbers lie side by side."""
        places = [place for each in aggregate_arguments(self.einsum) for place in operands_in_order(each)]
        arrays = self._arrays
        inside = [self.terms[place].inside for place in places]
        kept = tuple(label for label in self.inside if label != self.einsum.state)
        extents = integers([self.extents[label] for label in self._labels_of(inside)])
        spec = text(self._spec_of(inside, kept))
        name = text(str(self.einsum.aggregate))
        folded = call("tensor_fold", name, spec, *(arrays[place].copy() for place in places), extents)
        return call("tensor_merge", name.copy(), folded) if is_grouped else folded

    def merged(self, value: exp.Expr, constant_value: Number, missing: exp.Expr) -> exp.Expr:
        """States of a group, merged with what a number is as often as `missing` says."""
        name, number = text(str(self.einsum.aggregate)), constant(constant_value, self.dtype)
        states = exp.array(value) if self.is_number else value
        found = call("tensor_merge_repeated", name, states, number, missing)
        return first_element(found) if self.is_number else found

    def folded(self, value: exp.Expr, aggregate: str, one: Number, missing: exp.Expr) -> exp.Expr:
        """A value of a group, folded with a number as often as `missing` says."""
        combined = Call(AGGREGATES[aggregate].combine, (U, V))
        if is_complex(self.dtype):
            times = self._call("from", exp.array(exp.cast(missing, number_type(self.dtype))))
            spelled = text(write(AGGREGATES[aggregate].repeated))
            once = constant(one, self.dtype)
            other = self._call("reduce", text("sum"), spelled, text(",->"), once, times, integers(()))
        else:
            other = compensating_number(aggregate, one, missing, self.dtype, self.dialect)
            if self.is_number:
                return number_expression(combined, [value, in_parentheses(other)], self.dtype, self.dialect)
            other = exp.array(other)
        size = product(self.extents[label] for label in self.inside)
        return self._call("reduce", text("sum"), text(write(combined)), text("i,->i"), value, other, integers([size]))

    def _call(self, operation: str, *arguments: exp.Expr) -> exp.Expr:
        return call(function_named(operation, self.dtype), *arguments)

    @property
    def _has_arrays(self) -> bool:
        return any(term.inside for term in self.terms)

    @property
    def _arrays(self) -> list[exp.Expr]:
        """The operands as arrays, numbers as arrays of one."""
        are_arrays = is_complex(self.dtype)
        return [term.value if term.inside or are_arrays else exp.array(term.value) for term in self.terms]

    @property
    def _labels(self) -> list[str]:
        return self._labels_of([term.inside for term in self.terms])

    @property
    def _spec(self) -> str:
        return self._spec_of([term.inside for term in self.terms], self.inside)

    @staticmethod
    def _labels_of(inside: Sequence[Sequence[str]]) -> list[str]:
        return list(dict.fromkeys(label for labels in inside for label in labels))

    def _spec_of(self, inside: Sequence[Sequence[str]], kept: Sequence[str]) -> str:
        letters = dict(zip(self._labels_of(inside), _LETTERS, strict=False))
        inputs = ",".join("".join(letters[label] for label in labels) for labels in inside)
        return f"{inputs}->{''.join(letters[label] for label in kept)}"

    def _extents(self) -> exp.Expr:
        return integers([self.extents[label] for label in self._labels])

    def _number_of_pair(self) -> exp.Expr:
        if not self._has_arrays:
            return number_expression(self.einsum.join, [term.value for term in self.terms], self.dtype, self.dialect)
        if self.einsum.is_multilinear and self._spec == "i,i->":
            return call("tensor_dot", *self._arrays)
        return first_element(self._array_of_pair())

    def _array_of_pair(self) -> exp.Expr:
        if self.einsum.is_multilinear:
            return self._product() if len(self.terms) == 2 else self._rearranged(self.inside)
        if set(self._labels) == set(self.inside):
            mapped = self._mapped()
            if mapped is not None:
                return mapped
        aggregate = text(self.einsum.aggregate or "sum")
        spelled = text(write(self.einsum.join))
        return self._call("reduce", aggregate, spelled, text(self._spec), *self._arrays, self._extents())

    def _mapped(self) -> exp.Expr | None:
        """Element by element, if a function of its own does that and no axis moves."""
        if all(term.inside == self.inside for term in self.terms):
            if len(self.terms) == 1:
                return self._call("map", text(_map_text(self.einsum.join)), self.terms[0].value)
            for name in ("add", "sub", "div", "mul"):
                if self.einsum.join == Call(name, (Operand(0), Operand(1))):
                    return self._call(name, *self._arrays)
        return None

    def _rearranged(self, wanted: tuple[str, ...]) -> exp.Expr:
        """The values of one operand with these labels, in order."""
        (term,) = self.terms
        spec = text(self._spec_of([term.inside], wanted))
        return term.value if term.inside == wanted else self._call("einsum", spec, term.value, self._extents())

    def _product(self) -> exp.Expr:
        if is_complex(self.dtype):
            return self._call("einsum", text(self._spec), *self._arrays, self._extents())
        u, v = (term.value for term in self.terms)
        match self._spec:
            case ",i->i" | ",ij->ij" | ",ijk->ijk":
                return call("tensor_scale", u, v)
            case "i,->i" | "ij,->ij" | "ijk,->ijk":
                return call("tensor_scale", v, u)
            case "i,i->i" | "ij,ij->ij":
                return call("tensor_mul", u, v)
            case "i,j->ij":
                return call("tensor_outer", u, v)
            case "ij,jk->ik":
                return call("tensor_matmul", u, v, self._extents())
            case "i,ij->j":
                return call("tensor_matmul", u, v, integers([1, *(self.extents[label] for label in self._labels)]))
            case "ij,j->i":
                return call("tensor_matmul", u, v, integers([*(self.extents[label] for label in self._labels), 1]))
            case spec:
                return call("tensor_einsum", text(spec), *self._arrays, self._extents())

    def _sum_of_products(self) -> exp.Expr:
        if is_complex(self.dtype):
            return self._call("einsum_sum", text(self._spec), *self._arrays, self._extents())
        u, v = (term.value for term in self.terms)
        match self._spec:
            case ",i->i" | ",ij->ij" | ",ijk->ijk":
                return call("tensor_sum_scaled", u, v)
            case "i,->i" | "ij,->ij" | "ijk,->ijk":
                return call("tensor_sum_scaled", v, u)
            case spec:
                return call("tensor_einsum_sum", text(spec), *self._arrays, self._extents())


def _map_text(join: Scalar) -> str:
    """`relu` rather than `relu(u)`."""
    match join:
        case Call(function, (Operand(0),)) if function != "neg":
            return function
        case _:
            return write(join)

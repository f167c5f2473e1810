"""Render: the value column of an EinSum's SELECT: what one pair of tuples, or a group of pairs, gives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sqlglot import exp

from sparseeinsum.algebra.operators import Compensation
from sparseeinsum.errors import PlanError
from sparseeinsum.language.eingraph import EinSum, aggregate_arguments
from sparseeinsum.language.inference import aggregate_repeated
from sparseeinsum.language.scalar import operands_in_order, write
from sparseeinsum.language.tensors import MOST_ARRAY_AXES, Tensor
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.dtypes import Number, is_complex
from sparseeinsum.operators.expressions import Call, Operand, Scalar, U, V
from sparseeinsum.operators.picks import PICKS
from sparseeinsum.operators.ranges import Range, exact_range
from sparseeinsum.operators.user_aggregates import USER_AGGREGATES
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
from sparseeinsum.render.conditions import condition_as_number
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.render.number_expressions import (
    aggregate_expression,
    number_expression,
    range_of_folds,
    repeated_contribution,
)
from sparseeinsum.render.plain_sql.plain_numbers import PlainNumbers
from sparseeinsum.semantics.expression_ranges import range_of
from sparseeinsum.statistics.columns import IS_TRUTH, NUMBER_TYPES, array_type, number_type
from sparseeinsum.statistics.extents import Extent, product

_LETTERS = "ijklmnopqrstuvwxyzabcdefghIJKLMNOPQRSTUVWXYZABCDEFGH"


@dataclass(frozen=True, slots=True)
class OperandValue:
    """The value of an operand in one tuple.

    Attributes:
        value: SQL of a number or of an array.
        inside: The labels inside the array, in axis order; empty for a number.
        dtype: The dtype of the value.
    """

    value: exp.Expr
    inside: tuple[str, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class ResultValue:
    """The value of a result in one tuple, as SQL.

    Attributes:
        einsum: The EinSum that is computed.
        terms: The values of its operands.
        inside: The labels inside the arrays of the result, in axis order.
        extents: For every label inside an array, how many of its indices the array holds.
        is_grouped: Whether the SELECT groups tuples.
        has_keys: Whether the result has key columns. Without, it has one tuple, also if there are no rows to aggregate.
        output: The tensor that is computed.
        computed_in: The dtype of the arithmetic.
        compensation: What the pairs of tuples that the join omits contribute.
        detects_nonfinite: Whether a value that is NaN or infinite, and not the fill, must end the run.
        ranges: The ranges of the values of the operands.
        times: The most pairs of values that are aggregated into one.
        dialect: The dialect of the engine.
    """

    einsum: EinSum
    terms: Sequence[OperandValue]
    inside: tuple[str, ...]
    extents: Mapping[str, Extent]
    is_grouped: bool
    has_keys: bool
    output: Tensor
    computed_in: str
    compensation: Compensation | None
    detects_nonfinite: bool
    ranges: Sequence[Range]
    times: int
    dialect: Dialect

    def write(self) -> exp.Expr:
        """The SQL of the value, of the type of the result.

        Raises:
            PlanError: More labels are inside arrays than the kernels take.
        """
        if len(self.extents) > MOST_ARRAY_AXES:
            name = self.einsum.output.tensor
            raise PlanError(f"{name} has {len(self.extents)} labels inside arrays; kernels take {MOST_ARRAY_AXES}")
        terms = [_converted(term, self.computed_in) for term in self.terms]
        builder = _ValueBuilder(
            self.einsum, terms, self.ranges, self.times, self.inside, self.extents, self.computed_in, self.dialect
        )
        value = builder.number(self.is_grouped) if builder.is_number else builder.array(self.is_grouped)
        if self.compensation is not None and self.is_grouped:
            value = self._compensated(value, self.compensation, builder)
        value = self._as_output_dtype(value, builder.is_number)
        if not self.detects_nonfinite:
            return value
        if self.dialect.plain is not None:
            numbers = PlainNumbers(self.output.dtype, self.dialect.name, self.dialect.plain)
            return numbers.result(value, self.output, may_lack_rows=self.is_grouped and not self.has_keys)
        return with_finite_check(value, self.output)

    def _compensated(self, value: exp.Expr, compensation: Compensation, builder: "_ValueBuilder") -> exp.Expr:
        """Fold what the pairs that are missing from the group contribute into its value."""
        aggregate = self.einsum.aggregate
        assert aggregate is not None
        # One pair of tuples contributes once for every index of the labels that its arrays aggregate.
        repeats = product(extent for label, extent in self.extents.items() if label not in self.inside)
        if isinstance(repeats, int):
            if repeats == 0:
                return value
            missing = exp.Sub(this=integer(compensation.pairs), expression=exp.Count(this=exp.Star()))
        else:  # the arrays differ in size, so that indices are counted instead of pairs
            present_sum = exp.cast(exp.Sum(this=repeats), "bigint")
            present_indices = exp.func("coalesce", present_sum, integer(0))
            missing, repeats = exp.Sub(this=integer(compensation.indices), expression=present_indices), 1
        if aggregate in USER_AGGREGATES:
            number = integer(repeats) if isinstance(repeats, int) else repeats
            folded = builder.merged(
                value, compensation.constant, exp.Mul(this=in_parentheses(missing), expression=number)
            )
            return self._unless_complete(value, folded, compensation.pairs)
        contribution = aggregate_repeated(aggregate, np.asarray(compensation.constant), repeats, self.computed_in)
        folded = builder.folded(value, aggregate, contribution, missing)
        if aggregate == "sum" and np.isfinite(contribution):  # 0 times a finite number is 0
            return folded
        return self._unless_complete(value, folded, compensation.pairs)

    def _unless_complete(self, value: exp.Expr, folded: exp.Expr, pairs: int) -> exp.Expr:
        """Return `folded`, but `value` unchanged where no pair of the group is missing."""
        cases = exp.case()
        if not self.has_keys:  # without rows there is one group, too: NULL, which becomes the fill
            cases = cases.when(exp.EQ(this=exp.Count(this=exp.Star()), expression=integer(0)), exp.null())
        none_is_missing = exp.EQ(this=exp.Count(this=exp.Star()), expression=integer(pairs))
        return cases.when(none_is_missing, value.copy()).else_(folded)

    def _as_output_dtype(self, value: exp.Expr, is_number: bool) -> exp.Expr:
        """Convert a value from the dtype of the arithmetic to that of the result."""
        dtype = self.output.dtype
        if is_complex(self.computed_in) and not is_complex(dtype):
            value = call("tensor_complex_real", value)
            value = value if self.inside else first_element(value)
            is_number = not self.inside
        if NUMBER_TYPES[self.computed_in] == NUMBER_TYPES[dtype]:
            return value
        if value.meta.get(IS_TRUTH):
            return condition_as_number(value.this.unnest(), dtype)
        return converted(value, number_type(dtype) if is_number else array_type(dtype))


def with_finite_check(value: exp.Expr, output: Tensor) -> exp.Expr:
    """The value of a tuple of `output`, checked: a NaN, or infinity that is not the fill, ends the statement."""
    fill = constant(output.fill, output.dtype)
    return call(function_named("finite", output.dtype), text(output.name), value, fill)


def _converted(term: OperandValue, dtype: str) -> OperandValue:
    """Convert an operand's value to the dtype of the arithmetic."""
    if is_complex(dtype) and not is_complex(term.dtype):
        array = term.value if term.inside else exp.array(term.value)
        real = array if NUMBER_TYPES[term.dtype] == NUMBER_TYPES[dtype] else converted(array, array_type(dtype))
        return OperandValue(call("tensor_complex_from", real), term.inside, dtype)
    if NUMBER_TYPES[term.dtype] == NUMBER_TYPES[dtype]:
        return OperandValue(term.value, term.inside, dtype)
    is_array = bool(term.inside) or is_complex(dtype)
    return OperandValue(
        converted(term.value, array_type(dtype) if is_array else number_type(dtype)), term.inside, dtype
    )


@dataclass(frozen=True, slots=True)
class _ValueBuilder:
    """Builds the SQL of a value in the dtype of the arithmetic, without compensation and conversion."""

    einsum: EinSum
    terms: Sequence[OperandValue]
    ranges: Sequence[Range]
    times: int
    inside: tuple[str, ...]
    extents: Mapping[str, Extent]
    dtype: str
    dialect: Dialect

    @property
    def is_number(self) -> bool:
        """Whether the result is a number. A complex number is an array of its two parts."""
        return not self.inside and not is_complex(self.dtype)

    def number(self, is_grouped: bool) -> exp.Expr:
        """The SQL of a result that is a number."""
        if self.einsum.aggregate in USER_AGGREGATES:
            return first_element(self._states(is_grouped))
        if self.einsum.along is not None:
            return first_element(self._along(self.einsum.along))
        value = self._number_of_pair()
        if not is_grouped:
            return value
        terms = range_of(self.einsum.join, self.ranges, self.dtype)
        return aggregate_expression(self.einsum.aggregate or "sum", value, self.dtype, self.dialect, terms, self.times)

    def array(self, is_grouped: bool) -> exp.Expr:
        """The SQL of a result that is an array."""
        if is_grouped and self.einsum.is_multilinear and len(self.terms) == 2:
            return self._sum_of_products()
        if self.einsum.aggregate in USER_AGGREGATES:
            return self._states(is_grouped)
        if self.einsum.along is not None:
            return self._along(self.einsum.along)
        value = self._array_of_pair()
        return self._call(str(self.einsum.aggregate), value) if is_grouped else value

    def _along(self, along: str) -> exp.Expr:
        """Scan one operand along a label, or, for aggregates such as `first`, pick the values at one index of it."""
        pick = PICKS.get(str(self.einsum.aggregate))
        inside = self.inside if pick is None else (*self.inside, along)
        extents = [self.extents[label] for label in inside]
        axis, values = integer(inside.index(along)), self._rearranged(inside)
        if pick is None:
            return self._call("scan", text(str(self.einsum.base_aggregate)), values, axis, integers(extents))
        extent = extents[-1]
        assert isinstance(extent, int), "the label is demoted"
        if extent == 0:  # the result is empty, too
            return values
        return self._call("slice", values, axis, integer(pick.position % extent), integers(extents))

    def _states(self, is_grouped: bool) -> exp.Expr:
        """The states of a user's aggregate, as an array of numbers with one axis more."""
        positions = [
            position for argument in aggregate_arguments(self.einsum) for position in operands_in_order(argument)
        ]
        arrays = self._arrays
        inside = [self.terms[position].inside for position in positions]
        output_labels = tuple(label for label in self.inside if label != self.einsum.state)
        extents = integers([self.extents[label] for label in self._labels_of(inside)])
        spec = text(self._spec_of(inside, output_labels))
        name = text(str(self.einsum.aggregate))
        folded = call("tensor_fold", name, spec, *(arrays[position].copy() for position in positions), extents)
        return call("tensor_merge", name.copy(), folded) if is_grouped else folded

    def merged(self, value: exp.Expr, constant_value: Number, missing: exp.Expr) -> exp.Expr:
        """Merge `missing` repetitions of a constant into the states of a group, for a user's aggregate."""
        name, number = text(str(self.einsum.aggregate)), constant(constant_value, self.dtype)
        states = exp.array(value) if self.is_number else value
        merged_states = call("tensor_merge_repeated", name, states, number, missing)
        return first_element(merged_states) if self.is_number else merged_states

    def folded(self, value: exp.Expr, aggregate: str, contribution: Number, missing: exp.Expr) -> exp.Expr:
        """Fold `missing` repetitions of one contribution into the value of a group."""
        combined = Call(AGGREGATES[aggregate].combine, (U, V))
        if is_complex(self.dtype):
            times = self._call("from", exp.array(exp.cast(missing, number_type(self.dtype))))
            spelled = text(write(AGGREGATES[aggregate].repeat_expression))
            once = constant(contribution, self.dtype)
            contributions = self._call("reduce", text("sum"), spelled, text(",->"), once, times, integers(()))
        else:
            contributions = repeated_contribution(aggregate, contribution, missing, self.dtype, self.dialect)
            if self.is_number:
                terms = (range_of(self.einsum.join, self.ranges, self.dtype), exact_range(contribution))
                ranges = [range_of_folds(part, self.times, self.dtype) for part in terms]
                values = [value, in_parentheses(contributions)]
                return number_expression(combined, values, self.dtype, self.dialect, ranges)
            contributions = exp.array(contributions)
        size = product(self.extents[label] for label in self.inside)
        return self._call(
            "reduce", text("sum"), text(write(combined)), text("i,->i"), value, contributions, integers([size])
        )

    def _call(self, operation: str, *arguments: exp.Expr) -> exp.Expr:
        return call(function_named(operation, self.dtype), *arguments)

    @property
    def _has_arrays(self) -> bool:
        return any(term.inside for term in self.terms)

    @property
    def _arrays(self) -> list[exp.Expr]:
        """The operands as arrays: a number becomes an array of one element."""
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

    def _spec_of(self, inside: Sequence[Sequence[str]], output_labels: Sequence[str]) -> str:
        letters = dict(zip(self._labels_of(inside), _LETTERS, strict=False))
        inputs = ",".join("".join(letters[label] for label in labels) for labels in inside)
        return f"{inputs}->{''.join(letters[label] for label in output_labels)}"

    def _extents(self) -> exp.Expr:
        return integers([self.extents[label] for label in self._labels])

    def _number_of_pair(self) -> exp.Expr:
        if not self._has_arrays:
            values = [term.value for term in self.terms]
            return number_expression(self.einsum.join, values, self.dtype, self.dialect, self.ranges)
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
        """Apply the join expression element by element, if a kernel does that and no axis moves; otherwise None."""
        if all(term.inside == self.inside for term in self.terms):
            if len(self.terms) == 1:
                return self._call("map", text(_map_text(self.einsum.join)), self.terms[0].value)
            for name in ("add", "sub", "div", "mul"):
                if self.einsum.join == Call(name, (Operand(0), Operand(1))):
                    return self._call(name, *self._arrays)
        return None

    def _rearranged(self, labels: tuple[str, ...]) -> exp.Expr:
        """The values of the only operand with these labels, in this order."""
        (term,) = self.terms
        spec = text(self._spec_of([term.inside], labels))
        return term.value if term.inside == labels else self._call("einsum", spec, term.value, self._extents())

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
    """The text of a function for `tensor_map`: `relu` rather than `relu(u)`."""
    match join:
        case Call(function, (Operand(0),)) if function != "neg":
            return function
        case _:
            return write(join)

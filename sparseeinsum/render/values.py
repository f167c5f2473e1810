"""Render: what an EinSum computes for one pair of tuples, and over a group of them, as SQL expressions.

Numbers are combined by plain SQL where that is proven equal to numpy (tests/test_engine_arithmetic.py): + - *, division
by a number other than 0, SUM, PRODUCT, MAX, and MIN beside a test for NaN. All else goes through the functions of
udfs/functions.toml.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sqlglot import exp

from sparseeinsum.errors import PlanError
from sparseeinsum.language.eingraph import EinSum
from sparseeinsum.language.scalar import PRODUCT, Call, Literal, Operand, Scalar, evaluate, operands_of, write
from sparseeinsum.language.tensors import ITEM_BYTES
from sparseeinsum.statistics.columns import array_type, number_type

_LETTERS = "ijklmnopqrstuvwxyzabcdefghIJKLMNOPQRSTUVWXYZABCDEFGH"
MAX_LABELS_INSIDE = 16  # of udfs/contraction.py
_DECIMAL_DIGITS = {"float64": 15, "float32": 7}  # decimals of so many become the nearest number of the dtype


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


def integer(value: int) -> exp.Expr:
    """A whole number as SQL."""
    return exp.Literal.number(value)


def integers(values: Sequence[int]) -> exp.Expr:
    """An array of whole numbers as SQL."""
    if not values:
        return exp.cast(exp.array(), exp.DataType.build("BIGINT[]", dialect="duckdb"))
    return exp.array(*[integer(value) for value in values])


def number(value: float, dtype: str) -> exp.Expr:
    """A number that SQL reads as the nearest of the dtype: decimal where few digits say it, else with exponent."""
    with np.errstate(over="ignore"):
        digits = str(np.dtype(dtype).type(value))
    kind = number_type(dtype)
    if not digits.lstrip("-")[0].isdigit():
        return exp.cast(text(digits), kind)
    is_short = "e" not in digits and len(digits.replace(".", "").lstrip("-0")) <= _DECIMAL_DIGITS[dtype]
    literal = exp.Literal.number(digits if is_short or "e" in digits else f"{digits}e0")
    return literal if dtype == "float64" else exp.cast(literal, kind)


def text(value: str) -> exp.Expr:
    """A text as SQL."""
    return exp.Literal.string(value)


def call(name: str, *arguments: exp.Expr) -> exp.Expr:
    """A function of the vocabulary, its name as it is."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def fill_value(dtype: str, inside: Sequence[int] | None) -> exp.Expr:
    """What an absent tuple holds: 0, or an array of 0."""
    zero = exp.cast(integer(0), number_type(dtype))
    return zero if inside is None else call("tensor_fill", integer(math.prod(inside)), zero)


def group_value(
    einsum: EinSum,
    terms: Sequence[Term],
    inside: Sequence[str],
    extents: Mapping[str, int],
    is_grouped: bool,
    dtype: str,
) -> exp.Expr:
    """The value of a result's tuple: of one pair of tuples, or aggregated over a group of pairs.

    Args:
        einsum: What is computed.
        terms: The operands' values.
        inside: Labels inside the result's arrays, in axis order.
        extents: Bound of every label inside an array.
        is_grouped: Whether tuples are aggregated.
        dtype: Of the result.
    """
    if len(extents) > MAX_LABELS_INSIDE:
        raise PlanError(
            f"{einsum.output.tensor} has {len(extents)} labels inside arrays; kernels take {MAX_LABELS_INSIDE}"
        )
    typed = [_as_dtype(term, dtype) for term in terms]
    writer = _Writer(einsum, typed, tuple(inside), extents)
    return writer.number(is_grouped) if writer.is_number else writer.array(is_grouped)


def _as_dtype(term: Term, dtype: str) -> Term:
    if ITEM_BYTES[term.dtype] == ITEM_BYTES[dtype]:
        return term
    kind = array_type(dtype) if term.inside else number_type(dtype)
    return Term(exp.cast(term.value, kind), term.inside, dtype)


@dataclass(frozen=True, slots=True)
class _Writer:
    einsum: EinSum
    terms: Sequence[Term]
    inside: tuple[str, ...]
    extents: Mapping[str, int]

    @property
    def is_number(self) -> bool:
        return not self.inside

    def number(self, is_grouped: bool) -> exp.Expr:
        """A result that is a number."""
        value = self._number_of_pair()
        return _AGGREGATES[self.einsum.aggregate or "sum"](value, self._dtype) if is_grouped else value

    def array(self, is_grouped: bool) -> exp.Expr:
        """A result that is an array."""
        if is_grouped and self.einsum.is_multilinear and len(self.terms) == 2:
            return self._sum_of_products()
        value = self._array_of_pair()
        return call(f"tensor_{self.einsum.aggregate}", value) if is_grouped else value

    @property
    def _dtype(self) -> str:
        return self.terms[0].dtype

    @property
    def _has_arrays(self) -> bool:
        return any(term.inside for term in self.terms)

    @property
    def _arrays(self) -> list[exp.Expr]:
        """The operands as arrays, numbers as arrays of one."""
        return [term.value if term.inside else exp.array(term.value) for term in self.terms]

    @property
    def _labels(self) -> list[str]:
        return list(dict.fromkeys(label for term in self.terms for label in term.inside))

    @property
    def _spec(self) -> str:
        letters = dict(zip(self._labels, _LETTERS, strict=False))
        inputs = ",".join("".join(letters[label] for label in term.inside) for term in self.terms)
        return f"{inputs}->{''.join(letters[label] for label in self.inside)}"

    def _extents(self) -> exp.Expr:
        return integers([self.extents[label] for label in self._labels])

    def _number_of_pair(self) -> exp.Expr:
        if not self._has_arrays:
            return number_expression(self.einsum.join, [term.value for term in self.terms], self._dtype)
        if self.einsum.is_multilinear and self._spec == "i,i->":
            return call("tensor_dot", *self._arrays)
        return exp.Bracket(this=self._array_of_pair(), expressions=[integer(1)], offset=1)

    def _array_of_pair(self) -> exp.Expr:
        if self.einsum.is_multilinear:
            return self._product() if len(self.terms) == 2 else self._rearranged()
        if set(self._labels) == set(self.inside):
            mapped = self._mapped()
            if mapped is not None:
                return mapped
        aggregate = text(self.einsum.aggregate or "sum")
        return call(
            "tensor_reduce", aggregate, text(write(self.einsum.join)), text(self._spec), *self._arrays, self._extents()
        )

    def _mapped(self) -> exp.Expr | None:
        """Element by element, if a function of its own does that and no axis moves."""
        if all(term.inside == self.inside for term in self.terms):
            if len(self.terms) == 1:
                return call("tensor_map", text(_map_text(self.einsum.join)), self.terms[0].value)
            for name in ("add", "sub", "div", "mul"):
                if self.einsum.join == Call(name, (Operand(0), Operand(1))):
                    return call(f"tensor_{name}", *self._arrays)
        return None

    def _rearranged(self) -> exp.Expr:
        (term,) = self.terms
        return (
            term.value
            if term.inside == self.inside
            else call("tensor_einsum", text(self._spec), term.value, self._extents())
        )

    def _product(self) -> exp.Expr:
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


def _minimum(value: exp.Expr, dtype: str) -> exp.Expr:
    """MIN, but NaN where any value is NaN, as in numpy: SQL holds NaN for the largest number."""
    has_nan = exp.func("bool_or", exp.func("isnan", value.copy()))
    return exp.case().when(has_nan, number(math.nan, dtype)).else_(exp.Min(this=value))


def _rounded(folded: exp.Expr, dtype: str) -> exp.Expr:
    """A DOUBLE in another dtype; infinite where it is beyond that, as in numpy, where a cast would be an error."""
    if dtype == "float64":
        return folded
    infinite = exp.Mul(this=folded.copy(), expression=number(math.inf, "float64"))
    kind = number_type(dtype)
    return exp.func("coalesce", exp.TryCast(this=folded, to=exp.DataType.build(kind)), exp.cast(infinite, kind))


_AGGREGATES: dict[str, Callable[[exp.Expr, str], exp.Expr]] = {
    "sum": lambda value, dtype: _rounded(exp.Sum(this=value), dtype),
    "max": lambda value, _: exp.Max(this=value),
    "min": _minimum,
    "prod": lambda value, dtype: _rounded(exp.func("product", value), dtype),
}

_PLAIN = {"add": exp.Add, "sub": exp.Sub, "mul": exp.Mul}


def number_expression(join: Scalar, values: Sequence[exp.Expr], dtype: str) -> exp.Expr:
    """A scalar expression of numbers: plain SQL for + - * and division by a number, our functions for all else."""
    match join:
        case Operand(index):
            return values[index].copy()
        case _ if not operands_of(join):  # by numpy, once: SQL would compute with decimals
            return number(float(evaluate(join, ())), dtype)
        case Call(name, (first, second)) if name in _PLAIN:
            sides = [in_parentheses(number_expression(side, values, dtype)) for side in (first, second)]
            return _PLAIN[name](this=sides[0], expression=sides[1])
        case Call("div", (first, Literal(divisor))) if divisor != 0:  # by 0 it depends on a setting of the engine
            divided = in_parentheses(number_expression(first, values, dtype))
            return exp.Div(this=divided, expression=number(divisor, dtype))
        case Call("neg", (argument,)):
            return exp.Neg(this=in_parentheses(number_expression(argument, values, dtype)))
        case Call(name, (argument,)):
            return call("tensor_map", text(name), number_expression(argument, values, dtype))
        case Call(name, (first, Literal() as second)):
            spelled = write(Call(name, (Operand(0), second)))
            return call("tensor_map", text(spelled), number_expression(first, values, dtype))
        case Call(name, (first, second)):
            arrays = [exp.array(number_expression(side, values, dtype)) for side in (first, second)]
            spelled = write(Call(name, PRODUCT.arguments))
            reduced = call("tensor_reduce", text("sum"), text(spelled), text(",->"), *arrays, integers(()))
            return exp.Bracket(this=reduced, expressions=[integer(1)], offset=1)
        case _:
            raise PlanError(f"no SQL for {join}")


def in_parentheses(expression: exp.Expr) -> exp.Expr:
    """An expression as an operand of another: in parentheses where operators could take part of it."""
    return exp.Paren(this=expression) if isinstance(expression, (exp.Binary, exp.Neg)) else expression

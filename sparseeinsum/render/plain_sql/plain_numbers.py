"""Render: scalar expressions and aggregates of numbers as SQL of engines that this package does not run on.

The ranges of operands say where engines could differ from numpy, or from each other: at NaN in comparisons, at integers
beyond int64, and outside of the domain of a function. There, the SQL raises an error instead.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from sparseeinsum.errors import PlanError
from sparseeinsum.language.scalar import evaluate, operands_of
from sparseeinsum.language.tensors import Tensor
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.expressions import Call, Operand, Scalar
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.ranges import Range
from sparseeinsum.render.calls import in_parentheses, integer, text
from sparseeinsum.render.plain_sql.dialect_spelling import REMAINDER, Spelling, filled
from sparseeinsum.semantics.expression_ranges import range_of
from sparseeinsum.statistics.columns import number_type
from sparseeinsum.statistics.number_literals import number

# A little less than the greatest int64: the check computes in floating point, which rounds.
_LARGEST_INT = 9e18
_GREATEST_FLOAT = 1.7976931348623157e308
_LEAST_SUM, _GREATEST_SUM = 1e-290, 1e300  # of exponentials, between which none was lost

_ARITHMETIC: dict[str, Callable[..., exp.Expr]] = {"add": exp.Add, "sub": exp.Sub, "mul": exp.Mul, "div": exp.Div}
_COMPARISONS: dict[str, Callable[..., exp.Expr]] = {
    "lt": exp.LT,
    "le": exp.LTE,
    "gt": exp.GT,
    "ge": exp.GTE,
    "eq": exp.EQ,
    "ne": exp.NEQ,
}
_OUTSIDE = {"div": "division by", "mod": "remainder of a division by", "log": "logarithm of"}
_CONDITIONS = frozenset({*_COMPARISONS, "and", "or", "not"})
_COMPARING = frozenset({"min", "max", "relu", "clip", "sign", "logaddexp", "round", "mod"})  # in their SQL
_SAME_OF_INTEGERS = frozenset({"floor", "ceil", "round", "conj", "real"})
_ROUNDED_TO_FLOAT32 = frozenset({*_ARITHMETIC, "pow", "mod", "exp", "log", "sqrt", "tanh", "sigmoid", "logaddexp"})


@dataclass(frozen=True)
class PlainNumbers:
    """Writes expressions of numbers for an engine.

    Attributes:
        dtype: The dtype of the arithmetic: float64, float32 or int64.
        dialect: The name of the engine's dialect in sqlglot.
        spelling: How the engine spells functions.
    """

    dtype: str
    dialect: str
    spelling: Spelling

    def expression(self, join: Scalar, values: Sequence[exp.Expr], ranges: Sequence[Range]) -> exp.Expr:
        """The SQL of a scalar expression.

        Args:
            join: The expression.
            values: The SQL of its operands, of the type of the arithmetic.
            ranges: The ranges of its operands.

        Raises:
            PlanError: The engine has no such function.
        """
        return _Writer(self, values, ranges).write(join)

    def aggregate(self, name: str, value: exp.Expr, terms: Range, times: int) -> exp.Expr:
        """The SQL of an aggregate of the numbers of a group.

        Args:
            name: The name of the aggregate.
            value: The SQL of the numbers.
            terms: Their range.
            times: The most numbers of a group.

        Raises:
            PlanError: The engine has no such aggregate.
        """
        record = AGGREGATES[name]
        if record.sql in ("MAX", "MIN"):
            ordered = self.not_nan(value, terms)
            return exp.Max(this=ordered) if record.sql == "MAX" else exp.Min(this=ordered)
        if name == "sum" and self.dtype == "int64":
            return self._integer_sum(value, terms.magnitude * times < _LARGEST_INT)
        term = value if terms.is_finite or (self.spelling.has_nan and name == "sum") else self.finite(value)
        term = exp.cast(term, "double") if self.dtype == "float32" else term
        if name == "sum":
            return self._as_dtype(exp.Sum(this=term))
        if name == "prod" and self.dtype != "int64":
            return self._as_dtype(filled(self.spelling.product, self.dialect, u=term))
        if name == "logsumexp" and self.dtype != "int64":
            return self._as_dtype(self._log_of_sum(term))
        raise self.refusal(f"{name} of {self.dtype}")

    def refusal(self, what: str) -> PlanError:
        """The error for what the engine cannot compute."""
        return PlanError(
            f"SQL for {self.spelling.engine} cannot compute {what} exactly; leave it out of the program, or run the "
            "program where the tensors are"
        )

    def checked(self, value: exp.Expr, is_right: exp.Expr, message: str, shown: exp.Expr) -> exp.Expr:
        """The value, or an error with a message where it is not right."""
        return exp.case().when(is_right, value).else_(self._error(message, shown, exp.not_(is_right.copy())))

    def _error(self, message: str, shown: exp.Expr, is_wrong: exp.Expr) -> exp.Expr:
        """A number that raises an error, which shows a number."""
        raised = filled(
            self.spelling.error, self.dialect, message=text(f"{message}: "), u=shown.copy(), is_wrong=is_wrong
        )
        return raised if self.dtype == "float64" else exp.cast(raised, number_type(self.dtype))

    def finite(self, value: exp.Expr, message: str = "not finite") -> exp.Expr:
        """The value, or an error if it is NaN or infinite."""
        is_finite = exp.LTE(this=exp.Abs(this=value.copy()), expression=number(_GREATEST_FLOAT, "float64"))
        return self.checked(value, is_finite, message, value)

    def result(self, value: exp.Expr, output: Tensor, may_lack_rows: bool) -> exp.Expr:
        """The value of a tuple of a result: an error if it is NaN, or infinite and not the fill.

        Args:
            value: The value.
            output: The result.
            may_lack_rows: Whether the value aggregates what may be no rows: then it is NULL, and becomes the fill.
        """
        cases = exp.case()
        if may_lack_rows:
            cases = cases.when(exp.EQ(this=exp.Count(this=exp.Star()), expression=integer(0)), exp.null())
        if math.isinf(output.fill.real):
            fill = number(output.fill.real, output.dtype)
            cases = cases.when(exp.EQ(this=in_parentheses(value.copy()), expression=fill), value.copy())
        checked = self.finite(value, f"{output.name} is not finite")
        return cases.else_(checked) if cases.args.get("ifs") else checked

    def not_null(self, value: exp.Expr) -> exp.Expr:
        """The value, or an error if it is NULL, which is NaN to an engine that has none."""
        return exp.func("coalesce", value, self._error("NaN", value, value.copy().is_(exp.null())))

    def not_nan(self, value: exp.Expr, values: Range) -> exp.Expr:
        """The value for a comparison: an error if it is NaN."""
        if self.dtype == "int64":
            return value
        if self.spelling.distinguishes_zeros and 0 in values and not isinstance(value, exp.Literal):
            value = exp.Add(this=in_parentheses(value), expression=number(0.0, self.dtype))
        if not values.may_be_nan:
            return value
        if not self.spelling.has_nan:
            return self.not_null(value)
        infinite = number(math.inf, "float64")
        is_number = exp.LTE(this=exp.Abs(this=value.copy()), expression=infinite)
        return self.checked(value, is_number, "NaN is compared", value)

    def _as_dtype(self, value: exp.Expr) -> exp.Expr:
        return exp.cast(value, number_type(self.dtype)) if self.dtype == "float32" else value

    def in_range(self, value: exp.Expr, size: exp.Expr) -> exp.Expr:
        """An integer, or an error if its size, estimated in floating point, is beyond int64; NULL stays NULL."""
        is_large = exp.GTE(this=size, expression=number(_LARGEST_INT, "float64"))
        return exp.case().when(is_large, self._error("beyond int64", size, is_large.copy())).else_(value)

    def _integer_sum(self, value: exp.Expr, is_small: bool) -> exp.Expr:
        total = exp.cast(exp.Sum(this=value), number_type("int64"))
        if is_small or self.spelling.checks_integers:
            return total
        return self.in_range(total, exp.Sum(this=exp.Abs(this=exp.cast(value.copy(), "double"))))

    def _log_of_sum(self, value: exp.Expr) -> exp.Expr:
        """The logarithm of a sum of exponentials, if none of these is too large or too small."""
        total = exp.Sum(this=exp.Exp(this=value))
        low, high = (number(limit, "float64") for limit in (_LEAST_SUM, _GREATEST_SUM))
        is_exact = exp.Between(this=total, low=low, high=high)
        is_empty = exp.EQ(this=exp.Count(this=exp.Star()), expression=integer(0))
        is_right = exp.or_(is_empty, is_exact)  # without rows, the logarithm is NULL
        return self.checked(exp.Ln(this=total.copy()), is_right, "logarithm of a sum of exponentials", total)


@dataclass(frozen=True)
class _Writer:
    """Writes one scalar expression; see `PlainNumbers.expression`."""

    numbers: PlainNumbers
    values: Sequence[exp.Expr]
    ranges: Sequence[Range]

    @property
    def _is_integer(self) -> bool:
        return self.numbers.dtype == "int64"

    def _range(self, part: Scalar) -> Range:
        return range_of(part, self.ranges, self.numbers.dtype)

    def write(self, part: Scalar) -> exp.Expr:
        """The SQL of a part of the expression, as a number."""
        dtype, spelling = self.numbers.dtype, self.numbers.spelling
        if not operands_of(part):  # numpy computes constants
            return number(evaluate(part, ()).item(), dtype)
        match part:
            case Operand(index):
                value = self.values[index].copy()
            case Call(name, _) if name in _CONDITIONS:
                one, zero = number(1, dtype), number(0, dtype)
                return exp.case().when(self._condition(part), one).else_(zero)
            case Call(name, arguments):
                value = self._integer_call(name, arguments) if self._is_integer else self._call(name, arguments)
                if dtype == "float32" and spelling.has_float32 and name in _ROUNDED_TO_FLOAT32:
                    value = exp.cast(value, number_type(dtype))
            case _:
                raise self.numbers.refusal(str(part))
        if not spelling.has_nan and not self._is_integer and self._range(part).may_be_nan:
            return self.numbers.not_null(value)
        return value

    def _compared(self, part: Scalar) -> exp.Expr:
        return self.numbers.not_nan(self.write(part), self._range(part))

    def _condition(self, part: Scalar) -> exp.Expr:
        """The SQL of whether a part is true, as every number but 0 is."""
        match part:
            case _ if not operands_of(part):
                return exp.Boolean(this=bool(evaluate(part, ())))
            case Call("and", (first, second)):
                return exp.and_(self._condition(first), self._condition(second))
            case Call("or", (first, second)):
                return exp.or_(self._condition(first), self._condition(second))
            case Call("not", (argument,)):
                return exp.not_(self._condition(argument))
            case Call(name, (first, second)) if name in _COMPARISONS:
                sides = [in_parentheses(self._compared(side)) for side in (first, second)]
                return _COMPARISONS[name](this=sides[0], expression=sides[1])
            case _:
                return exp.NEQ(this=in_parentheses(self._compared(part)), expression=integer(0))

    def _selected(self, name: str, arguments: Sequence[Scalar]) -> exp.Expr | None:
        """The SQL of a function that returns one of its arguments; None of another function."""
        if name == "where":
            test, if_true, if_false = arguments
            return exp.case().when(self._condition(test), self.write(if_true)).else_(self.write(if_false))
        if name not in ("relu", "max", "min", "clip"):
            return None
        first, *others = (self._compared(argument) for argument in arguments)
        match name:
            case "relu":
                return exp.Greatest(this=first, expressions=[number(0, self.numbers.dtype)])
            case "max":
                return exp.Greatest(this=first, expressions=others)
            case "min":
                return exp.Least(this=first, expressions=others)
            case _:
                low, high = others
                return exp.Least(this=exp.Greatest(this=first, expressions=[low]), expressions=[high])

    def _call(self, name: str, arguments: Sequence[Scalar]) -> exp.Expr:
        """The SQL of a function of floating point."""
        selected = self._selected(name, arguments)
        if selected is not None:
            return selected
        if name in ("conj", "real", "neg", "abs"):
            value = self.write(arguments[0])
            return {
                "conj": value,
                "real": value,
                "neg": exp.Neg(this=in_parentheses(value)),
                "abs": exp.Abs(this=value),
            }[name]
        if name in _COMPARING:
            written = [self._compared(argument) for argument in arguments]
        else:
            written = [self.write(argument) for argument in arguments]
        written[-1] = self._in_domain(name, written[-1], self._range(arguments[-1]))
        if name in _ARITHMETIC:
            first, second = (in_parentheses(argument) for argument in written)
            return _ARITHMETIC[name](this=first, expression=second)
        template = self.numbers.spelling.function(name)
        if not template or FUNCTIONS[name].python is not None:
            raise self.numbers.refusal(f"the function {name}")
        return filled(template, self.numbers.dialect, **dict(zip("uvw", written, strict=False)))

    def _in_domain(self, name: str, value: exp.Expr, values: Range) -> exp.Expr:
        """The last argument of a function: an error where the engine would return NULL."""
        operand, zero = in_parentheses(value.copy()), integer(0)
        if name in ("div", "mod") and 0 in values and (name == "mod" or "div" in self.numbers.spelling.gives_null):
            is_inside: exp.Expr = exp.NEQ(this=operand, expression=zero)
        elif name == "log" and values.low <= 0 and "log" in self.numbers.spelling.gives_null:
            is_inside = exp.GT(this=operand, expression=zero)
        else:
            return value
        return self.numbers.checked(value, is_inside, _OUTSIDE[name], value)

    def _integer_call(self, name: str, arguments: Sequence[Scalar]) -> exp.Expr:
        """The SQL of a function of int64."""
        selected = self._selected(name, arguments)
        if selected is not None:
            return selected
        written = [in_parentheses(self.write(argument)) for argument in arguments]
        if name in _SAME_OF_INTEGERS:
            return written[0]
        if name == "sign":
            sign = filled("CASE WHEN u > 0 THEN 1 WHEN u < 0 THEN -1 ELSE 0 END", "", u=written[0])
            return exp.cast(sign, number_type("int64"))
        if name == "mod":
            remainder = filled(REMAINDER, "", u=written[0], v=written[1])
            is_zero = exp.EQ(this=written[1].copy(), expression=integer(0))
            may_be_zero = 0 in self._range(arguments[1])
            return exp.case().when(is_zero, number(0, "int64")).else_(remainder) if may_be_zero else remainder
        return self._checked(name, arguments, written)

    def _checked(self, name: str, arguments: Sequence[Scalar], written: Sequence[exp.Expr]) -> exp.Expr:
        """The SQL of integer arithmetic: an error for results beyond int64, unless ranges exclude them."""
        is_small = (
            self.numbers.spelling.checks_integers or self._range(Call(name, tuple(arguments))).magnitude < _LARGEST_INT
        )

        def computed(operands: Sequence[exp.Expr]) -> exp.Expr:
            match name, operands:
                case "add" | "sub" | "mul", (first, second):
                    return _ARITHMETIC[name](this=first, expression=second)
                case "pow", (first, _) if _constant(arguments[1]) == 2:
                    return exp.Mul(this=first, expression=first.copy())
                case "neg", (only,):
                    return exp.Neg(this=only)
                case "abs", (only,):
                    return exp.Abs(this=only)
                case _:
                    raise self.numbers.refusal(f"the function {name} of int64")

        value = computed(written)
        if is_small:
            return value
        estimate = computed([exp.cast(operand.copy(), "double") for operand in written])
        return self.numbers.in_range(value, exp.Abs(this=estimate))


def _constant(part: Scalar) -> object:
    """The number that an expression is; None if it depends on operands."""
    return None if operands_of(part) else evaluate(part, ()).item()

"""Statistics: exact SQL literals of numbers."""

import numpy as np
from sqlglot import exp

from sparseeinsum.operators.dtypes import Number, is_complex
from sparseeinsum.statistics.columns import number_type

_DECIMAL_DIGITS = {"float64": 15, "float32": 7}  # decimals of so many digits are parsed to the nearest number
_PARTS = {"complex128": "float64", "complex64": "float32"}
_LEAST_INT64 = -(1 << 63)


def number(value: Number, dtype: str) -> exp.Expr:
    """A SQL expression with exactly this value, of the type that computes with `dtype`; complex numbers are arrays."""
    if is_complex(dtype):
        parts = (complex(value).real, complex(value).imag)
        return exp.array(*[number(part, _PARTS[dtype]) for part in parts])
    if dtype == "int64":
        return _integer_literal(int(value.real))
    return _float_literal(float(value.real), "float32" if dtype == "bool" else dtype)


def _integer_literal(value: int) -> exp.Expr:
    if value == _LEAST_INT64:  # SQL would parse the digits before the minus sign, and they do not fit into BIGINT
        literal: exp.Expr = exp.Literal.string(str(value))
    else:
        literal = exp.Literal.number(value)
    return exp.cast(literal, number_type("int64"))


def _float_literal(value: float, dtype: str) -> exp.Expr:
    """Decimal where few digits say it, else with exponent."""
    with np.errstate(over="ignore"):
        digits = str(np.dtype(dtype).type(value))
    kind = number_type(dtype)
    is_negative_zero = value == 0 and digits.startswith("-")  # decimals have none
    if is_negative_zero or not digits.lstrip("-")[0].isdigit():
        return exp.cast(exp.Literal.string(digits), kind)
    is_short = "e" not in digits and len(digits.replace(".", "").lstrip("-0")) <= _DECIMAL_DIGITS[dtype]
    literal = exp.Literal.number(digits if is_short or "e" in digits else f"{digits}e0")
    return literal if dtype == "float64" else exp.cast(literal, kind)

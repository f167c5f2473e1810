"""Operators: trigonometric and hyperbolic functions, and the error function."""

import cmath
import math

import numpy as np

from sparseeinsum.operators import range_rules as rules
from sparseeinsum.operators import reference_functions as references
from sparseeinsum.operators.records import ScalarFunction

TRIGONOMETRY = (
    ScalarFunction(
        name="sin",
        operands=1,
        numpy=np.sin,
        description="sine",
        real=math.sin,
        complex=cmath.sin,
        sql="CASE WHEN abs(u) < 'inf' THEN sin(u) ELSE 'nan' END",
        range=rules.sine_range,
        complex_range=rules.any_value,
    ),
    ScalarFunction(
        name="cos",
        operands=1,
        numpy=np.cos,
        description="cosine",
        real=math.cos,
        complex=cmath.cos,
        sql="CASE WHEN abs(u) < 'inf' THEN cos(u) ELSE 'nan' END",
        range=rules.sine_range,
        complex_range=rules.any_value,
    ),
    ScalarFunction(
        name="tan",
        operands=1,
        numpy=np.tan,
        description="tangent",
        real=math.tan,
        complex="tangent",
        sql="CASE WHEN abs(u) < 'inf' THEN tan(u) ELSE 'nan' END",
        range=rules.tangent_range,
        complex_range=rules.any_value,
    ),
    ScalarFunction(
        name="asin",
        operands=1,
        numpy=np.arcsin,
        description="inverse sine, NaN beyond -1 and 1",
        real=math.asin,
        complex=cmath.asin,
        sql="CASE WHEN abs(u) <= 1 THEN asin(u) ELSE 'nan' END",
        range=rules.range_of_increasing(np.arcsin, -1.0, 1.0),
        complex_range=rules.any_value,
    ),
    ScalarFunction(
        name="acos",
        operands=1,
        numpy=np.arccos,
        description="inverse cosine, NaN beyond -1 and 1",
        real=math.acos,
        complex=cmath.acos,
        sql="CASE WHEN abs(u) <= 1 THEN acos(u) ELSE 'nan' END",
        range=rules.arc_cosine_range,
        complex_range=rules.any_value,
    ),
    ScalarFunction(
        name="atan",
        operands=1,
        numpy=np.arctan,
        description="inverse tangent",
        real=math.atan,
        complex=cmath.atan,
        sql="atan(u)",
        range=rules.range_of_increasing(np.arctan),
        complex_range=rules.any_value,
        is_increasing=True,
    ),
    ScalarFunction(
        name="sinh",
        operands=1,
        numpy=np.sinh,
        description="hyperbolic sine",
        real=math.sinh,
        complex=cmath.sinh,
        sql="sinh(u)",
        range=rules.range_of_increasing(np.sinh),
        complex_range=rules.any_value,
        is_increasing=True,
    ),
    ScalarFunction(
        name="cosh",
        operands=1,
        numpy=np.cosh,
        description="hyperbolic cosine",
        real=math.cosh,
        complex=cmath.cosh,
        sql="cosh(u)",
        range=rules.hyperbolic_cosine_range,
        complex_range=rules.any_value,
    ),
    ScalarFunction(
        name="erf",
        operands=1,
        numpy=references.erf,
        description="error function",
        real=math.erf,
        range=rules.range_of_increasing(references.erf),
        is_increasing=True,
    ),
)

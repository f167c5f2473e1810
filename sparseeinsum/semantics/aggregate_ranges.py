"""Semantics: the range of an aggregate, for the range of its terms."""

from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.ranges import ANY_VALUE, EMPTY_RANGE, Range, exact_range, with_rounding
from sparseeinsum.operators.records import Law
from sparseeinsum.operators.user_aggregates import USER_AGGREGATES


def aggregate_range(aggregate: str | None, terms: Range, times: int, dtype: str) -> Range:
    """The range of aggregates of at least one and at most `times` terms.

    Args:
        aggregate: Name of the aggregate, or None.
        terms: The range of the terms.
        times: The greatest number of terms; if it is 0, the range is that of the identity.
        dtype: The dtype of the arithmetic.
    """
    if aggregate is None or terms == EMPTY_RANGE:
        return terms
    if aggregate in USER_AGGREGATES:
        return ANY_VALUE
    if times == 0:
        return exact_range(AGGREGATES[aggregate].identity(dtype))
    record = AGGREGATES[aggregate]
    if FUNCTIONS[record.combine].law == Law.ORDER or (
        times == 1 and record.keeps_single_value and not record.returns_bool
    ):
        return terms
    if record.combine == "mul" and is_complex(dtype):
        return ANY_VALUE
    result = with_rounding(record.range(terms, times), dtype) if record.returns_bool or terms.is_finite else ANY_VALUE
    return (
        result if result.is_finite else ANY_VALUE
    )  # a partial result may overflow, and then meet a zero or the other infinity

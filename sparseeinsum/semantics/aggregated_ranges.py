"""Semantics: where aggregates of values lie, whose own range is known."""

from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.ranges import ANYTHING, NOTHING, Range, exactly, rounded
from sparseeinsum.operators.records import Law
from sparseeinsum.operators.users_aggregates import USERS_AGGREGATES


def aggregated_range(aggregate: str | None, terms: Range, times: int, dtype: str) -> Range:
    """Where aggregates of at least one and at most so many terms lie.

    Args:
        aggregate: What folds them.
        terms: Where each of them lies.
        times: The most terms; with 0 of them there is the aggregate's identity.
        dtype: That they are folded in.
    """
    if aggregate is None or terms == NOTHING:
        return terms
    if aggregate in USERS_AGGREGATES:
        return ANYTHING
    if times == 0:
        return exactly(AGGREGATES[aggregate].identity(dtype))
    record = AGGREGATES[aggregate]
    if FUNCTIONS[record.combine].law == Law.ORDER or (times == 1 and record.keeps_one and not record.gives_truth):
        return terms
    if record.combine == "mul" and is_complex(dtype):
        return ANYTHING
    found = rounded(record.range(terms, times), dtype) if record.gives_truth or terms.is_finite else ANYTHING
    return found if found.is_finite else ANYTHING  # a part may overflow, and meet a zero or the other infinity

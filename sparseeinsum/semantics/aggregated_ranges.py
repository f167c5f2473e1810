"""Semantics: where aggregates of values lie, whose own range is known."""

import math
from collections.abc import Callable

from sparseeinsum.language.dtypes import AGGREGATES, is_complex
from sparseeinsum.semantics.ranges import ANYTHING, NOTHING, TRUTH, Range, exactly, power_of, rounded


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
    if times == 0:
        return exactly(AGGREGATES[aggregate].identity(dtype))
    if aggregate in ("max", "min") or (times == 1 and aggregate != "any" and aggregate != "all"):
        return terms
    if aggregate == "prod" and is_complex(dtype):
        return ANYTHING
    found = rounded(_AGGREGATE_RULES[aggregate](terms, times), dtype) if _is_foldable(aggregate, terms) else ANYTHING
    return found if found.is_finite else ANYTHING  # a part may overflow, and meet a zero or the other infinity


def _is_foldable(aggregate: str, terms: Range) -> bool:
    return terms.is_finite or aggregate in ("any", "all")


def _sum_range(terms: Range, times: int) -> Range:
    return Range(min(terms.low, terms.low * times), max(terms.high, terms.high * times))


def _prod_range(terms: Range, times: int) -> Range:
    most = power_of(max(1, terms.magnitude), times)
    if most < math.inf and terms.low >= 0:
        return Range(min(terms.low, power_of(terms.low, times)), most)
    return Range(-most, most)


_AGGREGATE_RULES: dict[str, Callable[[Range, int], Range]] = {
    "sum": _sum_range,
    "prod": _prod_range,
    "any": lambda terms, times: TRUTH,
    "all": lambda terms, times: TRUTH,
    "logsumexp": lambda terms, times: Range(terms.low, terms.high + math.log(times)),
}

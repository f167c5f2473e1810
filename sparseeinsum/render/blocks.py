"""Render: the named SELECTs of which a statement consists."""

from dataclasses import dataclass

from sqlglot import exp


@dataclass(frozen=True, slots=True)
class Block:
    """A named SELECT.

    Attributes:
        name: The name of the CTE.
        select: The body of the CTE.
        comment: A line that says what it computes.
        is_aggregated: Whether its values are those of groups, not of single rows.
        is_materialized: Whether it must be computed on its own, whoever reads it.
        detects_nonfinite: Whether a NaN or infinite value that it computes must end the statement, even in a row that
            no join reads.
        is_fenced: Whether its rows must be computed before they are joined.
        whole: A SELECT of all of its tuples in one value: bytes of their numbers, then of their values; None if a tuple
            comes for each.
    """

    name: str
    select: exp.Select
    comment: str
    is_aggregated: bool
    is_materialized: bool = False
    detects_nonfinite: bool = False
    is_fenced: bool = False
    whole: exp.Select | None = None

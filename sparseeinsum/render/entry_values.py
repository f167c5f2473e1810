"""Render: the value of an EinSum for all entries at once, from an array of the numbers of each operand."""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from sparseeinsum.algebra.operators import Contract
from sparseeinsum.operators.ranges import ANY_VALUE
from sparseeinsum.render.calls import call
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.render.values import OperandValue, ResultValue

ENTRY = "entry"  # the label of the arrays


def value_of_entries(contract: Contract, terms: Sequence[OperandValue], dialect: Dialect) -> exp.Expr:
    """The array of the numbers of a result, in the type of its elements; a number if all entries are aggregated.

    Args:
        contract: An EinSum that aggregates nothing, or all labels.
        terms: The values of its operands: an array with the label `ENTRY`, or one number for all entries.
        dialect: The dialect of the engine.
    """
    array = next(term.value for term in terms if term.inside)
    inside = (ENTRY,) if contract.einsum.output.labels else ()
    references = zip(contract.einsum.operands, terms, strict=True)
    einsum = replace(
        contract.einsum,
        output=replace(contract.einsum.output, labels=inside),
        operands=tuple(replace(reference, labels=term.inside) for reference, term in references),
        promoted=frozenset(),
    )
    return ResultValue(
        einsum,
        terms,
        inside=inside,
        extents={ENTRY: call("LEN", array.copy())},
        is_grouped=False,
        has_keys=False,
        output=contract.output.tensor,
        computed_in=contract.computed_in,
        compensation=None,
        detects_nonfinite=contract.detects_nonfinite,
        ranges=contract.ranges or (ANY_VALUE,) * len(terms),
        times=1,
        dialect=dialect,
    ).write()

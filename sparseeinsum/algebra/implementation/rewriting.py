"""Algebra, implementation: rules applied anywhere in a plan."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from sparseeinsum.algebra.implementation.kernel_rules import KERNEL_RULES
from sparseeinsum.algebra.implementation.movement_rules import MOVEMENT_RULES
from sparseeinsum.algebra.implementation.product_rules import PRODUCT_RULES
from sparseeinsum.algebra.implementation.site_operators import SitePlan, with_inputs
from sparseeinsum.errors import AlgebraError

Rule: TypeAlias = Callable[[SitePlan], Iterator[SitePlan]]

RULES: Mapping[str, Rule] = {**KERNEL_RULES, **MOVEMENT_RULES, **PRODUCT_RULES}


def rewritten_plans(plan: SitePlan, rules: Iterable[Rule]) -> Iterator[SitePlan]:
    """All plans that one application of one rule leads to, at the root or below it.

    One whose tuples would then not lie where an operator above needs them is none, nor one that leaves groups unfolded.
    """
    chosen = tuple(rules)
    for rule in chosen:
        yield from rule(plan)
    for number, operand in enumerate(plan.inputs):
        for other in rewritten_plans(operand, chosen):
            try:
                found = with_inputs(plan, (*plan.inputs[:number], other, *plan.inputs[number + 1 :]))
            except AlgebraError:
                continue
            if found.placement.pending == plan.placement.pending:
                yield found

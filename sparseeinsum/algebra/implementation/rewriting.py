"""Algebra, implementation: the application of rules anywhere in a plan."""

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
    """All plans to which one application of one rule leads, at the root or below it.

    A plan is left out if the tuples would not be where an operator above needs them, or if a fold would stay pending.
    """
    chosen = tuple(rules)
    for rule in chosen:
        yield from rule(plan)
    for number, operand in enumerate(plan.inputs):
        for other in rewritten_plans(operand, chosen):
            try:
                rewritten = with_inputs(plan, (*plan.inputs[:number], other, *plan.inputs[number + 1 :]))
            except AlgebraError:
                continue
            if rewritten.pending == plan.pending:
                yield rewritten

"""Dbt: the weakest assumptions about every input under which a plan is exact.

Planning measured the values of the inputs, but the plan is exact for many others: mostly values only need to be finite.
So the range of values of each input is widened as far as possible without a change of the plan.
"""

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from types import MappingProxyType

from sparseeinsum.algebra.translate import ComputedResult, InputTensors, MaterializationPolicy, translate
from sparseeinsum.errors import SemanticsError
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.operators.ranges import Range, finite_range
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.plans.plan_statements import without_group_by_elimination
from sparseeinsum.plans.validity import broken_rewriting, evaluations_for
from sparseeinsum.semantics.exactness import Evaluation, ValueFacts
from sparseeinsum.statistics.measured_tensors import stored_of, values_of

# Candidates for the greatest magnitude of values, largest first: products and sums must stay finite, too.
_MAGNITUDES = (math.inf, *(10.0**exponent for exponent in (300, 200, 150, 100, 75, 50, 30, 20, 15, 12, 9, 6, 3, 2, 1)))


@dataclass(frozen=True, slots=True)
class Assumption:
    """The assumptions of a plan about an input.

    Attributes:
        values: The range of the values other than the fill, and whether some index may have the fill.
        is_complete: Whether the relation must have every possible tuple.
    """

    values: ValueFacts
    is_complete: bool


def assumptions(plan: ProgramPlan) -> dict[str, Assumption]:
    """The weakest assumptions of a plan about every input that is in a table, view or file, by name."""
    return _by_input(plan, _Weakening(plan).weakest())


def for_weakest_assumptions(plan: ProgramPlan) -> tuple[ProgramPlan, dict[str, Assumption]]:
    """The plan with the ranges of values that its weakest assumptions allow, and these assumptions.

    The SQL of other engines has checks that depend on the ranges.
    """
    weakening = _Weakening(plan)
    weakest = weakening.weakest()
    definitions = weakening.definitions(weakest, evaluations_for(plan, weakest.values))
    return replace(plan, definitions=definitions), _by_input(plan, weakest)


def _by_input(plan: ProgramPlan, assumed: "_Assumptions") -> dict[str, Assumption]:
    names = [name for name, tensor in plan.inputs.items() if not tensor.stored.is_generated]
    return {name: Assumption(assumed.values[name], name in assumed.complete) for name in names}


@dataclass(frozen=True, slots=True)
class _Assumptions:
    """The assumptions about all inputs: their values, and which of them must have every possible tuple."""

    values: Mapping[str, ValueFacts]
    complete: Set[str]

    def with_values(self, name: str, values: ValueFacts) -> "_Assumptions":
        return replace(self, values={**self.values, name: values})


@dataclass(frozen=True, slots=True)
class _Weakening:
    """Weakens the assumptions of a plan step by step, as long as the plan stays exact."""

    plan: ProgramPlan

    def weakest(self) -> _Assumptions:
        """The weakest assumptions: first about tuples and fills, then about the range of values."""
        inputs = {name: stored for name, stored in stored_of(self.plan.inputs).items() if not stored.is_generated}
        complete = frozenset(name for name, tensor in self.plan.inputs.items() if tensor.is_complete)
        current = _Assumptions(values_of(self.plan.inputs), complete)
        for name in inputs:
            current = self._weaker_if_exact(replace(current, complete=current.complete - {name}), current)
            with_fill = replace(current.values[name], has_fill=True)
            current = self._weaker_if_exact(current.with_values(name, with_fill), current)
            may_be_empty = replace(current.values[name], has_entries=False)
            current = self._weaker_if_exact(current.with_values(name, may_be_empty), current)
        open_ends: dict[str, _OpenEnds] = {}
        for name, stored in inputs.items():
            current, open_ends[name] = self._with_open_ends(current, name, stored)
        for magnitude in _MAGNITUDES:
            wider = {name: _widened(current.values[name], open_ends[name], magnitude, inputs[name]) for name in inputs}
            widened = replace(current, values={**current.values, **wider})
            if self._is_exact(widened):
                return widened
        return current

    def _with_open_ends(
        self, current: _Assumptions, name: str, stored: StoredTensor
    ) -> tuple[_Assumptions, "_OpenEnds"]:
        """The assumptions if values of a tensor may have both signs, or else one; and the ends that this opens."""
        values = current.values[name]
        magnitude = max(values.entries.magnitude, 1)
        for open_ends in (_OpenEnds(True, True), _OpenEnds(False, True), _OpenEnds(True, False)):
            wider = current.with_values(name, _widened(values, open_ends, magnitude, stored))
            if self._is_exact(wider):
                return wider, open_ends
        return current, _OpenEnds(False, False)

    def _weaker_if_exact(self, weaker: _Assumptions, current: _Assumptions) -> _Assumptions:
        return weaker if self._is_exact(weaker) else current

    def _is_exact(self, current: _Assumptions) -> bool:
        """Whether the plan is exact for all data that satisfy the assumptions."""
        plan = self.plan
        try:
            evaluations = evaluations_for(plan, current.values)
        except SemanticsError:
            return False
        if broken_rewriting(plan, current.values) is not None:
            return False
        if any(evaluations[name].treatment != planned.treatment for name, planned in plan.evaluations.items()):
            return False
        definitions = self.definitions(current, evaluations)
        return without_group_by_elimination(definitions) == without_group_by_elimination(plan.definitions)

    def definitions(self, current: _Assumptions, evaluations: Mapping[str, Evaluation]) -> tuple[ComputedResult, ...]:
        """The definitions of the plan for data that satisfy the assumptions, which have these evaluations."""
        values = MappingProxyType(dict(current.values))
        inputs = InputTensors(stored_of(self.plan.inputs), values, current.complete, identifying={})
        policy = MaterializationPolicy.for_model(self.plan.alternatives.model, self.plan.dialect.has_workers)
        return translate(self.plan.decomposed, inputs, evaluations, policy)


@dataclass(frozen=True, slots=True)
class _OpenEnds:
    """Which ends of a range of values may be widened."""

    low: bool
    high: bool


def _widened(values: ValueFacts, open_ends: _OpenEnds, magnitude: float, stored: StoredTensor) -> ValueFacts:
    """The values with open ends widened to a magnitude; a closed end moves to 0, unless it is beyond that."""
    entries, greatest = values.entries, finite_range(stored.tensor.dtype)
    low = max(-magnitude, greatest.low) if open_ends.low else 0
    high = min(magnitude, greatest.high) if open_ends.high else 0
    if not (open_ends.low or open_ends.high):
        return values
    return replace(values, entries=Range(min(low, entries.low), max(high, entries.high), entries.may_be_nan))

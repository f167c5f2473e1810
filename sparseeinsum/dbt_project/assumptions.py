"""Dbt: a plan in; for every input the least that must hold of its rows for the plan to be exact.

A plan was made for the values that were measured, and is exact for many others: mostly it matters that values are
finite, not how large they are. So bounds on values are moved outwards as far as nothing of the plan would change.
"""

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from types import MappingProxyType

from sparseeinsum.algebra.translate import InputTensors, MaterializationPolicy, translate
from sparseeinsum.errors import SemanticsError
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.operators.ranges import Range, finite_range
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.plans.statements import without_group_by_elimination
from sparseeinsum.plans.validity import broken_rewriting, evaluations_for
from sparseeinsum.semantics.exactness import ValueFacts
from sparseeinsum.statistics.measured_tensors import stored_of, values_of

# Tried as the greatest magnitude of all values, the greatest first: products and sums must stay finite, too.
_MAGNITUDES = (math.inf, *(10.0**exponent for exponent in (300, 200, 150, 100, 75, 50, 30, 20, 15, 12, 9, 6, 3, 2, 1)))


@dataclass(frozen=True, slots=True)
class Assumption:
    """What a plan takes for granted of an input.

    Attributes:
        values: Where the values lie that are not the fill, and whether some index may hold it.
        is_complete: Whether every tuple that there can be must be there.
    """

    values: ValueFacts
    is_complete: bool


def assumptions(plan: ProgramPlan) -> dict[str, Assumption]:
    """What the plan takes for granted of every input that a table, view or file holds."""
    wanted = _Weakening(plan).weakest()
    names = [name for name, tensor in plan.inputs.items() if not tensor.stored.is_generated]
    return {name: Assumption(wanted.values[name], name in wanted.complete) for name in names}


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is taken for granted of all inputs: of values, and which of them must have every tuple."""

    values: Mapping[str, ValueFacts]
    complete: Set[str]

    def with_values(self, name: str, values: ValueFacts) -> "_Wanted":
        return replace(self, values={**self.values, name: values})


@dataclass(frozen=True, slots=True)
class _Weakening:
    """Takes less and less for granted, as long as the plan would be the same."""

    plan: ProgramPlan

    def weakest(self) -> _Wanted:
        inputs = {name: stored for name, stored in stored_of(self.plan.inputs).items() if not stored.is_generated}
        complete = frozenset(name for name, tensor in self.plan.inputs.items() if tensor.is_complete)
        wanted = _Wanted(values_of(self.plan.inputs), complete)
        for name in inputs:
            wanted = self._or(replace(wanted, complete=wanted.complete - {name}), wanted)
            wanted = self._or(wanted.with_values(name, replace(wanted.values[name], has_fill=True)), wanted)
        ends: dict[str, _Ends] = {}
        for name, stored in inputs.items():
            wanted, ends[name] = self._with_open_ends(wanted, name, stored)
        for magnitude in _MAGNITUDES:
            wider = {name: _reaching(wanted.values[name], ends[name], magnitude, inputs[name]) for name in inputs}
            reaching = replace(wanted, values={**wanted.values, **wider})
            if self._is_exact(reaching):
                return reaching
        return wanted

    def _with_open_ends(self, wanted: _Wanted, name: str, stored: StoredTensor) -> tuple[_Wanted, "_Ends"]:
        """What is taken for granted if values of a tensor may be of both signs, or of one, and which that is."""
        values = wanted.values[name]
        magnitude = max(values.entries.magnitude, 1)
        for ends in (_Ends(True, True), _Ends(False, True), _Ends(True, False)):
            wider = wanted.with_values(name, _reaching(values, ends, magnitude, stored))
            if self._is_exact(wider):
                return wider, ends
        return wanted, _Ends(False, False)

    def _or(self, weaker: _Wanted, wanted: _Wanted) -> _Wanted:
        return weaker if self._is_exact(weaker) else wanted

    def _is_exact(self, wanted: _Wanted) -> bool:
        """Whether the plan is right for all data of which this holds."""
        plan = self.plan
        try:
            evaluations = evaluations_for(plan, wanted.values)
        except SemanticsError:
            return False
        if broken_rewriting(plan, wanted.values) is not None:
            return False
        if any(evaluations[name].treatment != made.treatment for name, made in plan.evaluations.items()):
            return False
        inputs = InputTensors(
            stored_of(plan.inputs), MappingProxyType(dict(wanted.values)), wanted.complete, identifying={}
        )
        kept = MaterializationPolicy.for_memory(plan.alternatives.model.memory, plan.dialect.has_workers)
        definitions = translate(plan.decomposed, inputs, evaluations, kept)
        return without_group_by_elimination(definitions) == without_group_by_elimination(plan.definitions)


@dataclass(frozen=True, slots=True)
class _Ends:
    """Which ends of a range of values may be moved outwards."""

    low: bool
    high: bool


def _reaching(values: ValueFacts, ends: _Ends, magnitude: float, stored: StoredTensor) -> ValueFacts:
    """The same with ends as far out as a magnitude; an end that may not be moved goes to 0, if it does not cross it."""
    found, greatest = values.entries, finite_range(stored.tensor.dtype)
    low = max(-magnitude, greatest.low) if ends.low else 0
    high = min(magnitude, greatest.high) if ends.high else 0
    if not (ends.low or ends.high):
        return values
    return replace(values, entries=Range(min(low, found.low), max(high, found.high), found.may_be_nan))

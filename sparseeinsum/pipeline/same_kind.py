"""Pipeline: keeps a plan after changes of its inputs that are too small for a search to choose another one.

Measurements of the changed inputs tell whether the plan is exact, as before a run. What the search estimates with must
be as it was, within a hundredth: entries, distinct indices, and the entries at every index.
"""

import math
from collections.abc import Iterable, Mapping

import numpy as np

from sparseeinsum.engines.engine import Engine
from sparseeinsum.operators.ranges import Range
from sparseeinsum.pipeline.program_data import orders_of
from sparseeinsum.pipeline.running import current_inputs
from sparseeinsum.pipeline.stage_clock import StageClock
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.semantics.exactness import ValueFacts
from sparseeinsum.statistics.axis_counts import AxisCounts
from sparseeinsum.statistics.estimate import Statistics
from sparseeinsum.statistics.estimators import UniformEstimator
from sparseeinsum.statistics.measured_tensors import MeasuredTensor
from sparseeinsum.statistics.sketch_estimates import SketchEstimator
from sparseeinsum.storage.measuring import count_changed

_MOST_CHANGE = 0.01  # of what estimates are made from


def plan_for_same_kind(plan: ProgramPlan, engine: Engine) -> ProgramPlan | None:
    """The plan for its inputs as they are now; None if these are of another kind than those that it was made for.

    Raises:
        OutdatedPlanError: The plan may not be exact any more.
        PlanError: A function of the user was replaced.
        SemanticsError: No sparse evaluation is exact.
    """
    clock = StageClock()
    with clock.stage("scans"):
        inputs = current_inputs(plan, engine)
    if inputs is plan.inputs:
        return plan
    with clock.stage("statistics"):
        if not _are_alike(plan, inputs, engine):
            return None
    with clock.stage("optimizer"):
        stage_of = engine.stage_namer(plan.decomposed.seconds)
    return plan.for_equal_data(inputs, plan.estimator, stage_of, clock.seconds)


def _are_alike(plan: ProgramPlan, inputs: Mapping[str, MeasuredTensor], engine: Engine) -> bool:
    """Whether a search would choose from the same for `inputs`, as far as their statistics tell.

    They are compared with those that the search had, lest many small changes add up.
    """
    searched = plan.statistics
    if plan.options.tiles or not isinstance(plan.estimator, SketchEstimator | UniformEstimator):
        return False
    changed = {name: tensor for name, tensor in inputs.items() if tensor is not plan.inputs[name]}
    if not all(
        _has_same_facts(plan.inputs[name], tensor) and _has_like_sizes(searched[name], tensor.statistics)
        for name, tensor in changed.items()
    ):
        return False
    orders = orders_of(changed, engine)
    if any(orders[name] != plan.alternatives.model.orders.get(name) for name in orders):
        return False
    return isinstance(plan.estimator, UniformEstimator) or _have_like_counts(plan.estimator, changed, engine)


def _has_same_facts(before: MeasuredTensor, now: MeasuredTensor) -> bool:
    """Whether a plan may rely on the same for a tensor, besides the exactness that is decided for its values."""
    facts = [(tensor.is_complete, tensor.identifying_axes, _class_of(tensor.values)) for tensor in (before, now)]
    return facts[0] == facts[1]


def _class_of(values: ValueFacts) -> tuple[object, ...]:
    return values.has_fill, values.has_entries, _class_of_range(values.entries)


def _class_of_range(values: Range) -> tuple[object, ...]:
    """What formulas are chosen by: signs, and which values are infinite, NaN, or all the same."""
    ends = [(end > 0, end < 0, math.isinf(end)) for end in (values.low, values.high)]
    return *ends, values.may_be_nan, values.low == values.high, values.exact is None


def _has_like_sizes(before: Statistics, now: Statistics) -> bool:
    if before.counted_tuples.keys() != now.counted_tuples.keys():
        return False
    sizes = [(statistics.entries, *statistics.distinct) for statistics in (before, now)]
    tuples = [(before.counted_tuples[tiles], now.counted_tuples[tiles]) for tiles in before.counted_tuples]
    return before.is_dense == now.is_dense and all(_is_like(*pair) for pair in (*zip(*sizes, strict=True), *tuples))


def _is_like(before: float, now: float) -> bool:
    return abs(now - before) <= _MOST_CHANGE * before


def _have_like_counts(estimator: SketchEstimator, changed: Mapping[str, MeasuredTensor], engine: Engine) -> bool:
    """Whether few of the entries of tensors are at other indices than those that an estimator counted."""
    versions = {name: tensor.row_version for name, tensor in changed.items() if name in estimator.counts}
    counted = count_changed(versions, engine)
    return all(_are_like_counts(estimator.counts[name], counted[name]) for name in versions)


def _are_like_counts(before: Iterable[AxisCounts], now: Iterable[AxisCounts]) -> bool:
    return all(
        then is axis or float(np.abs(then.entries - axis.entries).sum()) <= _MOST_CHANGE * then.total
        for then, axis in zip(before, now, strict=True)
    )

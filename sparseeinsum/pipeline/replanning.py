"""Pipeline: plans the rest of a program again when a run finds a result whose size differs from the estimate.

The rest of a program is an EinGraph that reads the computed results as stored tensors. It is searched again with their
measured statistics; products that an EinSum was split into may be contracted in another order.
"""

import logging
import time
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.algebra.shared_orders import with_shared_orders
from sparseeinsum.algebra.translate import InputTensors, MaterializationPolicy, translate
from sparseeinsum.decompose.alternatives import Alternatives
from sparseeinsum.decompose.decomposed_graph import DecomposedGraph
from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import PlanError
from sparseeinsum.language.eingraph import EinGraph
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.plans.analysis import Replanning
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.plans.result_sizes import result_sizes
from sparseeinsum.results.execution import Replanned
from sparseeinsum.rewrite.annotated_graphs import GraphAnnotator
from sparseeinsum.rewrite.binarise import MOST_OPERANDS, binarise
from sparseeinsum.rewrite.inlining import inline
from sparseeinsum.semantics.exactness import decide_evaluations
from sparseeinsum.statistics.axis_counts import count_entries, counted_statistics, is_countable
from sparseeinsum.statistics.estimators import Estimator
from sparseeinsum.statistics.measure import Measurement, measure
from sparseeinsum.statistics.measured_tensors import MeasuredTensor, statistics_of, values_of

_LOGGER = logging.getLogger(__name__)

_DEVIATION = 2.0  # actual divided by estimated tuples, or the inverse, from which on the rest is considered
_SCAN_SECONDS_PER_BYTE = 4e-9  # of a table: 0.1 s for a million entries with two keys
_LIKELY_GAIN = 0.5  # of the seconds of the rest, as long as other plans are unknown
_MOST_DEGREE = 4  # of the growth of work with the tuples of a table
_LEAST_GAIN = 0.1  # of the seconds of the rest: less is within the error of the cost model
_LEAST_PLANNED_SHARE = 1 / 8  # of a memory limit: plans for less would hardly use it


def replan(plan: ProgramPlan, tables: Mapping[str, int], delivered: Container[str], engine: Engine) -> Replanned | None:
    """Plan the rest of a plan again, if the latest result has another size than estimated and that is likely to pay.

    It is likely to pay if half of the remaining work takes longer than scanning the table and planning. The run
    switches to the new plan if that is faster than to go on, or if the old plan would take too much memory.

    Args:
        plan: The plan that runs.
        tables: The tuples of its results that are in tables; the last result is the latest.
        delivered: Its outputs that were returned or written.
        engine: The database.

    Returns:
        The sizes and costs, with the plan for the rest if the run switches to it; None if the rest was not considered.

    Raises:
        EngineError: The database refused a scan.
    """
    if plan.dialect.distributes:  # placements are planned for the whole program
        return None
    *_, name = tables
    expected, tuples = result_sizes(plan, name).tuples, tables[name]
    growth = max(tuples, 1.0) / max(expected, 1.0)
    if 1 / _DEVIATION < growth < _DEVIATION:
        return None
    planning_seconds = _expected_planning_seconds(plan, name, tuples)
    graph = plan.decomposed.graph.without(tables, delivered)
    if not graph.einsums or _LIKELY_GAIN * _remaining_seconds(plan, graph, name, growth) <= planning_seconds:
        return None
    start = time.perf_counter()
    remaining = _RemainingProgram.measured(plan, graph, tables, engine)
    current = remaining.as_planned()
    needs_other = not _fits_memory(plan, current)
    others = remaining.others(current) if needs_other or _LIKELY_GAIN * current.seconds > planning_seconds else []
    best = _fastest(others if needs_other and others else [current, *others])
    is_better = (needs_other and best is not current) or best.seconds < (1 - _LEAST_GAIN) * current.seconds
    seconds = time.perf_counter() - start
    replanning = Replanning(name, expected, tuples, current.seconds, best.seconds, seconds, is_better)
    return Replanned(replanning, remaining.plan(best, seconds) if is_better else None)


def planned_with_less(plan: ProgramPlan) -> ProgramPlan | None:
    """A plan for the same program within half of the memory that `plan` was made for; None if there is none.

    It is for a database that ran out of memory because a statement took more than expected.
    """
    start = time.perf_counter()
    before = plan.alternatives.model
    less = replace(before.memory, planned_share=before.memory.planned_share / 2)
    if plan.options.memory_limit is None or plan.dialect.distributes or less.planned_share < _LEAST_PLANNED_SHARE:
        return None
    resident_bytes, kept_bytes = before.resident_bytes / 2, before.kept_bytes / 2
    model = replace(before, memory=less, resident_bytes=resident_bytes, kept_bytes=kept_bytes)
    alternatives = replace(plan.alternatives, model=model)
    try:
        (decomposed,) = alternatives.preferred(1)
    except PlanError:
        return None
    _LOGGER.warning("%s: memory ran out; runs again by a plan for half of it", ", ".join(plan.outputs))
    remaining = _RemainingProgram(plan, plan.decomposed.graph, plan.inputs, plan.estimator)
    return remaining.plan(_ReplannedChoices(decomposed, alternatives), time.perf_counter() - start)


def _fastest(candidates: Sequence["_ReplannedChoices"]) -> "_ReplannedChoices":
    return min(candidates, key=lambda candidate: candidate.seconds)


def _fits_memory(plan: ProgramPlan, current: "_ReplannedChoices") -> bool:
    """Whether the rest of a plan keeps to the memory in its number of passes, with the actual sizes of `current`."""
    model, now, before = current.alternatives.model, current.decomposed, plan.decomposed
    passes = {step.einsum.output.tensor: step.passes for step in before.steps}
    needed_bytes = (
        model.footprint(step.einsum, step.choice).needed_bytes(model.memory, passes[step.einsum.output.tensor])
        for step in now.steps
    )
    counts = {key: 1 if move.passes is None else move.passes.count for key, move in before.repartitions.items()}
    moves_fit = (
        move.is_possible and (move.passes is None or move.passes.count <= counts.get(key, 1))
        for key, move in now.repartitions.items()
    )
    return all(size <= model.memory.limit_bytes for size in needed_bytes) and all(moves_fit)


def _expected_planning_seconds(plan: ProgramPlan, name: str, tuples: int) -> float:
    """The expected seconds to scan the table of the result `name` and to plan again, judged by the first planning."""
    scanned_bytes = tuples * result_sizes(plan, name).tuple_bytes
    scan_seconds = (plan.planning_seconds["scans"] + plan.planning_seconds["statistics"]) / max(len(plan.inputs), 1)
    return plan.search_seconds + scan_seconds + scanned_bytes * _SCAN_SECONDS_PER_BYTE


def _remaining_seconds(plan: ProgramPlan, remaining_graph: EinGraph, name: str, growth: float) -> float:
    """The expected seconds of the rest as planned, if the result `name` has `growth` times the estimated tuples.

    The work of an EinSum grows with a power of that: a product of the result with itself with the square.
    """
    degrees = {name: 1}
    remaining = {einsum.output.tensor for einsum in remaining_graph.einsums}
    seconds = plan.decomposed.delivery_seconds
    for step in plan.decomposed.steps:
        if step.einsum.output.tensor in remaining:
            degree = sum(degrees.get(operand.tensor, 0) for operand in step.einsum.operands)
            degrees[step.einsum.output.tensor] = min(degree, _MOST_DEGREE)
            seconds += step.seconds * max(growth, 1.0) ** degrees[step.einsum.output.tensor]
    return seconds


@dataclass(frozen=True, slots=True)
class _ReplannedChoices:
    """Choices for the rest, and the alternatives that they come from."""

    decomposed: DecomposedGraph
    alternatives: Alternatives

    @property
    def seconds(self) -> float:
        return self.decomposed.work_seconds


def _best_candidates(alternatives: Alternatives) -> list[_ReplannedChoices]:
    """The best candidate; none if every choice needs too much memory, so that the run goes on as planned."""
    try:
        return [_ReplannedChoices(decomposed, alternatives) for decomposed in alternatives.best(1)]
    except PlanError:
        return []


@dataclass(frozen=True, slots=True)
class _RemainingProgram:
    """The rest of a plan, with what is known about it now.

    Attributes:
        before: The plan that has run so far.
        graph: The EinSums that remain.
        inputs: The tensors and computed results that they read.
        estimator: Estimates results from the statistics of these inputs.
    """

    before: ProgramPlan
    graph: EinGraph
    inputs: Mapping[str, MeasuredTensor]
    estimator: Estimator

    @classmethod
    def measured(
        cls, plan: ProgramPlan, graph: EinGraph, tables: Mapping[str, int], engine: Engine
    ) -> "_RemainingProgram":
        """The rest after a scan of those tables that it still reads."""
        read = {operand.tensor for einsum in graph.einsums for operand in einsum.operands}
        computed = {name: _as_stored(plan, name) for name in tables if name in read}
        countable = {name: source for name, source in computed.items() if is_countable(source.tensor.shape)}
        counts = count_entries(countable, engine)
        inputs = {name: tensor for name, tensor in plan.inputs.items() if name in read}
        for name, source in computed.items():
            counted = counted_statistics(source, counts[name], tables[name]) if name in counts else None
            statistics = counted or measure(source, engine).statistics
            # The proof that the plan is exact rests on these ranges; with them the rest stays exact.
            measurement = Measurement(statistics, tables[name], plan.evaluations[name].values, version=None)
            inputs[name] = MeasuredTensor(source, measurement)
        return cls(plan, graph, inputs, plan.estimator.with_tensors(computed, counts))

    def as_planned(self) -> _ReplannedChoices:
        """The choices of the plan so far, with their costs for the actual sizes."""
        alternatives = self._alternatives(self.graph)
        choices = {
            step.einsum.output.tensor: step.choice
            for step in self.before.decomposed.steps
            if alternatives.model.graph.producer_of(step.einsum.output.tensor) is not None
        }
        return _ReplannedChoices(alternatives.priced(choices), alternatives)

    def others(self, current: _ReplannedChoices) -> list[_ReplannedChoices]:
        """The best choices for the same EinSums, and for EinSums of another contraction order if there is one."""
        candidates = _best_candidates(current.alternatives)
        inlined = inline(self.graph, self.before.rewriting.all_parts - self.before.alternatives.pinned.keys())
        if any(len(einsum.operands) > MOST_OPERANDS for einsum in inlined.einsums):
            annotator = GraphAnnotator.for_inputs(
                inlined.tensors, statistics_of(self.inputs), values_of(self.inputs), self._allows_nonfinite
            )
            candidates += _best_candidates(self._alternatives(binarise(inlined, annotator).graph))
        return candidates

    def plan(self, candidate: _ReplannedChoices, planning_seconds: float) -> ProgramPlan:
        """The plan of a candidate, in which every aggregate has a GROUP BY."""
        model = candidate.alternatives.model
        policy = MaterializationPolicy.for_model(model, self.before.dialect.has_workers)
        inputs = replace(InputTensors.of_measured(self.inputs), identifying={})
        return replace(
            self.before,
            decomposed=candidate.decomposed,
            definitions=with_shared_orders(translate(candidate.decomposed, inputs, model.evaluations, policy)),
            alternatives=candidate.alternatives,
            inputs=self.inputs,
            estimator=self.estimator,
            rewriting=self.before.rewriting.with_parts_in(candidate.decomposed.graph),
            planning_seconds={"scans": 0.0, "statistics": 0.0, "optimizer": planning_seconds},
            search_seconds=planning_seconds,
            reserved_names=self.before.reserved_names.union(self.before.statements.materialized_names.values()),
        )

    @property
    def _allows_nonfinite(self) -> bool:
        return self.before.options.allows_nonfinite

    def _alternatives(self, graph: EinGraph) -> Alternatives:
        """The alternatives for a graph, with costs by what is known now."""
        exact = decide_evaluations(graph, values_of(self.inputs), self._allows_nonfinite)
        estimated = self.estimator(exact.graph, statistics_of(self.inputs), exact.evaluations)
        before = self.before.alternatives
        model = replace(before.model, graph=exact.graph, statistics=estimated, evaluations=exact.evaluations)
        stored = {name: tensor.decomposition for name, tensor in self.inputs.items()}
        return replace(before, model=model, stored=stored)


def _as_stored(plan: ProgramPlan, name: str) -> StoredTensor:
    """The table of the result `name` as a stored tensor that is not in the catalogue."""
    step = plan.decomposed.step_of(name)
    assert step is not None
    schema = Schema(plan.decomposed.graph.tensors[name], step.result)
    table, column = plan.statements.table_of(name)
    relation = table.sql(plan.dialect.name)
    return StoredTensor(
        schema.tensor,
        step.result,
        relation,
        schema.keys,
        column,
        casts=False,
        is_owned=False,
        is_generated=True,
    )

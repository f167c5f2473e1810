"""A plan, and what its first tables turned out to hold, in; a plan for the rest out, where sizes were not as expected.

The rest of a program is an EinGraph that reads the tables as stored tensors. It is priced anew with their measured
statistics and searched again; results that an EinSum was taken apart into may be contracted in another order.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sparseeinsum.algebra.operators import Schema
from sparseeinsum.algebra.translate import InputTensors, MaterializationPolicy, translate
from sparseeinsum.decompose.alternatives import Alternatives
from sparseeinsum.decompose.plan import DecomposedGraph
from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import PlanError
from sparseeinsum.language.eingraph import EinGraph
from sparseeinsum.language.tensors import VALUE_COLUMN, StoredTensor
from sparseeinsum.plans.explain import Replanning
from sparseeinsum.plans.plan import Plan
from sparseeinsum.results.execution import Replanned
from sparseeinsum.rewrite.annotated_graphs import GraphAnnotator
from sparseeinsum.rewrite.binarise import MOST_OPERANDS, binarise
from sparseeinsum.rewrite.inlining import inline
from sparseeinsum.semantics.exactness import Values, evaluate_exactly
from sparseeinsum.statistics.counts import count_entries, counted_statistics, is_countable
from sparseeinsum.statistics.estimators import Estimator
from sparseeinsum.statistics.measure import Measurement, is_complete, measure

_OFF = 2.0  # times more tuples than expected, or fewer, from which on the rest is looked at
_SCAN_SECONDS_PER_BYTE = 4e-9  # of a table: 0.1 s for a million entries with two keys
_LIKELY_GAIN = 0.5  # of what the rest takes, before anything is known of other plans
_MOST_DEGREE = 4  # of how work grows with the tuples of a table
_LEAST_GAIN = 0.1  # of what the rest takes as planned: less is within what the cost model errs by
_LEAST_PLANNED_SHARE = 1 / 8  # of a memory limit: with less, plans would hardly use it


def replan(plan: Plan, tables: Mapping[str, int], engine: Engine) -> Replanned | None:
    """Plan the rest of a plan anew, where a table does not hold what was expected and that may pay.

    It may where half of what is left is expected to take longer than to scan the table and to plan. The new plan is
    taken where it is expected to be faster than to go on, or where the old one would need too much memory.

    Args:
        plan: What runs.
        tables: Tuples of the results of it that are in tables by now; the last one was not there before.
        engine: Where it runs.

    Returns:
        What was found, and the plan for the rest if it is another; None where the rest was not looked at.

    Raises:
        EngineError: The database refused a scan.
    """
    if plan.dialect.distributes:  # where tables are put is planned for the whole
        return None
    *_, name = tables
    expected, tuples = plan.expected_sizes(name).tuples, tables[name]
    more = max(tuples, 1.0) / max(expected, 1.0)
    if 1 / _OFF < more < _OFF:
        return None
    planning_seconds = _seconds_to_plan(plan, name, tuples)
    graph = _rest(plan.decomposed.graph, tables)
    if not graph.einsums or _LIKELY_GAIN * _at_stake(plan, graph, name, more) <= planning_seconds:
        return None
    start = time.perf_counter()
    rest = _Rest.measuring(plan, graph, tables, engine)
    kept = rest.kept()
    needs_other = not _keeps_to_memory(plan, kept)
    others = rest.others(kept) if needs_other or _LIKELY_GAIN * kept.seconds > planning_seconds else []
    best = _fastest(others if needs_other and others else [kept, *others])
    is_better = (needs_other and best is not kept) or best.seconds < (1 - _LEAST_GAIN) * kept.seconds
    taken = time.perf_counter() - start
    now = rest.plan(best, taken) if is_better else None
    return Replanned(Replanning(name, expected, tuples, kept.seconds, best.seconds, taken, is_better), now)


def planned_with_less(plan: Plan) -> Plan | None:
    """A plan for the same that plans with half as much of its memory limit; None where there is none.

    For a database that has run out of memory, where a statement takes more than was expected of it.
    """
    start = time.perf_counter()
    memory = plan.alternatives.model.memory
    less = replace(memory, planned_share=memory.planned_share / 2)
    if plan.memory_limit is None or plan.dialect.distributes or less.planned_share < _LEAST_PLANNED_SHARE:
        return None
    before = plan.alternatives.model
    model = replace(before, memory=less, resident_bytes=before.resident_bytes / 2)
    alternatives = replace(plan.alternatives, model=model)
    try:
        (decomposed,) = alternatives.preferred(1)
    except PlanError:
        return None
    rest = _Rest(plan, plan.decomposed.graph, plan.stored, plan.measured, plan.estimator)
    return rest.plan(_Found(decomposed, alternatives), time.perf_counter() - start)


def _fastest(ways: Sequence["_Found"]) -> "_Found":
    return min(ways, key=lambda each: each.seconds)


def _keeps_to_memory(plan: Plan, kept: "_Found") -> bool:
    """Whether the rest of a plan, in the passes that it has, keeps to the memory with the sizes that are known now."""
    model, now, then = kept.alternatives.model, kept.decomposed, plan.decomposed
    passes = {step.einsum.output.tensor: step.passes for step in then.steps}
    needed = (
        model.footprint(step.einsum, step.choice).needed_bytes(model.memory, passes[step.einsum.output.tensor])
        for step in now.steps
    )
    counts = {each: 1 if move.passes is None else move.passes.count for each, move in then.repartitions.items()}
    moves = (
        move.is_possible and (move.passes is None or move.passes.count <= counts.get(each, 1))
        for each, move in now.repartitions.items()
    )
    return all(size <= model.memory.limit_bytes for size in needed) and all(moves)


def _seconds_to_plan(plan: Plan, name: str, tuples: int) -> float:
    """Expected of a scan of a table, and of planning the rest, as planning went before."""
    scanned = tuples * plan.expected_sizes(name).tuple_bytes
    scan_seconds = plan.planning_seconds["statistics"] / max(len(plan.stored), 1)
    return plan.planning_seconds["optimizer"] + scan_seconds + scanned * _SCAN_SECONDS_PER_BYTE


def _rest(graph: EinGraph, tables: Mapping[str, int]) -> EinGraph:
    """The EinSums that outputs still need; all tensors, so that no new one takes the name of an old one."""
    outputs = tuple(name for name in graph.outputs if name not in tables)
    needed = set(outputs)
    einsums = []
    for einsum in reversed(graph.einsums):
        if einsum.output.tensor in needed and einsum.output.tensor not in tables:
            einsums.append(einsum)
            needed |= {operand.tensor for operand in einsum.operands}
    return EinGraph(graph.tensors, tuple(reversed(einsums)), outputs)


def _at_stake(plan: Plan, rest: EinGraph, name: str, more: float) -> float:
    """What the rest would take as planned: with so many times more tuples, of a product with itself as many squared."""
    degrees = {name: 1}
    left = {einsum.output.tensor for einsum in rest.einsums}
    seconds = plan.decomposed.delivery_seconds
    for step in plan.decomposed.steps:
        if step.einsum.output.tensor in left:
            degree = sum(degrees.get(operand.tensor, 0) for operand in step.einsum.operands)
            degrees[step.einsum.output.tensor] = min(degree, _MOST_DEGREE)
            seconds += step.seconds * max(more, 1.0) ** degrees[step.einsum.output.tensor]
    return seconds


@dataclass(frozen=True, slots=True)
class _Found:
    """A plan for the rest, and what it was chosen from."""

    decomposed: DecomposedGraph
    alternatives: Alternatives

    @property
    def seconds(self) -> float:
        return self.decomposed.seconds


def _found(alternatives: Alternatives) -> list[_Found]:
    """The best of all; none where every choice would need too much memory, so that nothing is better than to go on."""
    try:
        return [_Found(each, alternatives) for each in alternatives.best(1)]
    except PlanError:
        return []


@dataclass(frozen=True, slots=True)
class _Rest:
    """What is left of a plan, and what is known for it now.

    Attributes:
        before: The plan so far.
        graph: What is left of it.
        stored: Inputs and tables that this reads.
        measured: What scans of them found.
        estimator: Knows the tables, too.
    """

    before: Plan
    graph: EinGraph
    stored: Mapping[str, StoredTensor]
    measured: Mapping[str, Measurement]
    estimator: Estimator

    @classmethod
    def measuring(cls, plan: Plan, graph: EinGraph, tables: Mapping[str, int], engine: Engine) -> "_Rest":
        """With scans of the tables that are still read."""
        read = {operand.tensor for einsum in graph.einsums for operand in einsum.operands}
        kept = {name: _as_stored(plan, name) for name in tables if name in read}
        counts = count_entries(
            {name: source for name, source in kept.items() if is_countable(source.tensor.shape)}, engine
        )
        measured = {}
        for name, source in kept.items():
            scanned = counted_statistics(source, counts[name], tables[name]) if name in counts else None
            statistics = scanned or measure(source, engine).statistics
            # What was proven of values made the plan exact; by it, what is left of the plan stays so.
            measured[name] = Measurement(statistics, tables[name], plan.evaluations[name].values, fingerprint=None)
        inputs = {name: source for name, source in plan.stored.items() if name in read}
        return cls(
            plan,
            graph,
            {**inputs, **kept},
            {**{name: plan.measured[name] for name in inputs}, **measured},
            plan.estimator.knowing(kept, counts),
        )

    def kept(self) -> _Found:
        """To go on as planned."""
        alternatives = self._alternatives(self.graph)
        choices = {
            step.einsum.output.tensor: step.choice
            for step in self.before.decomposed.steps
            if alternatives.model.graph.producer_of(step.einsum.output.tensor) is not None
        }
        priced = alternatives.priced(choices)
        return _Found(priced, alternatives)

    def others(self, kept: _Found) -> list[_Found]:
        """The best of the same EinSums, and of other ones where they may be contracted in another order."""
        found = _found(kept.alternatives)
        whole = inline(self.graph, self.before.rewriting.all_parts - self.before.alternatives.pinned.keys())
        if any(len(einsum.operands) > MOST_OPERANDS for einsum in whole.einsums):
            statistics = {name: each.statistics for name, each in self.measured.items()}
            known = GraphAnnotator.for_inputs(whole.tensors, statistics, self._values, self._allows_nonfinite)
            alternatives = self._alternatives(binarise(whole, known).graph)
            found += _found(alternatives)
        return found

    def plan(self, found: _Found, planning_seconds: float) -> Plan:
        """The plan of some choices."""
        complete = {name for name, source in self.stored.items() if is_complete(source, self.measured[name])}
        evaluations = found.alternatives.model.evaluations
        memory = found.alternatives.model.memory
        return replace(
            self.before,
            decomposed=found.decomposed,
            definitions=translate(
                found.decomposed,
                InputTensors(self.stored, self._values, complete, identifying={}),
                evaluations,
                MaterializationPolicy.within(memory, self.before.dialect.has_workers),
            ),
            alternatives=found.alternatives,
            stored=self.stored,
            measured=self.measured,
            estimator=self.estimator,
            rewriting=self.before.rewriting.with_parts_in(found.decomposed.graph),
            planning_seconds={"statistics": 0.0, "optimizer": planning_seconds},
            kept_before=self.before.kept_before.union(self.before.kept_names.values()),
        )

    @property
    def _values(self) -> dict[str, Values]:
        return {name: each.values for name, each in self.measured.items()}

    @property
    def _allows_nonfinite(self) -> bool:
        return self.before.nonfinite == "allow"

    def _alternatives(self, graph: EinGraph) -> Alternatives:
        """What may be chosen for a graph, priced with what is known now."""
        exact = evaluate_exactly(graph, self._values, self._allows_nonfinite)
        statistics = {name: each.statistics for name, each in self.measured.items()}
        estimated = self.estimator(exact.graph, statistics, exact.evaluations)
        before = self.before.alternatives
        model = replace(before.model, graph=exact.graph, statistics=estimated, evaluations=exact.evaluations)
        stored = {name: source.decomposition for name, source in self.stored.items()}
        return replace(before, model=model, stored=stored)


def _as_stored(plan: Plan, name: str) -> StoredTensor:
    """The table of a result as a tensor that no catalogue knows."""
    step = plan.decomposed.step_of(name)
    assert step is not None
    schema = Schema(plan.decomposed.graph.tensors[name], step.result)
    relation = plan.stage_of(name).sql(plan.dialect.name)
    return StoredTensor(
        schema.tensor,
        step.result,
        relation,
        schema.keys,
        VALUE_COLUMN,
        casts=False,
        is_owned=False,
        is_generated=True,
    )

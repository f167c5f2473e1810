"""Pipeline: keeps the plans of programs, for further runs on data of the same kind."""

from contextlib import suppress
from dataclasses import dataclass, field, replace

from sparseeinsum.decompose.cost import CostConstants
from sparseeinsum.decompose.memory_footprint import RunMemory
from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import EngineError, OutdatedPlanError, PlanError, SemanticsError
from sparseeinsum.language.eingraph import Program
from sparseeinsum.pipeline.planning import cost_constants, make_plans
from sparseeinsum.pipeline.program_data import memory_for
from sparseeinsum.pipeline.running import current_inputs
from sparseeinsum.pipeline.same_kind import plan_for_same_kind
from sparseeinsum.plans.options import PlanOptions
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.plans.validity import with_valid_grouping
from sparseeinsum.statistics.measured_tensors import MeasuredTensor

_MOST_PLANS = 32
_MOST_GROWTH = 1.5  # of the entries of an input; with more or less, another plan may be cheaper

# A program, what was asked of its plan, and the memory and the cost constants that there were.
_Key = tuple[Program, str, RunMemory, CostConstants]


@dataclass(slots=True)
class PlanCache:
    """The plans of the programs that were planned or run last on a connection."""

    _plans: dict[_Key, ProgramPlan] = field(default_factory=dict)

    def plan(self, program: Program, engine: Engine, options: PlanOptions) -> ProgramPlan:
        """The best plan, or that of an earlier run if its inputs have the same shape and about as many entries.

        Raises:
            CatalogueError: A tensor does not exist.
            ShapeError: Labels and bounds do not fit.
            PlanError: No plan satisfies the options.
        """
        with engine.reading():
            return self._plan(program, engine, options)

    def _plan(self, program: Program, engine: Engine, options: PlanOptions) -> ProgramPlan:
        if engine.cluster() is not None:  # whose machines and tables may have changed
            return make_plans(program, engine, options)[0]
        key = _key(program, engine, options)
        plan = self._plans.get(key)
        valid = None if plan is None else _valid_plan(plan, engine)
        if plan is None or valid is None:
            plan = valid = make_plans(program, engine, options, memory=key[2])[0]
        self._keep(key, plan)
        return valid

    def plan_for_present_data(self, program: Program, engine: Engine, options: PlanOptions) -> ProgramPlan:
        """The best plan for the data as they are now: that of an earlier call or run if they are of the same kind.

        Raises: as for `plan`.
        """
        # An error ends the transaction; planning again says more.
        with suppress(EngineError), engine.reading(), engine.scans.deferring_proofs():
            return self._plan_for_present_data(program, engine, options)
        return make_plans(program, engine, options)[0]

    def _plan_for_present_data(self, program: Program, engine: Engine, options: PlanOptions) -> ProgramPlan:
        if engine.cluster() is not None:
            return make_plans(program, engine, options)[0]
        key = _key(program, engine, options)
        plan = self._plans.get(key)
        plan = None if plan is None else _present_plan(plan, engine)
        plan = plan or make_plans(program, engine, options, memory=key[2])[0]
        self._keep(key, plan)
        return plan

    def _keep(self, key: _Key, plan: ProgramPlan) -> None:
        self._plans.pop(key, None)
        self._plans[key] = plan
        while len(self._plans) > _MOST_PLANS:
            del self._plans[next(iter(self._plans))]


def _key(program: Program, engine: Engine, options: PlanOptions) -> _Key:
    return program, repr(options), memory_for(engine, options), cost_constants(engine)


def _present_plan(plan: ProgramPlan, engine: Engine) -> ProgramPlan | None:
    """The plan for the rows that its inputs have now; None if a search may choose another one for them."""
    with suppress(OutdatedPlanError, PlanError, SemanticsError):
        present = plan_for_same_kind(plan, engine)
        return None if present is None else _with_present_stages(present, engine)
    return None


def _valid_plan(plan: ProgramPlan, engine: Engine) -> ProgramPlan | None:
    """The plan as it is valid for the data as they are now; None if it is outdated."""
    try:
        inputs = current_inputs(plan, engine)
    except (OutdatedPlanError, PlanError, SemanticsError):
        return None
    if not all(_is_alike(plan.inputs[name], tensor) for name, tensor in inputs.items()):
        return None
    return with_valid_grouping(_with_present_stages(plan, engine), inputs)


def _with_present_stages(plan: ProgramPlan, engine: Engine) -> ProgramPlan:
    """The plan with tables of results that the present role may make."""
    stage_of = engine.stage_namer(plan.decomposed.seconds)
    name, *_ = plan.decomposed.graph.tensors  # all are in one schema
    return plan if stage_of(name) == plan.stage_of(name) else replace(plan, stage_of=stage_of)


def _is_alike(before: MeasuredTensor, now: MeasuredTensor) -> bool:
    entries = before.statistics.entries + 1, now.statistics.entries + 1
    return max(entries) <= _MOST_GROWTH * min(entries)

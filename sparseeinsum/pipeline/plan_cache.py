"""Pipeline: keeps the plans of programs that were run, for further runs on data of the same kind."""

from dataclasses import dataclass, field, replace

from sparseeinsum.decompose.memory_footprint import RunMemory
from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import OutdatedPlanError, PlanError, SemanticsError
from sparseeinsum.language.eingraph import Program
from sparseeinsum.pipeline.planning import make_plans
from sparseeinsum.pipeline.program_data import memory_for
from sparseeinsum.pipeline.running import current_inputs
from sparseeinsum.plans.options import PlanOptions
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.plans.validity import with_valid_grouping
from sparseeinsum.statistics.measured_tensors import MeasuredTensor

_MOST_PLANS = 32
_MOST_GROWTH = 1.5  # of the entries of an input; with more or less, another plan may be cheaper

# A program, what was asked of its plan, and the memory that there was.
_Key = tuple[Program, str, RunMemory]


@dataclass(slots=True)
class PlanCache:
    """The plans of the programs that were run last on a connection."""

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
        key = program, repr(options), memory_for(engine, options)
        plan = self._plans.pop(key, None)
        valid = None if plan is None else _valid_plan(plan, engine)
        if plan is None or valid is None:
            plan = valid = make_plans(program, engine, options)[0]
        self._plans[key] = plan
        while len(self._plans) > _MOST_PLANS:
            del self._plans[next(iter(self._plans))]
        return valid


def _valid_plan(plan: ProgramPlan, engine: Engine) -> ProgramPlan | None:
    """The plan as it is valid for the data as they are now; None if it is outdated."""
    try:
        inputs = current_inputs(plan, engine)
    except (OutdatedPlanError, PlanError, SemanticsError):
        return None
    if not all(_is_alike(plan.inputs[name], tensor) for name, tensor in inputs.items()):
        return None
    stage_of = engine.stage_namer(plan.decomposed.seconds)  # which depends on the rights of the present role
    if any(stage_of(name) != plan.stage_of(name) for name in plan.decomposed.graph.tensors):
        plan = replace(plan, stage_of=stage_of)
    return with_valid_grouping(plan, inputs)


def _is_alike(before: MeasuredTensor, now: MeasuredTensor) -> bool:
    entries = before.statistics.entries + 1, now.statistics.entries + 1
    return max(entries) <= _MOST_GROWTH * min(entries)

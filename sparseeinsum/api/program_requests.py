"""API: reads and runs what a user asks for: program text, a program or a plan."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from sparseeinsum.api.plans import DetachedPlan, Plan
from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import ArgumentError, SemanticsError
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.lowered_texts import LOWERED_TEXTS
from sparseeinsum.language.lowering import lower_text
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.pipeline import planning, run_programs, running
from sparseeinsum.pipeline.plan_cache import PlanCache
from sparseeinsum.pipeline.plan_options import PlanningOptions, plan_options
from sparseeinsum.pipeline.run_options import RunOptions
from sparseeinsum.plans.saved.plan_files import read_plan
from sparseeinsum.results.output_targets import OutputTarget
from sparseeinsum.results.results import Results
from sparseeinsum.results.streams import ResultStream
from sparseeinsum.storage.program_inputs import shapes_in


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a user asks to run; see `Database.run`.

    Attributes:
        program: The text, the program or the plan.
        parameters: Values that replace those that the text declares.
        optimizer: The search for a plan.
        options: The other options of planning. A plan has its own, and takes none of these.
    """

    program: Program | Plan | DetachedPlan | str
    parameters: Mapping[str, Number] | None
    optimizer: str
    options: PlanningOptions


def read_request(program: Program | str, parameters: Mapping[str, Number] | None, engine: Engine) -> Program:
    """The program that a user gives, or whose text.

    Raises:
        ParseError: The text is not a program.
        SemanticsError: There are parameters for something else than text.
    """
    if isinstance(program, str):
        shapes = shapes_in(engine)
        return lower_text(program, parameters, shapes=shapes) if parameters else LOWERED_TEXTS.lower(program, shapes)
    _check_no_parameters(parameters)
    if not isinstance(program, Program):
        raise ArgumentError(f"{program!r} is no program; se.program makes one, as in se.program({{'Y': ...}})")
    return program


def load_plan(source: str | Path | DetachedPlan, engine: Engine) -> Plan:
    """A saved plan for the tensors of a database; see `Database.load_plan`."""
    text = source.text if isinstance(source, DetachedPlan) else source
    return Plan(planning.load_plan(read_plan(text), engine), engine)


def run_request(
    request: RunRequest, into: Mapping[str, OutputTarget], run_options: RunOptions, engine: Engine, plans: PlanCache
) -> Results:
    """Run what a user asks for; see `Database.run`.

    Args:
        request: What to run.
        into: The table or the file that takes an output, by its name.
        run_options: The options of the run.
        engine: The database.
        plans: The plans of earlier runs.
    """
    program = _plan_or_program(request, engine)
    if isinstance(program, Plan):
        return Results(running.run_plan(program.data, engine, into, run_options).results)
    options = plan_options(request.optimizer, **request.options)
    return Results(run_programs.run_program(program, engine, options, into, run_options, plans).results)


def stream_request(request: RunRequest, run_options: RunOptions, engine: Engine, plans: PlanCache) -> ResultStream:
    """Run what a user asks for, and return its results as a stream; see `Database.stream` and `run_request`."""
    program = _plan_or_program(request, engine)
    with ExitStack() as transaction:
        if isinstance(program, Plan):
            streamed = running.stream_plan(program.data, engine, run_options)
        else:
            options = plan_options(request.optimizer, **request.options)
            streamed = run_programs.stream_program(program, engine, options, run_options, plans)
        deliveries = transaction.enter_context(streamed)
        return ResultStream(engine, deliveries, transaction.pop_all())


def _plan_or_program(request: RunRequest, engine: Engine) -> Plan | Program:
    """The plan that is to run, or the program that is to be planned."""
    if isinstance(request.program, Plan | DetachedPlan):
        _check_no_parameters(request.parameters)
        return request.program if isinstance(request.program, Plan) else load_plan(request.program, engine)
    return read_request(request.program, request.parameters, engine)


def _check_no_parameters(parameters: Mapping[str, Number] | None) -> None:
    """Refuse parameters for a program or a plan whose numbers are fixed.

    Raises:
        SemanticsError: Parameters are given.
    """
    if parameters:
        name = next(iter(parameters))
        raise SemanticsError(
            f"the parameter {name} is given to a program that was read before; give it where the text is, as in "
            f"se.program(text, {name}=...) or se.read_program(path, {name}=...)"
        )

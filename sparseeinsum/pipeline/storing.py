"""Pipeline: runs a program and stores its results as tensors of the database."""

from collections.abc import Mapping

from sparseeinsum.engines.engine import Engine
from sparseeinsum.language.eingraph import Program
from sparseeinsum.pipeline.plan_cache import PlanCache
from sparseeinsum.pipeline.run_options import RunOptions
from sparseeinsum.pipeline.run_programs import run_program
from sparseeinsum.plans.options import PlanOptions
from sparseeinsum.results.execution import WrittenResult
from sparseeinsum.results.tables import claim_table, record_result


def store_program(
    program: Program, engine: Engine, options: PlanOptions, replaces: bool
) -> Mapping[str, WrittenResult]:
    """Plan and run a program in one transaction; either all of its results become tensors, or none.

    Args:
        program: The program.
        engine: The database.
        options: The options of the plan.
        replaces: Whether results may replace tensors of the same names.

    Raises:
        NameTakenError: The name of a result belongs to a tensor or a table that must not be replaced.
    """
    with engine.snapshot():
        names = dict.fromkeys((*program.outputs, *options.outputs))
        into = {name: claim_table(engine, name, replaces) for name in names}
        execution = run_program(program, engine, options, into, RunOptions(), PlanCache())
        for result in execution.written.values():
            record_result(engine, result)
    return execution.written

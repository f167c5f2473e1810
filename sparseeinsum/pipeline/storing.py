"""Pipeline: runs a program and stores its results as tensors of the database."""

from collections.abc import Mapping

from sparseeinsum.engines.engine import Engine
from sparseeinsum.language.eingraph import Program
from sparseeinsum.pipeline.run_options import RunOptions
from sparseeinsum.pipeline.run_programs import run_program
from sparseeinsum.plans.options import PlanOptions
from sparseeinsum.results.execution import KeptResult
from sparseeinsum.results.tables import claim_table, record_result


def store_program(program: Program, engine: Engine, options: PlanOptions, replaces: bool) -> Mapping[str, KeptResult]:
    """Plan and run a program in one transaction; all of its results become tensors, or none.

    Args:
        program: What to compute.
        engine: Where.
        options: Of the plan.
        replaces: Whether results may take the places of tensors that have their names.

    Raises:
        NameTakenError: A name that a result needs is taken.
    """
    with engine.snapshot():
        names = dict.fromkeys((*program.outputs, *options.outputs))
        into = {name: claim_table(engine, name, replaces) for name in names}
        execution = run_program(program, engine, options, into, RunOptions())
        for kept in execution.kept.values():
            record_result(engine, kept)
    return execution.kept

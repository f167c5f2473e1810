"""Dbt: writes a plan into a dbt project: models, macros and tests of the assumptions about inputs, and YAML."""

import re
from collections.abc import Mapping
from pathlib import Path

from sparseeinsum.dbt_project.assumptions import assumptions
from sparseeinsum.dbt_project.checks import problems_query
from sparseeinsum.dbt_project.dbt_models import models_of, problems_macro
from sparseeinsum.dbt_project.inputs import DbtInput, inputs_of
from sparseeinsum.dbt_project.jinja import MARK, Jinja, header_comment, table_name
from sparseeinsum.dbt_project.plain_models import plain_files
from sparseeinsum.dbt_project.project import DbtProject, read_project
from sparseeinsum.dbt_project.properties import models_yaml, sources_yaml
from sparseeinsum.dbt_project.row_tests import PackageTests
from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import DbtError
from sparseeinsum.pipeline.running import prove_inputs
from sparseeinsum.plans.plain_plans import requested_dialect
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.statistics.columns import table_by_name
from sparseeinsum.statistics.fingerprints import column_types
from sparseeinsum.statistics.measured_tensors import stored_of


def write_models(
    plan: ProgramPlan, engine: Engine, folder: Path, program: str, dialect: str | None = None
) -> tuple[Path, ...]:
    """Write the models of a plan into a dbt project; they replace earlier models of the same program.

    Args:
        plan: A plan for the engine.
        engine: The engine with the data that the models read.
        folder: The folder of the project.
        program: A name for the program, the prefix of the names of its models.
        dialect: The dialect of the models by its name, if the project has an adapter for another engine.

    Returns:
        The files that were written.

    Raises:
        DbtError: There is no such project, a file of the user would be replaced, or the plan is for a cluster.
        PlanError: There is no such dialect, or its engine cannot compute the plan.
        DataError: An input repeats a coordinate.
    """
    asked = requested_dialect(plan.dialect, dialect)
    if plan.dialect.distributes:
        raise DbtError(
            f"{engine.title} distributes the tables of plans over machines, which dbt models cannot; run the program "
            "with db.run(program, into=...), or compile it on one PostgreSQL"
        )
    if re.fullmatch(r"[^\W\d]\w*", program) is None:
        raise DbtError(f"{program!r} cannot be the prefix of models; use letters, digits and _, as in page_rank")
    prove_inputs(plan, engine)
    project = read_project(folder, program)
    if asked.plain is None:
        files = _files(plan, engine, project, program, inputs_of(stored_of(plan.inputs), program, project, engine))
    else:
        files = plain_files(plan, engine, project, program, asked)
    _check_names(project, files)
    stale = [path for path in _generated_files(project, program) if path not in files]
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for path in stale:
        path.unlink()
    return tuple(files)


def _files(
    plan: ProgramPlan, engine: Engine, project: DbtProject, program: str, inputs: Mapping[str, DbtInput]
) -> dict[Path, str]:
    """The text of every file of a program, by path."""
    models, row_tests = models_of(plan, program, inputs), PackageTests()
    folder = project.models / program
    files = {folder / f"{model.name}.sql": model.text for model in models}
    files[folder / "schema.yml"] = models_yaml(models, program, str(plan.program), row_tests)
    sources = sources_yaml(inputs.values(), program, row_tests)
    if sources is not None:
        files[folder / "sources.yml"] = sources
    macros = _macros(plan, engine, program, inputs)
    if macros:
        files[project.macros / f"{program}.sql"] = header_comment(f"what {program} assumes of its inputs") + "".join(
            macros.values()
        )
    for name in macros:
        test = header_comment(f"{name} is as it was when {program} was compiled")
        guard = f"sparseeinsum.require('{program}', '{name}', {problems_macro(program, name)}())"
        path = project.tests / program / f"{program}_{name.lower()}_is_as_planned.sql"
        tagged = f"{{{{ config(tags=['{program}']) }}}}\n"
        files[path] = f"{test}{tagged}SELECT * FROM ({{{{ {guard} }}}}) AS checked WHERE NOT is_as_planned\n"
    return files


def _macros(plan: ProgramPlan, engine: Engine, program: str, inputs: Mapping[str, DbtInput]) -> dict[str, str]:
    """A macro for every input, with a query that describes how the input violates the assumptions of the plan."""
    assumed = assumptions(plan)
    macros = {}
    for name, tensor in inputs.items():
        table = table_name(table_by_name(tensor.stored, engine.dialect_name), engine.dialect)
        query = problems_query(tensor.stored, assumed[name], column_types(tensor.stored, engine), engine)
        text = Jinja(engine.dialect, {table: tensor.reference}).text(query)
        macros[name] = f"\n{{% macro {problems_macro(program, name)}() %}}\n{text}\n{{% endmacro %}}\n"
    return macros


def _check_names(project: DbtProject, files: Mapping[Path, str]) -> None:
    """Refuse to replace files of the user, and models whose names other models have."""
    for path in files:
        if path.exists() and not _is_generated(path):
            raise DbtError(
                f"{path} was not generated by sparseeinsum, so it is not replaced; move it, or give the program "
                "another name"
            )
    models = {path.stem.lower() for path in files if path.is_relative_to(project.models) and path.suffix == ".sql"}
    for path in project.files:
        if path.stem.lower() in models and path not in files:
            raise DbtError(
                f"the project has a model {path.stem} already, in {path.relative_to(project.folder)}; give the program "
                "another name"
            )


def _generated_files(project: DbtProject, program: str) -> list[Path]:
    """The files that an earlier compilation of the program wrote."""
    folders = (project.models / program, project.tests / program)
    files = [path for folder in folders if folder.is_dir() for path in folder.iterdir() if path.is_file()]
    macros = project.macros / f"{program}.sql"
    return [path for path in (*files, macros) if path.is_file() and _is_generated(path)]


def _is_generated(path: Path) -> bool:
    """Whether a file was written by an earlier compilation, which marks its first line."""
    with path.open(encoding="utf-8", errors="replace") as file:
        return MARK in file.readline()

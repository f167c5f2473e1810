"""Dbt: a plan into files of a project: models, what they assume of their inputs as macros and tests, and YAML."""

import re
from collections.abc import Mapping
from pathlib import Path

from sparseeinsum.dbt_project.assumptions import assumptions
from sparseeinsum.dbt_project.checks import problems_query
from sparseeinsum.dbt_project.inputs import Input, inputs_of
from sparseeinsum.dbt_project.jinja import MARK, Jinja, commented, name_of
from sparseeinsum.dbt_project.models import models_of, problems_macro
from sparseeinsum.dbt_project.project import DbtProject, read_project
from sparseeinsum.dbt_project.properties import models_yaml, sources_yaml
from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import DbtError
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.statistics.columns import table_by_name
from sparseeinsum.statistics.measured_tensors import stored_of


def write_models(plan: ProgramPlan, engine: Engine, folder: Path, program: str) -> tuple[Path, ...]:
    """Write the models of a plan into a dbt project, in place of those of the program that are there.

    Args:
        plan: Made on the engine.
        engine: Where the data are that the models read.
        folder: Of the project.
        program: A name for the program, with which those of its models begin.

    Returns:
        The files.

    Raises:
        DbtError: There is no such project, a file of the user's stands in the way, or the plan is for a cluster.
    """
    if plan.dialect.distributes:
        raise DbtError(
            f"{engine.title} spreads the tables of plans over machines, which models of dbt do not; run the program "
            "with db.run(program, into=...), or compile it on one PostgreSQL"
        )
    if re.fullmatch(r"[^\W\d]\w*", program) is None:
        raise DbtError(f"{program!r} is no name for models; it takes letters, digits and underscores, as in page_rank")
    project = read_project(folder, program)
    inputs = inputs_of(stored_of(plan.inputs), program, project, engine)
    files = _files(plan, engine, project, program, inputs)
    _check_names(project, files)
    stale = [path for path in _ours(project, program) if path not in files]
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for path in stale:
        path.unlink()
    return tuple(files)


def _files(
    plan: ProgramPlan, engine: Engine, project: DbtProject, program: str, inputs: Mapping[str, Input]
) -> dict[Path, str]:
    """The content of every file."""
    models = models_of(plan, program, inputs)
    folder = project.models / program
    files = {folder / f"{model.name}.sql": model.text for model in models}
    files[folder / "schema.yml"] = models_yaml(models, program, str(plan.program))
    sources = sources_yaml(inputs.values(), program)
    if sources is not None:
        files[folder / "sources.yml"] = sources
    macros = _macros(plan, engine, program, inputs)
    if macros:
        files[project.macros / f"{program}.sql"] = commented(f"what {program} assumes of its inputs") + "".join(
            macros.values()
        )
    for name in macros:
        test = commented(f"{name} is as it was when {program} was compiled")
        guard = f"sparseeinsum.require('{program}', '{name}', {problems_macro(program, name)}())"
        path = project.tests / program / f"{program}_{name.lower()}_is_as_planned.sql"
        tagged = f"{{{{ config(tags=['{program}']) }}}}\n"
        files[path] = f"{test}{tagged}SELECT * FROM ({{{{ {guard} }}}}) AS checked WHERE NOT is_as_planned\n"
    return files


def _macros(plan: ProgramPlan, engine: Engine, program: str, inputs: Mapping[str, Input]) -> dict[str, str]:
    """For every input a macro with the query that tells what it is no longer."""
    assumed = assumptions(plan)
    macros = {}
    for name, each in inputs.items():
        table = name_of(table_by_name(each.stored, engine.dialect_name), engine.dialect)
        fingerprint = plan.inputs[name].measurement.fingerprint
        assert isinstance(fingerprint, tuple)
        query = problems_query(each.stored, assumed[name], fingerprint[1], engine)
        text = Jinja(engine.dialect, {table: each.reference}).text(query)
        macros[name] = f"\n{{% macro {problems_macro(program, name)}() %}}\n{text}\n{{% endmacro %}}\n"
    return macros


def _check_names(project: DbtProject, files: Mapping[Path, str]) -> None:
    """Refuse files that would replace one of the user's, and models that have the name of another."""
    for path in files:
        if path.exists() and not _is_ours(path):
            raise DbtError(
                f"{path} was not made by sparseeinsum, so that it is left as it is; move it, or give the program "
                "another name"
            )
    models = {path.stem.lower() for path in files if path.is_relative_to(project.models) and path.suffix == ".sql"}
    for path in project.files:
        if path.stem.lower() in models and path not in files:
            raise DbtError(
                f"the project has a model {path.stem} already, in {path.relative_to(project.folder)}; give the program "
                "another name"
            )


def _ours(project: DbtProject, program: str) -> list[Path]:
    """Files of the program that an earlier compilation wrote."""
    folders = (project.models / program, project.tests / program)
    found = [path for folder in folders if folder.is_dir() for path in folder.iterdir() if path.is_file()]
    macros = project.macros / f"{program}.sql"
    return [path for path in (*found, macros) if path.is_file() and _is_ours(path)]


def _is_ours(path: Path) -> bool:
    with path.open(encoding="utf-8", errors="replace") as file:
        return MARK in file.readline()

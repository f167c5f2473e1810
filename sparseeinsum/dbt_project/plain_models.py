"""Dbt: a plan without arrays as files of a project for another engine: models, tests and YAML."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from sparseeinsum.algebra.translate import delivered_relation
from sparseeinsum.dbt_project.assumptions import for_weakest_assumptions
from sparseeinsum.dbt_project.dbt_models import Model, result_names
from sparseeinsum.dbt_project.inputs import DbtDictionary, DbtInput
from sparseeinsum.dbt_project.jinja import Jinja, header_comment, table_name
from sparseeinsum.dbt_project.plain_checks import plain_problems_query
from sparseeinsum.dbt_project.plain_inputs import plain_dictionaries, plain_inputs
from sparseeinsum.dbt_project.project import DbtProject
from sparseeinsum.dbt_project.properties import models_yaml, sources_yaml
from sparseeinsum.dbt_project.row_tests import GenericTests
from sparseeinsum.engines.engine import Engine
from sparseeinsum.plans.plain_plans import plain_statements
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.statistics.columns import table_by_name
from sparseeinsum.statistics.dictionary_queries import dictionary_table


def plain_files(
    plan: ProgramPlan, engine: Engine, project: DbtProject, program: str, dialect: Dialect
) -> dict[Path, str]:
    """The text of every file of a program, by path: a model for every result, and a test for every input.

    The models assume of the values in tables only what the tests check.

    Args:
        plan: A plan without arrays.
        engine: The engine where it was made.
        project: The project, of an adapter for the other engine.
        program: The name of the program, the prefix of the names of its models.
        dialect: The dialect of the other engine.

    Raises:
        PlanError: The plan has arrays, or the other engine cannot compute what it computes.
        DbtError: Models cannot refer to an input.
    """
    assert dialect.plain is not None
    inputs = plain_inputs(plan, program, project, engine)
    dictionaries = plain_dictionaries(plan, program, project, engine)
    general, assumed = for_weakest_assumptions(plan)
    jinja = Jinja(dialect, _references(plan, dialect, inputs, dictionaries))
    models = _models(general, program, dialect, jinja)
    row_tests = GenericTests(dialect.plain.quotes_names)
    folder = project.models / program
    files = {folder / f"{model.name}.sql": model.text for model in models}
    files[folder / "schema.yml"] = models_yaml(models, program, str(plan.program), row_tests)
    sources = sources_yaml(inputs.values(), program, row_tests, dictionaries)
    if sources is not None:
        files[folder / "sources.yml"] = sources
    for name, tensor in inputs.items():
        query = plain_problems_query(tensor.stored, assumed[name], plan.dialect.name)
        header = header_comment(f"{name} is as it was when {program} was compiled")
        path = project.tests / program / f"{program}_{name.lower()}_is_as_planned.sql"
        files[path] = f"{header}{{{{ config(tags=['{program}']) }}}}\n{jinja.text(query)}\n"
    return files


def _references(
    plan: ProgramPlan, dialect: Dialect, inputs: Mapping[str, DbtInput], dictionaries: Iterable[DbtDictionary]
) -> dict[str, str]:
    """The Jinja expressions of all tables that models read, by the names of the tables in SQL."""
    own = plan.dialect.name
    tables = {table_name(table_by_name(entry.stored, own), dialect): entry.reference for entry in inputs.values()}
    return tables | {table_name(dictionary_table(entry.dictionary), dialect): entry.reference for entry in dictionaries}


def _models(plan: ProgramPlan, program: str, dialect: Dialect, jinja: Jinja) -> tuple[Model, ...]:
    """A model for every result."""
    notation = {step.einsum.output.tensor: step.notation for step in plan.decomposed.steps}
    names = result_names(plan, program)
    return tuple(
        Model(
            name=names[statement.name],
            text=f"{header_comment(f'{statement.name} of the program {program}, for {dialect.name}')}"
            f"{{{{ config(materialized='table') }}}}\n\n{jinja.text(statement.query)}\n",
            schema=delivered_relation(plan.decomposed, statement.name).schema,
            computes=tuple(notation[name] for name in statement.computes),
            is_result=True,
        )
        for statement in plain_statements(plan, dialect)
    )

"""Dbt: what a plan reads, as models or sources of a project for another engine than that where the plan was made."""

from collections.abc import Iterator

from sqlglot import exp

from sparseeinsum.dbt_project.inputs import (
    DbtDictionary,
    DbtInput,
    DbtSource,
    permanent_table,
    source_of_table,
    with_entries,
)
from sparseeinsum.dbt_project.project import DbtProject
from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import DbtError
from sparseeinsum.language.tensors import Dictionary
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.render.plain_sql.plain_statements import DEFAULT_SCHEMAS
from sparseeinsum.statistics.dictionary_queries import dictionary_table
from sparseeinsum.statistics.measured_tensors import stored_of

_TARGET_SCHEMA = "{{ target.schema }}"  # the schema of models, whose name differs between engines


def plain_inputs(plan: ProgramPlan, program: str, project: DbtProject, engine: Engine) -> dict[str, DbtInput]:
    """The inputs of a plan that are tables or views, by name; dbt knows tables of their names in another engine.

    Args:
        plan: The plan.
        program: The name of the program, the prefix of the names of new sources.
        project: The dbt project, of an adapter for the other engine.
        engine: The engine with the tensors.

    Raises:
        DbtError: An input is a file or a temporary table, or the project has several tables of its name.
    """
    inputs = {}
    for name, stored in with_entries(stored_of(plan.inputs)).items():
        if stored.relation.startswith("'"):
            raise DbtError(
                f"tensor {name} is in the file {stored.relation}, which models for another engine cannot read; make a "
                "table of it in both engines, and add that by db.tensor_from_table"
            )
        table = permanent_table(name, stored, engine)
        inputs[name] = DbtInput(*_reference(table, program, project, engine), stored)
    return inputs


def plain_dictionaries(
    plan: ProgramPlan, program: str, project: DbtProject, engine: Engine
) -> tuple[DbtDictionary, ...]:
    """The dictionaries whose tables the plan reads, to look up natural keys or to return them; as `plain_inputs`."""
    dictionaries = dict.fromkeys(_dictionaries(plan))
    return tuple(
        DbtDictionary(*_reference(dictionary_table(dictionary), program, project, engine), dictionary)
        for dictionary in dictionaries
    )


def _dictionaries(plan: ProgramPlan) -> Iterator[Dictionary]:
    for stored in stored_of(plan.inputs).values():
        yield from stored.column_dictionaries.values()
    for name in plan.outputs:
        tensor = plan.decomposed.graph.tensors[name]
        yield from (axis.dictionary for axis in tensor.axes if axis.dictionary is not None)


def _reference(table: exp.Table, program: str, project: DbtProject, engine: Engine) -> tuple[str, DbtSource | None]:
    """How models refer to a table of this name, and the source that must be declared for that."""
    reference = project.reference_by_name(table.name)
    if reference is not None:
        return reference, None
    database, schema = engine.location()
    written = table.db or schema
    source = source_of_table(
        (table.catalog or database, written, table.name),
        program,
        is_in_other_database=table.catalog not in ("", database),
        declared_schema=_TARGET_SCHEMA if written in DEFAULT_SCHEMAS else written,
    )
    return source.reference, source

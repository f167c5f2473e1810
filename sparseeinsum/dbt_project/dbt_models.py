"""Dbt: the models of a plan: one for every stage of a run, and one for every result."""

import itertools
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from sqlglot import exp

from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.algebra.translate import delivered_relation
from sparseeinsum.dbt_project.inputs import DbtInput
from sparseeinsum.dbt_project.jinja import Jinja, header_comment, table_name
from sparseeinsum.errors import DbtError
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.render.sql_statement import SqlStatement
from sparseeinsum.statistics.columns import table_by_name
from sparseeinsum.statistics.sql_templates import union_all

_MOST_KEY_COLUMNS = 32  # PostgreSQL's limit for the columns of an index


@dataclass(frozen=True, slots=True)
class Model:
    """A dbt model.

    Attributes:
        name: The name of the file and of the table.
        text: The text of the file.
        schema: The schema of the table.
        computes: The EinSums that it computes, in upper-case-lower-case notation.
        is_result: Whether it is a result of the program, rather than an intermediate.
    """

    name: str
    text: str
    schema: Schema
    computes: tuple[str, ...]
    is_result: bool


def problems_macro(program: str, tensor: str) -> str:
    """The name of the macro that describes how an input violates the assumptions of the plan."""
    return f"{program}_problems_of_{tensor}"


def models_of(plan: ProgramPlan, program: str, inputs: Mapping[str, DbtInput]) -> tuple[Model, ...]:
    """The models of a plan, in topological order.

    Args:
        plan: The plan.
        program: The name of the program, the prefix of the names of models.
        inputs: The tensors that the plan reads, by name.

    Raises:
        DbtError: The names of two results differ only in case.
    """
    return tuple(_ModelWriter(plan, program, inputs).all())


@dataclass(frozen=True, slots=True)
class _ModelNames:
    """The names of models: of stages, by the names of their tables, and of results, by the names of their tensors."""

    staged: Mapping[str, str]
    results: Mapping[str, str]


class _ModelWriter:
    """Writes the models of a plan."""

    def __init__(self, plan: ProgramPlan, program: str, inputs: Mapping[str, DbtInput]) -> None:
        self._plan = plan
        self._program = program
        self._names = _model_names(plan, program)
        tables = {name: table_by_name(tensor.stored, plan.dialect.name) for name, tensor in inputs.items()}
        self._tables = {name: table_name(table, plan.dialect) for name, table in tables.items()}
        self._jinja = Jinja(plan.dialect, {self._tables[name]: tensor.reference for name, tensor in inputs.items()})

    def all(self) -> Iterator[Model]:
        """The models in topological order."""
        general = self._plan.statements.for_any_data().reading_entries()
        statements = general.in_tables(lambda name: self._jinja.table(f"ref('{self._names.staged[name]}')"))
        for statement in map(general.with_natural_keys, statements):
            is_result = statement.stage is None
            name = (self._names.results if is_result else self._names.staged)[self._kept_name(statement)]
            yield Model(name, self._text(statement), self._schema(statement), self._notation(statement), is_result)

    def _kept_name(self, statement: SqlStatement) -> str:
        if statement.materializes is None:
            return statement.name
        return self._plan.statements.materialized_names[statement.materializes]

    def _schema(self, statement: SqlStatement) -> Schema:
        if statement.materializes is not None:
            return statement.materializes.schema
        if statement.stage is None:
            return delivered_relation(self._plan.decomposed, statement.name).schema
        return next(stage for stage in self._plan.definitions if stage.name == statement.name).relation.schema

    def _notation(self, statement: SqlStatement) -> tuple[str, ...]:
        notation = {step.einsum.output.tensor: step.notation for step in self._plan.decomposed.steps}
        return tuple(notation[name] for name in statement.computes)

    def _text(self, statement: SqlStatement) -> str:
        """The text of the file: hooks for passes after the first, settings, and the guarded query."""
        is_whole = self._plan.dialect.spills_states  # so passes need not limit memory; one statement sees one snapshot
        query, passes = (_merge_passes(statement), ()) if is_whole else (statement.query, statement.passes)
        hooks = {f"pass_{number}": self._jinja.text(query) for number, query in enumerate(passes, 2)}
        blocks = [_set(name, f"INSERT INTO {{{{ this }}}}\n{text}") for name, text in hooks.items()]
        settings = ", ".join(f"{name}={value}" for name, value in self._settings(statement, tuple(hooks)).items())
        blocks += [f"{{{{ config({settings}) }}}}", self._guarded(query)]
        return header_comment(f"{statement.name} of the program {self._program}") + "\n\n".join(blocks) + "\n"

    def _settings(self, statement: SqlStatement, hooks: Sequence[str]) -> dict[str, str]:
        """The settings of a model: a table, with the hooks and the index that the engine needs."""
        settings = {"materialized": "'table'"}
        after = list(hooks)
        if self._plan.dialect.has_workers:  # PostgreSQL: a new table has neither statistics nor an index
            schema = self._schema(statement)
            keys = [] if schema.has_dictionaries else list(schema.keys)  # natural keys can be too long for an index
            after.append("'ANALYZE {{ this }}'")
            if 0 < len(keys) <= _MOST_KEY_COLUMNS and statement.stage is None:
                settings["indexes"] = f"[{{'columns': {keys}, 'unique': true}}]"
        if after:
            settings["post_hook"] = f"[{', '.join(after)}]"
        return settings

    def _guarded(self, query: exp.Query) -> str:
        """The query of a model, inside a call of the macro that checks the inputs that it reads."""
        read = self._jinja.read(query)
        checked = [name for name, table in self._tables.items() if table in read]
        text = self._jinja.text(query)
        if not checked:
            return text
        problems = ", ".join(f"'{name}': {problems_macro(self._program, name)}()" for name in checked)
        guard = f"sparseeinsum.as_planned('{self._program}', {{{problems}}})"
        return f"{{% call {guard} %}}\n{text}\n{{% endcall %}}"


def _set(name: str, text: str) -> str:
    """Jinja that sets a variable to a text."""
    return f"{{% set {name} %}}\n{text}\n{{% endset %}}"


def _merge_passes(statement: SqlStatement) -> exp.Query:
    """One query of all passes of a statement."""
    queries = (statement.query, *statement.passes)
    if len(queries) == 1:
        return statement.query
    return union_all(
        [exp.select("*").from_(query.subquery(f"pass_{number}")) for number, query in enumerate(queries, 1)]
    )


def result_names(plan: ProgramPlan, program: str) -> dict[str, str]:
    """The names of the models of results, by the names of their tensors.

    Raises:
        DbtError: The names of two results differ only in case.
    """
    results = {name: f"{program}_{name.lower()}" for name in plan.outputs}
    if len(set(results.values())) < len(results):
        raise DbtError(f"the names of results differ only in case ({', '.join(results)}), which dbt models cannot")
    return results


def _model_names(plan: ProgramPlan, program: str) -> _ModelNames:
    results = result_names(plan, program)
    names = set(results.values())
    staged: dict[str, str] = {}
    for name in (*plan.statements.staged_names, *plan.statements.materialized_names.values()):
        staged[name] = _free_name(f"{program}_{name.lower()}", names)
        names.add(staged[name])
    return _ModelNames(staged, results)


def _free_name(base: str, existing: Set[str]) -> str:
    """The name `base`, or one with a suffix if that is taken."""
    numbered = (f"{base}_staged_{number}" for number in itertools.count(2))
    return next(name for name in itertools.chain((base, f"{base}_staged"), numbered) if name not in existing)

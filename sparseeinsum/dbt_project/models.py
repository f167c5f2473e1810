"""Dbt: a plan into models: one for every table that a run keeps on the way, and one for every result."""

import itertools
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from sqlglot import exp

from sparseeinsum.algebra.operators import Schema
from sparseeinsum.algebra.translate import delivered_relation
from sparseeinsum.dbt_project.inputs import Input
from sparseeinsum.dbt_project.jinja import Jinja, commented, name_of
from sparseeinsum.errors import DbtError
from sparseeinsum.plans.plan import ProgramPlan
from sparseeinsum.render.statements import Statement
from sparseeinsum.statistics.columns import table_by_name
from sparseeinsum.statistics.templates import union_all

_MOST_KEY_COLUMNS = 32  # of an index of PostgreSQL


@dataclass(frozen=True, slots=True)
class Model:
    """A model.

    Attributes:
        name: Which is that of its file, and of its table.
        text: Of its file.
        schema: What its table holds.
        computes: The EinSums that it computes, in notation.
        is_result: Whether it is a result of the program, not one on the way.
    """

    name: str
    text: str
    schema: Schema
    computes: tuple[str, ...]
    is_result: bool


def problems_macro(program: str, tensor: str) -> str:
    """The name of the macro that tells what an input is no longer."""
    return f"{program}_problems_of_{tensor}"


def models_of(plan: ProgramPlan, program: str, inputs: Mapping[str, Input]) -> tuple[Model, ...]:
    """The models of a plan, in an order in which they can be built.

    Args:
        plan: The plan.
        program: Its name, with which the names of models begin.
        inputs: What it reads.

    Raises:
        DbtError: Two results have names that differ only in case.
    """
    return tuple(_Models(plan, program, inputs).all())


@dataclass(frozen=True, slots=True)
class _Names:
    """Names of models: by the results and relations that are kept on the way, and by those that are returned."""

    staged: Mapping[str, str]
    results: Mapping[str, str]


class _Models:
    """The models of a plan; the tables of each are known once those before it are written."""

    def __init__(self, plan: ProgramPlan, program: str, inputs: Mapping[str, Input]) -> None:
        self._plan = plan
        self._program = program
        self._names = _model_names(plan, program)
        tables = {name: table_by_name(each.stored, plan.dialect.name) for name, each in inputs.items()}
        self._tables = {name: name_of(table, plan.dialect) for name, table in tables.items()}
        self._jinja = Jinja(plan.dialect, {self._tables[name]: each.reference for name, each in inputs.items()})

    def all(self) -> Iterator[Model]:
        """All models."""
        general = self._plan.statements.for_any_data()
        statements = general.in_tables(lambda name: self._jinja.table(f"ref('{self._names.staged[name]}')"))
        for statement in map(general.with_natural_keys, statements):
            is_result = statement.stage is None
            name = (self._names.results if is_result else self._names.staged)[self._kept_name(statement)]
            yield Model(name, self._text(statement), self._schema(statement), self._notation(statement), is_result)

    def _kept_name(self, statement: Statement) -> str:
        if statement.materializes is None:
            return statement.name
        return self._plan.statements.kept_names[statement.materializes]

    def _schema(self, statement: Statement) -> Schema:
        if statement.materializes is not None:
            return statement.materializes.schema
        if statement.stage is None:
            return delivered_relation(self._plan.decomposed, statement.name).schema
        return next(each for each in self._plan.definitions if each.name == statement.name).relation.schema

    def _notation(self, statement: Statement) -> tuple[str, ...]:
        notation = {step.einsum.output.tensor: step.notation for step in self._plan.decomposed.steps}
        return tuple(notation[name] for name in statement.computes)

    def _text(self, statement: Statement) -> str:
        """The file: passes after the first as hooks, settings, and the query, which fails where inputs do not fit."""
        is_whole = self._plan.dialect.spills_states  # then all passes are one statement, and see the same rows
        query, passes = (_in_one(statement), ()) if is_whole else (statement.query, statement.passes)
        hooks = {f"pass_{number}": self._jinja.text(each) for number, each in enumerate(passes, 2)}
        parts = [_set(name, f"INSERT INTO {{{{ this }}}}\n{text}") for name, text in hooks.items()]
        settings = ", ".join(f"{name}={value}" for name, value in self._settings(statement, tuple(hooks)).items())
        parts += [f"{{{{ config({settings}) }}}}", self._guarded(query)]
        return commented(f"{statement.name} of the program {self._program}") + "\n\n".join(parts) + "\n"

    def _settings(self, statement: Statement, hooks: Sequence[str]) -> dict[str, str]:
        settings = {"materialized": "'table'"}
        after = list(hooks)
        if self._plan.dialect.has_workers:  # PostgreSQL: what its planner and its users miss in a new table
            schema = self._schema(statement)
            keys = [] if schema.has_dictionaries else list(schema.keys)  # an index of long keys could not be built
            after.append("'ANALYZE {{ this }}'")
            if 0 < len(keys) <= _MOST_KEY_COLUMNS and statement.stage is None:
                settings["indexes"] = f"[{{'columns': {keys}, 'unique': true}}]"
        if after:
            settings["post_hook"] = f"[{', '.join(after)}]"
        return settings

    def _guarded(self, query: exp.Query) -> str:
        read = self._jinja.read(query)
        checked = [name for name, table in self._tables.items() if table in read]
        text = self._jinja.text(query)
        if not checked:
            return text
        problems = ", ".join(f"'{name}': {problems_macro(self._program, name)}()" for name in checked)
        guard = f"sparseeinsum.as_planned('{self._program}', {{{problems}}})"
        return f"{{% call {guard} %}}\n{text}\n{{% endcall %}}"


def _set(name: str, text: str) -> str:
    """A variable of Jinja."""
    return f"{{% set {name} %}}\n{text}\n{{% endset %}}"


def _in_one(statement: Statement) -> exp.Query:
    """All passes of a statement as one query."""
    queries = (statement.query, *statement.passes)
    if len(queries) == 1:
        return statement.query
    return union_all([exp.select("*").from_(each.subquery(f"pass_{number}")) for number, each in enumerate(queries, 1)])


def _model_names(plan: ProgramPlan, program: str) -> _Names:
    results = {name: f"{program}_{name.lower()}" for name in plan.outputs}
    taken = set(results.values())
    if len(taken) < len(results):
        raise DbtError(f"results have names that differ only in case ({', '.join(results)}), which models must not")
    staged: dict[str, str] = {}
    for name in (*plan.statements.staged_names, *plan.statements.kept_names.values()):
        staged[name] = _free(f"{program}_{name.lower()}", taken)
        taken.add(staged[name])
    return _Names(staged, results)


def _free(wanted: str, taken: Set[str]) -> str:
    """A name, or where it is taken another one for what lies behind it."""
    others = (f"{wanted}_staged_{number}" for number in itertools.count(2))
    return next(name for name in itertools.chain((wanted, f"{wanted}_staged"), others) if name not in taken)

"""Render: definitions into statements: one with CTEs, or staged tables and what reads them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from sparseeinsum.algebra.operators import Computed, Relation
from sparseeinsum.algebra.translate import Definition
from sparseeinsum.language.scalar import write_number
from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.render.dialects import Dialect, write_sql
from sparseeinsum.render.relations import Block, Renderer


@dataclass(frozen=True)  # no slots: its text is written once and kept
class Statement:
    """One statement of a compiled program.

    Attributes:
        name: The tensor that it computes.
        query: Its SELECT, with CTEs.
        computes: Results of EinSums that it computes: its own, and those inlined into it.
        stage: The temporary table that keeps its rows; None for the last statement of an output.
        dialect: Of the engine.
    """

    name: str
    query: exp.Select
    computes: tuple[str, ...]
    stage: exp.Table | None
    dialect: Dialect

    @cached_property
    def text(self) -> str:
        """The command as SQL text, without a semicolon."""
        return write_sql(self.command, self.dialect)

    @property
    def command(self) -> exp.Expr:
        """What to execute: the query, or the creation of its table."""
        if self.stage is None:
            return self.query
        return created(self.stage, self.query)


def created(stage: exp.Table, query: exp.Select) -> exp.Create:
    """The creation of a temporary table that keeps the rows of a query."""
    properties = exp.Properties(expressions=[exp.TemporaryProperty()])
    return exp.Create(this=stage.copy(), kind="TABLE", properties=properties, expression=query)


def staged_statements(
    definitions: Sequence[Definition],
    deliveries: Mapping[str, Relation],
    staged: Mapping[str, exp.Table],
    dialect: Dialect,
    boundaries: Mapping[str, Sequence[int]],
) -> tuple[Statement, ...]:
    """Temporary tables for some results, and a SELECT for every output.

    Args:
        definitions: All EinSums, in topological order.
        deliveries: For every output, the relation to deliver.
        staged: Temporary tables, by the result to keep there.
        dialect: Of the engine.
        boundaries: Row numbers at which to split the scans of inputs, by tensor.
    """
    compiler = _Compiler(tuple(definitions), staged, dialect, boundaries)
    stages = [compiler.stage(definition) for definition in definitions if definition.name in staged]
    return (*stages, *(compiler.deliver(name, relation) for name, relation in deliveries.items()))


def result_query(
    definitions: Sequence[Definition],
    name: str,
    tables: Mapping[str, exp.Table],
    dialect: Dialect,
    boundaries: Mapping[str, Sequence[int]],
) -> exp.Select:
    """The SELECT of one result, which reads those that `tables` names from there; see `staged_statements`."""
    compiler = _Compiler(tuple(definitions), tables, dialect, boundaries)
    definition = next(definition for definition in definitions if definition.name == name)
    return compiler.deliver(name, Computed(definition.relation.schema)).query


def relation_query(relation: Relation, dialect: Dialect) -> exp.Select:
    """The SELECT of a relation that reads stored tensors alone."""
    return _Compiler((), {}, dialect, {}).deliver("", relation).query


@dataclass(frozen=True, slots=True)
class _Compiler:
    definitions: tuple[Definition, ...]
    staged: Mapping[str, exp.Table]
    dialect: Dialect
    boundaries: Mapping[str, Sequence[int]]

    def stage(self, definition: Definition) -> Statement:
        """The statement that fills a temporary table."""
        return self._statement(definition.name, Computed(definition.relation.schema), self.staged[definition.name])

    def deliver(self, name: str, relation: Relation) -> Statement:
        """The statement that returns an output."""
        return self._statement(name, relation, None)

    def _statement(self, name: str, relation: Relation, stage: exp.Table | None) -> Statement:
        tables = {tensor: table for tensor, table in self.staged.items() if table != stage}
        renderer = Renderer(self.dialect, tables, self.boundaries)
        inlined = self._needed(name, tables)
        for definition in inlined:
            renderer.define(definition.name, definition.relation, definition.step.notation)
        source = renderer.source(relation)
        blocks = renderer.blocks
        if blocks and source.table.name == blocks[-1].name:
            *blocks, last = blocks
            query = last.select.copy()
            query.add_comments([f" {last.comment} "])
        else:
            columns = [exp.column(column) for column in (*source.schema.keys, VALUE_COLUMN)]
            query = exp.select(*columns).from_(source.table.copy())
        if stage is None and source.schema.tensor.fill:
            query.add_comments([f" what has no row holds {write_number(source.schema.tensor.fill)} "])
        return Statement(
            name, _with_blocks(query, blocks), tuple(definition.name for definition in inlined), stage, self.dialect
        )

    def _needed(self, name: str, tables: Mapping[str, object]) -> list[Definition]:
        """The definitions that a statement must contain: of what is computed and not kept in a table, in order."""
        by_name = {definition.name: definition for definition in self.definitions}
        needed: set[str] = set()
        waiting = [name]
        while waiting:
            tensor = waiting.pop()
            if tensor in by_name and tensor not in tables and tensor not in needed:
                needed.add(tensor)
                waiting += [operand.tensor for operand in by_name[tensor].step.einsum.operands]
        return [definition for definition in self.definitions if definition.name in needed]


def _with_blocks(query: exp.Select, blocks: Sequence[Block]) -> exp.Select:
    selects = [query, *(block.select for block in blocks)]
    references = Counter(table.name for select in selects for table in select.find_all(exp.Table))
    for block in blocks:
        body = block.select.copy()
        body.add_comments([f" {block.comment} "])
        is_materialized = block.is_materialized or references[block.name] > 1
        name = exp.TableAlias(this=exp.to_identifier(block.name))
        query = query.with_(name, as_=body, materialized=is_materialized or None, copy=False)
    return query

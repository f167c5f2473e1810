"""Render: definitions into statements: one with CTEs, or staged tables and what reads them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from sqlglot import exp

from sparseeinsum.algebra.operators import (
    Computed,
    Contract,
    Convert,
    Densify,
    Kept,
    Relation,
    Resident,
    Restrict,
    Slice,
    Stack,
)
from sparseeinsum.algebra.translate import Definition, kept_in
from sparseeinsum.language.scalar import write_number
from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.render.calls import integer
from sparseeinsum.render.dialects import Dialect, write_sql
from sparseeinsum.render.packing import kept_type
from sparseeinsum.render.relations import Block, Renderer
from sparseeinsum.render.sources import aliased, fenced, kept_select, key_column, named
from sparseeinsum.render.spreading import Spread, spread_of, spread_of_output


@dataclass(frozen=True)  # no slots: its text is written once and kept
class Statement:
    """One statement of a compiled program.

    Attributes:
        name: The tensor that it computes.
        query: Its SELECT, with CTEs; of the first of several passes.
        computes: Results of EinSums that it computes: its own, and those inlined into it.
        stage: The temporary table that keeps its rows; None for the last statement of an output.
        dialect: Of the engine.
        passes: SELECTs of the passes after the first, whose rows go into the same table.
        keeps: The relation whose rows these are, where that is no result of an EinSum as it is computed.
        spread: How the rows of the table are spread over machines, or of one that takes the output; None where one has
            them.
        value_type: SQL type of the values in the table.
    """

    name: str
    query: exp.Select
    computes: tuple[str, ...]
    stage: exp.Table | None
    dialect: Dialect
    passes: tuple[exp.Select, ...] = ()
    keeps: Kept | None = None
    spread: Spread | None = None
    value_type: str = ""

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The commands as SQL text, without semicolons."""
        return tuple(write_sql(command, self.dialect) for command in self.commands)

    @property
    def text(self) -> str:
        """All commands, a semicolon between two."""
        return ";\n\n".join(self.texts)

    @property
    def commands(self) -> tuple[exp.Expr, ...]:
        """What to execute: the query, or the creation of its table and what each pass adds to it."""
        if self.stage is None:
            return (self.query,)
        if self.spread is not None:
            return self.spread.filling(self.stage, (self.query, *self.passes), self.value_type)
        added = (exp.Insert(this=self.stage.copy(), expression=query) for query in self.passes)
        return (created(self.stage, self.query), *added)


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
    kept: Mapping[Kept, exp.Table],
) -> tuple[Statement, ...]:
    """Temporary tables for some results and relations, and a SELECT for every output.

    Args:
        definitions: All EinSums, in topological order.
        deliveries: For every output, the relation to deliver.
        staged: Temporary tables, by the result to keep there.
        dialect: Of the engine.
        boundaries: Row numbers at which to split the scans of inputs, by tensor.
        kept: Temporary tables of relations that are put together on their own; one without a table is computed where
            it is read.
    """
    compiler = _Compiler(tuple(definitions), staged, dialect, boundaries, kept)
    return tuple(compiler.statements(deliveries))


def result_query(
    definitions: Sequence[Definition],
    name: str,
    tables: Mapping[str, exp.Table],
    dialect: Dialect,
    boundaries: Mapping[str, Sequence[int]],
) -> exp.Select:
    """The SELECT of one result, which reads those that `tables` names from there; see `staged_statements`."""
    compiler = _Compiler(tuple(definitions), tables, dialect, boundaries, {})
    definition = _named(definitions, name)
    return compiler.deliver(name, Computed(definition.relation.schema)).query


def result_statements(
    definitions: Sequence[Definition],
    name: str,
    tables: Mapping[str, exp.Table],
    dialect: Dialect,
    boundaries: Mapping[str, Sequence[int]],
    kept: Mapping[Kept, exp.Table],
) -> tuple[Statement, ...]:
    """What fills the table of one result, and before it those of relations that it reads; see `staged_statements`."""
    definition = _named(definitions, name)
    read = {relation: kept[relation] for relation in definition.kept()}
    compiler = _Compiler(tuple(definitions), tables, dialect, boundaries, read)
    return tuple(compiler.staging(definition, dict(read)))


def _named(definitions: Sequence[Definition], name: str) -> Definition:
    return next(definition for definition in definitions if definition.name == name)


def relation_query(relation: Relation, dialect: Dialect) -> exp.Select:
    """The SELECT of a relation that reads stored tensors alone."""
    return _Compiler((), {}, dialect, {}, {}).deliver("", relation).query


@dataclass(frozen=True, slots=True)
class _Compiler:
    definitions: tuple[Definition, ...]
    staged: Mapping[str, exp.Table]
    dialect: Dialect
    boundaries: Mapping[str, Sequence[int]]
    kept: Mapping[Kept, exp.Table]

    def statements(self, deliveries: Mapping[str, Relation]) -> Iterator[Statement]:
        """All of them, each after those whose tables it reads."""
        waiting = dict(self.kept)
        for definition in self.definitions:
            yield from self.staging(definition, waiting)
        for name, delivered in deliveries.items():
            for relation in kept_in(delivered):
                yield from self._keep(relation, waiting)
            yield self.deliver(name, delivered)

    def staging(self, definition: Definition, waiting: dict[Kept, exp.Table]) -> Iterator[Statement]:
        """The statements that fill the table of a result, if it has one, and those of relations that it reads."""
        for relation in definition.kept():
            yield from self._keep(relation, waiting)
        if definition.name in self.staged:
            yield self.stage(definition)

    def _keep(self, relation: Kept, waiting: dict[Kept, exp.Table]) -> Iterator[Statement]:
        """The statement that fills the table of a relation, unless it has none or has been filled."""
        table = waiting.pop(relation, None)
        if table is not None:
            name = table.name
            first, *others = (self._statement(name, part, table) for part in relation.passes())
            spread = spread_of(relation.schema, relation.distribution)
            yield replace(first, passes=tuple(other.query for other in others), keeps=relation, spread=spread)

    def stage(self, definition: Definition) -> Statement:
        """The statement that fills a temporary table, in as many passes as planned."""
        stage = self.staged[definition.name]
        first, *others = (
            self._in_pass(definition, relation)._statement(definition.name, Computed(relation.schema), stage)
            for relation in definition.passes()
        )
        spread = spread_of(definition.relation.schema, definition.distribution)
        return replace(first, passes=tuple(other.query for other in others), spread=spread)

    def _in_pass(self, definition: Definition, relation: Contract) -> "_Compiler":
        """A compiler that takes a definition for another relation."""
        defined = replace(definition, relation=relation)
        return replace(self, definitions=tuple(defined if each is definition else each for each in self.definitions))

    def deliver(self, name: str, relation: Relation) -> Statement:
        """The statement that returns an output."""
        places = {definition.name: definition.distribution for definition in self.definitions}
        return replace(
            self._statement(name, relation, None), spread=spread_of_output(relation.schema, places.get(name))
        )

    def _statement(self, name: str, relation: Relation, stage: exp.Table | None) -> Statement:
        tables = {tensor: table for tensor, table in self.staged.items() if table != stage}
        renderer = Renderer(self.dialect, tables, self.boundaries, self.kept)
        inlined = self._needed(relation, tables)
        for definition in inlined:
            renderer.define(definition.name, definition.relation, definition.step.notation)
        source = renderer.source(relation)
        blocks = renderer.blocks
        if source.is_table or source.stored is not None:  # as its table has them
            keys = [key_column(source, key, "t") for key in source.schema.keys]
            query = exp.select(*keys, named(source.value("t"), VALUE_COLUMN)).from_(aliased(source.table, "t"))
        elif blocks and source.table.name == blocks[-1].name:
            *blocks, last = blocks
            query = last.select.copy()
            query.add_comments([f" {last.comment} "])
        else:
            columns = [exp.column(column) for column in (*source.schema.keys, VALUE_COLUMN)]
            is_query = isinstance(source.table, exp.Query)
            query = exp.select(*columns).from_(aliased(source.table, "t") if is_query else source.table.copy())
        if stage is None and source.schema.tensor.fill:
            query.add_comments([f" what has no row holds {write_number(source.schema.tensor.fill)} "])
        computes = tuple(definition.name for definition in inlined)
        kept = query if stage is None else kept_select(query, source.schema, self.dialect)
        whole = with_blocks(kept, blocks, self.dialect)
        value_type = kept_type(source.schema, self.dialect)
        return Statement(name, whole, computes, stage, self.dialect, value_type=value_type)

    def _needed(self, relation: Relation, tables: Mapping[str, object]) -> list[Definition]:
        """The definitions that a statement must contain: of what is computed and not kept in a table, in order."""
        by_name = {definition.name: definition for definition in self.definitions}
        needed: set[str] = set()
        waiting = [relation]
        while waiting:
            match waiting.pop():
                case Computed(schema):
                    name = schema.tensor.name
                    if name not in tables and name not in needed:
                        needed.add(name)
                        waiting += by_name[name].relation.inputs
                case Kept() as kept if kept in self.kept:
                    pass
                case Contract(inputs=inputs):
                    waiting += inputs
                case Slice() | Stack() | Densify() | Resident() | Convert() | Restrict() | Kept() as reading:
                    waiting.append(reading.input)
                    if isinstance(reading, Densify) and reading.indices is not None:
                        waiting.append(reading.indices)
        return [definition for definition in self.definitions if definition.name in needed]


def with_blocks(query: exp.Select, blocks: Sequence[Block], dialect: Dialect) -> exp.Select:
    """A query with the blocks that it reads before it, each materialized where that is right."""
    selects = [query, *(block.select for block in blocks)]
    references = Counter(table.name for select in selects for table in select.find_all(exp.Table))
    joined = _beneath_joins(query, blocks)
    # Joins have no rows computed that meet none, where they can; what turns NaN there is to be found all the same.
    detected = {block.name for block in blocks if block.detects_nonfinite and block.name in joined}
    for block in blocks:
        body = block.select.copy()
        body.add_comments([f" {block.comment} "])
        is_materialized = block.is_materialized or references[block.name] > 1 or block.name in detected
        if block.is_fenced and not is_materialized:
            body = fenced(body)
        name = exp.TableAlias(this=exp.to_identifier(block.name))
        query = query.with_(name, as_=body, materialized=is_materialized or None, copy=False)
        if block.name in detected and not dialect.computes_whole:
            query = query.where(_is_read(block.name), copy=False)
    return query


def _is_read(name: str) -> exp.Expr:
    """Always true; to know that, an engine reads all rows."""
    rows = exp.select(exp.Count(this=exp.Star())).from_(exp.to_identifier(name))
    return exp.GTE(this=rows.subquery(), expression=integer(0))


def _beneath_joins(query: exp.Select, blocks: Sequence[Block]) -> set[str]:
    """Names of the blocks that a join reads, or what it reads does."""
    found: set[str] = set()
    for name, select in [("", query), *((block.name, block.select) for block in reversed(blocks))]:
        if name in found or any(each.args.get("joins") for each in select.find_all(exp.Select)):
            found |= {table.name for table in select.find_all(exp.Table)}
    return found

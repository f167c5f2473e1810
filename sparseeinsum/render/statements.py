"""Render: definitions as statements: one with CTEs, or several that fill temporary tables and read them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from sqlglot import exp

from sparseeinsum.algebra.array_chains import ArrayChain, ArrayChains, array_chains
from sparseeinsum.algebra.entry_chains import entry_chains
from sparseeinsum.algebra.operators import (
    Compress,
    Computed,
    Contract,
    Convert,
    Densify,
    Materialized,
    OffGrid,
    OnGrid,
    Relation,
    Resident,
    Restrict,
    Slice,
    Stack,
)
from sparseeinsum.algebra.row_chains import row_chains
from sparseeinsum.algebra.translate import ComputedResult, materialized_relations
from sparseeinsum.language.scalar import write_number
from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.render.array_chain_queries import value_columns
from sparseeinsum.render.blocks import Block, ValueOfTuples
from sparseeinsum.render.common_table_expressions import blocks_read, with_blocks
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.render.packing import materialized_type
from sparseeinsum.render.relations import Renderer
from sparseeinsum.render.sources import SelectSource, aliased, key_column, materialized_select, named
from sparseeinsum.render.sql_statement import SqlStatement
from sparseeinsum.render.table_distribution import output_distribution, stage_distribution

NOTHING_KEPT: Mapping[Relation, int | None] = MappingProxyType({})


def staged_statements(
    definitions: Sequence[ComputedResult],
    delivered: Mapping[str, Relation],
    staged: Mapping[str, exp.Table],
    dialect: Dialect,
    boundaries: Mapping[str, Sequence[int]],
    materialized: Mapping[Materialized, exp.Table],
    kept: Mapping[Relation, int | None] = NOTHING_KEPT,
    chains: Sequence[ArrayChain] = (),
    written_in_passes: frozenset[str] = frozenset(),
) -> tuple[SqlStatement, ...]:
    """The statements of a plan: those that fill temporary tables, and a SELECT for every output.

    Args:
        definitions: All EinSums, in topological order.
        delivered: For every output, the relation to deliver.
        staged: Temporary tables for results, by the name of the result.
        dialect: The dialect of the engine.
        boundaries: Row numbers at which to split the scans of inputs, by tensor.
        materialized: Temporary tables of materialised relations; a relation without a table is computed where it is
            read.
        kept: Operands that are in memory already, with their handles; None for those without rows.
        chains: EinSums over single arrays of which a temporary table has several results; the EinSums of each follow
            each other in `definitions`.
        written_in_passes: Outputs without a table in `staged` whose passes return the rows as they are delivered.
    """
    compiler = _Compiler(
        tuple(definitions), staged, dialect, boundaries, materialized, kept, tuple(chains), written_in_passes
    )
    return tuple(compiler.statements(delivered))


def result_query(
    definitions: Sequence[ComputedResult],
    name: str,
    tables: Mapping[str, exp.Table],
    dialect: Dialect,
    boundaries: Mapping[str, Sequence[int]],
) -> exp.Select:
    """The SELECT of one result, which reads other results from tables.

    Args:
        definitions: All EinSums, in topological order.
        name: The name of the result.
        tables: The tables of other results, by name.
        dialect: The dialect of the engine.
        boundaries: Row numbers at which to split the scans of inputs, by tensor.
    """
    compiler = _Compiler(tuple(definitions), tables, dialect, boundaries, {})
    definition = _named(definitions, name)
    return compiler.deliver(name, Computed(definition.relation.schema)).query


def result_statements(
    definitions: Sequence[ComputedResult],
    name: str,
    tables: Mapping[str, exp.Table],
    dialect: Dialect,
    boundaries: Mapping[str, Sequence[int]],
    materialized: Mapping[Materialized, exp.Table],
) -> tuple[SqlStatement, ...]:
    """The statements that fill the table of one result, and the tables of materialised relations that it reads.

    Args:
        definitions: All EinSums, in topological order.
        name: The name of the result.
        tables: The tables of this result and of others, by name.
        dialect: The dialect of the engine.
        boundaries: Row numbers at which to split the scans of inputs, by tensor.
        materialized: Temporary tables of materialised relations; the statements fill those that the result reads.
    """
    definition = _named(definitions, name)
    read = {relation: materialized[relation] for relation in definition.materialized_operands()}
    compiler = _Compiler(tuple(definitions), tables, dialect, boundaries, read)
    return tuple(compiler.staging(definition, dict(read)))  # a copy: entries are removed as tables are filled


def _named(definitions: Sequence[ComputedResult], name: str) -> ComputedResult:
    return next(definition for definition in definitions if definition.name == name)


def relation_query(relation: Relation, dialect: Dialect) -> exp.Select:
    """The SELECT of a relation that reads nothing but stored tensors."""
    return _Compiler((), {}, dialect, {}, {}).deliver("", relation).query


@dataclass(frozen=True, slots=True)
class _Compiler:
    """Makes statements of definitions and relations; see `staged_statements` for its attributes."""

    definitions: tuple[ComputedResult, ...]
    staged: Mapping[str, exp.Table]
    dialect: Dialect
    boundaries: Mapping[str, Sequence[int]]
    materialized: Mapping[Materialized, exp.Table]
    kept: Mapping[Relation, int | None] = field(default_factory=dict)
    chains: tuple[ArrayChain, ...] = ()
    written_in_passes: frozenset[str] = frozenset()

    def statements(self, delivered: Mapping[str, Relation]) -> Iterator[SqlStatement]:
        """All statements, each after those whose tables it reads."""
        unfilled = dict(self.materialized)
        for definition in self.definitions:
            yield from self.staging(definition, unfilled)
        for name, output in delivered.items():
            for relation in materialized_relations(output):
                yield from self._materialize(relation, unfilled)
            yield self.deliver(name, output)

    def staging(self, definition: ComputedResult, unfilled: dict[Materialized, exp.Table]) -> Iterator[SqlStatement]:
        """The statement that fills the table of a result, if it has one, after those of relations that it reads.

        Args:
            definition: The result.
            unfilled: Tables of relations that no statement has filled yet; those filled here are removed.
        """
        for relation in definition.materialized_operands():
            yield from self._materialize(relation, unfilled)
        chain = next((chain for chain in self.chains if definition.name in chain.names), None)
        if chain is not None:
            if definition is chain.definitions[-1]:
                yield self._stage_of_chain(chain)
        elif definition.name in self.staged:
            yield self.stage(definition)

    def _stage_of_chain(self, chain: ArrayChain) -> SqlStatement:
        """The statement that fills the table of a chain, in one row."""
        relations = [Computed(_named(chain.definitions, name).relation.schema) for name in chain.returned]
        statement = self._statement(chain.name, relations, self.staged[chain.name], chain)
        return replace(statement, value_columns=value_columns(chain))

    def _materialize(self, relation: Materialized, unfilled: dict[Materialized, exp.Table]) -> Iterator[SqlStatement]:
        """The statement that fills the table of a relation, unless it has none or has been filled."""
        table = unfilled.pop(relation, None)
        if table is not None:
            name = table.name
            first, *others = (self._statement(name, [part], table) for part in relation.passes())
            distribution = stage_distribution(relation.schema, relation.distribution)
            yield replace(
                first, passes=tuple(other.query for other in others), materializes=relation, distribution=distribution
            )

    def stage(self, definition: ComputedResult) -> SqlStatement:
        """The statement that fills the temporary table of a result, in as many passes as planned."""
        statement = self._statement_in_passes(
            definition, Computed(definition.relation.schema), self.staged[definition.name]
        )
        distribution = stage_distribution(definition.relation.schema, definition.distribution)
        return replace(statement, distribution=distribution)

    def _statement_in_passes(
        self, definition: ComputedResult, relation: Relation, stage: exp.Table | None
    ) -> SqlStatement:
        """The statement of a relation that is made of one result, in as many passes as planned for that result."""
        first, *others = (
            self._in_pass(definition, part)._statement(definition.name, [relation], stage)
            for part in definition.passes()
        )
        return replace(first, passes=tuple(other.query for other in others))

    def _in_pass(self, definition: ComputedResult, relation: Contract) -> "_Compiler":
        """A compiler in which a definition computes another relation, that of one pass."""
        in_pass = replace(definition, relation=relation)
        definitions = tuple(in_pass if other is definition else other for other in self.definitions)
        return replace(self, definitions=definitions)

    def deliver(self, name: str, relation: Relation) -> SqlStatement:
        """The statement that returns an output."""
        if name in self.written_in_passes:
            return self._statement_in_passes(_named(self.definitions, name), relation, None)
        distributions = {definition.name: definition.distribution for definition in self.definitions}
        return replace(
            self._statement(name, [relation], None),
            distribution=output_distribution(relation.schema, distributions.get(name)),
        )

    def _statement(
        self, name: str, relations: Sequence[Relation], stage: exp.Table | None, chain: ArrayChain | None = None
    ) -> SqlStatement:
        """The statement that returns a relation, or the results of a chain in one row."""
        tables = {tensor: table for tensor, table in self.staged.items() if table != stage}
        columns = {name: column for chain in self.chains for name, column in value_columns(chain).items()}
        renderer = Renderer(self.dialect, tables, self.boundaries, self.materialized, self.kept, columns)
        inlined = self._needed(relations, tables)
        self._define(renderer, inlined, relations, chain)
        source = renderer.source(relations[-1])
        query, blocks = _query_of(source, renderer.blocks, is_row=chain is not None)
        if stage is None and source.schema.tensor.fill:
            query.add_comments([f" what has no row holds {write_number(source.schema.tensor.fill)} "])
        computes = tuple(definition.name for definition in inlined)
        whole = self._whole(source, renderer.blocks) if stage is None else None
        stored_query = query if stage is None else materialized_select(query, source.schema, self.dialect)
        with_ctes = with_blocks(stored_query, blocks_read(stored_query, blocks), self.dialect)
        value_type = materialized_type(source.schema, self.dialect)
        return SqlStatement(name, with_ctes, computes, stage, self.dialect, value_type=value_type, whole=whole)

    def _whole(self, source: SelectSource, blocks: Sequence[Block]) -> ValueOfTuples | None:
        """All tuples of a source in one value, if it is the last block and has one."""
        whole = blocks[-1].in_one_value if blocks and source.table.name == blocks[-1].name else None
        if whole is None:
            return None
        copies = [replace(block, select=block.select.copy()) for block in blocks_read(whole.select, blocks)]
        return replace(whole, select=with_blocks(whole.select, copies, self.dialect))

    def _define(
        self,
        renderer: Renderer,
        inlined: Sequence[ComputedResult],
        relations: Sequence[Relation],
        last: ArrayChain | None,
    ) -> None:
        """Make the blocks of results that relations need; `last` is the chain whose results these are, if there is one.

        What that chain reads does not depend on it.
        """
        over_entries = entry_chains(inlined, relations) if self.dialect.chains_entries else ()
        entries_of = {entries.chain.name: entries for entries in over_entries}
        within = {link.name for entries in over_entries for link in entries.chain.links} - entries_of.keys()
        chains = row_chains(inlined, relations) if self.dialect.joins_rows else ()
        chains = tuple(chain for chain in chains if chain.name not in entries_of)
        chained = array_chains(inlined, relations) if self.dialect.chains_arrays else ArrayChains((), tuple(inlined))
        within_last = frozenset() if last is None else last.names
        over_arrays = tuple(chain for chain in chained.chains if chain.names.isdisjoint(within_last))
        chain_of = {chain.name: chain for chain in chains}
        arrays_of = {chain.definitions[-1].name: chain for chain in over_arrays}
        within |= {link.name for chain in chains for link in chain.links} - chain_of.keys()
        within |= within_last.union(*(chain.names for chain in over_arrays))
        notations = {definition.name: definition.step.notation for definition in inlined}
        for definition in chained.definitions:
            if definition.name in entries_of:
                entries = entries_of[definition.name]
                renderer.define_entries(entries, [notations[link.name] for link in entries.chain.links])
            elif definition.name in chain_of:
                chain = chain_of[definition.name]
                renderer.define_chain(chain, [notations[link.name] for link in chain.links])
            elif definition.name in arrays_of:
                renderer.define_arrays(arrays_of[definition.name])
            elif definition.name not in within:
                renderer.define(definition.name, definition.relation, definition.step.notation)
        if last is not None:
            renderer.define_arrays(last)

    def _needed(self, relations: Sequence[Relation], tables: Mapping[str, object]) -> list[ComputedResult]:
        """The definitions that a statement must contain, in order: of results that it does not read from a table."""
        by_name = {definition.name: definition for definition in self.definitions}
        needed: set[str] = set()
        unfilled = list(relations)
        while unfilled:
            match unfilled.pop():
                case Computed(schema):
                    name = schema.tensor.name
                    if name not in tables and name not in needed:
                        needed.add(name)
                        unfilled += by_name[name].relation.inputs
                case Materialized() as materialized if materialized in self.materialized:
                    pass
                case Resident() | Compress() as operand if operand in self.kept:
                    pass
                case Contract(inputs=inputs):
                    unfilled += inputs
                case (
                    Slice()
                    | Stack()
                    | Densify()
                    | Resident()
                    | Compress()
                    | Convert()
                    | Restrict()
                    | OnGrid()
                    | OffGrid()
                    | Materialized()
                ) as reading:
                    unfilled.append(reading.input)
                    if isinstance(reading, Densify) and reading.all_keys is not None:
                        unfilled.append(reading.all_keys)
        return [definition for definition in self.definitions if definition.name in needed]


def _query_of(source: SelectSource, blocks: Sequence[Block], is_row: bool) -> tuple[exp.Select, Sequence[Block]]:
    """The SELECT of a relation, or of the row of the last block, and the blocks that it reads."""
    if source.is_table or source.stored is not None or source.computed_value is not None:  # the rows, unchanged
        keys = [key_column(source, key, "t") for key in source.schema.keys]
        query = exp.select(*keys, named(source.value("t"), VALUE_COLUMN))
        return query.from_(aliased(source.table, "t"), copy=False), blocks
    if is_row or (blocks and source.table.name == blocks[-1].name):
        *blocks, last = blocks
        last.select.add_comments([f" {last.comment} "])
        return last.select, blocks
    columns = [exp.column(column) for column in (*source.schema.keys, VALUE_COLUMN)]
    is_query = isinstance(source.table, exp.Query)
    return exp.select(*columns).from_(aliased(source.table, "t") if is_query else source.table.copy()), blocks

"""Render: operators as SELECTs; every operator becomes a named block, which is a CTE of a statement."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from sparseeinsum.algebra.array_chains import ArrayChain
from sparseeinsum.algebra.chain_leaves import ChainLeaf, Reading
from sparseeinsum.algebra.entry_chains import EntryChain
from sparseeinsum.algebra.operators import (
    AllKeys,
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
    Stored,
)
from sparseeinsum.algebra.row_chains import RowChain
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.decompose.repartitions import is_shared_array
from sparseeinsum.language.tensors import VALUE_COLUMN, StoredTensor
from sparseeinsum.render.array_chain_queries import ArrayChainWriter, range_of, value_columns
from sparseeinsum.render.blocks import Block
from sparseeinsum.render.compressed_rows import (
    resident_rows_select,
)
from sparseeinsum.render.compressing_queries import compress_lists_select, compress_select
from sparseeinsum.render.contract import ALIASES, contract_select, is_cross_join, is_grouped
from sparseeinsum.render.copied_arrays import copied_arrays, window_source
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.render.entry_bytes import EntryBytes
from sparseeinsum.render.entry_chain_queries import EntryChainWriter
from sparseeinsum.render.entry_results import mapped_entries, total_select
from sparseeinsum.render.gathered_rows import (
    array_select,
    grouped_rows_select,
    listed_rows_select,
    reads_rows,
)
from sparseeinsum.render.grid_cells import off_grid_select, on_grid_select
from sparseeinsum.render.kept_sources import kept_source
from sparseeinsum.render.kernel_selects import kernel_select_of
from sparseeinsum.render.layouts import (
    HANDLE_COLUMN,
    all_keys_select,
    convert_select,
    densify_from_keys_select,
    densify_select,
    is_stacked_in_one_process,
    resident_array_source,
    resident_of,
    resident_select,
    slice_select,
    stack_select,
)
from sparseeinsum.render.relation_names import block_comment, block_name, write_schema
from sparseeinsum.render.row_chain_queries import ChainWriter
from sparseeinsum.render.sources import (
    ListSource,
    SelectSource,
    in_one_process,
    indices_select,
    list_source,
    materialized_source,
    plain_source,
    restricted_source,
    stored_source,
    value_source,
)


@dataclass
class Renderer:
    """Turns relations into blocks; a relation that occurs again is read from its block.

    Attributes:
        dialect: The dialect of the engine.
        tables: Tables that hold results already, by tensor.
        boundaries: Row numbers at which to split the scans of inputs, by tensor.
        materialized: Tables that hold relations already.
        kept: Operands that are in memory already, with their handles; None for those without rows.
        value_columns: For results in tables that hold several, the column of each.
        blocks: The blocks so far, in order.
    """

    dialect: Dialect
    tables: Mapping[str, exp.Table]
    boundaries: Mapping[str, Sequence[int]] = field(default_factory=dict)
    materialized: Mapping[Materialized, exp.Table] = field(default_factory=dict)
    kept: Mapping[Relation, int | None] = field(default_factory=dict)
    value_columns: Mapping[str, str] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)
    _sources: dict[Relation, SelectSource] = field(default_factory=dict)
    _row_sources: dict[Compress, SelectSource] = field(default_factory=dict)
    _names: set[str] = field(default_factory=lambda: {"recursive"})  # WITH recursive has another meaning

    def source(self, relation: Relation) -> SelectSource:
        """What to select from to read a relation; its block is made if there is none."""
        if relation not in self._sources:
            is_kept = relation in self.kept
            self._sources[relation] = (
                kept_source(relation, self.kept[relation], self.dialect) if is_kept else self._make_source(relation)
            )
        return self._sources[relation]

    def define(self, name: str, relation: Contract, comment: str) -> None:
        """Make the block of an EinSum's result.

        Args:
            name: The name of the result.
            relation: The EinSum.
            comment: A line that says what it computes.
        """
        self._sources[Computed(relation.schema)] = self._contracted(name, relation, comment)

    def _contracted(self, name: str, relation: Contract, comment: str) -> SelectSource:
        """The block of an EinSum over relations."""
        copied = None if self.dialect.distributes else copied_arrays(relation)
        if copied is not None:  # indices determine the position that the map gives them
            relation = replace(relation, has_single_pairs=True)
        by_rows = self._reads_rows(relation)
        sources = [
            window_source(copied, self.dialect)
            if number == 0 and copied is not None and copied.label is not None
            else self._operand_source(operand, by_rows)
            for number, operand in enumerate(relation.inputs)
        ]
        computed = kernel_select_of(relation, sources, self.dialect, by_rows)
        if computed is not None:
            return self._add_block(computed.block(name, comment), relation.schema, is_joined=False)
        if is_cross_join(relation):
            sources = [self._separated_from_joins(source) for source in sources]
        read = self._block_of(relation.inputs[0])
        entries = None if read is None else read.entries
        total = None if entries is None else total_select(relation, entries, self.dialect)
        if total is not None:
            block = Block(name, total, comment, is_aggregated=True, detects_nonfinite=relation.detects_nonfinite)
            return self._add_block(block, relation.schema, is_joined=False)
        select = contract_select(relation, sources, self.dialect, copied)
        for source, alias in zip(sources, ALIASES, strict=False):
            if len(sources) == 2 or _uses_of_value(select, alias) > 1:
                self._compute_once(source)
        joins = len(sources) == 2 and relation.indexed is None  # one row of a handle leaves rows as they are
        is_aggregated = is_grouped(relation)
        is_joined = not is_aggregated and (joins or any(source.is_joined for source in sources))
        mapped = None if entries is None else mapped_entries(relation, entries, self.dialect)
        detects = relation.detects_nonfinite
        block = Block(name, select, comment, is_aggregated, detects_nonfinite=detects, entries=mapped)
        return self._add_block(block, relation.schema, is_joined)

    def _operand_source(self, operand: Relation, by_rows: bool) -> SelectSource:
        """What to select from to read an operand of an EinSum, whose entries come row by row if `by_rows`."""
        return self._rows_source(operand) if isinstance(operand, Compress) and by_rows else self.source(operand)

    def _reads_rows(self, relation: Contract) -> bool:
        """As `reads_rows`; entries that a kernel computes row by row are read as a value, which takes less time."""
        if not reads_rows(relation, self.dialect, self.kept):
            return False
        compressed = relation.inputs[relation.compressed[0]]
        assert isinstance(compressed, Compress)
        return self._entries_in_order(compressed) is None

    def _rows_source(self, relation: Compress) -> SelectSource:
        """Where the entries of every row are read, one row after the other."""
        if relation not in self._row_sources:
            stored = relation.input.source if isinstance(relation.input, Stored) else None
            select = None if stored is None else self._from_lists(listed_rows_select, relation, stored)
            if select is None:
                select = grouped_rows_select(relation, self.source(relation.input))
            block = Block(block_name(relation), select, block_comment(relation), is_aggregated=False)
            self._row_sources[relation] = self._add_block(block, relation.schema, is_joined=False)
        return self._row_sources[relation]

    def define_chain(self, chain: RowChain, comments: Sequence[str]) -> None:
        """Make the blocks of a chain.

        Args:
            chain: EinSums that are computed row by row.
            comments: Lines that say what they compute.
        """
        sources = [self.source(_read_relation(leaf)) for leaf in chain.leaves]
        for source in sources:
            self._compute_once(source)
        joined = [leaf for leaf in chain.leaves if leaf.keys and leaf.reading != Reading.KEY]
        has_single = any(not leaf.keys for leaf in chain.leaves)
        if has_single and len(joined) == 1:
            sources[0] = self._separated_from_joins(sources[0])
        writer = ChainWriter(chain, sources, self.dialect)
        rows: exp.Expr = writer.leaves_select()
        if has_single:
            if len(joined) > 1:
                block = Block(f"{chain.name}_operands", writer.leaves_select(), f"operands of {chain.name}", False)
                source = self._add_block(block, chain.schema, is_joined=True)
                rows = self._separated_from_joins(source).table
            rows = writer.with_single_tuples(rows)
        is_joined = len(joined) > 1 or has_single or sources[0].is_joined
        select, detects = writer.values_select(rows), chain.detects_nonfinite
        block = Block(chain.name, select, "; ".join(comments), is_aggregated=False, detects_nonfinite=detects)
        self._sources[Computed(chain.schema)] = self._add_block(block, chain.schema, is_joined)

    def define_entries(self, entries: EntryChain, comments: Sequence[str]) -> None:
        """Make the block of EinSums over entries; as `define_chain`."""
        pattern = self._separated_from_joins(self.source(entries.pattern))
        vectors = self._single_tuples(entries.vectors)
        block = Block(
            f"{entries.chain.name}_entries",
            EntryChainWriter(entries, pattern, vectors, self.dialect).select(),
            "; ".join(comments),
            is_aggregated=True,
            detects_nonfinite=entries.chain.detects_nonfinite,
        )
        source = self._add_block(block, entries.result.schema, is_joined=False)
        self._sources[entries.result] = replace(source, numbers=VALUE_COLUMN)

    def define_arrays(self, chain: ArrayChain) -> None:
        """Make the block of a chain over single arrays."""
        sources = self._single_tuples(chain.leaves)
        contracts = {definition.name: definition.relation for definition in chain.definitions}
        detects = any(contract.detects_nonfinite for contract in contracts.values())
        block = Block(
            chain.name,
            ArrayChainWriter(chain, sources, self.dialect).select(),
            "; ".join([definition.step.notation for definition in chain.definitions]),
            is_aggregated=False,
            is_materialized=len(chain.returned) > 1,
            detects_nonfinite=detects,
        )
        table = self._add_block(block, contracts[chain.name].schema, is_joined=False).table
        for name, column in value_columns(chain).items():
            self.provide(contracts[name].schema, value_source(table, contracts[name].schema, column))

    def _single_tuples(self, relations: Iterable[Relation]) -> list[SelectSource | None]:
        """Where relations of one tuple are read; None for those of which `range_of` gives the value."""
        return [
            self._separated_from_joins(self.source(relation)) if range_of(relation, self.dialect) is None else None
            for relation in relations
        ]

    def provide(self, schema: Schema, source: SelectSource) -> None:
        """Let a relation be read from a source."""
        self._sources[Computed(schema)] = source

    def add(self, schema: Schema, select: exp.Select, comment: str, is_joined: bool) -> None:
        """Make the block of a relation from its SELECT.

        Args:
            schema: The schema of the relation.
            select: The SELECT of its tuples.
            comment: A line that says what it computes.
            is_joined: Whether its rows come straight out of a join.
        """
        block = Block(schema.tensor.name, select, comment, is_aggregated=False)
        self.provide(schema, self._add_block(block, schema, is_joined))

    def _make_source(self, relation: Relation) -> SelectSource:
        match relation:
            case Stored(stored):
                return self._stored_source(relation.schema, stored)
            case Computed(schema):
                return self._stage_source(schema)
            case Materialized() if relation in self.materialized:
                return materialized_source(self.materialized[relation], relation.schema, self.dialect)
            case Materialized():
                return self.source(relation.input)
            case Contract():
                return self._contracted(relation.schema.tensor.name, relation, block_comment(relation))
            case Restrict():
                return restricted_source(relation, self._separated_from_joins(self.source(relation.input)))
            case Compress() if (direct := self._without_tuples(relation)) is not None:
                block = Block(block_name(relation), direct, block_comment(relation), is_aggregated=False)
                return self._add_block(block, relation.schema, is_joined=False)
            case Stack(is_resident=True):
                return resident_array_source(relation.schema, self.source(resident_of(relation)))
            case Slice() | Stack() | AllKeys() | Densify() | Resident() | Compress() | Convert() | OnGrid() | OffGrid():
                select = self._select(relation)
                block = Block(block_name(relation), select, block_comment(relation), isinstance(relation, Stack))
                is_joined = isinstance(relation, Densify) and not relation.is_resident
                return self._add_block(block, relation.schema, is_joined)
            case _:
                raise TypeError(f"unsupported relation {type(relation).__name__}")

    def _stored_source(self, schema: Schema, stored: StoredTensor) -> SelectSource:
        """What to select from to read a stored tensor, with indices in place of natural keys."""
        if not stored.column_dictionaries:
            return stored_source(stored, self.dialect, self.boundaries.get(stored.tensor.name, ()))
        comment = f"{write_schema(schema)}, with indices for its keys"
        block = Block(f"{stored.tensor.name}_indices", indices_select(stored, self.dialect), comment, False)
        source = self._add_block(block, schema, is_joined=True)
        return replace(source, columns=dict(zip(schema.keys, stored.keys, strict=True)), stored=stored)

    def _stage_source(self, schema: Schema) -> SelectSource:
        """What to select from to read a result that is in a table."""
        name = schema.tensor.name
        if name in self.value_columns:
            return value_source(self.tables[name], schema, self.value_columns[name])
        return materialized_source(self.tables[name], schema, self.dialect)

    def _from_lists(
        self,
        write: Callable[[Compress, ListSource], exp.Select | None],
        relation: Compress,
        stored: StoredTensor,
    ) -> exp.Select | None:
        """The SELECT that orders a tensor straight from its lists; None if its entries must be read one by one."""
        source = list_source(stored, self.dialect, self.boundaries.get(stored.tensor.name, ()))
        return None if source is None else write(relation, source)

    def _without_tuples(self, relation: Compress) -> exp.Select | None:
        """The SELECT that orders entries by row without a tuple for each; None if entries must be read one by one."""
        if isinstance(relation.input, Stored):
            return self._from_lists(compress_lists_select, relation, relation.input.source)
        entries = self._entries_in_order(relation)
        return None if entries is None else entries.compressed_select(HANDLE_COLUMN)

    def _entries_in_order(self, relation: Compress) -> EntryBytes | None:
        """The entries of a result, if a kernel computes them row by row, in the order of the rows of a relation."""
        block = self._block_of(relation.input)
        entries = None if block is None else block.entries
        if entries is None or entries.dtype != relation.dtype:
            return None
        axes = {axis.name: number for number, axis in enumerate(relation.schema.tensor.axes)}
        order = tuple(tuple(axes[key] for key in keys) for keys in (entries.row_counts, entries.position_counts))
        return entries if order == (relation.row_axes, relation.position_axes) else None

    def _block_of(self, relation: Relation) -> Block | None:
        """The block that computes a result in this statement; None for other relations, and for results in tables."""
        if not isinstance(relation, Computed | Contract):
            return None
        name = self.source(relation).table.name
        return next((block for block in self.blocks if block.name == name), None)

    def _select(
        self, relation: Slice | Stack | AllKeys | Densify | Resident | Compress | Convert | OnGrid | OffGrid
    ) -> exp.Select:
        """The SELECT of a relation that is no EinSum."""
        if isinstance(relation, AllKeys):
            return all_keys_select(relation.schema)
        if isinstance(relation, Densify) and relation.is_resident:
            return resident_rows_select(relation.schema, self.source(Resident(relation.input)))
        source = self.source(relation.input)
        if isinstance(relation, Densify) and relation.all_keys is not None:
            return densify_from_keys_select(source, self.source(relation.all_keys))
        if isinstance(relation, Stack) and is_stacked_in_one_process(relation, self.dialect):
            source = in_one_process(source)
        if isinstance(relation, Slice):
            source = self._separated_from_joins(source)
            self._compute_once(source)
        if isinstance(relation, Resident) and not self.dialect.keeps_residents:
            block = self._block_of(relation.input)
            return array_select(relation, source) if block is None or block.array is None else block.array.copy()
        if isinstance(relation, Resident) and is_shared_array(relation.schema.tensor):
            source = self._separated_from_joins(source)
        return _SELECTS[type(relation)](relation, source)

    def _separated_from_joins(self, source: SelectSource) -> SelectSource:
        """The source, materialised if its rows come straight out of a join.

        DuckDB 2.0.0 returns columns of a hash join as dictionary vectors, and fails for good ("global dictionary column
        changed identity") when UNNEST or a cross product turns some of them into constants later.
        """
        if source.is_joined and not self.dialect.moves_expressions:
            name = source.table.name
            self.blocks = [
                replace(block, is_materialized=True) if block.name == name else block for block in self.blocks
            ]
        return source

    def _compute_once(self, source: SelectSource) -> None:
        """Fence what a SELECT reads if it would otherwise compute the values for every pair of a join, or repeatedly.

        PostgreSQL puts the expressions of a query in the place of the columns that an outer query reads.
        """
        if self.dialect.moves_expressions:
            read = {table.name for table in source.table.find_all(exp.Table)}
            self.blocks = [
                replace(block, is_fenced=True) if block.name in read and not block.is_aggregated else block
                for block in self.blocks
            ]

    def _add_block(self, block: Block, schema: Schema, is_joined: bool) -> SelectSource:
        """Add a block, under a name that no other block has."""
        unique = next(
            candidate
            for candidate in itertools.chain([block.name], (f"{block.name}_{number}" for number in itertools.count(2)))
            if candidate.lower() not in self._names
        )
        self._names.add(unique.lower())
        self.blocks.append(replace(block, name=unique))
        return plain_source(exp.table_(exp.to_identifier(unique)), schema, is_joined)


def _read_relation(leaf: ChainLeaf) -> Relation:
    """The relation that a chain joins for a leaf."""
    return Densify(leaf.relation) if leaf.reading == Reading.DENSE else leaf.relation


_SELECTS: dict[type, Callable[..., exp.Select]] = {
    Slice: slice_select,
    Stack: stack_select,
    Densify: densify_select,
    Resident: resident_select,
    Compress: compress_select,
    Convert: convert_select,
    OnGrid: on_grid_select,
    OffGrid: off_grid_select,
}


def _uses_of_value(select: exp.Select, alias: str) -> int:
    return sum(column.table == alias and column.name == VALUE_COLUMN for column in select.find_all(exp.Column))

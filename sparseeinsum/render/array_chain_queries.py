"""Render: a chain of EinSums over single arrays as one SELECT of one row.

The values are SELECT f(value_1, value_3) AS val FROM (SELECT value_1, g(value_2) AS value_3 FROM ...), over one row
that has what the chain reads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from sparseeinsum.algebra.array_chains import ArrayChain
from sparseeinsum.algebra.operators import Compress, Contract, Relation, Stack, Stored
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.render.array_positions import fill_value
from sparseeinsum.render.calls import call, integer
from sparseeinsum.render.contract import row_value
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.render.layouts import FIRST_ROW, HANDLE_COLUMN, fill_where, first_row
from sparseeinsum.render.nested_levels import nested_levels
from sparseeinsum.render.row_tiles import TILE_ALIAS, RowTiles, tile_number
from sparseeinsum.render.sources import SelectSource, aliased, with_join
from sparseeinsum.render.sparse_matmul import sparse_matmul_value

_ROW = "t"  # the alias of the row that a SELECT reads


def value_columns(chain: ArrayChain) -> dict[str, str]:
    """The column of every result of a chain that others read."""
    if len(chain.returned) == 1:
        return {chain.name: VALUE_COLUMN}
    columns = _columns(chain)
    return {name: columns[name] for name in chain.returned}


def _columns(chain: ArrayChain) -> dict[Relation | str, str]:
    """The columns of the values of leaves, and of results by name."""
    read: list[Relation | str] = [*chain.leaves, *(definition.name for definition in chain.definitions)]
    return {operand: f"value_{number}" for number, operand in enumerate(read, start=1)}


@dataclass(frozen=True)  # no slots: columns are named once
class ArrayChainWriter:
    """Writes the SELECT of a chain.

    Attributes:
        chain: The chain.
        sources: Where its leaves are read, in their order; None for those of which `range_of` gives the value.
        dialect: The dialect of the engine.
    """

    chain: ArrayChain
    sources: Sequence[SelectSource | None]
    dialect: Dialect

    def select(self) -> exp.Select:
        """The SELECT of the results that others read, in their `value_columns`."""
        row = self._leaves_select()
        available: list[Relation | str] = list(self.chain.leaves)
        levels = nested_levels(self._reads)
        for number, level in enumerate(levels):
            later = {read for following in levels[number + 1 :] for name in following for read in self._reads[name]}
            later.update(self.chain.returned)
            kept = [read for read in available if read in later]
            columns = [exp.column(column, table=_ROW) for read in kept for column in self._columns_of(read)]
            columns += [] if self._tiles is None else [tile_number(_ROW)]
            values = [
                exp.alias_(self._value(name, self._contract(name)), self._columns[name], copy=False) for name in level
            ]
            row = exp.select(*columns, *values).from_(self._computed_once(row), copy=False)
            available = [*kept, *level]
        return self._returned(row) if self._tiles is None else self._stacked(row, self._tiles)

    @cached_property
    def _tiles(self) -> RowTiles | None:
        """The tiles in which the chain is computed; None if it is computed as a whole."""
        return RowTiles.of(self.chain, self.sources) if self.dialect.keeps_residents else None

    def _computed_once(self, row: exp.Select) -> exp.Subquery:
        """A row whose columns are computed once, however many others read them."""
        return (row.offset(0, copy=False) if self.dialect.moves_expressions else row).subquery(_ROW, copy=False)

    def _contract(self, name: str) -> Contract:
        contract = self.chain.contracts[name]
        return contract if self._tiles is None else self._tiles.contract(contract)

    def _stacked(self, rows: exp.Select, tiles: RowTiles) -> exp.Select:
        """The row with the result that others read, from its tiles."""
        value = exp.column(self._columns[self.chain.name], table=_ROW)
        array = tiles.stacked(self.chain.contracts[self.chain.name].schema, value, tile_number(_ROW))
        return exp.select(exp.alias_(array, VALUE_COLUMN)).from_(rows.subquery(_ROW, copy=False), copy=False)

    def _returned(self, row: exp.Select) -> exp.Select:
        """The row with the results that others read alone, in their order."""
        selected = {column.alias_or_name: column.unalias() for column in row.selects}
        values = [
            exp.alias_(selected[self._columns[name]], column, copy=False)
            for name, column in value_columns(self.chain).items()
        ]
        return row.select(*values, append=False, copy=False)

    def _leaves_select(self) -> exp.Select:
        """The SELECT of a row for every tile with all that it reads; where a relation has no tuple, its fill."""
        always: list[exp.Expr] = [] if self._tiles is None else [self._tiles.rows()]
        missing: list[exp.Expr] = []
        values: list[exp.Expr] = []
        reads_first_row = False
        for number, (leaf, source) in enumerate(zip(self.chain.leaves, self.sources, strict=True)):
            alias = f"r{number + 1}"
            value = self._value_in_memory(leaf, source)
            if value is not None and isinstance(leaf, Stack) and source is not None:
                value = source.value(FIRST_ROW) if self._tiles is None else self._tiles.part(leaf, value)
                reads_first_row = self._tiles is None
            if value is None:
                assert source is not None
                value = exp.column(HANDLE_COLUMN, table=alias) if isinstance(leaf, Compress) else source.value(alias)
                if isinstance(leaf, Compress | Stack) or leaf in self._complete:
                    always.append(aliased(source.table, alias))
                else:
                    missing.append(aliased(source.table, alias))
                    value = exp.func("coalesce", value, self._fill(source.schema, value), copy=False)
            values.append(exp.alias_(value, self._columns[leaf]))
            if leaf in self._numbers:
                values.append(exp.alias_(exp.column(self._numbers[leaf], table=alias), self._columns_of(leaf)[1]))
        values += [] if self._tiles is None else [tile_number(TILE_ALIAS)]
        select = exp.select(*values)
        if reads_first_row:
            always.append(first_row())
        if not always:
            always = [exp.select(exp.Literal.number(1).as_("one")).subquery("one")]
        first, *others = always
        select = select.from_(first, copy=False)
        for table in others:
            select = with_join(select, table, kind="CROSS")
        for table in missing:
            select = with_join(select, table, exp.true(), side="LEFT")
        return select

    def _fill(self, schema: Schema, value: exp.Expr) -> exp.Expr:
        """The fill of a leaf in place of a value that is NULL."""
        if not self.dialect.moves_expressions:
            return fill_value(schema, _no_key)
        return fill_where(schema, exp.func("coalesce", call("CARDINALITY", value.copy()), integer(0)))

    def _value_in_memory(self, leaf: Relation, source: SelectSource | None) -> exp.Expr | None:
        """The expression of what a leaf has in memory, if it is not read as a column."""
        if source is None:
            return range_of(leaf, self.dialect)
        return source.handle if isinstance(leaf, Compress) or self.dialect.keeps_residents else None

    @cached_property
    def _complete(self) -> set[Relation]:
        """The leaves that are known to have their tuple."""
        return {
            operand
            for definition in self.chain.definitions
            for operand, is_complete in zip(definition.relation.inputs, definition.relation.complete, strict=False)
            if is_complete  # nothing is known of them where `complete` is empty
        }

    @cached_property
    def _columns(self) -> dict[Relation | str, str]:
        return _columns(self.chain)

    @cached_property
    def _numbers(self) -> dict[Relation | str, str]:
        """The columns of numbers in place of those of entries, in the sources of leaves that have one."""
        sources = zip(self.chain.leaves, self.sources, strict=True)
        return {leaf: source.numbers for leaf, source in sources if source is not None and source.numbers}

    def _columns_of(self, read: Relation | str) -> list[str]:
        """The column of a value, and that of numbers in place of those of entries, if there is one."""
        column = self._columns[read]
        return [column, f"{column}_numbers"] if read in self._numbers else [column]

    @cached_property
    def _reads(self) -> dict[str, list[Relation | str]]:
        """What every EinSum reads, by the name of its result: leaves, or names of results of the chain."""
        return {
            definition.name: [
                operand.schema.tensor.name if self.chain.computes(operand) else operand
                for operand in definition.relation.inputs
            ]
            for definition in self.chain.definitions
        }

    def _value(self, name: str, contract: Contract) -> exp.Expr:
        """The value of a result, from the columns of what it reads."""
        columns = [self._columns[read] for read in self._reads[name]]
        if contract.is_sparse_matmul:
            index = contract.compressed[0]
            handle, array = (exp.column(columns[number], table=_ROW) for number in (index, 1 - index))
            operand = contract.inputs[index]
            numbers = exp.column(self._columns_of(operand)[1], table=_ROW) if operand in self._numbers else None
            return sparse_matmul_value(contract, handle, array, numbers)
        sources = [
            SelectSource(exp.table_(_ROW), operand.schema, {}, value_column=column)
            for operand, column in zip(contract.inputs, columns, strict=True)
        ]
        return row_value(contract, sources, _ROW, self.dialect)


def range_of(leaf: Relation, dialect: Dialect) -> exp.Expr | None:
    """The SQL of an array of all indices of an axis; None if a relation is none, or no function makes such arrays."""
    if not isinstance(leaf, Stack) or not isinstance(leaf.input, Stored) or leaf.schema.keys:
        return None
    source = leaf.input.source
    is_range = source.is_generated and source.value in source.keys and len(source.keys) == 1
    return call("RANGE", integer(source.tensor.size)) if is_range and dialect.keeps_residents else None


def _no_key(axis: str) -> exp.Expr:
    raise AssertionError(f"{axis} is no key")

"""Render: EinSums over all entries of a stored matrix as one SELECT of one row: the handle of the matrix, and an array.

The values are SELECT handle, f(value_1, value_3) AS val FROM (SELECT handle, value_1, g(value_2) AS value_3 FROM ...).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from sparseeinsum.algebra.entry_chains import EntryChain
from sparseeinsum.algebra.row_chains import ChainLink
from sparseeinsum.render.array_chain_queries import range_of
from sparseeinsum.render.calls import call, converted, integer
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.render.entry_values import ENTRY, value_of_entries
from sparseeinsum.render.layouts import HANDLE_COLUMN
from sparseeinsum.render.nested_levels import ROWS, nested_select
from sparseeinsum.render.sources import SelectSource, aliased, with_join
from sparseeinsum.render.values import OperandValue
from sparseeinsum.statistics.columns import NUMBER_TYPES, array_type, number_type


@dataclass(frozen=True)  # no slots: columns are named once
class EntryChainWriter:
    """Writes the SELECT of EinSums over entries.

    Attributes:
        entries: The EinSums.
        pattern: Where the handle of the matrix is read.
        vectors: Where the other leaves are read, in their order; None for arrays of all indices.
        dialect: The dialect of the engine.
    """

    entries: EntryChain
    pattern: SelectSource
    vectors: Sequence[SelectSource | None]
    dialect: Dialect

    def select(self) -> exp.Select:
        """The SELECT of the handle of the matrix, and of the numbers that the result has for its entries."""
        chain = self.entries.chain
        links = {link.name: link for link in chain.links}

        def value_of(name: str) -> exp.Expr:
            value = self._value(links[name])
            return value if name != chain.name else self._as_read(value)

        return nested_select(self._leaves_select(), [HANDLE_COLUMN], self._reads, self._columns, value_of, self.dialect)

    def _leaves_select(self) -> exp.Select:
        """The SELECT of the handle, and of an array for every leaf with keys; numbers stay numbers."""
        matrix, *others = self.entries.chain.leaves
        tables = [aliased(self.pattern.table, "p")] if self.pattern.handle is None else []
        handle = exp.column(HANDLE_COLUMN, table="p") if self.pattern.handle is None else self.pattern.handle
        element = exp.cast(integer(0), number_type(matrix.relation.schema.tensor.dtype))
        values = [call("tensor_entries", handle.copy(), element)]
        for number, (leaf, relation, source) in enumerate(zip(others, self.entries.vectors, self.vectors, strict=True)):
            alias = f"r{number + 1}"
            value = range_of(relation, self.dialect) if source is None else source.value(alias)
            assert value is not None, "the leaf is read from its source"
            tables += [] if source is None else [aliased(source.table, alias)]
            if leaf.keys:
                is_at_rows = leaf.keys == (self.entries.row_key,)
                value = call("tensor_at_rows" if is_at_rows else "tensor_at_positions", handle.copy(), value)
            values.append(value)
        columns = [exp.alias_(value, self._columns[number]) for number, value in enumerate(values)]
        select = exp.select(exp.alias_(handle.copy(), HANDLE_COLUMN), *columns)
        for table in tables:
            select = with_join(select, table, kind="CROSS") if select.args.get("from_") else select.from_(table)
        return select

    def _value(self, link: ChainLink) -> exp.Expr:
        """The array of a result, from the columns of what it reads."""
        contract, leaves = link.contract, self.entries.chain.leaves
        terms = []
        for read, operand in zip(self._reads[link.name], contract.inputs, strict=True):
            labels = (ENTRY,) if isinstance(read, str) or leaves[read].keys else ()
            column = exp.column(self._columns[read], table=ROWS)
            terms.append(OperandValue(column, labels, operand.schema.tensor.dtype))
        return value_of_entries(contract, terms, self.dialect)

    def _as_read(self, value: exp.Expr) -> exp.Expr:
        """The array of the result of the chain in the dtype in which others read it."""
        before, after = self.entries.chain.schema.tensor.dtype, self.entries.result.dtype
        return value if NUMBER_TYPES[before] == NUMBER_TYPES[after] else converted(value, array_type(after))

    @cached_property
    def _reads(self) -> dict[str, tuple[int | str, ...]]:
        """What every EinSum reads, by the name of its result: numbers of leaves, or names of results."""
        chain = self.entries.chain
        return {link.name: read for link, read in zip(chain.links, chain.reads, strict=True)}

    @cached_property
    def _columns(self) -> dict[int | str, str]:
        """The columns of the values of leaves and results."""
        chain = self.entries.chain
        read: list[int | str] = [*range(len(chain.leaves)), *(link.name for link in chain.links)]
        return {operand: f"value_{number}" for number, operand in enumerate(read, start=1)}

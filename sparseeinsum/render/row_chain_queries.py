"""Render: a chain of EinSums as one SELECT: a join of what they read, and SELECTs over it for their values.

The values are SELECT i, f(value_1, value_3) AS val FROM (SELECT i, value_1, g(value_2) AS value_3 FROM ...).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from sparseeinsum.algebra.chain_leaves import ChainLeaf, Reading
from sparseeinsum.algebra.row_chains import ChainLink, RowChain
from sparseeinsum.render.array_positions import fill_value
from sparseeinsum.render.contract import row_value
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.render.nested_levels import ROWS, nested_select
from sparseeinsum.render.sources import (
    SelectSource,
    aliased,
    named,
    with_inline_arrays,
    with_join,
    with_value_column,
)

_Read = int | str  # the number of a leaf, or the name of a result of the chain


@dataclass(frozen=True)  # no slots: names of columns are made once
class ChainWriter:
    """Writes the SELECTs of a chain.

    Attributes:
        chain: The chain.
        sources: Where its leaves are read.
        dialect: The dialect of the engine.
    """

    chain: RowChain
    sources: Sequence[SelectSource]
    dialect: Dialect

    def leaves_select(self) -> exp.Select:
        """The SELECT of the keys, and of the values of all leaves that have keys."""
        leaves = [(number, leaf) for number, leaf in enumerate(self.chain.leaves) if leaf.keys]
        joined = [(number, leaf) for number, leaf in leaves if leaf.reading != Reading.KEY]
        keys: dict[str, exp.Expr] = {}
        select = exp.select()
        for number, leaf in joined:
            source, alias = self._source(number), _alias(number)
            own = {key: source.key(axis, alias) for axis, key in zip(source.schema.keys, leaf.keys, strict=True)}
            table = aliased(source.table, alias)
            if not keys:
                select = select.from_(table, copy=False)
            else:
                matching = (exp.EQ(this=keys[key].copy(), expression=own[key]) for key in leaf.keys if key in keys)
                side = "LEFT" if leaf.reading == Reading.FILLED else None
                select = with_join(select, table, exp.and_(*matching, copy=False), side=side)
            keys = {**own, **keys}
        values = [exp.alias_(self._leaf_value(number, leaf, keys), self._columns[number]) for number, leaf in leaves]
        return select.select(*(named(keys[key].copy(), key) for key in self._keys), *values)

    def with_single_tuples(self, rows: exp.Expr) -> exp.Select:
        """The SELECT of `rows`, which `leaves_select` returns, and of the values of all leaves without keys."""
        single = [number for number, leaf in enumerate(self.chain.leaves) if not leaf.keys]
        select = exp.select(exp.Column(this=exp.Star(), table=exp.to_identifier(ROWS))).from_(aliased(rows, ROWS))
        for number in single:
            source, alias = self.sources[number], _alias(number)
            select = select.select(exp.alias_(source.value(alias), self._columns[number]))
            select = select.join(aliased(source.table, alias), join_type="CROSS")
        return select

    def values_select(self, rows: exp.Expr) -> exp.Select:
        """The SELECT of the result of the chain, over rows with the values of all leaves."""
        links = {link.name: link for link in self.chain.links}
        return nested_select(
            rows, self._keys, self._reads, self._columns, lambda name: self._value(links[name]), self.dialect
        )

    @property
    def _keys(self) -> tuple[str, ...]:
        return self.chain.links[-1].contract.schema.keys

    @cached_property
    def _reads(self) -> dict[str, tuple[_Read, ...]]:
        """What every EinSum reads, by the name of its result."""
        return {link.name: read for link, read in zip(self.chain.links, self.chain.reads, strict=True)}

    @cached_property
    def _columns(self) -> dict[_Read, str]:
        """The columns of the values of leaves and results; no key has such a name."""
        read: list[_Read] = [*range(len(self.chain.leaves)), *(link.name for link in self.chain.links)]
        prefix = "value"
        while any(key.lower().startswith(f"{prefix}_") for key in self._keys):
            prefix += "_"
        return {operand: f"{prefix}_{number}" for number, operand in enumerate(read, start=1)}

    def _source(self, number: int) -> SelectSource:
        """Where a leaf with keys is read."""
        source = self.sources[number]
        if self.chain.leaves[number].reading == Reading.FILLED:
            source = with_value_column(source)
        largest = self.dialect.largest_inline
        return source if largest is None else with_inline_arrays(source, largest)

    def _leaf_value(self, number: int, leaf: ChainLeaf, keys: dict[str, exp.Expr]) -> exp.Expr:
        """The value of a leaf in a row; `keys` are the keys of the chain."""
        source, alias = self._source(number), _alias(number)
        value = source.value(alias)
        own = dict(zip(source.schema.keys, leaf.keys, strict=True))
        if leaf.reading == Reading.FILLED:
            return exp.func("coalesce", value, fill_value(source.schema, lambda axis: keys[own[axis]].copy()))
        if leaf.reading == Reading.KEY:
            columns = {source.key(axis, alias): keys[key] for axis, key in own.items()}
            return value.transform(lambda node: exp.cast(columns[node].copy(), "bigint") if node in columns else node)
        return value

    def _value(self, link: ChainLink) -> exp.Expr:
        """The value of a result, from the columns of what it reads."""
        sources = []
        for operand, read, reference in zip(
            link.contract.inputs, self._reads[link.name], link.contract.einsum.operands, strict=True
        ):
            schema = operand.schema
            keys = {
                schema.tensor.axes[position].name: link.keys[reference.labels[position]]
                for position in schema.decomposition.promoted
            }
            sources.append(SelectSource(exp.table_(ROWS), schema, keys, value_column=self._columns[read]))
        return row_value(link.contract, sources, ROWS, self.dialect)


def _alias(number: int) -> str:
    return f"r{number + 1}"

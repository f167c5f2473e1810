"""Render: tuples that are stored in lists, for an aggregate that reads the lists, so that no row is made of each."""

from dataclasses import dataclass

from sqlglot import exp

from sparseeinsum.render.calls import call, converted
from sparseeinsum.render.sources import plain_subquery
from sparseeinsum.statistics.columns import array_type, type_named

_FUNCTION = "UNNEST"
_POSITIONS = type_named("INT[]")


@dataclass(frozen=True, slots=True)
class ListedTuples:
    """A table of lists, each of which has the last keys of tuples, and their values.

    Attributes:
        rows: The query of the lists, in place of that of the tuples.
        base: The number of a tuple without its last key, as an expression of columns of the query.
        positions: The column of the last keys.
        values: The column of the values.
    """

    rows: exp.Select
    base: exp.Expr
    positions: exp.Expr
    values: exp.Expr

    @classmethod
    def of(cls, query: exp.Select, number: exp.Expr, value: exp.Expr) -> "ListedTuples | None":
        """The lists that a query reads; None if its tuples come from something else.

        Args:
            query: A query of numbers and values of tuples.
            number: The number of a tuple, the last key added to what the others make.
            value: Its value, a column.
        """
        source = plain_subquery(query)
        if source is None or not isinstance(number, exp.Add):
            return None
        lists = {column.alias_or_name: _list_in(column.unalias()) for column in source.this.selects}
        listed = [name for name, column in lists.items() if column is not None]
        position = number.expression
        keys = [exp.column(name, table=source.alias) for name in listed]
        if sorted(map(repr, keys)) != sorted(map(repr, (position, value))):
            return None
        if any(column in keys for column in number.this.find_all(exp.Column)):
            return None
        columns = [
            column.copy() if elements is None else exp.alias_(elements, column.alias)
            for column, elements in zip(source.this.selects, lists.values(), strict=True)
        ]
        rows = source.this.select(*columns, append=False).subquery(source.alias)
        return cls(exp.select("*").from_(rows, copy=False), number.this.copy(), position.copy(), value.copy())

    def collected(self, dtype: str) -> exp.Expr:
        """The call that collects the tuples, with values in which numbers of a dtype are computed."""
        values, positions = converted(self.values, array_type(dtype)), converted(self.positions, _POSITIONS.copy())
        return call("tensor_collected", self.base, values, positions)


def _list_in(column: exp.Expr) -> exp.Expr | None:
    """The column of lists of which a column has the elements, perhaps in a cast; None if there is none."""
    unnested = column.this if isinstance(column, exp.Cast) else column
    is_element = isinstance(unnested, exp.Anonymous) and unnested.name == _FUNCTION
    (elements,) = unnested.expressions if is_element else (None,)
    return elements.copy() if isinstance(elements, exp.Column) else None

"""Render: tuples whose arrays a function computes in reserved memory, so that each is written once."""

from dataclasses import dataclass

from sqlglot import exp

from sparseeinsum.render.calls import call
from sparseeinsum.render.layouts import HANDLE_COLUMN
from sparseeinsum.render.sources import with_join

PLACED = frozenset(("tensor_map", "tensor_matmul", "tensor_einsum", "tensor_reduce"))
_PLACED_ALIAS = "placed"
_CHANGING = ("group", "distinct", "having", "qualify")  # clauses of which values depend


@dataclass(frozen=True, slots=True)
class PlacedArrays:
    """Tuples of which one function computes the arrays.

    Attributes:
        function: Its name.
        rows: A subquery of the tuples, with arguments of the function in place of the arrays.
        arguments: All of its arguments, as expressions of the columns of `rows`.
        number: The number of a tuple, likewise.
    """

    function: str
    rows: exp.Subquery
    arguments: tuple[exp.Expr, ...]
    number: exp.Expr

    @classmethod
    def of(cls, tuples: exp.Subquery, number: exp.Expr, value: exp.Expr) -> "PlacedArrays | None":
        """The arrays of a subquery of tuples, whose number and value are these columns of it; None of other values."""
        query = tuples.this
        columns = {column.alias_or_name: column for column in query.selects}
        if not (isinstance(value, exp.Column) and isinstance(number, exp.Column) and isinstance(query, exp.Select)):
            return None
        computed = columns[value.name].unalias()
        is_placed = isinstance(computed, exp.Anonymous) and computed.name in PLACED
        if not is_placed or any(query.args.get(clause) for clause in _CHANGING):
            return None
        names = {argument: f"argument_{place}" for place, argument in enumerate(computed.expressions)}
        read = {argument: name for argument, name in names.items() if argument.find(exp.Column) is not None}
        arguments = [exp.alias_(argument.copy(), name) for argument, name in read.items()]
        rows = query.select(columns[number.name].copy(), *arguments, append=False).subquery(tuples.alias)
        written = [
            exp.column(read[argument], table=tuples.alias) if argument in read else argument.copy()
            for argument in computed.expressions
        ]
        return cls(computed.name, rows, tuple(written), number)

    def select(self, reserved: exp.Subquery, memory: exp.Expr) -> exp.Select:
        """The SELECT of the handle of all arrays, in memory that a table of one row has in a column."""
        written = exp.alias_(call(self.function, *self.arguments, memory, self.number.copy()), HANDLE_COLUMN)
        placed = with_join(exp.select(written).from_(self.rows), reserved, kind="CROSS")
        handle = call("tensor_keep", call("tensor_resident", exp.column(HANDLE_COLUMN, table=_PLACED_ALIAS)))
        return exp.select(exp.alias_(handle, HANDLE_COLUMN)).from_(placed.subquery(_PLACED_ALIAS))

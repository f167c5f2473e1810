"""Render: tuples whose arrays are sums of rows of an array, with what is added in place of the sums."""

from dataclasses import dataclass

from sqlglot import exp

from sparseeinsum.language.tensors import VALUE_COLUMN
from sparseeinsum.render.sources import plain_subquery

SUM_FUNCTION = "tensor_gather_sum"
_ARGUMENTS = ("entries", "entry_row", "array", "size", "fill")  # with one array; also the columns that have them


@dataclass(frozen=True, slots=True)
class GatheredSums:
    """Tuples whose arrays are sums of rows, for an aggregate that computes them where they stay.

    Attributes:
        rows: The query of the tuples, with arguments of the sums in place of these.
        arguments: All arguments of a sum, as expressions of its columns.
    """

    rows: exp.Select
    arguments: tuple[exp.Expr, ...]

    @classmethod
    def of(cls, query: exp.Select, alias: str) -> "GatheredSums | None":
        """The sums of a query of tuples, read under an alias; None if its values are others, or used otherwise.

        Args:
            query: A query that names columns of a subquery, its values among them.
            alias: The alias.
        """
        source = plain_subquery(query)
        if source is None:
            return None
        sums = [column for column in source.this.selects if column.alias_or_name == VALUE_COLUMN]
        values = [
            column for column in query.selects if column.unalias() == exp.column(VALUE_COLUMN, table=source.alias)
        ]
        if len(sums) != 1 or len(values) != 1 or not _is_sum(sums[0].unalias()):
            return None
        arguments = dict(zip(_ARGUMENTS, sums[0].unalias().expressions, strict=True))
        computed = {name: argument for name, argument in arguments.items() if argument.find(exp.Column) is not None}
        inner = source.this.copy()
        others = [column for column in inner.selects if column.alias_or_name != VALUE_COLUMN]
        inner = inner.select(
            *others, *(exp.alias_(argument.copy(), name) for name, argument in computed.items()), append=False
        )
        named = [column.copy() for column in query.selects if column != values[0]]
        named += [exp.alias_(exp.column(name, table=source.alias), name) for name in computed]
        rows = query.select(*named, append=False).from_(inner.subquery(source.alias, copy=False), copy=False)
        read = [exp.column(name, table=alias) if name in computed else arguments[name].copy() for name in _ARGUMENTS]
        return cls(rows, tuple(read))


def _is_sum(value: exp.Expr) -> bool:
    is_call = isinstance(value, exp.Anonymous) and value.name == SUM_FUNCTION
    return is_call and len(value.expressions) == len(_ARGUMENTS)

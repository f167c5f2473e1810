"""Render: the named SELECTs of which a statement consists, and their tuples in other forms, as kernels compute them."""

from dataclasses import dataclass

from sqlglot import exp

from sparseeinsum.render.calls import call
from sparseeinsum.render.entry_bytes import EntryBytes

TUPLES_COLUMN = "tuples"


@dataclass(frozen=True, slots=True)
class ValueOfTuples:
    """A query of all tuples of a result in one value, NULL or empty if there are none.

    Attributes:
        select: The SELECT of the value: bytes of all numbers of tuples, then of all values.
        row_keys: How many keys number the rows, if the bytes are those of entries ordered by row; None for others.
        is_array: Whether the value is the array of the only tuple, in place of bytes.
    """

    select: exp.Select
    row_keys: int | None = None
    is_array: bool = False

    @classmethod
    def of(cls, value: exp.Expr) -> "ValueOfTuples":
        """The query of a value that reads nothing but what its subqueries do."""
        return cls(exp.select(exp.alias_(value, TUPLES_COLUMN)))


@dataclass(frozen=True, slots=True)
class Block:
    """A named SELECT.

    Attributes:
        name: The name of the CTE.
        select: The body of the CTE.
        comment: A line that says what it computes.
        is_aggregated: Whether its values are those of groups, not of single rows.
        is_materialized: Whether it must be computed on its own, whoever reads it.
        detects_nonfinite: Whether a NaN or infinite value that it computes must end the statement, even in a row that
            no join reads.
        is_fenced: Whether its rows must be computed before they are joined.
        entries: Its entries as a kernel computes them row by row, without a tuple for each; None if it does not. Their
            rows may be numbered by other keys than the first ones.
        whole: Its tuples in one value, if a kernel computes all of them in one call.
        array: The SELECT of the handle of its arrays in one, in C order of their keys, with zeros for absent tuples, if
            a kernel computes all of them in one call.
    """

    name: str
    select: exp.Select
    comment: str
    is_aggregated: bool
    is_materialized: bool = False
    detects_nonfinite: bool = False
    is_fenced: bool = False
    entries: EntryBytes | None = None
    whole: ValueOfTuples | None = None
    array: exp.Select | None = None

    @property
    def in_one_value(self) -> ValueOfTuples | None:
        """Its tuples in one value, in one call or of its entries row by row; None if a tuple comes for each."""
        keys = [column.alias_or_name for column in self.select.selects[:-1]]
        if self.entries is None or self.entries.keys != keys:
            return self.whole
        select = self.entries.compressed_select(TUPLES_COLUMN)
        (value,) = select.selects
        value.set("this", call("tensor_bytes", value.this))
        return ValueOfTuples(select, len(self.entries.row_counts))


@dataclass(frozen=True, slots=True)
class KernelSelect:
    """A SELECT in which kernels compute an EinSum; its other attributes are those of its `Block`."""

    select: exp.Select
    is_aggregated: bool = True
    detects_nonfinite: bool = False
    entries: EntryBytes | None = None
    whole: ValueOfTuples | None = None
    array: exp.Select | None = None

    def block(self, name: str, comment: str) -> Block:
        """The block of the SELECT."""
        return Block(
            name,
            self.select,
            comment,
            self.is_aggregated,
            detects_nonfinite=self.detects_nonfinite,
            entries=self.entries,
            whole=self.whole,
            array=self.array,
        )

"""Dbt: what a plan takes for granted of an input in, a query that tells in words what no longer holds out."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from sparseeinsum.dbt_project.assumptions import Assumption
from sparseeinsum.engines.engine import Engine
from sparseeinsum.language.scalar import write_number
from sparseeinsum.language.tensors import StoredTensor, count_keys
from sparseeinsum.operators.ranges import EMPTY_RANGE, Range, finite_range
from sparseeinsum.statistics.columns import relation_of, table_of_rows
from sparseeinsum.statistics.fingerprints import fingerprint_projections
from sparseeinsum.statistics.measure import scan_projections
from sparseeinsum.statistics.numbers import number
from sparseeinsum.statistics.templates import fill_placeholders
from sparseeinsum.storage.value_checks import change_condition

PROBLEMS = "problems"  # the column of the query
_NOT_ASKED = ("distinct", "occupied")  # of the scan: they are for costs alone
_PART_DTYPES = {"complex128": "float64", "complex64": "float32"}


def problems_query(stored: StoredTensor, assumption: Assumption, types: str | None, engine: Engine) -> exp.Select:
    """A query of one row: what is wrong with the rows of a tensor, as text; empty where nothing is.

    Args:
        stored: The tensor.
        assumption: What must hold of it.
        types: Of its columns, as the engine's fingerprint tells them; None where there were no rows.
        engine: Where it is.
    """
    check = _Check(stored, assumption, types, engine.dialect_name, _changed(stored, engine))
    described = exp.Anonymous(this="CONCAT_WS", expressions=[exp.Literal.string("; "), *check.descriptions()])
    return exp.select(exp.alias_(described, PROBLEMS)).from_(check.scan().subquery("found"))


@dataclass(frozen=True, slots=True)
class _Check:
    stored: StoredTensor
    assumption: Assumption
    types: str | None
    dialect: str
    changed: exp.Expr | None

    def scan(self) -> exp.Select:
        """Everything that the descriptions need, in one scan."""
        projections = [
            projection
            for projection in scan_projections(self.stored, self.dialect)
            if not projection.alias.startswith(_NOT_ASKED)
        ]
        if self.types is not None:
            projections.append(exp.alias_(self._types_now(), "types"))
        if self.changed is not None:
            counted = exp.Filter(this=exp.Count(this=exp.Star()), expression=exp.Where(this=self.changed.copy()))
            projections.append(exp.alias_(counted, "changed"))
        return exp.select(*projections).from_(relation_of(self.stored, self.dialect))

    def _types_now(self) -> exp.Expr:
        """The types of the table's columns, as a fingerprint tells them; a row is enough for that."""
        _, types, _ = fingerprint_projections(self.stored, self.dialect)
        of_all_rows = types.find(exp.AnyValue)
        if of_all_rows is None:
            return types.unalias()
        return exp.select(of_all_rows.this).from_(table_of_rows(self.stored, self.dialect)).limit(1).subquery()

    def descriptions(self) -> Iterator[exp.Expr]:
        """For everything that must hold a text, NULL where it does."""
        yield from itertools.chain(self._of_keys(), self._of_rows(), self._of_values())

    def _of_keys(self) -> Iterator[exp.Expr]:
        tensor, decomposition = self.stored.tensor, self.stored.decomposition
        for column, position in zip(self.stored.keys, decomposition.promoted, strict=True):
            nulls, least, greatest = (f"{name}_{position}" for name in ("nulls", "least", "greatest"))
            keys = count_keys(decomposition.tiles[position], tensor.shape[position])
            what = f"rows whose index {column} is NULL: "
            if column in self.stored.column_dictionaries:
                name = self.stored.column_dictionaries[column].name
                what = f"rows whose key {column} is NULL, or not in the dictionary {name}: "
            yield _told(f"{nulls} > 0", what, exp.column(nulls))
            yield _told(f"{least} < 0", f"the index {column} is ", exp.column(least), ", but indices count from 0")
            beyond = exp.column(greatest)
            yield _told(f"{greatest} >= {keys}", f"the index {column} is ", beyond, f", but its bound is {keys}")

    def _of_rows(self) -> Iterator[exp.Expr]:
        value = self.stored.value
        if self.types is not None:
            differ = exp.NullSafeNEQ(this=exp.column("types"), expression=exp.Literal.string(self.types))
            is_other = exp.and_(exp.column("tuples") > exp.Literal.number(0), differ)
            yield _told(is_other, "the columns have the types ", exp.column("types"), f" and no longer {self.types}")
        repeated: exp.Expr = exp.column("tuples") - exp.column("coordinates")
        yield _told("coordinates <> tuples", "rows whose index an earlier row has: ", repeated)
        yield _told("value_nulls > 0", f"rows whose value {value} is NULL: ", exp.column("value_nulls"))
        if any(projection.alias == "wrong_lengths" for projection in scan_projections(self.stored, self.dialect)):
            lengths = exp.column("wrong_lengths")
            yield _told("wrong_lengths > 0", f"arrays {value} with another length than their axes: ", lengths)
        if self.changed is not None:
            changed = exp.column("changed")
            yield _told("changed > 0", f"values {value} that are no {self.stored.tensor.dtype}: ", changed)
        if self.assumption.is_complete:
            most = self.stored.decomposition.max_tuples(self.stored.tensor.shape)
            yield _told(f"tuples <> {most}", f"of {most} rows that are needed there are ", exp.column("tuples"))

    def _of_values(self) -> Iterator[exp.Expr]:
        value, values, tensor = self.stored.value or "1", self.assumption.values, self.stored.tensor
        dtype = _PART_DTYPES.get(tensor.dtype, tensor.dtype)
        if not values.has_fill:
            fewer = f"of {tensor.size} indices that need a value other than {write_number(tensor.fill)} have one: "
            yield _told(f"entries < {tensor.size}", fewer, exp.column("entries"))
        if values.entries == EMPTY_RANGE:
            yield _told("entries > 0", "indices have another value than the fill: ", exp.column("entries"))
            return
        for end, condition in _beyond(values.entries, dtype):
            way = f"are to be {_shown(values.entries, dtype)}"
            yield _told(condition, f"the value {value} is ", exp.column(end), f", where values {way}")


def _changed(stored: StoredTensor, engine: Engine) -> exp.Expr | None:
    """Whether a value would change when it is read as the tensor's dtype; None where none would."""
    if stored.value is None or not stored.decomposition.is_scalar:
        return None
    query = exp.select(exp.column(stored.value)).from_(relation_of(stored, engine.dialect_name))
    (column,) = engine.columns(query)
    changed = change_condition(engine, column.sql_type, stored.tensor.dtype)
    return None if changed is None else fill_placeholders(changed, {"value": exp.column(stored.value, quoted=True)})


def _beyond(entries: Range, dtype: str) -> Iterator[tuple[str, exp.Expr]]:
    """For either end of a range that values may cross, the column of the scan that tells, and whether one does."""
    greatest = finite_range(dtype)
    is_open = entries.may_be_nan or dtype == "bool"
    if not is_open and greatest.low <= entries.low:
        low = exp.LT(this=exp.column("lowest"), expression=number(entries.low, dtype))
        yield "lowest", low
    if not is_open and entries.high <= greatest.high:
        high = exp.GT(this=exp.column("highest"), expression=number(entries.high, dtype))  # as NaN is, too
        yield "highest", high


def _shown(entries: Range, dtype: str) -> str:
    if entries == finite_range(dtype):
        return "finite"
    return f"from {entries.low:g} to {entries.high:g}"


def _told(condition: str | exp.Expr, *parts: str | exp.Expr) -> exp.Case:
    """A text that is put together from others and from numbers, where a condition holds; else NULL."""
    texts = [exp.Literal.string(part) if isinstance(part, str) else part for part in parts]
    return exp.case().when(condition, exp.Anonymous(this="CONCAT", expressions=texts))

"""Dbt: queries that describe in words which assumptions of a plan an input violates."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from sparseeinsum.dbt_project.assumptions import Assumption
from sparseeinsum.engines.engine import Engine
from sparseeinsum.language.scalar import write_number
from sparseeinsum.language.tensors import StoredTensor, count_keys
from sparseeinsum.operators.ranges import EMPTY_RANGE, Range, finite_range
from sparseeinsum.statistics.fingerprints import fingerprint_projections
from sparseeinsum.statistics.measure import scan_projections
from sparseeinsum.statistics.number_literals import number
from sparseeinsum.statistics.sql_templates import fill_placeholders
from sparseeinsum.statistics.tensor_rows import relation_of, table_of_rows
from sparseeinsum.storage.value_checks import change_condition

PROBLEMS = "problems"  # the column of the query
_UNUSED_COLUMNS = ("distinct", "occupied")  # columns of the scan that only costs need
_PART_DTYPES = {"complex128": "float64", "complex64": "float32"}


def problems_query(stored: StoredTensor, assumption: Assumption, types: str | None, engine: Engine) -> exp.Select:
    """A query of one row with a text: the violations of the assumptions about a tensor; empty if there are none.

    Args:
        stored: The tensor.
        assumption: The assumptions of the plan about it.
        types: The types of its columns, as in the engine's fingerprint; None if there were no rows.
        engine: The engine with the tensor.
    """
    check = _InputCheck(stored, assumption, types, engine.dialect_name, _changed(stored, engine))
    described = exp.Anonymous(this="CONCAT_WS", expressions=[exp.Literal.string("; "), *check.descriptions()])
    return exp.select(exp.alias_(described, PROBLEMS)).from_(check.scan().subquery("found"))


@dataclass(frozen=True, slots=True)
class _InputCheck:
    """The checks of one input; `changed` is a condition that a value changes when it is cast to the tensor's dtype."""

    stored: StoredTensor
    assumption: Assumption
    types: str | None
    dialect: str
    changed: exp.Expr | None

    def scan(self) -> exp.Select:
        """A query that computes all numbers that the descriptions need, in one scan."""
        projections = [
            projection
            for projection in scan_projections(self.stored, self.dialect)
            if not projection.alias.startswith(_UNUSED_COLUMNS)
        ]
        if self.types is not None:
            projections.append(exp.alias_(self._types_now(), "types"))
        if self.changed is not None:
            counted = exp.Filter(this=exp.Count(this=exp.Star()), expression=exp.Where(this=self.changed.copy()))
            projections.append(exp.alias_(counted, "changed"))
        return exp.select(*projections).from_(relation_of(self.stored, self.dialect))

    def _types_now(self) -> exp.Expr:
        """The types of the table's columns, as in a fingerprint; read from a single row."""
        _, types, _ = fingerprint_projections(self.stored, self.dialect)
        of_all_rows = types.find(exp.AnyValue)
        if of_all_rows is None:
            return types.unalias()
        return exp.select(of_all_rows.this).from_(table_of_rows(self.stored, self.dialect)).limit(1).subquery()

    def descriptions(self) -> Iterator[exp.Expr]:
        """For every condition a text if it is violated, else NULL."""
        yield from itertools.chain(self._key_problems(), self._row_problems(), self._value_problems())

    def _key_problems(self) -> Iterator[exp.Expr]:
        """Checks that indices are not NULL and within their bounds, and that natural keys are in their dictionary."""
        tensor, decomposition = self.stored.tensor, self.stored.decomposition
        for column, position in zip(self.stored.keys, decomposition.promoted, strict=True):
            nulls, least, greatest = (f"{name}_{position}" for name in ("nulls", "least", "greatest"))
            keys = count_keys(decomposition.tiles[position], tensor.shape[position])
            message = f"rows whose index {column} is NULL: "
            if column in self.stored.column_dictionaries:
                name = self.stored.column_dictionaries[column].name
                message = f"rows whose key {column} is NULL, or not in the dictionary {name}: "
            yield _problem(f"{nulls} > 0", message, exp.column(nulls))
            yield _problem(f"{least} < 0", f"the index {column} is ", exp.column(least), ", but indices count from 0")
            beyond = exp.column(greatest)
            yield _problem(f"{greatest} >= {keys}", f"the index {column} is ", beyond, f", but its bound is {keys}")

    def _row_problems(self) -> Iterator[exp.Expr]:
        """Checks types, duplicates, NULL values, lengths of arrays, and the number of rows if it matters."""
        value = self.stored.value
        if self.types is not None:
            differ = exp.NullSafeNEQ(this=exp.column("types"), expression=exp.Literal.string(self.types))
            is_other = exp.and_(exp.column("tuples") > exp.Literal.number(0), differ)
            yield _problem(is_other, "the columns have the types ", exp.column("types"), f" and no longer {self.types}")
        repeated: exp.Expr = exp.column("tuples") - exp.column("coordinates")
        yield _problem("coordinates <> tuples", "rows whose index an earlier row has: ", repeated)
        yield _problem("value_nulls > 0", f"rows whose value {value} is NULL: ", exp.column("value_nulls"))
        if any(projection.alias == "wrong_lengths" for projection in scan_projections(self.stored, self.dialect)):
            lengths = exp.column("wrong_lengths")
            yield _problem("wrong_lengths > 0", f"arrays {value} with a wrong length: ", lengths)
        if self.changed is not None:
            changed = exp.column("changed")
            yield _problem("changed > 0", f"values {value} that cannot be {self.stored.tensor.dtype}: ", changed)
        if self.assumption.is_complete:
            most = self.stored.max_tuples
            yield _problem(f"tuples <> {most}", f"of {most} rows that are needed there are ", exp.column("tuples"))

    def _value_problems(self) -> Iterator[exp.Expr]:
        """Checks that values are in the range that the plan assumes."""
        value, values, tensor = self.stored.value or "1", self.assumption.values, self.stored.tensor
        dtype = _PART_DTYPES.get(tensor.dtype, tensor.dtype)
        if not values.has_fill:
            fewer = f"of {tensor.size} indices that need a value other than {write_number(tensor.fill)} have one: "
            yield _problem(f"entries < {tensor.size}", fewer, exp.column("entries"))
        if values.has_entries:
            none = f"of the indices that need a value other than {write_number(tensor.fill)} there are "
            yield _problem("entries = 0", none, exp.column("entries"))
        if values.entries == EMPTY_RANGE:
            yield _problem("entries > 0", "indices have another value than the fill: ", exp.column("entries"))
            return
        for end, condition in _exceeded_ends(values.entries, dtype):
            expected = f", but values must be {_shown(values.entries, dtype)}"
            yield _problem(condition, f"the value {value} is ", exp.column(end), expected)


def _changed(stored: StoredTensor, engine: Engine) -> exp.Expr | None:
    """A condition that a value changes when it is cast to the tensor's dtype; None if no value can change."""
    if stored.value is None or not stored.decomposition.is_scalar:
        return None
    query = exp.select(exp.column(stored.value)).from_(relation_of(stored, engine.dialect_name))
    (column,) = engine.columns(query)
    changed = change_condition(engine, column.sql_type, stored.tensor.dtype)
    return None if changed is None else fill_placeholders(changed, {"value": exp.column(stored.value, quoted=True)})


def _exceeded_ends(entries: Range, dtype: str) -> Iterator[tuple[str, exp.Expr]]:
    """For each end of a range that values may exceed: the column of the scan, and the condition that one does."""
    greatest = finite_range(dtype)
    is_open = entries.may_be_nan or dtype == "bool"
    if not is_open and greatest.low <= entries.low:
        low = exp.LT(this=exp.column("lowest"), expression=number(entries.low, dtype))
        yield "lowest", low
    if not is_open and entries.high <= greatest.high:
        high = exp.GT(this=exp.column("highest"), expression=number(entries.high, dtype))  # NaN is greater, too
        yield "highest", high


def _shown(entries: Range, dtype: str) -> str:
    if entries == finite_range(dtype):
        return "finite"
    return f"from {entries.low:g} to {entries.high:g}"


def _problem(condition: str | exp.Expr, *parts: str | exp.Expr) -> exp.Case:
    """The concatenation of texts and numbers if a condition holds; else NULL."""
    texts = [exp.Literal.string(part) if isinstance(part, str) else part for part in parts]
    return exp.case().when(condition, exp.Anonymous(this="CONCAT", expressions=texts))

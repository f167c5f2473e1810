"""Dbt: queries that name the assumptions of a plan which an input violates, for engines without our functions."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from sparseeinsum.dbt_project.assumptions import Assumption
from sparseeinsum.language.scalar import write_number
from sparseeinsum.language.tensors import StoredTensor, count_keys
from sparseeinsum.operators.ranges import EMPTY_RANGE, finite_range
from sparseeinsum.statistics.columns import value_of
from sparseeinsum.statistics.number_literals import number
from sparseeinsum.statistics.sql_templates import union_all
from sparseeinsum.statistics.tensor_rows import relation_of

_PROBLEM, _FOUND = "problem", "found"  # the columns of the query


def plain_problems_query(stored: StoredTensor, assumption: Assumption, dialect: str) -> exp.Select:
    """A query of a text and a number of rows or indices for every assumption that a tensor violates.

    Args:
        stored: The tensor, in a table of numbers.
        assumption: The assumptions of the plan about it.
        dialect: The name of the dialect in which its table is named.
    """
    checks = list(_PlainCheck(stored, assumption, dialect).selects())
    is_violated = exp.GT(this=exp.column(_FOUND), expression=exp.Literal.number(0))
    return exp.select(_PROBLEM, _FOUND).from_(union_all(checks).subquery("checks")).where(is_violated)


@dataclass(frozen=True)
class _PlainCheck:
    """The checks of one input; see `plain_problems_query`."""

    stored: StoredTensor
    assumption: Assumption
    dialect: str

    def selects(self) -> Iterator[exp.Select]:
        """For every assumption, the SELECT of its text and of how much violates it."""
        yield from self._of_keys()
        yield from self._of_values()
        if self.assumption.is_complete:
            most = self.stored.max_tuples
            yield self._missing(f"rows that are missing of {most} that are needed", most, None)

    def _of_keys(self) -> Iterator[exp.Select]:
        """Indices are not NULL, within their bounds, and of one row each; natural keys are in their dictionary."""
        stored = self.stored
        for column, position in zip(stored.keys, stored.decomposition.promoted, strict=True):
            key = exp.column(column)
            count = count_keys(stored.decomposition.tiles[position], stored.tensor.shape[position])
            dictionary = stored.column_dictionaries.get(column)
            unknown = "" if dictionary is None else f", or not in the dictionary {dictionary.name}"
            yield self._counted(f"rows whose key {column} is NULL{unknown}", key.is_(exp.null()))
            outside = exp.or_(
                exp.LT(this=key.copy(), expression=exp.Literal.number(0)),
                exp.GTE(this=key.copy(), expression=exp.Literal.number(count)),
                _is_fraction(key),
            )
            yield self._counted(f"rows whose index {column} is no whole number from 0 to {count - 1}", outside)
        keys = [exp.column(column) for column in dict.fromkeys(stored.keys)]
        if keys:
            more = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(1))
            groups = exp.select(*keys).from_(self._rows()).group_by(*[key.copy() for key in keys]).having(more)
            yield _labelled("indices that have several rows", exp.Count(this=exp.Star())).from_(
                groups.subquery("repeated")
            )
        else:
            beyond_one = exp.Sub(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(1))
            yield _labelled("rows after the only one of a scalar", beyond_one).from_(self._rows())

    def _of_values(self) -> Iterator[exp.Select]:
        """Values are not NULL, and as the plan assumes."""
        stored, values = self.stored, self.assumption.values
        if stored.value is None:
            return
        size, fill = stored.tensor.size, write_number(stored.tensor.fill)
        yield self._counted(f"rows whose value {stored.value} is NULL", exp.column(stored.value).is_(exp.null()))
        is_entry = exp.NEQ(this=self._value(), expression=number(stored.tensor.fill, stored.tensor.dtype))
        if not values.has_fill:
            yield self._missing(f"indices of {size} without a value other than {fill}", size, is_entry)
        if values.has_entries:
            is_none = exp.EQ(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0))
            none = exp.case().when(is_none, exp.Literal.number(1)).else_(exp.Literal.number(0))
            yield _labelled(f"values other than {fill} that are needed", none).from_(self._rows()).where(is_entry)
        if values.entries == EMPTY_RANGE:
            yield self._counted(f"values {stored.value} other than {fill}", is_entry)
            return
        outside = list(self._outside())
        if outside:
            low, high = values.entries.low, values.entries.high
            expected = "finite" if values.entries == finite_range(stored.tensor.dtype) else f"from {low:g} to {high:g}"
            condition = exp.and_(is_entry, exp.or_(*outside))
            yield self._counted(f"values {stored.value} that are not {expected}", condition)
        if stored.tensor.dtype == "int64" and not stored.casts:
            yield self._counted(f"values {stored.value} that are no whole numbers", _is_fraction(self._value()))

    def _outside(self) -> Iterator[exp.Expr]:
        """The conditions under which a value is beyond an end of its range, or NaN."""
        entries, dtype = self.assumption.values.entries, self.stored.tensor.dtype
        if dtype == "bool":
            return
        greatest = finite_range(dtype)
        is_integer = dtype == "int64"  # of which the greatest need no check
        if not math.isinf(entries.low) and not (is_integer and entries.low <= greatest.low):
            yield exp.LT(this=self._value(), expression=number(entries.low, dtype))
        if not math.isinf(entries.high) and not (is_integer and entries.high >= greatest.high):
            yield exp.GT(this=self._value(), expression=number(entries.high, dtype))
        if not entries.may_be_nan and not is_integer:  # to some engines, NaN equals itself, and is the greatest number
            yield exp.NEQ(this=self._value(), expression=self._value())

    def _counted(self, text: str, condition: exp.Expr) -> exp.Select:
        return _labelled(text, exp.Count(this=exp.Star())).from_(self._rows()).where(condition)

    def _missing(self, text: str, needed: int, condition: exp.Expr | None) -> exp.Select:
        """How many of the rows that are needed do not satisfy a condition."""
        lacking = exp.Sub(this=exp.Literal.number(needed), expression=exp.Count(this=exp.Star()))
        select = _labelled(text, lacking).from_(self._rows())
        return select if condition is None else select.where(condition.copy())

    def _value(self) -> exp.Expr:
        return value_of(self.stored)

    def _rows(self) -> exp.Expr:
        rows = relation_of(self.stored, self.dialect)
        return rows if isinstance(rows, exp.Subquery) else exp.alias_(rows, "t", table=True)


def _is_fraction(number_sql: exp.Expr) -> exp.Expr:
    """The condition that a number is not whole, which some engines allow in every column."""
    return exp.NEQ(this=exp.cast(number_sql.copy(), "bigint"), expression=number_sql.copy())


def _labelled(text: str, number: exp.Expr) -> exp.Select:
    """A SELECT of a text and a number, without the rows that it reads."""
    return exp.select(exp.alias_(exp.Literal.string(text), _PROBLEM), exp.alias_(number, _FOUND))

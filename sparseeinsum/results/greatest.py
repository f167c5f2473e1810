"""Results: entries of a tensor in, the greatest values of every row and where they are out; what is absent counts."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.operators.dtypes import Number

_Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Rows:
    """Entries by their rows; every index of a row that has no entry holds the fill.

    Attributes:
        count: How many rows there are.
        bound: How many indices each has.
        fill: What is absent.
        row: Of every entry.
        index: Of every entry in its row; no pair of row and index is there twice.
        value: Of every entry, and none is the fill; maybe NaN, but not complex.
    """

    count: int
    bound: int
    fill: Number
    row: _Whole
    index: _Whole
    value: NDArray[Any]

    def first(self, most: int, least: bool) -> tuple[NDArray[Any], _Whole]:
        """The greatest values of every row in descending order, or the least in ascending order, and their indices.

        Of equal values the one with the smaller index comes first; NaN comes before all.

        Args:
            most: How many, at most the bound.
            least: Whether the least are wanted.
        """
        return self._sorted()._first(most, least)

    def _sorted(self) -> "Rows":
        """The same with entries in the order of rows, and of indices in a row, as they often are."""
        place = self.row * self.bound + self.index
        if bool((place[1:] > place[:-1]).all()):
            return self
        order = np.argsort(place)
        return replace(self, row=self.row[order], index=self.index[order], value=self.value[order])

    def _first(self, most: int, least: bool) -> tuple[NDArray[Any], _Whole]:
        values = np.full((self.count, most), self.fill, self.value.dtype)
        indices = np.zeros((self.count, most), np.int64)
        comes_before = self._comes_before_fill(least)
        entries = np.bincount(self.row, minlength=self.count)
        before = np.bincount(self.row[comes_before], minlength=self.count)
        self._put_absent(indices, before, before + self.bound - entries)
        order = self._by_value(most, least)  # equal ones stay in the order of their indices
        row = self.row[order]
        kept = np.bincount(row, minlength=self.count)
        place = np.arange(len(row)) - (np.cumsum(kept) - kept)[row]
        place += np.where(comes_before[order], 0, (self.bound - entries)[row])
        wanted = place < most
        values[row[wanted], place[wanted]] = self.value[order][wanted]
        indices[row[wanted], place[wanted]] = self.index[order][wanted]
        return values, indices

    def _by_value(self, most: int, least: bool) -> _Whole:
        """Numbers of entries in the order of rows, and of values in a row; where one is wanted, of the first alone."""
        keys = self._keys(least)
        if most > 1 or not len(self.row):
            return np.lexsort((*keys, self.row))
        key = keys[0] if len(keys) == 1 else np.where(keys[1], keys[0], -np.inf)
        starts = np.flatnonzero(np.diff(self.row, prepend=-1))
        best = np.repeat(np.minimum.reduceat(key, starts), np.diff(starts, append=len(key)))
        numbers = np.flatnonzero(key == best)
        return numbers[np.lexsort((*(each[numbers] for each in keys), self.row[numbers]))]

    def _comes_before_fill(self, least: bool) -> NDArray[np.bool_]:
        is_beyond = self.value < self.fill if least else self.value > self.fill
        return np.asarray(is_beyond | (self.value != self.value))

    def _keys(self, least: bool) -> tuple[NDArray[Any], ...]:
        """What entries of a row are sorted by, the last key first."""
        if self.value.dtype.kind != "f":
            return (self.value if least else ~self.value,)  # in descending order, without overflow
        key, is_nan = self.value if least else -self.value, np.isnan(self.value)
        return (key, ~is_nan) if is_nan.any() else (key,)

    def _put_absent(self, indices: _Whole, start: _Whole, end: _Whole) -> None:
        """Write the indices that have no entry, in ascending order, from one place of every row to another."""
        entries = np.bincount(self.row, minlength=self.count)
        begin = np.cumsum(entries) - entries
        lacking = self.index - (np.arange(len(self.row)) - begin[self.row])  # so many before this one have no entry
        places = np.arange(indices.shape[1])
        for place in places:
            # The absent index of number n is n, and one more for every entry that has at most n absent ones before it.
            rows = np.flatnonzero((start <= place) & (place < end))
            number = place - start[rows]
            key, wanted = self.row * (self.bound + 1) + lacking, rows * (self.bound + 1) + number
            indices[rows, place] = number + np.searchsorted(key, wanted, side="right") - begin[rows]

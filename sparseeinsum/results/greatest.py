"""Results: entries of a tensor in, the greatest values of every row and where they are out; what is absent counts."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.language.dtypes import Number

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
        values = np.full((self.count, most), self.fill, self.value.dtype)
        indices = np.zeros((self.count, most), np.int64)
        comes_before = self._comes_before_fill(least)
        entries = np.bincount(self.row, minlength=self.count)
        before = np.bincount(self.row[comes_before], minlength=self.count)
        self._put_absent(indices, before, before + self.bound - entries)
        order = np.lexsort((self.index, *self._keys(least), self.row))
        row = self.row[order]
        place = np.arange(len(row)) - (np.cumsum(entries) - entries)[row]
        place += np.where(comes_before[order], 0, (self.bound - entries)[row])
        wanted = place < most
        values[row[wanted], place[wanted]] = self.value[order][wanted]
        indices[row[wanted], place[wanted]] = self.index[order][wanted]
        return values, indices

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
        order = np.lexsort((self.index, self.row))
        row, index = self.row[order], self.index[order]
        entries = np.bincount(self.row, minlength=self.count)
        begin = np.cumsum(entries) - entries
        lacking = index - (np.arange(len(row)) - begin[row])  # so many indices before this one have no entry
        places = np.arange(indices.shape[1])
        for place in places:
            # The absent index of number n is n, and one more for every entry that has at most n absent ones before it.
            rows = np.flatnonzero((start <= place) & (place < end))
            number = place - start[rows]
            key, wanted = row * (self.bound + 1) + lacking, rows * (self.bound + 1) + number
            indices[rows, place] = number + np.searchsorted(key, wanted, side="right") - begin[rows]

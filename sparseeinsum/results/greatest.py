"""Results: the greatest values in every row of a tensor, absent entries included, and their indices."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.operators.dtypes import Number

_Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class EntriesByRow:
    """The entries of a matrix; every index of a row without an entry holds the fill.

    Attributes:
        count: The number of rows.
        bound: The number of indices of a row.
        fill: The value of absent entries.
        row: The row of every entry.
        index: The index of every entry in its row; no entry occurs twice.
        value: The value of every entry; it differs from the fill, may be NaN, and is not complex.
    """

    count: int
    bound: int
    fill: Number
    row: _Whole
    index: _Whole
    value: NDArray[Any]

    def greatest(self, most: int, least: bool) -> tuple[NDArray[Any], _Whole]:
        """The greatest values of every row in descending order, or the least in ascending order, and their indices.

        Of equal values the one with the smaller index comes first. NaN comes before all other values.

        Args:
            most: The number of values per row, at most `bound`.
            least: Whether to return the least values.

        Returns:
            Values and indices, both of shape (count, most).
        """
        return self._sorted()._greatest(most, least)

    def _sorted(self) -> "EntriesByRow":
        """The same entries, sorted by row and index; they often are."""
        place = self.row * self.bound + self.index
        if bool((place[1:] > place[:-1]).all()):
            return self
        order = np.argsort(place)
        return replace(self, row=self.row[order], index=self.index[order], value=self.value[order])

    def _greatest(self, most: int, least: bool) -> tuple[NDArray[Any], _Whole]:
        values = np.full((self.count, most), self.fill, self.value.dtype)
        indices = np.zeros((self.count, most), np.int64)
        comes_before = self._comes_before_fill(least)
        entries = np.bincount(self.row, minlength=self.count)
        before = np.bincount(self.row[comes_before], minlength=self.count)
        self._write_absent(indices, before, before + self.bound - entries)
        order = self._order_by_value(most, least)  # equal values stay in the order of their indices
        row = self.row[order]
        counts = np.bincount(row, minlength=self.count)
        place = np.arange(len(row)) - (np.cumsum(counts) - counts)[row]
        place += np.where(comes_before[order], 0, (self.bound - entries)[row])
        returned = place < most
        values[row[returned], place[returned]] = self.value[order][returned]
        indices[row[returned], place[returned]] = self.index[order][returned]
        return values, indices

    def _order_by_value(self, most: int, least: bool) -> _Whole:
        """Positions of entries, sorted by row and value; if `most` is 1, only those with the first value of a row."""
        keys = self._keys(least)
        if most > 1 or not len(self.row):
            return np.lexsort((*keys, self.row))
        key = keys[0] if len(keys) == 1 else np.where(keys[1], keys[0], -np.inf)
        starts = np.flatnonzero(np.diff(self.row, prepend=-1))
        best = np.repeat(np.minimum.reduceat(key, starts), np.diff(starts, append=len(key)))
        numbers = np.flatnonzero(key == best)
        return numbers[np.lexsort((*(part[numbers] for part in keys), self.row[numbers]))]

    def _comes_before_fill(self, least: bool) -> NDArray[np.bool_]:
        is_beyond = self.value < self.fill if least else self.value > self.fill
        return np.asarray(is_beyond | (self.value != self.value))

    def _keys(self, least: bool) -> tuple[NDArray[Any], ...]:
        """The sort keys of entries in a row; the last one is compared first."""
        if self.value.dtype.kind != "f":
            return (self.value if least else ~self.value,)  # in descending order, without overflow
        key, is_nan = self.value if least else -self.value, np.isnan(self.value)
        return (key, ~is_nan) if is_nan.any() else (key,)

    def _write_absent(self, indices: _Whole, start: _Whole, end: _Whole) -> None:
        """Write the indices without an entry, in ascending order, to the places from `start` to `end` of every row."""
        entries = np.bincount(self.row, minlength=self.count)
        begin = np.cumsum(entries) - entries
        absent = self.index - (np.arange(len(self.row)) - begin[self.row])  # absent indices before that of the entry
        places = np.arange(indices.shape[1])
        for place in places:
            # The n-th absent index is n plus the number of entries with at most n absent indices before them.
            rows = np.flatnonzero((start <= place) & (place < end))
            number = place - start[rows]
            keys, searched = self.row * (self.bound + 1) + absent, rows * (self.bound + 1) + number
            indices[rows, place] = number + np.searchsorted(keys, searched, side="right") - begin[rows]

"""Algebra, relational: what operators do to tuples, of arrays or of no more than their bounds."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from sparseeinsum.algebra.relational.absence import Absent
from sparseeinsum.algebra.relational.folds import Fold
from sparseeinsum.algebra.relational.kernels import Bound, Kernel
from sparseeinsum.algebra.relational.keys import Key, KeyMap
from sparseeinsum.operators.dtypes import Array
from sparseeinsum.semantics.exactness import JoinKind

Tuples: TypeAlias = list[tuple[Key, Any]]  # of arrays, or of bounds


class Payloads(ABC):
    """What tuples hold, and what kernels make of it."""

    @abstractmethod
    def apply(self, kernel: Kernel, *values: Any) -> Any:  # noqa: ANN401  # arrays, or bounds
        """What a kernel gives."""

    @abstractmethod
    def outputs(self, kernel: Kernel, value: Any) -> Sequence[Any]:  # noqa: ANN401
        """All that a kernel makes of one."""

    @abstractmethod
    def fold(self, fold: Fold, group: Key, keys: Sequence[Key], values: Sequence[Any]) -> Any:  # noqa: ANN401
        """What a fold makes of a group."""

    @abstractmethod
    def absent(self, absent: Absent, key: Key) -> Any:  # noqa: ANN401
        """What a tuple would hold that is absent."""

    @abstractmethod
    def size(self, value: Any) -> int:  # noqa: ANN401
        """How many numbers that is."""


class Arrays(Payloads):
    """Tuples hold arrays."""

    def apply(self, kernel: Kernel, *values: Array) -> Array:
        """The array that it computes."""
        return kernel.apply(*values)

    def outputs(self, kernel: Kernel, value: Array) -> Sequence[Array]:
        """The arrays that it computes."""
        return kernel.outputs(value)

    def fold(self, fold: Fold, group: Key, keys: Sequence[Key], values: Sequence[Array]) -> Array:
        """The array that it computes."""
        return fold.fold(group, keys, values)

    def absent(self, absent: Absent, key: Key) -> Array:
        """An array of the fill."""
        return absent.array(key)

    def size(self, value: Array) -> int:
        """Of the array."""
        return value.size


class Bounds(Payloads):
    """Tuples hold the bounds of arrays."""

    def apply(self, kernel: Kernel, *values: Bound) -> Bound:
        """The bound of what it would compute."""
        return kernel.bound(*values)

    def outputs(self, kernel: Kernel, value: Bound) -> Sequence[Bound]:
        """The bounds of what it would compute."""
        return kernel.output_bounds(value)

    def fold(self, fold: Fold, group: Key, keys: Sequence[Key], values: Sequence[Bound]) -> Bound:
        """The bound of what it would compute."""
        return fold.bound(values[0])

    def absent(self, absent: Absent, key: Key) -> Bound:
        """Of an array of the fill."""
        return tuple(extent.at(key) for extent in absent.extents)

    def size(self, value: Bound) -> int:
        """Of an array of the bound."""
        return int(np.prod(value, dtype=np.int64))


ARRAYS = Arrays()
BOUNDS = Bounds()


def folded(tuples: Iterable[tuple[Key, Any]], group_by: tuple[int, ...], fold: Fold, payloads: Payloads) -> Tuples:
    """Tuples folded by the parts of their keys."""
    groups: dict[Key, Tuples] = defaultdict(list)
    for key, value in tuples:
        rest = tuple(part for position, part in enumerate(key) if position not in group_by)
        groups[tuple(key[position] for position in group_by)].append((rest, value))
    found = []
    for key, group in groups.items():
        group.sort(key=lambda each: each[0])
        found.append((key, payloads.fold(fold, key, [rest for rest, _ in group], [value for _, value in group])))
    return found


def mapped(tuples: Iterable[tuple[Key, Any]], keys: KeyMap, kernel: Kernel, payloads: Payloads) -> Tuples:
    """Tuples with other keys and arrays, one or several for each."""
    return [
        (keys.apply(key, copy), piece)
        for key, value in tuples
        for copy, piece in enumerate(payloads.outputs(kernel, value))
    ]


def completed(tuples: Iterable[tuple[Key, Any]], absent: Absent, keys: Iterable[Key], payloads: Payloads) -> Tuples:
    """Tuples for all of some keys: those that are absent hold the fill."""
    present = dict(tuples)
    return [(key, present[key] if key in present else payloads.absent(absent, key)) for key in keys]


@dataclass(frozen=True, slots=True)
class Pairing:
    """How tuples are joined.

    Attributes:
        left_keys: Positions in the left key.
        right_keys: Positions in the right key, each to equal the one of the left at the same place.
        arities: Parts of the left key, and of the right one.
        kernel: Of two arrays.
        kind: Which tuples without a partner are kept.
        absent: What the left one, and the right one, would hold where it is missing.
    """

    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    arities: tuple[int, int]
    kernel: Kernel
    kind: JoinKind
    absent: tuple[Absent | None, Absent | None]

    def right_position(self, position: int) -> int:
        """Where a part of the right key stands in the key of a pair."""
        if position in self.right_keys:
            return self.left_keys[self.right_keys.index(position)]
        return self.arities[0] + self._rest.index(position)

    @property
    def _rest(self) -> list[int]:
        """Positions of the right key that are not joined on."""
        return [position for position in range(self.arities[1]) if position not in self.right_keys]

    def joined(self, left: Tuples, right: Tuples, payloads: Payloads) -> Tuples:
        """All pairs, and what is kept without a partner."""
        partners: dict[Key, Tuples] = defaultdict(list)
        for key, value in right:
            partners[_parts(key, self.right_keys)].append((key, value))
        rest = self._rest
        found: Tuples = []
        for key, value in left:
            for other, array in partners.get(_parts(key, self.left_keys), ()):
                found.append(((*key, *_parts(other, rest)), payloads.apply(self.kernel, value, array)))
        if self.kind in (JoinKind.LEFT, JoinKind.FULL):
            found += self._unmatched(left, lambda key: _parts(key, self.left_keys) in partners, 1, payloads)
        if self.kind in (JoinKind.RIGHT, JoinKind.FULL):
            known = {_parts(key, self.left_keys) for key, _ in left}
            found += self._unmatched(right, lambda key: _parts(key, self.right_keys) in known, 0, payloads)
        return found

    def _unmatched(
        self, tuples: Tuples, is_matched: Callable[[Key], bool], missing: int, payloads: Payloads
    ) -> Iterable[tuple[Key, Any]]:
        """Tuples of one side, each beside what its missing partner would hold."""
        absent = self.absent[missing]
        assert absent is not None
        for key, value in tuples:
            if is_matched(key):
                continue
            pair = key if missing else _arranged(key, self.right_position)
            partner = _parts(pair, self.left_keys)  # whose key has no other parts
            order = self.right_keys if missing else self.left_keys
            filled = payloads.absent(absent, tuple(partner[order.index(position)] for position in range(len(order))))
            yield pair, payloads.apply(self.kernel, *((value, filled) if missing else (filled, value)))


def _parts(key: Key, positions: Sequence[int]) -> Key:
    return tuple(key[position] for position in positions)


def _arranged(key: Key, position_of: Callable[[int], int]) -> Key:
    found = {position_of(position): part for position, part in enumerate(key)}
    return tuple(found[position] for position in range(len(found)))

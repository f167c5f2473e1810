"""Algebra, relational: what operators do to tuples, which hold arrays, or only the bounds of arrays."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from sparseeinsum.algebra.relational.absence import AbsentArray
from sparseeinsum.algebra.relational.folds import Fold
from sparseeinsum.algebra.relational.kernels import ArrayBound, Kernel
from sparseeinsum.algebra.relational.keys import Key, KeyMap, pair_position
from sparseeinsum.operators.dtypes import Array
from sparseeinsum.semantics.exactness import JoinKind

Tuples: TypeAlias = list[tuple[Key, Any]]  # of arrays, or of bounds


class Payloads(ABC):
    """What tuples hold, and how kernels and folds apply to it."""

    @abstractmethod
    def apply(self, kernel: Kernel, *values: Any) -> Any:  # noqa: ANN401  # arrays, or bounds
        """The result of a kernel."""

    @abstractmethod
    def outputs(self, kernel: Kernel, value: Any) -> Sequence[Any]:  # noqa: ANN401
        """All results of a kernel that makes several arrays of one."""

    @abstractmethod
    def fold(self, fold: Fold, group: Key, keys: Sequence[Key], values: Sequence[Any]) -> Any:  # noqa: ANN401
        """The result of folding a group; see `Fold.fold`."""

    @abstractmethod
    def absent(self, absent: AbsentArray, key: Key) -> Any:  # noqa: ANN401
        """What the absent tuple with this key would hold."""

    @abstractmethod
    def size(self, value: Any) -> int:  # noqa: ANN401
        """How many numbers a tuple holds."""


class Arrays(Payloads):
    """Payloads of tuples that hold arrays."""

    def apply(self, kernel: Kernel, *values: Array) -> Array:
        """The array that a kernel computes."""
        return kernel.apply(*values)

    def outputs(self, kernel: Kernel, value: Array) -> Sequence[Array]:
        """The arrays that a kernel computes of one."""
        return kernel.outputs(value)

    def fold(self, fold: Fold, group: Key, keys: Sequence[Key], values: Sequence[Array]) -> Array:
        """The array that a fold computes of a group."""
        return fold.fold(group, keys, values)

    def absent(self, absent: AbsentArray, key: Key) -> Array:
        """An array of the fill."""
        return absent.array(key)

    def size(self, value: Array) -> int:
        """The number of elements of an array."""
        return value.size


class Bounds(Payloads):
    """Payloads of tuples that hold only the bounds of arrays."""

    def apply(self, kernel: Kernel, *values: ArrayBound) -> ArrayBound:
        """The bound of the array that a kernel would compute."""
        return kernel.bound(*values)

    def outputs(self, kernel: Kernel, value: ArrayBound) -> Sequence[ArrayBound]:
        """The bounds of the arrays that a kernel would compute of one."""
        return kernel.output_bounds(value)

    def fold(self, fold: Fold, group: Key, keys: Sequence[Key], values: Sequence[ArrayBound]) -> ArrayBound:
        """The bound of the array that a fold would compute."""
        return fold.bound(values[0])

    def absent(self, absent: AbsentArray, key: Key) -> ArrayBound:
        """The bound of the array of the fill."""
        return tuple(extent.at(key) for extent in absent.extents)

    def size(self, value: ArrayBound) -> int:
        """The number of elements of an array of this bound."""
        return int(np.prod(value, dtype=np.int64))


ARRAYS = Arrays()
BOUNDS = Bounds()


def folded(tuples: Iterable[tuple[Key, Any]], group_by: tuple[int, ...], fold: Fold, payloads: Payloads) -> Tuples:
    """The tuples of an aggregation: groups by the parts of keys at `group_by`, each folded into one tuple."""
    groups: dict[Key, Tuples] = defaultdict(list)
    for key, value in tuples:
        other_parts = tuple(part for position, part in enumerate(key) if position not in group_by)
        groups[tuple(key[position] for position in group_by)].append((other_parts, value))
    results = []
    for key, group in groups.items():
        group.sort(key=lambda member: member[0])
        results.append(
            (key, payloads.fold(fold, key, [other_parts for other_parts, _ in group], [value for _, value in group]))
        )
    return results


def mapped(tuples: Iterable[tuple[Key, Any]], keys: KeyMap, kernel: Kernel, payloads: Payloads) -> Tuples:
    """Tuples with other keys and other arrays; one tuple can become several."""
    return [
        (keys.apply(key, copy), output)
        for key, value in tuples
        for copy, output in enumerate(payloads.outputs(kernel, value))
    ]


def completed(
    tuples: Iterable[tuple[Key, Any]], absent: AbsentArray, keys: Iterable[Key], payloads: Payloads
) -> Tuples:
    """Tuples for all of `keys`; absent ones hold the fill."""
    present = dict(tuples)
    return [(key, present[key] if key in present else payloads.absent(absent, key)) for key in keys]


@dataclass(frozen=True, slots=True)
class Pairing:
    """How tuples are joined.

    Attributes:
        left_keys: Positions of the joined parts in the left key.
        right_keys: Positions of the joined parts in the right key, in the same order.
        arities: The number of parts of the left key, and of the right key.
        kernel: The kernel of the two arrays.
        kind: Which tuples without a partner the join keeps.
        absent: What an absent tuple of the left side, and of the right side, would hold.
    """

    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    arities: tuple[int, int]
    kernel: Kernel
    kind: JoinKind
    absent: tuple[AbsentArray | None, AbsentArray | None]

    def right_position(self, position: int) -> int:
        """The position of a part of the right key in the key of a pair."""
        return pair_position(position, self.arities[0], self.left_keys, self.right_keys)

    @property
    def _unjoined_positions(self) -> list[int]:
        """The positions of the parts of the right key that are not joined."""
        return [position for position in range(self.arities[1]) if position not in self.right_keys]

    def joined(self, left: Tuples, right: Tuples, payloads: Payloads) -> Tuples:
        """All pairs, and the tuples that are kept without a partner.

        Args:
            left: The tuples of the left side.
            right: The tuples of the right side.
            payloads: What the tuples hold.
        """
        partners: dict[Key, Tuples] = defaultdict(list)
        for key, value in right:
            partners[_parts(key, self.right_keys)].append((key, value))
        unjoined = self._unjoined_positions
        pairs: Tuples = []
        for key, value in left:
            for partner_key, partner in partners.get(_parts(key, self.left_keys), ()):
                pairs.append(((*key, *_parts(partner_key, unjoined)), payloads.apply(self.kernel, value, partner)))
        if self.kind in (JoinKind.LEFT, JoinKind.FULL):
            pairs += self._unmatched(left, lambda key: _parts(key, self.left_keys) in partners, 1, payloads)
        if self.kind in (JoinKind.RIGHT, JoinKind.FULL):
            left_parts = {_parts(key, self.left_keys) for key, _ in left}
            pairs += self._unmatched(right, lambda key: _parts(key, self.right_keys) in left_parts, 0, payloads)
        return pairs

    def _unmatched(
        self, tuples: Tuples, is_matched: Callable[[Key], bool], missing: int, payloads: Payloads
    ) -> Iterable[tuple[Key, Any]]:
        """The tuples of one side without a partner, each joined with what its absent partner would hold.

        Args:
            tuples: The tuples of one side.
            is_matched: Whether the tuple with a key has a partner.
            missing: The side of the partner: 0 for left, 1 for right.
            payloads: What the tuples hold.
        """
        absent = self.absent[missing]
        assert absent is not None
        for key, value in tuples:
            if is_matched(key):
                continue
            pair = key if missing else _arranged(key, self.right_position)
            partner = _parts(pair, self.left_keys)  # an outer join is on all parts of the missing side's key
            order = self.right_keys if missing else self.left_keys
            filled = payloads.absent(absent, tuple(partner[order.index(position)] for position in range(len(order))))
            yield pair, payloads.apply(self.kernel, *((value, filled) if missing else (filled, value)))


def _parts(key: Key, positions: Sequence[int]) -> Key:
    return tuple(key[position] for position in positions)


def _arranged(key: Key, position_of: Callable[[int], int]) -> Key:
    parts = {position_of(position): part for position, part in enumerate(key)}
    return tuple(parts[position] for position in range(len(parts)))

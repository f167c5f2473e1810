"""Results: reads what stands in brackets after a result, by numpy's rules of indexing."""

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import NDArray

_Item: TypeAlias = range | NDArray[np.int64] | None  # of a slice, of indices, or a new axis

_RULE = (
    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are valid "
    "indices"
)


@dataclass(frozen=True, slots=True)
class Selection:
    """The indices of a tensor that an index selects.

    Attributes:
        items: For every axis its range of indices, or an array of them, which has no axis for a single index. None
            stands for a new axis of size 1.
    """

    items: tuple[_Item, ...]

    @property
    def ranges(self) -> tuple[range, ...] | None:
        """The indices of every axis if slices and single indices select them; None if arrays do."""
        if any(isinstance(item, np.ndarray) and item.ndim for item in self.items):
            return None
        return tuple(
            range(int(item), int(item) + 1) if isinstance(item, np.ndarray) else item
            for item in self.items
            if item is not None
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the selected part."""
        return self._sizes(0, self._place) + self._broadcast_shape + self._sizes(self._place, None)

    def indices(self) -> list[NDArray[np.int64]]:
        """For every axis the selected indices; they broadcast to `shape`."""
        rank, inner = len(self.shape), len(self._broadcast_shape)
        result: list[NDArray[np.int64]] = []
        dimension = 0
        for item in self.items:
            if isinstance(item, np.ndarray):
                behind = rank - self._place - inner
                result.append(item.reshape((1,) * (rank - behind - item.ndim) + item.shape + (1,) * behind))
                continue
            if item is not None:
                place = dimension if dimension < self._place else dimension + inner
                numbers = np.arange(item.start, item.stop, item.step, dtype=np.int64)
                result.append(numbers.reshape((1,) * place + (len(item),) + (1,) * (rank - place - 1)))
            dimension += 1
        return result

    @property
    def _arrays(self) -> list[int]:
        return [position for position, item in enumerate(self.items) if isinstance(item, np.ndarray)]

    @property
    def _broadcast_shape(self) -> tuple[int, ...]:
        shapes = [item.shape for item in self.items if isinstance(item, np.ndarray)]
        try:
            return np.broadcast_shapes(*shapes)
        except ValueError:
            shown = " ".join(map(str, shapes))
            raise IndexError(
                f"shape mismatch: indexing arrays could not be broadcast together with shapes {shown}"
            ) from None

    @property
    def _place(self) -> int:
        """The dimension at which those of arrays begin: where they stand if they stand together, else the first."""
        arrays = self._arrays
        are_together = not arrays or arrays[-1] - arrays[0] + 1 == len(arrays)
        return arrays[0] if arrays and are_together else 0

    def _sizes(self, start: int, stop: int | None) -> tuple[int, ...]:
        """The sizes of dimensions of slices and new axes."""
        sizes = [1 if item is None else len(item) for item in self.items if not isinstance(item, np.ndarray)]
        return tuple(sizes[start:stop])


def select(shape: Sequence[int], index: object) -> Selection:
    """Read an index of a tensor of a shape.

    Raises:
        IndexError: It is no index, or beyond the shape; the message is numpy's.
    """
    items: list[_Item] = []
    axis = 0
    for item in _with_ellipsis(shape, index if isinstance(index, tuple) else (index,)):
        read = list(_read(shape, axis, item))
        axis += sum(part is not None for part in read)
        items += read
    return Selection(tuple(items))


def _with_ellipsis(shape: Sequence[int], items: tuple[object, ...]) -> list[object]:
    """Replace the ellipsis by slices, or add slices at the end, so that there is an item for every axis."""
    ellipses = [position for position, item in enumerate(items) if item is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    arrays = [_as_array(item) for item in items]
    used = sum(map(_axes_of, items, arrays))
    if used > len(shape):
        raise IndexError(f"too many indices for array: array is {len(shape)}-dimensional, but {used} were indexed")
    place = ellipses[0] if ellipses else len(items)
    read: list[object] = [item if array is None else array for item, array in zip(items, arrays, strict=True)]
    return [*read[:place], *[slice(None)] * (len(shape) - used), *read[place + 1 :]]


def _as_array(item: object) -> NDArray[Any] | None:
    """Return an item of an index as an array of integers or booleans; None for slices, new axes and the ellipsis."""
    if item is None or item is Ellipsis or isinstance(item, slice):
        return None
    if isinstance(item, SupportsIndex) and not isinstance(item, bool | np.ndarray):
        item = operator.index(item)
    array = np.asarray(item)
    if not array.size and not isinstance(item, np.ndarray):
        array = array.astype(np.int64)
    if array.dtype.kind not in "iub" or (array.dtype.kind == "b" and not array.ndim):
        raise IndexError(_RULE)
    return array


def _axes_of(item: object, array: NDArray[Any] | None) -> int:
    """Return how many axes an item of an index is for."""
    if array is None:
        return int(isinstance(item, slice))
    return array.ndim if array.dtype.kind == "b" else 1


def _read(shape: Sequence[int], axis: int, item: object) -> Iterator[_Item]:
    """Yield what an item selects from `axis` on; an array of booleans is one array of indices for each of its axes."""
    if item is None:
        yield None
    elif isinstance(item, slice):
        yield range(*item.indices(shape[axis]))
    elif isinstance(item, np.ndarray) and item.dtype.kind == "b":
        for position, (size, bound) in enumerate(zip(item.shape, shape[axis:], strict=False)):
            if size != bound:
                raise IndexError(
                    f"boolean index did not match indexed array along axis {axis + position}; size of axis is {bound} "
                    f"but size of corresponding boolean axis is {size}"
                )
        yield from (places.astype(np.int64) for places in np.nonzero(item))
    else:
        yield _checked(np.asarray(item), axis, shape[axis])


def _checked(indices: NDArray[Any], axis: int, bound: int) -> NDArray[np.int64]:
    """Return indices from 0; negative ones count from the end."""
    beyond = indices[(indices < -bound) | (indices >= bound)]
    if beyond.size:
        raise IndexError(f"index {beyond.flat[0]} is out of bounds for axis {axis} with size {bound}")
    numbers = indices.astype(np.int64)
    return np.where(numbers < 0, numbers + bound, numbers)

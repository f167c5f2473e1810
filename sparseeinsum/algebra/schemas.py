"""Algebra: the schema of a tensor relation: a tensor, and which of its axes are keys."""

import math
from dataclasses import dataclass, replace

from sparseeinsum.language.tensors import (
    Axis,
    Decomposition,
    Tensor,
    count_keys,
    extent_of,
    is_ragged,
    key_dictionaries,
)
from sparseeinsum.operators.dtypes import is_complex


@dataclass(frozen=True, slots=True)
class Schema:
    """The schema of a tensor relation.

    Attributes:
        tensor: The name, axes, dtype and fill; key columns have the names of the promoted axes.
        decomposition: Which axes are keys and which are inside the arrays.
    """

    tensor: Tensor
    decomposition: Decomposition

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the key columns, in axis order."""
        return tuple(self.tensor.axes[position].name for position in self.decomposition.promoted)

    def with_first_key(self, name: str, bound: int) -> "Schema":
        """The schema with one more axis before the others, which is a key of that name."""
        axes = (Axis(name, bound), *self.tensor.axes)
        return Schema(replace(self.tensor, axes=axes), Decomposition((1, *self.decomposition.tiles)))

    @property
    def has_dictionaries(self) -> bool:
        """Whether some key column may hold natural keys."""
        return any(key_dictionaries(self.tensor, self.decomposition))

    @property
    def key_counts(self) -> dict[str, int]:
        """For every key column by name, how many values it can have, in axis order."""
        axes, tiles = self.tensor.axes, self.decomposition.tiles
        return {axes[at].name: count_keys(tiles[at], axes[at].bound) for at in self.decomposition.promoted}

    @property
    def inside(self) -> tuple[int, ...]:
        """The extents of the axes inside the arrays, in axis order; the last tile of an axis may be shorter."""
        tiles, shape = self.decomposition.tiles, self.tensor.shape
        return tuple(extent_of(tiles[position], shape[position]) for position in self.decomposition.array_axes)

    @property
    def is_ragged(self) -> bool:
        """Whether the last arrays along an axis are shorter than the others."""
        return any(map(is_ragged, self.decomposition.tiles, self.tensor.shape))

    @property
    def array_size(self) -> int:
        """The number of elements of one array; 1 for a number."""
        return math.prod(self.inside)

    @property
    def list_length(self) -> int:
        """The number of elements of the engine's array, which has two for a complex number."""
        return self.array_size * (2 if is_complex(self.tensor.dtype) else 1)

    @property
    def is_scalar(self) -> bool:
        """Whether tuples hold numbers and not arrays; a complex number is an array of its two parts."""
        return self.decomposition.is_scalar and not is_complex(self.tensor.dtype)

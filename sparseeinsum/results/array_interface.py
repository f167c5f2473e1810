"""Results: what numpy, DLPack and Python expect of an array, for a tensor in rows."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.results.blocks import block
from sparseeinsum.results.dense_size import check_dense_size
from sparseeinsum.results.lookup import values_at
from sparseeinsum.results.result_indexing import select
from sparseeinsum.results.tensor_rows import TensorRows

_ITERATED = 1 << 22  # numbers in the dense blocks of an iteration, each of which takes a pass over the rows


class ArrayInterface:
    """A tensor in rows that numpy, Python and DLPack use like an array.

    Attributes:
        schema: The tensor and its layout.
        rows: Key columns, then `val` with numbers or flat arrays in row-major order.
    """

    __slots__ = ()

    schema: Schema
    rows: pa.Table

    @property
    def shape(self) -> tuple[int, ...]:
        """The bounds of its axes."""
        return self.schema.tensor.shape

    @property
    def ndim(self) -> int:
        """The number of its axes, as for an array of numpy."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of its indices, whether stored or not."""
        return self.schema.tensor.size

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of its values."""
        return np.dtype(self.schema.tensor.dtype)

    def to_numpy(self, copy: bool = True) -> NDArray[Any]:
        """The tensor as a dense array.

        Args:
            copy: Whether the array is a new one, which may be changed. Otherwise it is read-only, and no copy where the
                result has all values in one piece, as large results of mostly stored values have.

        Raises:
            ResultSizeError: The array would take more than the memory of this machine.
        """
        self._check_size(self.shape)
        array = block(self._tensor_rows, [range(bound) for bound in self.shape], copy)
        if not copy:
            array.flags.writeable = False
        return array

    def item(self) -> Number:
        """The value of a tensor with one index, as a number of Python.

        Raises:
            ValueError: The tensor has more or fewer indices.
        """
        number: Number = self._small_array().item()
        return number

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        array = self.to_numpy(copy=bool(copy))
        if copy is False and (dtype not in (None, array.dtype) or not _is_view(array)):
            raise ValueError(
                "Unable to avoid copy while creating an array as requested: the result does not have these values in "
                "one piece."
            )
        return array if dtype is None else array.astype(dtype, copy=False)

    def __dlpack__(self, **options: Any) -> Any:  # noqa: ANN401  # as numpy's, which produces the capsule
        return self.to_numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        device: tuple[int, int] = np.empty(0).__dlpack_device__()
        return device

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401  # whatever numpy takes and returns
        """The values that an index selects by numpy's rules: a number, or a new dense array.

        They are looked up among the rows: it takes a pass over these, and no dense array of all values. To read many
        values, give their indices as arrays, as in result[[3, 1], [4, 5]].
        """
        selection = select(self.shape, index)
        self._check_size(selection.shape)
        return values_at(self._tensor_rows, selection)[()]

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return self._first_axis()

    def __bool__(self) -> bool:
        return bool(self._small_array())

    def __int__(self) -> int:
        return int(self._small_array())

    def __float__(self) -> float:
        return float(self._small_array())

    def __complex__(self) -> complex:
        return complex(self._small_array())

    def __format__(self, specification: str) -> str:
        if self.shape or not specification:
            return super().__format__(specification)
        return format(self.item(), specification)

    def _first_axis(self) -> Iterator[Any]:
        step = max(1, _ITERATED // max(1, math.prod(self.shape[1:])))
        for start in range(0, self.shape[0], step):
            yield from self[start : start + step]

    def _small_array(self) -> NDArray[Any]:
        """The dense array if it has one value; otherwise one that takes no memory, of which numpy raises its errors."""
        return self.to_numpy() if self.size == 1 else np.broadcast_to(np.zeros((), self.dtype), self.shape)

    def _check_size(self, shape: tuple[int, ...]) -> None:
        instead = "take its entries, by to_scipy(), to_sparse() or arrow(), or a part of it, as in result[:100]"
        check_dense_size(self.schema.tensor.name, shape, self.dtype, instead)

    @property
    def _tensor_rows(self) -> TensorRows:
        return TensorRows(self.schema, self.rows)


def _is_view(array: NDArray[Any]) -> bool:
    """Whether an array reads memory that no array of numpy has."""
    owner: object = array
    while isinstance(owner, np.ndarray):
        if owner.base is None:
            return False
        owner = owner.base
    return True

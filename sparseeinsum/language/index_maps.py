"""Language: index maps: generated tensors of truth values that tell which index of an axis a statement reads."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from sparseeinsum.errors import SemanticsError, ShapeError
from sparseeinsum.language.affine_indices import AffineIndex, Limit, label_bounds
from sparseeinsum.language.generated import axis_of
from sparseeinsum.language.tensors import Axis, Tensor
from sparseeinsum.operators.dtypes import Array
from sparseeinsum.operators.expressions import AxisBound


@dataclass(frozen=True, slots=True)
class IndexMap:
    """A tensor that is true where its last index is an affine index of the others: for A[i + 1], where i + 1 = j.

    Attributes:
        name: A name that no other tensor of the program has.
        index: The affine index, of labels in lower case.
        axis: The axis that is indexed.
        label: The label of this axis, which is none of the index.
        limits: What bounds the labels of the index.
        origin: The axis as the user wrote it, where `axis` is that of an intermediate result; for errors.
        reader: The tensor whose statement has the index; for errors.
    """

    name: str
    index: AffineIndex
    axis: AxisBound
    label: str
    limits: tuple[Limit, ...]
    origin: AxisBound | None = field(default=None, compare=False)
    reader: str = field(default="", compare=False)

    def bounding_axes(self) -> Iterator[AxisBound]:
        """The axes of tensors on whose bounds the shape depends."""
        yield self.axis
        yield from (limit.bound for limit in self.limits if isinstance(limit.bound, AxisBound))

    def tensor(self, tensors: Mapping[str, Tensor]) -> Tensor:
        """The tensor, with an axis for every label of the index, and then that which is indexed.

        Args:
            tensors: The tensors of the program that have shapes already.

        Raises:
            ShapeError: An index does not exist.
        """
        read = tensors[self.axis.tensor]
        if self.axis.axis >= len(read.axes):
            axes_shown = ", ".join(axis.name for axis in read.axes) or "none"
            problem = f"{read.name} is read at {self.axis.axis + 1} indices or more"
            raise ShapeError(f"{problem}, but has {len(read.axes)} axes: {axes_shown}")
        indexed = read.axes[self.axis.axis]
        own = {limit.index: limit.bound for limit in reversed(self.limits) if isinstance(limit.index, str)}
        bounds = {
            limit: limit.bound if isinstance(limit.bound, int) else axis_of(limit.bound, tensors).bound
            for limit in self.limits
        }
        bound_of = label_bounds(self.limits, bounds)
        shown = indexed if self.origin is None else axis_of(self.origin, tensors)
        self._check(bound_of, shown)
        axes = []
        for label in self.index.labels:
            source = own.get(label)
            dictionary = axis_of(source, tensors).dictionary if isinstance(source, AxisBound) else None
            axes.append(Axis(label, bound_of[label], dictionary))
        return Tensor(self.name, (*axes, replace(indexed, name=self.label)), "bool", fill=False)

    def _check(self, bound_of: Mapping[str, int], indexed: Axis) -> None:
        """Refuse an index that does not exist."""
        if any(bound_of[label] == 0 for label in self.index.labels):
            return
        least, greatest = self.index.extremes(bound_of, indexed.bound)
        if least >= 0 and greatest < indexed.bound:
            return
        indices = f"{indexed.bound} {'index' if indexed.bound == 1 else 'indices'}"
        written = self.origin or self.axis
        axis = f"axis {written.axis} of {written.tensor} ({indexed.name}), which has {indices}"
        if not self.index.terms:
            raise ShapeError(f"there is no index {self.index} of {axis}")
        wrong = least if least < 0 else greatest
        below = " and ".join(f"{label} < {bound_of[label]}{self._source(label)}" for label in self.index.labels)
        fitting = ((label, self.index.most_indices(label, bound_of, indexed.bound)) for label in self.index.labels)
        hints = [f"; write `for {label} < {most}` after the statement to read less" for label, most in fitting if most]
        raise ShapeError(f"with {below}, the index {self.index} becomes {wrong} on {axis}{''.join(hints[:1])}")

    def _source(self, label: str) -> str:
        """Where the bound of a label is from, for an error."""
        bounds = (limit.bound for limit in self.limits if limit.index in (label, AffineIndex.of_label(label)))
        bound = next(bounds, None)
        if not isinstance(bound, AxisBound):
            return ""
        is_intermediate = self.origin is not None and bound.tensor == self.axis.tensor
        return f" as in {self.origin.tensor if self.origin and is_intermediate else bound.tensor}"

    def array(self, tensor: Tensor) -> Array:
        """The values of the tensor that `tensor` returned.

        Raises:
            SemanticsError: The index is a natural key, which only a database knows.
        """
        if self.index.key is not None:
            raise SemanticsError(f"the index {self.index} is a natural key, which a database must look up; see db.run")
        *label_bounds_, bound = tensor.shape
        values = np.full(label_bounds_, self.index.start(bound))
        for position, (_, coefficient) in enumerate(self.index.terms):
            values += coefficient * np.indices(label_bounds_, sparse=True)[position]
        return np.asarray(values[..., None] == np.arange(bound))

"""Algebra: relations as EinSums over the parts of their keys and the axes of their arrays."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sparseeinsum.algebra.relational.kernels import EinSumKernel, Elementwise, Kernel
from sparseeinsum.algebra.relational.keys import KeyExpression, KeyMap, KeyPart, KeyPredicate, Operation
from sparseeinsum.errors import AlgebraError
from sparseeinsum.language.eingraph import EinSum, Reference
from sparseeinsum.language.scalar import axis_bounds_of
from sparseeinsum.operators.expressions import Operand, Scalar


@dataclass(frozen=True, slots=True)
class Formula:
    """A relation as an EinSum whose result has no name yet.

    Attributes:
        operands: The tensors that it reads.
        join: The scalar expression of the operands.
        aggregate: The aggregate over the labels that neither keys nor arrays have; None if there are none.
        keys: The labels of the parts of the keys; parts that are equal in all tuples have one label.
        arrays: The labels of the axes of the arrays.
    """

    operands: tuple[Reference, ...]
    join: Scalar
    aggregate: str | None
    keys: tuple[str, ...]
    arrays: tuple[str, ...]

    @classmethod
    def of_tensor(cls, name: str, keys: Sequence[str], arrays: Sequence[str]) -> "Formula":
        """A tensor whose axes are the parts of keys, each label once, and then the axes of arrays."""
        labels = tuple(dict.fromkeys((*keys, *arrays)))
        return cls((Reference(name, labels),), Operand(0), None, tuple(keys), tuple(arrays))

    @property
    def is_tensor(self) -> bool:
        """Whether it is one tensor, with or without repeated labels."""
        return self.join == Operand(0) and self.aggregate is None

    @property
    def output(self) -> tuple[str, ...]:
        """The labels of the result: each once."""
        return tuple(dict.fromkeys((*self.keys, *self.arrays)))

    def einsum(self, name: str) -> EinSum:
        """The EinSum whose result has a name."""
        return EinSum(Reference(name, self.output), self.operands, self.join, self.aggregate)

    def relabelled(self, labels: Mapping[str, str]) -> "Formula":
        """The same with other labels; labels that become equal select the diagonal."""

        def renamed(names: Iterable[str]) -> tuple[str, ...]:
            return tuple(labels.get(name, name) for name in names)

        operands = tuple(replace(operand, labels=renamed(operand.labels)) for operand in self.operands)
        return replace(self, operands=operands, keys=renamed(self.keys), arrays=renamed(self.arrays))

    def with_fresh_labels(self, numbers: Iterator[int]) -> "Formula":
        """The same with labels that no other formula has."""
        labels = dict.fromkeys(label for operand in self.operands for label in operand.labels)
        return self.relabelled({label: f"x{next(numbers)}" for label in labels})


def aggregated(formula: Formula, group_by: Sequence[int], aggregate: str) -> Formula:
    """The aggregation of a relation whose own aggregate is the same, or that has none."""
    keys = tuple(formula.keys[position] for position in group_by)
    lacks_keys = not set(formula.keys) <= set(keys)
    return replace(formula, keys=keys, aggregate=aggregate if lacks_keys else formula.aggregate)


def combined(
    kernel: Kernel, sides: Sequence[Formula], joined: Iterable[tuple[str, str]], keys: Sequence[str]
) -> Formula:
    """A kernel of one tensor or two.

    Args:
        kernel: The kernel.
        sides: The tensors, without common labels.
        joined: Pairs of labels that must be equal.
        keys: The labels of the parts of the result's keys.

    Raises:
        AlgebraError: The kernel is no EinSum.
    """
    einsum = kernel_einsum(kernel, [len(side.arrays) for side in sides])
    pairs = list(joined)
    axes: dict[str, str] = {}  # for every label of the kernel, the label of an axis
    for operand, side in zip(einsum.operands, sides, strict=True):
        for label, axis in zip(operand.labels, side.arrays, strict=True):
            pairs.append((axes.setdefault(label, axis), axis))
    arrays = tuple(axes[label] for label in einsum.output.labels)
    operands = tuple(side.operands[0] for side in sides)
    return Formula(operands, einsum.join, einsum.aggregate, tuple(keys), arrays).relabelled(_representatives(pairs))


def kernel_einsum(kernel: Kernel, ranks: Sequence[int]) -> EinSum:
    """The EinSum of a kernel of arrays with these numbers of axes.

    Raises:
        AlgebraError: It is none.
    """
    match kernel:
        case EinSumKernel(einsum) if einsum.along is None and not any(axis_bounds_of(einsum.join)):
            return einsum
        case Elementwise(expression):
            labels = tuple(f"a{axis}" for axis in range(ranks[0]))
            operands = tuple(Reference(str(number), labels) for number in range(len(ranks)))
            return EinSum(Reference("w", labels), operands, expression, None)
        case _:
            raise AlgebraError(f"the kernel {kernel} is no EinSum")


def diagonal(formula: Formula, predicate: KeyPredicate) -> Formula:
    """The tuples in which parts of the keys are equal.

    Raises:
        AlgebraError: The predicate is another condition.
    """
    pairs = [(formula.keys[first], formula.keys[second]) for first, second in _equal_parts(predicate.condition)]
    return formula.relabelled(_representatives(pairs))


def _equal_parts(condition: KeyExpression) -> Iterator[tuple[int, int]]:
    match condition:
        case Operation("==", KeyPart(first), KeyPart(second)):
            yield first, second
        case Operation("&", left, right):
            yield from itertools.chain(_equal_parts(left), _equal_parts(right))
        case _:
            raise AlgebraError("only a filter that takes parts of keys to be equal is an EinSum")


def rekeyed(formula: Formula, keys: KeyMap) -> Formula:
    """The tuples with the parts of their keys in another order.

    Raises:
        AlgebraError: The function of keys does something else.
    """
    positions = [part.index for part in keys.parts if isinstance(part, KeyPart)]
    kept = tuple(formula.keys[position] for position in positions)
    if keys.copies > 1 or len(positions) < len(keys.parts) or set(kept) != set(formula.keys):
        raise AlgebraError("only a function of keys that changes the order of their parts is an EinSum")
    return replace(formula, keys=kept)


def _representatives(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """For labels that must be equal, one of them."""
    names: dict[str, str] = {}

    def representative(label: str) -> str:
        while label in names:
            label = names[label]
        return label

    for first, second in pairs:
        kept, other = representative(first), representative(second)
        if kept != other:
            names[other] = kept
    return {label: representative(label) for label in names}

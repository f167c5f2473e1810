"""Algebra: relational expressions written by hand in Python, an operator a call."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from sparseeinsum.algebra.implementation.distributed import DistributedPlans, distribute
from sparseeinsum.algebra.implementation.placements import PlacementLike
from sparseeinsum.algebra.relational.evaluate import evaluate
from sparseeinsum.algebra.relational.expressions import (
    Aggregation,
    Concat,
    Expression,
    Filter,
    Join,
    Rekey,
    Tile,
    Transform,
)
from sparseeinsum.algebra.relational.folds import as_fold
from sparseeinsum.algebra.relational.kernels import NAMES, EinSumKernel, Kernel, as_kernel
from sparseeinsum.algebra.relational.key_functions import trace_key_map, trace_predicate
from sparseeinsum.algebra.relational.keys import Key
from sparseeinsum.algebra.relational.types import RelationType
from sparseeinsum.algebra.relational.writing import write_expression
from sparseeinsum.errors import AlgebraError, SparseEinsumError
from sparseeinsum.language.eingraph import EinSum, Reference
from sparseeinsum.language.lowering import lower_text
from sparseeinsum.operators.dtypes import Array, Number
from sparseeinsum.operators.expressions import Call, Operand, Scalar
from sparseeinsum.operators.users_aggregates import USERS_AGGREGATES


@dataclass(frozen=True, slots=True)
class TensorRelation:
    """A relation of keys and arrays, and what becomes of it; every method gives another one.

    Made by `Database.relation`, and computed by `Database.compute`. Kernels are EinSums of the arrays u, and v where
    there are two, such as `w[i, k] = sum(u[i, j] * v[j, k])`, or names of functions that go element by element, such as
    `relu` or `add`.

    Attributes:
        expression: In the tensor relational algebra.
    """

    expression: Expression

    @property
    def type(self) -> RelationType:
        """How far keys go, and how large arrays are."""
        return self.expression.type

    def aggregate(self, by: Sequence[int], fold: str | Kernel = "sum") -> "TensorRelation":
        """One array for every group of tuples whose keys have the parts at these positions in common.

        Args:
            by: Positions in the key, in the order that the result has them.
            fold: `sum`, `prod`, `max` or `min`, element by element; or a kernel of two arrays, which `evaluate` takes.
        """
        return TensorRelation(Aggregation(self.expression, tuple(by), as_fold(fold)))

    def join(self, other: "TensorRelation", on: Sequence[tuple[int, int]], kernel: str | Kernel) -> "TensorRelation":
        """Pairs of tuples, and a kernel of their arrays.

        The result has the keys of this relation, then those of the other one that are not joined on.

        Args:
            other: The other relation.
            on: Positions in the key of this one, and of the other one, that must be equal.
            kernel: Of an array u of this one and an array v of the other one.
        """
        left, right = (tuple(positions) for positions in zip(*on, strict=True)) if on else ((), ())
        return TensorRelation(Join(self.expression, other.expression, left, right, parse_kernel(kernel, 2)))

    def rekey(self, keys: Callable[..., Any]) -> "TensorRelation":
        """Tuples with other keys.

        Args:
            keys: Gives the parts of the new key, from those of the old one: `lambda i, j: (j, i // 2)`.
        """
        return TensorRelation(Rekey(self.expression, trace_key_map(keys, self.type.arity)))

    def filter(self, condition: Callable[..., Any]) -> "TensorRelation":
        """The tuples for whose keys a condition holds, such as `lambda i, j: (i == j) & (i > 0)`."""
        return TensorRelation(Filter(self.expression, trace_predicate(condition, self.type.arity)))

    def transform(self, kernel: str | Kernel) -> "TensorRelation":
        """A kernel of every array, u."""
        return TensorRelation(Transform(self.expression, parse_kernel(kernel, 1)))

    def tile(self, axis: int, size: int) -> "TensorRelation":
        """Arrays cut into pieces of a size along an axis, which a new last part of the key counts."""
        return TensorRelation(Tile(self.expression, axis, size))

    def concat(self, key: int, axis: int, fill: Number | None = None) -> "TensorRelation":
        """Arrays put together along an axis, in the order of the part of the key at a position, which is gone then.

        Args:
            key: The position.
            axis: Of the arrays.
            fill: What is put in where a tuple is absent; None where none may be.
        """
        return TensorRelation(Concat(self.expression, key, axis, fill=fill))

    def evaluate(self, relations: Mapping[str, Mapping[Key, Array]]) -> dict[Key, Array]:
        """The relation by numpy, outside of the database, which kernels in Python may be part of.

        Args:
            relations: Arrays by their keys, of every tensor by name.
        """
        return evaluate(self.expression, relations)

    def distributed(
        self,
        sites: int,
        stored: Mapping[str, PlacementLike] = MappingProxyType({}),
        memory_floats: float | None = None,
    ) -> DistributedPlans:
        """The cheapest way found to compute it on several sites.

        Args:
            sites: How many there are.
            stored: How tensors lie, by name: positions of the keys that they are partitioned by, or `everywhere`.
            memory_floats: That a site has for what one operator reads and makes.
        """
        return distribute({"result": self.expression}, sites, stored, memory_floats)

    def __str__(self) -> str:
        return write_expression(self.expression)


def parse_kernel(text: str | Kernel, operands: int) -> Kernel:
    """A kernel, as one or as text: an EinSum of u and v, or the name of a function.

    Raises:
        AlgebraError: It is none of so many arrays.
    """
    if isinstance(text, Kernel) or "=" not in text:
        return as_kernel(text, operands)
    try:
        program = lower_text(text)
    except SparseEinsumError as error:
        raise AlgebraError(f"the kernel {text!r} cannot be read: {error}") from error
    is_one = len(program.einsums) == 1 and set(program.inputs) == set(NAMES[:operands])
    if not is_one or len(program.einsums[0].operands) != operands:
        wanted = " and ".join(NAMES[:operands])
        raise AlgebraError(
            f"the kernel {text!r} is to be one EinSum of {wanted}, each of them read under one set of labels"
        )
    (einsum,) = program.einsums
    if einsum.aggregate in USERS_AGGREGATES:
        raise AlgebraError(f"the kernel {text!r} is of {einsum.aggregate}, an aggregate that the algebra has not")
    order = [NAMES.index(operand.tensor) for operand in einsum.operands]
    read = tuple(sorted(einsum.operands, key=lambda each: each.tensor))
    join = _reordered(einsum.join, order)
    output = Reference("w", einsum.output.labels)
    return EinSumKernel(EinSum(output, read, join, einsum.aggregate, along=einsum.along))


def _reordered(expression: Scalar, order: Sequence[int]) -> Scalar:
    """An expression whose operands stand in another order."""
    match expression:
        case Operand(index):
            return Operand(order[index])
        case Call(function, arguments):
            return Call(function, tuple(_reordered(argument, order) for argument in arguments))
        case _:
            return expression

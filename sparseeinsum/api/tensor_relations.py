"""API: relational expressions that users write in Python, with a method for every operator."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, overload

from sparseeinsum.algebra.implementation.distributed import DistributedPlans, DistributionLike, distribute
from sparseeinsum.algebra.operator_arguments import (
    joined_positions,
    key_positions,
    names_operator,
    number_or_none,
    relations_by_name,
    whole_number,
)
from sparseeinsum.algebra.relational.evaluate import evaluate
from sparseeinsum.algebra.relational.expression_text import write_expression
from sparseeinsum.algebra.relational.folds import as_fold
from sparseeinsum.algebra.relational.kernels import NAMES, ArrayBound, EinSumKernel, Kernel, kernel_of
from sparseeinsum.algebra.relational.key_functions import trace_key_map, trace_predicate
from sparseeinsum.algebra.relational.keys import Key
from sparseeinsum.algebra.relational.named_kernels import as_kernel
from sparseeinsum.algebra.relational.relational_expressions import (
    Aggregation,
    Concat,
    Expression,
    Filter,
    Join,
    Rekey,
    Tile,
    Transform,
)
from sparseeinsum.algebra.relational.types import RelationType
from sparseeinsum.decompose.eindecomp.objectives import OF_PLANS, SECONDS
from sparseeinsum.errors import AlgebraError, SparseEinsumError
from sparseeinsum.language.eingraph import EinSum, Reference
from sparseeinsum.language.lowering import lower_text
from sparseeinsum.operators.dtypes import Array, Number
from sparseeinsum.operators.expressions import Call, Operand, Scalar
from sparseeinsum.operators.user_aggregates import USER_AGGREGATES
from sparseeinsum.plans.expression_partition import partition_expressions
from sparseeinsum.plans.partitioned_program import PartitionedProgram


@dataclass(frozen=True, slots=True)
class TensorRelation:
    """A relation of keys and arrays, or an expression of such relations; every method returns another one.

    `Database.relation` makes one, and `Database.compute` computes it. Kernels are EinSums of the arrays u and v, such
    as `w[i, k] = sum(u[i, j] * v[j, k])`, or names of functions that are applied element by element, such as `relu` or
    `add`.

    Attributes:
        expression: The expression in the tensor relational algebra.
    """

    expression: Expression

    @property
    def type(self) -> RelationType:
        """The frontier of the keys and the bound of the arrays."""
        return self.expression.type

    @names_operator
    def aggregate(self, by: Sequence[int], fold: str | Kernel = "sum") -> "TensorRelation":
        """One array for every group of tuples whose keys agree in the parts at some positions.

        Args:
            by: The positions in the key, in the order of the result's key.
            fold: `sum`, `prod`, `max` or `min`, element by element; `argmin` or `argmax`, for every element the part
                of the key that the group lacks, of the array with the least or the greatest one; or a kernel of two
                arrays, which only `evaluate` supports.
        """
        return TensorRelation(Aggregation(self.expression, key_positions("by", by), as_fold(fold)))

    @names_operator
    def join(self, other: "TensorRelation", on: Sequence[tuple[int, int]], kernel: str | Kernel) -> "TensorRelation":
        """Pairs of tuples, with a kernel of their arrays.

        The result has the keys of this relation, then the parts of the other one's keys that are not joined.

        Args:
            other: The other relation.
            on: Pairs of positions, in the key of this relation and of the other one, that must be equal.
            kernel: A kernel of an array u of this relation and an array v of the other one.
        """
        if not isinstance(other, TensorRelation):
            raise AlgebraError(f"the other side is {type(other).__name__}; open a tensor by db.relation(name)")
        left, right = joined_positions(on)
        parsed = parse_kernel(kernel, self.type.bound, other.type.bound)
        return TensorRelation(Join(self.expression, other.expression, left, right, parsed))

    @names_operator
    def rekey(self, keys: Callable[..., Any], copies: int | None = None) -> "TensorRelation":
        """The tuples with other keys, or several copies of each.

        Args:
            keys: A function from the parts of the key to those of the new key: `lambda i, j: (j, i // 2)`.
            copies: How many copies there are of each tuple; their number, from 0, is then the last argument of the
                function: `lambda i, j, copy: (i, 2 * j + copy)`. The copies must have different keys.
        """
        number = None if copies is None else whole_number("copies", copies)
        return TensorRelation(Rekey(self.expression, trace_key_map(keys, self.type.arity, number)))

    @names_operator
    def filter(self, condition: Callable[..., Any]) -> "TensorRelation":
        """The tuples for whose keys a condition holds, such as `lambda i, j: (i == j) & (i > 0)`."""
        return TensorRelation(Filter(self.expression, trace_predicate(condition, self.type.arity)))

    @names_operator
    def transform(self, kernel: str | Kernel) -> "TensorRelation":
        """A kernel of every array, which is named u.

        Args:
            kernel: An EinSum, as in `w[i] = 2 * u[i]`; the name of a function of numbers, such as `relu`; or a function
                of whole arrays: `inverse`, `sort(axis)` or `largest(count, axis)`, by default along the last axis.
        """
        return TensorRelation(Transform(self.expression, parse_kernel(kernel, self.type.bound)))

    @names_operator
    def tile(self, axis: int, size: int) -> "TensorRelation":
        """Arrays cut into tiles of `size` indices along an axis; a new last part of the key numbers the tiles."""
        return TensorRelation(Tile(self.expression, whole_number("axis", axis), whole_number("size", size)))

    @names_operator
    def concat(self, key: int, axis: int, fill: Number | None = None) -> "TensorRelation":
        """Arrays concatenated along an axis, in the order of a part of the key, which the result lacks.

        Args:
            key: The position of that part of the key.
            axis: The axis of the arrays.
            fill: The value in place of absent tuples; None if no tuple may be absent.
        """
        positions = whole_number("key", key), whole_number("axis", axis)
        return TensorRelation(Concat(self.expression, *positions, fill=number_or_none("fill", fill)))

    def evaluate(self, relations: Mapping[str, Mapping[Key, Array]]) -> dict[Key, Array]:
        """Compute the relation by numpy, outside of the database; kernels can be Python functions.

        Args:
            relations: For every tensor by name, its arrays by their keys.
        """
        return evaluate(self.expression, relations_by_name(relations))

    @overload
    def distributed(
        self,
        sites: int,
        stored: Mapping[str, DistributionLike] = ...,
        memory_floats: float | None = ...,
        objective: Literal["seconds"] = ...,
    ) -> DistributedPlans: ...

    @overload
    def distributed(
        self,
        sites: int,
        stored: Mapping[str, DistributionLike] = ...,
        memory_floats: None = ...,
        *,
        objective: Literal["floats"],
    ) -> PartitionedProgram: ...

    def distributed(
        self,
        sites: int,
        stored: Mapping[str, DistributionLike] = MappingProxyType({}),
        memory_floats: float | None = None,
        objective: str = SECONDS,
    ) -> DistributedPlans | PartitionedProgram:
        """The best plan found to compute it on several sites.

        Args:
            sites: The number of sites.
            stored: How tensors are placed, by name: the positions of the keys by which they are partitioned, or
                `everywhere`.
            memory_floats: How many floats a site can hold for the inputs and the result of one operator; only with
                `seconds`.
            objective: `seconds`: a plan of the implementation algebra that delays the busiest site least, where other
                tensors are scattered. `floats`: the cut that sends the fewest floats if every site has its share of the
                work, and other tensors lie where they are read first, as `se.partition` cuts programs; every operator
                must be part of an EinSum.

        Raises:
            AlgebraError: There is no such objective, no plan has enough memory, `stored` has a tensor or a distribution
                that does not exist, or an operator is no EinSum.
        """
        if objective == SECONDS:
            return distribute({"result": self.expression}, sites, stored, memory_floats)
        if objective not in OF_PLANS:
            raise AlgebraError(f"objective is {objective!r}; choose one of {', '.join(OF_PLANS)}")
        if memory_floats is not None:
            raise AlgebraError("memory_floats limits plans for the fewest seconds; leave it out for the fewest floats")
        return partition_expressions({"result": self.expression}, sites, stored)

    def __str__(self) -> str:
        return write_expression(self.expression)


def parse_kernel(text: str | Kernel, *bounds: ArrayBound) -> Kernel:
    """A kernel, given as one or as text: an EinSum of u and v, or the name of a function.

    Args:
        text: The kernel.
        bounds: The bounds of the arrays that it must take.

    Raises:
        AlgebraError: It is no kernel of such arrays.
    """
    operands = len(bounds)
    if not isinstance(text, str) or "=" not in text:
        return as_kernel(text, operands)
    try:
        program = lower_text(text)
    except SparseEinsumError as error:
        raise AlgebraError(f"the kernel {text!r} cannot be read: {error}") from error
    reads_names = len(program.einsums) == 1 and set(program.inputs) == set(NAMES[:operands])
    if not reads_names or len(program.einsums[0].operands) != operands:
        names = " and ".join(NAMES[:operands])
        raise AlgebraError(f"the kernel {text!r} must be one EinSum of {names}, each of them read once")
    (einsum,) = program.einsums
    if einsum.aggregate in USER_AGGREGATES:
        raise AlgebraError(
            f"the kernel {text!r}: {einsum.aggregate} is a user's aggregate, which the algebra does not support"
        )
    order = [NAMES.index(operand.tensor) for operand in einsum.operands]
    read = tuple(sorted(einsum.operands, key=lambda operand: operand.tensor))
    join = _reordered(einsum.join, order)
    output = Reference("w", einsum.output.labels)
    kernel = EinSumKernel(EinSum(output, read, join, einsum.aggregate, along=einsum.along))
    kernel.bound(*bounds)  # labels tell how many axes arrays must have, and an elementwise kernel has none
    return kernel_of(kernel.einsum)


def _reordered(expression: Scalar, order: Sequence[int]) -> Scalar:
    """The expression with its operands in another order."""
    match expression:
        case Operand(index):
            return Operand(order[index])
        case Call(function, arguments):
            return Call(function, tuple(_reordered(argument, order) for argument in arguments))
        case _:
            return expression

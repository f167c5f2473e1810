"""Algebra: an EinSum over relations as an expression of the tensor relational algebra: a join and an aggregation."""

from collections.abc import Sequence
from dataclasses import dataclass

from sparseeinsum.algebra.operators import Contract
from sparseeinsum.algebra.relational.absence import AbsentArray, TileExtent
from sparseeinsum.algebra.relational.folds import AggregateFold, CompensatedFold, Fold
from sparseeinsum.algebra.relational.kernels import NAMES, Kernel, kernel_of
from sparseeinsum.algebra.relational.keys import (
    KeyPart,
    KeyPredicate,
    Operation,
    projection,
)
from sparseeinsum.algebra.relational.relational_expressions import (
    Aggregation,
    Expression,
    Filter,
    Join,
    Rekey,
    Transform,
)
from sparseeinsum.algebra.relational.tensor_types import absent_of
from sparseeinsum.algebra.repartition_expressions import completed
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.errors import AlgebraError
from sparseeinsum.language.eingraph import EinSum, Reference
from sparseeinsum.language.tensors import DEMOTED
from sparseeinsum.operators.user_aggregates import USER_AGGREGATES
from sparseeinsum.semantics.exactness import JoinKind


@dataclass(frozen=True, slots=True)
class _Side:
    """An operand of a contraction.

    Attributes:
        expression: Its tuples.
        labels: The labels of its keys, each once.
        absent: What its absent tuples would hold.
    """

    expression: Expression
    labels: tuple[str, ...]
    absent: AbsentArray


@dataclass(frozen=True, slots=True)
class ContractionBuilder:
    """Builds the expression of an EinSum over relations."""

    contract: Contract
    operands: tuple[Expression, ...]

    def expression(self) -> Expression:
        """A join, if there are two operands, and an aggregation, if the result lacks some keys.

        Raises:
            AlgebraError: The aggregate is a user's, or there are three operands.
        """
        einsum = self.contract.einsum
        if einsum.aggregate in USER_AGGREGATES:
            raise AlgebraError(
                f"{einsum.output.tensor}: {einsum.aggregate} is a user's aggregate, which the algebra does not support"
            )
        if self.contract.is_fused:
            raise AlgebraError(
                f"{einsum.output.tensor}: one kernel computes this product of three operands, and a join of the "
                "algebra has two; plan with optimizer='relational'"
            )
        sides = [self._side(index) for index in range(len(self.operands))]
        if len(sides) == 1:
            joined, labels = Transform(sides[0].expression, self._kernel()), sides[0].labels
            return self._aggregated(joined, labels)
        left, right = sides
        shared = [label for label in left.labels if label in right.labels]
        left_keys = tuple(left.labels.index(label) for label in shared)
        right_keys = tuple(right.labels.index(label) for label in shared)
        absent = (None, None) if self.contract.join == JoinKind.INNER else (left.absent, right.absent)
        kernel, kind = self._kernel(), self.contract.join
        pairs = Join(left.expression, right.expression, left_keys, right_keys, kernel, kind, absent)
        return self._aggregated(pairs, (*left.labels, *(label for label in right.labels if label not in shared)))

    def _schema(self, index: int) -> Schema:
        return self.contract.inputs[index].schema

    def _side(self, index: int) -> _Side:
        """An operand; if its keys have a label twice, only the diagonal."""
        schema, labels = self._schema(index), self.contract.einsum.operands[index].labels
        expression = self.operands[index]
        keys = [labels[position] for position in schema.decomposition.promoted]
        first_positions = [keys.index(label) for label in dict.fromkeys(keys)]
        for position, label in enumerate(keys):
            if keys.index(label) != position:
                equal = Operation("==", KeyPart(keys.index(label)), KeyPart(position))
                expression = Filter(expression, KeyPredicate(len(keys), equal))
        if len(first_positions) < len(keys):
            expression = Rekey(expression, projection(len(keys), first_positions))
        absent = absent_of(schema.tensor, schema.decomposition)
        extents = (
            extent
            if extent.key is None
            else TileExtent(extent.tile, extent.bound, first_positions.index(keys.index(keys[extent.key])))
            for extent in absent.extents
        )
        unique = tuple(keys[position] for position in first_positions)
        return _Side(expression, unique, AbsentArray(absent.fill, tuple(extents), absent.dtype))

    def _inside(self, index: int) -> tuple[str, ...]:
        """The labels inside the arrays of an operand."""
        labels = self.contract.einsum.operands[index].labels
        return tuple(labels[position] for position in self._schema(index).decomposition.array_axes)

    def _kernel(self) -> Kernel:
        """The kernel: the EinSum over the labels inside arrays."""
        einsum, output = self.contract.einsum, self.contract.output
        inside = [self._inside(index) for index in range(len(self.operands))]
        output_labels = tuple(self.contract.labels[position] for position in output.decomposition.array_axes)
        is_aggregated = any(label not in output_labels for labels in inside for label in labels)
        references = tuple(Reference(name, labels) for name, labels in zip(NAMES, inside, strict=False))
        aggregate = einsum.aggregate if is_aggregated or einsum.along is not None else None
        return kernel_of(EinSum(Reference("w", output_labels), references, einsum.join, aggregate, along=einsum.along))

    def _aggregated(self, expression: Expression, labels: Sequence[str]) -> Expression:
        """The aggregation to the keys of the result, in their order."""
        output = self.contract.output
        key_labels = [self.contract.labels[position] for position in output.decomposition.promoted]
        positions = tuple(labels.index(label) for label in key_labels)
        if set(key_labels) == set(labels):
            keys = projection(len(labels), positions)
            return expression if keys.is_identity else Rekey(expression, keys)
        aggregated = [label for label in labels if label not in key_labels]
        aggregation = Aggregation(expression, positions, self._fold(aggregated))
        if key_labels:
            return aggregation
        return completed(aggregation, output)  # one tuple, also without pairs

    def _fold(self, aggregated: Sequence[str]) -> Fold:
        """The aggregate, with the contribution of the pairs that the join omits."""
        aggregate, compensation = self.contract.einsum.aggregate, self.contract.compensation
        assert aggregate is not None
        if compensation is None:
            return AggregateFold(aggregate)
        extents = tuple(self._extent(label, aggregated) for label in self._aggregated_inside())
        return CompensatedFold(AggregateFold(aggregate), compensation.constant, compensation.indices, extents)

    def _aggregated_inside(self) -> list[str]:
        inside = dict.fromkeys(label for index in range(len(self.operands)) for label in self._inside(index))
        return [label for label in inside if label not in self.contract.einsum.output.labels]

    def _extent(self, label: str, aggregated: Sequence[str]) -> TileExtent:
        """How many indices of a label the array of a pair has, which the kernel aggregates."""
        for index, operand in enumerate(self.contract.einsum.operands):
            if label in operand.labels:
                schema, position = self._schema(index), operand.labels.index(label)
                tile, bound = schema.decomposition.tiles[position], schema.tensor.axes[position].bound
                is_whole = tile == DEMOTED
                return TileExtent(bound, bound, None) if is_whole else TileExtent(tile, bound, aggregated.index(label))
        raise KeyError(label)

"""Algebra: relations that EinSums read, in the decompositions in which they read them."""

from dataclasses import dataclass

from sparseeinsum.algebra.operators import Compress, Densify, Materialized, Relation, Resident, Slice, Stack
from sparseeinsum.decompose.compressed_access import RowOrder
from sparseeinsum.decompose.repartitions import Repartition
from sparseeinsum.language.eingraph import Reference
from sparseeinsum.language.tensors import Decomposition


@dataclass(frozen=True, slots=True)
class Readable:
    """A relation that an EinSum can read.

    Attributes:
        relation: The operator that computes it.
        is_complete: Whether it is known to hold every tuple.
        is_full: Whether no index counts as absent, even where it holds the fill; such a relation is complete.
    """

    relation: Relation
    is_complete: bool
    is_full: bool


def repartitioned(operand: Readable, target: Decomposition, needs_all: bool, planned: Repartition) -> Readable:
    """An operand in the decomposition of its reader, with every tuple present if `needs_all`."""
    has_indices = operand.relation.schema.tensor.size > 0  # without indices, there are no tuples, and no group to stack
    has_all = operand.is_complete and has_indices
    if has_all and (needs_all or operand.is_full):  # nothing is absent, if slicing drops nothing
        return Readable(in_decomposition(operand.relation, target, planned, keeps_fill=True), True, operand.is_full)
    relation = in_decomposition(operand.relation, target, planned)
    decomposition = operand.relation.schema.decomposition
    drops_fill = decomposition.common_refinement(target) != decomposition
    is_single_stack = isinstance(relation, Stack) and not target.promoted  # which always has a tuple
    is_complete = is_single_stack or (has_all and not drops_fill)
    if needs_all and not is_complete:
        return Readable(Densify(relation), True, is_full=False)
    return Readable(relation, is_complete, is_full=False)


def resident(operand: Readable, target: Decomposition, planned: Repartition) -> Readable:
    """An operand that is kept in memory, where every tuple can be read, whether it is stored or not."""
    relation = in_decomposition(operand.relation, target, planned)
    return Readable(Resident(relation), relation.schema.tensor.size > 0, operand.is_full)


def compressed(relation: Relation, operand: Reference, order: RowOrder, computed_in: str) -> Compress:
    """The entries of an operand, ordered by row."""
    axis_of = operand.labels.index
    return Compress(relation, tuple(map(axis_of, order.rows)), tuple(map(axis_of, order.positions)), computed_in)


def in_decomposition(
    relation: Relation, target: Decomposition, planned: Repartition, keeps_fill: bool = False
) -> Relation:
    """The relation in another decomposition, in a table of its own if that is planned."""
    read = repartition(relation, target, keeps_fill)
    if planned.passes is None:
        return read
    axes = [axis.name for axis in read.schema.tensor.axes]
    return Materialized(read, axes.index(planned.passes.label), planned.passes.count)


def repartition(relation: Relation, target: Decomposition, keeps_fill: bool = False) -> Relation:
    """The relation in another decomposition: sliced to the common keys, then stacked to those of `target`."""
    decomposition = relation.schema.decomposition
    common = decomposition.common_refinement(target)
    if common != decomposition:
        relation = Slice(relation, common, keeps_fill)
    if common != target:
        relation = Stack(relation, target)
    return relation

"""Algebra, implementation: relational expressions as plans, operator by operator: table 1 (section 5.1)."""

from collections.abc import Mapping

from sparseeinsum.algebra.implementation.site_operators import (
    Broadcast,
    LocalAggregation,
    LocalComplete,
    LocalFilter,
    LocalJoin,
    LocalMap,
    PlacedInput,
    Shuffle,
    SitePlan,
    transformed,
)
from sparseeinsum.algebra.relational.relational_expressions import (
    Aggregation,
    Complete,
    Concat,
    Expression,
    Filter,
    Input,
    Join,
    Rekey,
    Tile,
    Transform,
)
from sparseeinsum.algebra.relational.traversal import topological_order
from sparseeinsum.decompose.places.distribution import Distribution, Scattered
from sparseeinsum.semantics.exactness import JoinKind


def table1_plan(expression: Expression, distributions: Mapping[str, Distribution]) -> SitePlan:
    """The plan of table 1: joins broadcast their left side, and aggregations shuffle by the keys of their groups.

    Args:
        expression: The expression.
        distributions: Where inputs are, by name; others are scattered.
    """
    plans: dict[int, SitePlan] = {}
    for node in topological_order(expression):
        if isinstance(node, Input):
            plans[id(node)] = PlacedInput(node, distributions.get(node.name, Scattered()))
        else:
            plans[id(node)] = table1_operator(node, tuple(plans[id(operand)] for operand in node.inputs))
    return plans[id(expression)]


def table1_operator(node: Expression, inputs: tuple[SitePlan, ...]) -> SitePlan:
    """One operator with the transfers of table 1 before it."""
    match node:
        case Join(_, _, left_keys, right_keys, _, kind):
            left, right = inputs
            if kind in (JoinKind.INNER, JoinKind.RIGHT):
                return local_operator(node, (Broadcast(left), right))
            if kind == JoinKind.LEFT:
                return local_operator(node, (left, Broadcast(right)))
            return local_operator(node, (Shuffle(left, left_keys), Shuffle(right, right_keys)))
        case Aggregation(_, group_by, _):
            return local_operator(node, (Shuffle(inputs[0], group_by),))
        case Concat():
            return local_operator(node, (Shuffle(inputs[0], node.group_by),))
        case Complete():
            return local_operator(node, (Shuffle(inputs[0], tuple(range(node.type.arity))),))
        case _:
            return local_operator(node, inputs)


def local_operator(node: Expression, inputs: tuple[SitePlan, ...]) -> SitePlan:
    """One operator on inputs whose tuples are where it needs them.

    Raises:
        AlgebraError: They are not.
    """
    (first, *_) = inputs
    match node:
        case Join():
            left, right = inputs
            return LocalJoin(left, right, node.left_keys, node.right_keys, node.kernel, node.kind, node.absent)
        case Aggregation(_, group_by, fold):
            return LocalAggregation(first, group_by, fold)
        case Concat():
            return LocalAggregation(first, node.group_by, node.concatenation)
        case Rekey(_, keys):
            return LocalMap(first, keys, node.kernel)
        case Filter(_, predicate):
            return LocalFilter(first, predicate)
        case Transform(_, kernel):
            return transformed(first, kernel)
        case Tile():
            return LocalMap(first, node.keys, node.kernel)
        case Complete(_, absent, frontier):
            return LocalComplete(first, absent, frontier)
        case _:
            raise TypeError(f"no operator: {node!r}")

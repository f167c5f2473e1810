"""Algebra, implementation: relational expressions in, plans out, operator by operator: table 1 (section 5.1)."""

from collections.abc import Mapping

from sparseeinsum.algebra.implementation.placements import SCATTERED, Placement
from sparseeinsum.algebra.implementation.site_operators import (
    Broadcast,
    LocalAggregation,
    LocalComplete,
    LocalFilter,
    LocalJoin,
    LocalMap,
    Placed,
    Shuffle,
    SitePlan,
    transformed,
)
from sparseeinsum.algebra.relational.expressions import (
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
from sparseeinsum.algebra.relational.kernels import IDENTITY
from sparseeinsum.algebra.relational.traversal import topological_order
from sparseeinsum.semantics.exactness import JoinKind


def table1_plan(expression: Expression, placements: Mapping[str, Placement]) -> SitePlan:
    """The plan of table 1: joins broadcast their left side, aggregations shuffle by the keys of their groups.

    Args:
        expression: Of the tensor relational algebra.
        placements: Where inputs lie; scattered if it says nothing.
    """
    found: dict[int, SitePlan] = {}
    for each in topological_order(expression):
        if isinstance(each, Input):
            found[id(each)] = Placed(each, placements.get(each.name, SCATTERED))
        else:
            found[id(each)] = moved_and_computed(each, tuple(found[id(operand)] for operand in each.inputs))
    return found[id(expression)]


def moved_and_computed(node: Expression, inputs: tuple[SitePlan, ...]) -> SitePlan:
    """One operator in the way of table 1."""
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
    """One operator on inputs that lie where it needs them.

    Raises:
        AlgebraError: They do not.
    """
    (given, *_) = inputs
    match node:
        case Join():
            left, right = inputs
            return LocalJoin(left, right, node.left_keys, node.right_keys, node.kernel, node.kind, node.absent)
        case Aggregation(_, group_by, fold):
            return LocalAggregation(given, group_by, fold)
        case Concat():
            return LocalAggregation(given, node.group_by, node.concatenation)
        case Rekey(_, keys):
            return LocalMap(given, keys, IDENTITY)
        case Filter(_, predicate):
            return LocalFilter(given, predicate)
        case Transform(_, kernel):
            return transformed(given, kernel)
        case Tile():
            return LocalMap(given, node.keys, node.cut)
        case Complete(_, absent, frontier):
            return LocalComplete(given, absent, frontier)
        case _:
            raise TypeError(f"no operator: {node!r}")

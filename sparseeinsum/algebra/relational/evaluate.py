"""Algebra, relational: what expressions mean: relations as dicts from keys to arrays, operator by operator, by numpy.

The reference that plans, rules and SQL are tested against; it checks what types claim of every relation.
"""

from collections.abc import Mapping
from functools import singledispatch
from typing import Any, TypeAlias

import numpy as np

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
from sparseeinsum.algebra.relational.keys import Key, all_keys, identity_map
from sparseeinsum.algebra.relational.traversal import topological_order
from sparseeinsum.algebra.relational.tuples import ARRAYS, completed, folded, mapped
from sparseeinsum.algebra.relational.types import RelationType, check_keys
from sparseeinsum.errors import AlgebraError
from sparseeinsum.operators.dtypes import Array

Relation: TypeAlias = dict[Key, Array]


def evaluate(expression: Expression, inputs: Mapping[str, Mapping[Key, Array]]) -> Relation:
    """The relation that an expression stands for.

    Args:
        expression: Of the tensor relational algebra.
        inputs: Relations by the names of inputs.

    Raises:
        AlgebraError: A relation is not of the type that it should be.
    """
    found: dict[int, Relation] = {}
    for each in topological_order(expression):
        if isinstance(each, Input):
            if each.name not in inputs:
                raise AlgebraError(f"no relation {each.name} is given; there are {', '.join(inputs) or 'none'}")
            relation = {key: np.asarray(array) for key, array in inputs[each.name].items()}
        else:
            relation = _computed(each, *(found[id(operand)] for operand in each.inputs))
        check_relation(relation, each.type)
        found[id(each)] = relation
    return found[id(expression)]


def check_relation(relation: Mapping[Key, Array], of: RelationType) -> None:
    """Refuse a relation that breaks what its type claims.

    Raises:
        AlgebraError: A key is beyond the frontier, one is missing, or an array has another bound.
    """
    for key, array in relation.items():
        if len(key) != of.arity or any(not 0 <= part < most for part, most in zip(key, of.frontier, strict=True)):
            raise AlgebraError(f"the key {key} is not below the frontier {of.frontier}")
        larger = len(array.shape) != of.rank or any(map(int.__gt__, array.shape, of.bound))
        if larger or (array.shape != of.bound and not of.is_ragged):
            raise AlgebraError(f"the array of the key {key} is {array.shape}; the relation's bound is {of.bound}")
    if of.is_continuous and len(relation) < of.key_count:
        raise AlgebraError(f"{of.key_count - len(relation)} of the {of.key_count} keys below {of.frontier} are absent")


@singledispatch
def _computed(node: Any, *inputs: Relation) -> Relation:  # noqa: ANN401  # no operator
    raise TypeError(f"no operator: {node!r}")


@_computed.register
def _aggregation(node: Aggregation, given: Relation) -> Relation:
    return dict(folded(given.items(), node.group_by, node.fold, ARRAYS))


@_computed.register
def _join(node: Join, left: Relation, right: Relation) -> Relation:
    return dict(node.pairing.joined(list(left.items()), list(right.items()), ARRAYS))


@_computed.register
def _rekey(node: Rekey, given: Relation) -> Relation:
    found = mapped(given.items(), node.keys, IDENTITY, ARRAYS)
    if found:
        keys = [key for key, _ in found]
        check_keys(np.asarray(keys, np.int64).reshape(len(keys), len(node.keys.parts)).T, node.keys)
    return dict(found)


@_computed.register
def _filter(node: Filter, given: Relation) -> Relation:
    return {key: array for key, array in given.items() if node.predicate.holds(key)}


@_computed.register
def _transform(node: Transform, given: Relation) -> Relation:
    return dict(mapped(given.items(), identity_map(node.type.arity), node.kernel, ARRAYS))


@_computed.register
def _tile(node: Tile, given: Relation) -> Relation:
    return dict(mapped(given.items(), node.keys, node.cut, ARRAYS))


@_computed.register
def _concat(node: Concat, given: Relation) -> Relation:
    return dict(folded(given.items(), node.group_by, node.concatenation, ARRAYS))


@_computed.register
def _complete(node: Complete, given: Relation) -> Relation:
    return dict(completed(given.items(), node.absent, all_keys(node.type.frontier), ARRAYS))

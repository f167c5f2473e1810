"""Algebra, relational: the meaning of expressions: relations as dicts from keys to arrays, computed by numpy.

It is the reference against which plans, rules and SQL are tested. It checks that every relation is of its type.
"""

from collections.abc import Mapping
from functools import singledispatch
from typing import Any, TypeAlias

import numpy as np

from sparseeinsum.algebra.relational.keys import Key, all_keys, identity_map
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
from sparseeinsum.algebra.relational.tuples import ARRAYS, completed, folded, mapped
from sparseeinsum.algebra.relational.types import RelationType, check_keys
from sparseeinsum.errors import AlgebraError
from sparseeinsum.operators.dtypes import Array

RelationTuples: TypeAlias = dict[Key, Array]


def evaluate(expression: Expression, inputs: Mapping[str, Mapping[Key, Array]]) -> RelationTuples:
    """The relation that an expression computes.

    Args:
        expression: The expression.
        inputs: The relations that it reads, by name.

    Raises:
        AlgebraError: A relation is not of its type.
    """
    results: dict[int, RelationTuples] = {}
    for node in topological_order(expression):
        if isinstance(node, Input):
            if node.name not in inputs:
                raise AlgebraError(f"no relation {node.name} is given; there are {', '.join(inputs) or 'none'}")
            relation = {key: np.asarray(array) for key, array in inputs[node.name].items()}
        else:
            relation = _apply_operator(node, *(results[id(operand)] for operand in node.inputs))
        check_relation(relation, node.type)
        results[id(node)] = relation
    return results[id(expression)]


def check_relation(relation: Mapping[Key, Array], relation_type: RelationType) -> None:
    """Raise an error if a relation is not of its type.

    Raises:
        AlgebraError: A key is beyond the frontier, a key is missing, or an array has another bound.
    """
    for key, array in relation.items():
        if len(key) != relation_type.arity or any(
            not 0 <= part < limit for part, limit in zip(key, relation_type.frontier, strict=True)
        ):
            raise AlgebraError(f"the key {key} is not below the frontier {relation_type.frontier}")
        if any(part != key[first] for part, first in zip(key, relation_type.first_equal, strict=True)):
            raise AlgebraError(f"the key {key} has parts that differ, and should be equal: {relation_type.first_equal}")
        is_larger = len(array.shape) != relation_type.rank or any(map(int.__gt__, array.shape, relation_type.bound))
        if is_larger or (array.shape != relation_type.bound and not relation_type.is_ragged):
            raise AlgebraError(
                f"the array of the key {key} is {array.shape}; the relation's bound is {relation_type.bound}"
            )
    if relation_type.is_continuous and len(relation) < relation_type.key_count:
        count = relation_type.key_count
        raise AlgebraError(f"{count - len(relation)} of the {count} keys below {relation_type.frontier} are absent")


@singledispatch
def _apply_operator(node: Any, *inputs: RelationTuples) -> RelationTuples:  # noqa: ANN401  # no operator
    raise TypeError(f"no operator: {node!r}")


@_apply_operator.register
def _aggregation(node: Aggregation, relation: RelationTuples) -> RelationTuples:
    return dict(folded(relation.items(), node.group_by, node.fold, ARRAYS))


@_apply_operator.register
def _join(node: Join, left: RelationTuples, right: RelationTuples) -> RelationTuples:
    return dict(node.pairing.joined(list(left.items()), list(right.items()), ARRAYS))


@_apply_operator.register
def _rekey(node: Rekey, relation: RelationTuples) -> RelationTuples:
    tuples = mapped(relation.items(), node.keys, node.kernel, ARRAYS)
    if tuples:
        keys = [key for key, _ in tuples]
        check_keys(np.asarray(keys, np.int64).reshape(len(keys), len(node.keys.parts)).T, node.keys)
    return dict(tuples)


@_apply_operator.register
def _filter(node: Filter, relation: RelationTuples) -> RelationTuples:
    return {key: array for key, array in relation.items() if node.predicate.holds(key)}


@_apply_operator.register
def _transform(node: Transform, relation: RelationTuples) -> RelationTuples:
    return dict(mapped(relation.items(), identity_map(node.type.arity), node.kernel, ARRAYS))


@_apply_operator.register
def _tile(node: Tile, relation: RelationTuples) -> RelationTuples:
    return dict(mapped(relation.items(), node.keys, node.kernel, ARRAYS))


@_apply_operator.register
def _concat(node: Concat, relation: RelationTuples) -> RelationTuples:
    return dict(folded(relation.items(), node.group_by, node.concatenation, ARRAYS))


@_apply_operator.register
def _complete(node: Complete, relation: RelationTuples) -> RelationTuples:
    return dict(completed(relation.items(), node.absent, all_keys(node.type.frontier), ARRAYS))

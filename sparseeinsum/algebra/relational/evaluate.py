"""Algebra, relational: what expressions mean: relations as dicts from keys to arrays, operator by operator, by numpy.

The reference that plans, rules and SQL are tested against; it checks what types claim of every relation.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import singledispatch
from typing import Any, TypeAlias

import numpy as np

from sparseeinsum.algebra.relational.compositions import Cut
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
    in_order,
)
from sparseeinsum.algebra.relational.folds import Fold
from sparseeinsum.algebra.relational.keys import Key, grid
from sparseeinsum.algebra.relational.types import RelationType, check_keys
from sparseeinsum.errors import AlgebraError
from sparseeinsum.language.dtypes import Array
from sparseeinsum.semantics.exactness import JoinKind

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
    for each in in_order(expression):
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
    if of.is_continuous and len(relation) < of.places:
        raise AlgebraError(f"{of.places - len(relation)} of the {of.places} keys below {of.frontier} are absent")


@singledispatch
def _computed(node: Any, *inputs: Relation) -> Relation:  # noqa: ANN401  # no operator
    raise TypeError(f"no operator: {node!r}")


@_computed.register
def _aggregation(node: Aggregation, given: Relation) -> Relation:
    return folded(given.items(), node.group_by, node.fold)


def folded(tuples: Iterable[tuple[Key, Array]], group_by: tuple[int, ...], fold: Fold) -> Relation:
    """Tuples folded by the parts of their keys."""
    groups: dict[Key, list[tuple[Key, Array]]] = defaultdict(list)
    for key, array in tuples:
        rest = tuple(part for position, part in enumerate(key) if position not in group_by)
        groups[tuple(key[position] for position in group_by)].append((rest, array))
    return {key: _folded_group(group, fold) for key, group in groups.items()}


def _folded_group(group: list[tuple[Key, Array]], fold: Fold) -> Array:
    ordered = sorted(group, key=lambda each: each[0])
    return fold.fold([key for key, _ in ordered], [array for _, array in ordered])


@_computed.register
def _join(node: Join, left: Relation, right: Relation) -> Relation:
    by_key: dict[Key, list[Key]] = defaultdict(list)
    for key in right:
        by_key[tuple(key[position] for position in node.right_keys)].append(key)
    found: Relation = {}
    met: set[Key] = set()
    rest = [position for position in range(node.right.type.arity) if position not in node.right_keys]
    for key, array in left.items():
        partners = by_key.get(tuple(key[position] for position in node.left_keys), [])
        met.update(partners)
        for other in partners:
            found[(*key, *(other[position] for position in rest))] = node.kernel.apply(array, right[other])
        if not partners and node.kind in (JoinKind.LEFT, JoinKind.FULL):
            found[key] = _with_absent(node, key, array, 1)
    if node.kind in (JoinKind.RIGHT, JoinKind.FULL):
        for key in right.keys() - met:
            found[_as_joined(node, key, rest)] = _with_absent(node, key, right[key], 0)
    return found


def _with_absent(node: Join, key: Key, array: Array, missing: int) -> Array:
    """The kernel of an array and of what its missing partner would hold."""
    absent = node.absent[missing]
    assert absent is not None
    mine, other = (node.left_keys, node.right_keys) if missing else (node.right_keys, node.left_keys)
    partner = [0] * len(other)
    for position, theirs in zip(mine, other, strict=True):
        partner[theirs] = key[position]
    arrays = [array, absent.array(tuple(partner))]
    return node.kernel.apply(*(arrays if missing else reversed(arrays)))


def _as_joined(node: Join, key: Key, rest: list[int]) -> Key:
    """The key that a tuple of the right side alone has in the result."""
    first = [0] * len(node.left_keys)
    for mine, other in zip(node.left_keys, node.right_keys, strict=True):
        first[mine] = key[other]
    return (*first, *(key[position] for position in rest))


@_computed.register
def _rekey(node: Rekey, given: Relation) -> Relation:
    found = [node.keys.apply(key) for key in given]
    if found:
        check_keys(np.asarray(found, np.int64).reshape(len(found), len(node.keys.parts)).T, node.keys)
    return dict(zip(found, given.values(), strict=True))


@_computed.register
def _filter(node: Filter, given: Relation) -> Relation:
    return {key: array for key, array in given.items() if node.predicate.holds(key)}


@_computed.register
def _transform(node: Transform, given: Relation) -> Relation:
    return {key: node.kernel.apply(array) for key, array in given.items()}


@_computed.register
def _tile(node: Tile, given: Relation) -> Relation:
    cut = Cut(node.axis, node.size, node.type.frontier[-1])
    return {(*key, at): piece for key, array in given.items() for at, piece in enumerate(cut.pieces(array))}


@_computed.register
def _concat(node: Concat, given: Relation) -> Relation:
    return folded(given.items(), node.group_by, node.concatenation)


@_computed.register
def _complete(node: Complete, given: Relation) -> Relation:
    keys = grid(node.type.frontier)
    if keys is None:
        raise AlgebraError(f"a relation of {node.type.places} keys is too large to be evaluated key by key")
    every = (tuple(map(int, key)) for key in keys.T)
    return {key: given[key] if key in given else node.absent.array(key) for key in every}

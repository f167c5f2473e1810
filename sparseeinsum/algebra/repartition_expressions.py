"""Algebra: repartitions as expressions of the tensor relational algebra: tiles and concats, each with a rekey."""

from sparseeinsum.algebra.relational.compositions import DropAxis, InsertAxis
from sparseeinsum.algebra.relational.keys import CopyNumber, Integer, KeyExpression, KeyMap, KeyPart, Operation
from sparseeinsum.algebra.relational.relational_expressions import (
    Complete,
    Concat,
    Expression,
    Rekey,
    Tile,
    Transform,
)
from sparseeinsum.algebra.relational.tensor_types import absent_of, extent_at, frontier_of
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.decompose.places.distribution import Gridded
from sparseeinsum.language.tensors import DEMOTED, Decomposition


def completed(expression: Expression, schema: Schema) -> Complete:
    """Add the absent tuples of a tensor, as `schema` lays it out."""
    absent = absent_of(schema.tensor, schema.decomposition)
    return Complete(expression, absent, frontier_of(schema.tensor, schema.decomposition))


def sliced(expression: Expression, schema: Schema, decomposition: Decomposition) -> Expression:
    """Take axes out of the arrays one by one: each axis is tiled, and the number of the tile becomes a key."""
    current = schema.decomposition
    for axis in decomposition.differing_axes(current):
        tile, new_tile = current.tiles[axis], decomposition.tiles[axis]
        inside = current.array_axes.index(axis)
        expression = Tile(expression, inside, new_tile)
        if new_tile == 1:
            expression = Transform(expression, DropAxis(inside))
        after = _with_tile(current, axis, new_tile)
        key_position, tile_key = after.promoted.index(axis), expression.type.arity - 1
        parts: list[KeyExpression] = [*map(KeyPart, range(tile_key))]
        if tile == DEMOTED:
            parts.insert(key_position, KeyPart(tile_key))
        else:
            count = Operation("*", KeyPart(key_position), Integer(tile // new_tile))
            parts[key_position] = Operation("+", count, KeyPart(tile_key))
        keys = KeyMap(tile_key + 1, tuple(parts))
        expression = expression if keys.is_identity else Rekey(expression, keys)
        current = after
    return expression


def _with_tile(decomposition: Decomposition, axis: int, tile: int) -> Decomposition:
    tiles = decomposition.tiles
    return Decomposition((*tiles[:axis], tile, *tiles[axis + 1 :]))


def stacked(expression: Expression, schema: Schema, decomposition: Decomposition) -> Expression:
    """Put keys into the arrays one by one; for a larger tile that stays a key, the key is split into tile and place."""
    current, tensor = schema.decomposition, schema.tensor
    for axis in decomposition.differing_axes(current):
        tile, new_tile = current.tiles[axis], decomposition.tiles[axis]
        after = _with_tile(current, axis, new_tile)
        inside = after.array_axes.index(axis)
        if tile == 1:
            expression = Transform(expression, InsertAxis(inside))
        key_position = current.promoted.index(axis)
        if new_tile != DEMOTED:
            expression = Rekey(expression, _split(expression.type.arity, key_position, new_tile // tile))
            key_position += 1
        expression = Concat(expression, key_position, inside, extent_at(tensor, after, axis), tensor.fill)
        current = after
    if not current.promoted:  # one tuple, also if the input has none
        expression = completed(expression, Schema(tensor, current))
    return expression


def on_grid(expression: Expression, schema: Schema, place: Gridded) -> Rekey:
    """Copy the tuples of a relation to cells of a grid, whose numbers become the first part of the keys."""
    arity = expression.type.arity
    number: KeyExpression = Integer(0)
    copy: KeyExpression = CopyNumber()
    for pieces, axis in zip(place.grid.pieces, place.axes, strict=True):
        if axis is None:
            piece = Operation("%", copy, Integer(pieces))
            copy = Operation("//", copy, Integer(pieces))
        else:
            piece = Operation("%", KeyPart(schema.decomposition.promoted.index(axis)), Integer(pieces))
        number = Operation("+", Operation("*", number, Integer(pieces)), piece)
    return Rekey(expression, KeyMap(arity, (number, *map(KeyPart, range(arity))), place.copies))


def off_grid(expression: Expression) -> Rekey:
    """Drop the first part of the keys, the cell of a grid, of which each tuple is in one."""
    arity = expression.type.arity
    return Rekey(expression, KeyMap(arity, tuple(map(KeyPart, range(1, arity)))))


def _split(arity: int, position: int, ratio: int) -> KeyMap:
    """Split a part of a key into the number of the larger tile, and the place in it."""
    split = (Operation("//", KeyPart(position), Integer(ratio)), Operation("%", KeyPart(position), Integer(ratio)))
    parts: list[KeyExpression] = [*map(KeyPart, range(arity))]
    parts[position : position + 1] = split
    return KeyMap(arity, tuple(parts))

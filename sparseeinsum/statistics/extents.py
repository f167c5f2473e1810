"""Statistics: extents of arrays: a number, or a SQL expression if the last tile of an axis is shorter."""

from collections.abc import Iterable

from sqlglot import exp

from sparseeinsum.language.tensors import StoredTensor, extent_of, is_ragged

Extent = int | exp.Expr


def extent(tile: int, bound: int, key: exp.Expr | None) -> Extent:
    """The extent of an array along one axis.

    Args:
        tile: The tile of the axis, or DEMOTED.
        bound: The bound of the axis.
        key: The key of the array on this axis; None if there is none.
    """
    if not is_ragged(tile, bound):
        return extent_of(tile, bound)
    assert key is not None
    begin = exp.Mul(this=_factor(key), expression=exp.Literal.number(tile))
    remaining = exp.Sub(this=exp.Literal.number(bound), expression=begin)
    return exp.func("least", exp.Literal.number(tile), remaining)


def extents_of(stored: StoredTensor, keys: Iterable[exp.Expr]) -> list[Extent]:
    """The extents of the array in a row with these keys, along the demoted and tiled axes."""
    tiles, shape = stored.decomposition.tiles, stored.tensor.shape
    key_of = dict(zip(stored.decomposition.promoted, keys, strict=True))
    return [
        extent(tiles[position], shape[position], key_of.get(position)) for position in stored.decomposition.array_axes
    ]


def product(extents: Iterable[Extent]) -> Extent:
    """The product of several extents."""
    number, expressions = 1, []
    for extent in extents:
        if isinstance(extent, int):
            number *= extent
        else:
            expressions.append(extent.copy())
    if not expressions:
        return number
    total = expressions[0] if number == 1 else exp.Mul(this=exp.Literal.number(number), expression=expressions[0])
    for expression in expressions[1:]:
        total = exp.Mul(this=total, expression=expression)
    return total


def as_sql(extent: Extent) -> exp.Expr:
    """An extent as a SQL expression."""
    return exp.Literal.number(extent) if isinstance(extent, int) else extent.copy()


def _factor(key: exp.Expr) -> exp.Expr:
    return exp.Paren(this=key.copy()) if isinstance(key, exp.Binary) else key.copy()

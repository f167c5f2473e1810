"""Statistics: how many indices of an axis an array holds: a number, or SQL where the last tile is shorter."""

from collections.abc import Iterable

from sqlglot import exp

from sparseeinsum.language.tensors import StoredTensor, extent_of, is_ragged

Extent = int | exp.Expr


def extent(tile: int, bound: int, key: exp.Expr | None) -> Extent:
    """Indices that the array of one key holds of an axis; `key` is that key, where there is one."""
    if not is_ragged(tile, bound):
        return extent_of(tile, bound)
    assert key is not None
    begin = exp.Mul(this=_operand(key), expression=exp.Literal.number(tile))
    rest = exp.Sub(this=exp.Literal.number(bound), expression=begin)
    return exp.func("least", exp.Literal.number(tile), rest)


def extents_of(stored: StoredTensor, keys: Iterable[exp.Expr]) -> list[Extent]:
    """Extents of the axes inside the array of a row with these keys."""
    tiles, shape = stored.decomposition.tiles, stored.tensor.shape
    key_of = dict(zip(stored.decomposition.promoted, keys, strict=True))
    return [
        extent(tiles[position], shape[position], key_of.get(position)) for position in stored.decomposition.array_axes
    ]


def product(extents: Iterable[Extent]) -> Extent:
    """Indices of several axes together."""
    number, expressions = 1, []
    for each in extents:
        if isinstance(each, int):
            number *= each
        else:
            expressions.append(each.copy())
    if not expressions:
        return number
    total = expressions[0] if number == 1 else exp.Mul(this=exp.Literal.number(number), expression=expressions[0])
    for each in expressions[1:]:
        total = exp.Mul(this=total, expression=each)
    return total


def as_sql(extent: Extent) -> exp.Expr:
    """An extent in an expression."""
    return exp.Literal.number(extent) if isinstance(extent, int) else extent.copy()


def _operand(key: exp.Expr) -> exp.Expr:
    return exp.Paren(this=key.copy()) if isinstance(key, exp.Binary) else key.copy()

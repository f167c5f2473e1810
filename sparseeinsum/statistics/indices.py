"""Statistics: queries of the indices of a stored tensor's entries, with a column for every axis."""

from sqlglot import exp

from sparseeinsum.language.tensors import DEMOTED, StoredTensor
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.statistics.columns import value_of
from sparseeinsum.statistics.distributed_aggregates import DISTRIBUTED_DIALECTS
from sparseeinsum.statistics.extents import Extent, as_sql, extent, product
from sparseeinsum.statistics.number_literals import number
from sparseeinsum.statistics.sql_templates import fill_placeholders, template
from sparseeinsum.statistics.tensor_rows import relation_of


def index_column(position: int, table: str | None = None) -> exp.Column:
    """The column with the indices of the axis at `position`."""
    return exp.column(f"index_{position}", table=table)


def entry_indices(stored: StoredTensor, dialect: str) -> exp.Select:
    """A query of the distinct indices at which a tensor does not hold its fill, with a column for every axis."""
    fill = number(stored.tensor.fill, stored.tensor.dtype)
    if stored.decomposition.is_scalar and not is_complex(stored.tensor.dtype):
        keys = [exp.column(key, quoted=True).as_(f"index_{i}") for i, key in enumerate(stored.keys)]
        condition = exp.NEQ(this=value_of(stored), expression=fill)
        return (
            exp.select(*(keys or [exp.Literal.number(1).as_("present")]))
            .from_(relation_of(stored, dialect))
            .where(condition)
        )
    elements = _elements(stored, dialect).subquery("elements")
    components = 2 if is_complex(stored.tensor.dtype) else 1
    place: exp.Expr = exp.column("place") if components == 1 else _divided(exp.column("place"), components)
    indices = [index.as_(f"index_{i}") for i, index in enumerate(_indices(stored, place))]
    return (
        exp.select(*(indices or [exp.Literal.number(1).as_("present")]))
        .distinct(distinct=components > 1)  # either part makes a complex number an entry
        .from_(elements)
        .where(exp.NEQ(this=exp.column("element"), expression=_fill_of(fill, components)))
    )


def _elements(stored: StoredTensor, dialect: str) -> exp.Select:
    """A query with a row for every element of every array: the keys, the element, and its position in the array."""
    keys = [exp.column(key, quoted=True).as_(f"key_{i}") for i, key in enumerate(stored.keys)]
    value = value_of(stored)
    if dialect in DISTRIBUTED_DIALECTS:
        query = fill_placeholders(
            template("elements", dialect), {"relation": relation_of(stored, dialect), "value": value}
        )
        assert isinstance(query, exp.Select)
        return query.select(*keys)
    places = exp.func("range", exp.func("len", value.copy(), dialect=dialect), dialect=dialect)
    unnested = [exp.Anonymous(this="UNNEST", expressions=[array]) for array in (value, places)]
    return exp.select(*keys, unnested[0].as_("element"), unnested[1].as_("place")).from_(relation_of(stored, dialect))


def _fill_of(fill: exp.Expr, components: int) -> exp.Expr:
    """The fill that an element is compared with: for complex numbers, the real or imaginary part by its position."""
    if components == 1:
        return fill
    real, imaginary = fill.expressions
    is_real = exp.EQ(this=exp.column("place") % components, expression=exp.Literal.number(0))
    return exp.case().when(is_real, real).else_(imaginary)


def _indices(stored: StoredTensor, place: exp.Expr) -> list[exp.Expr]:
    """The index on every axis of the element at position `place` of an array, whose last tiles may be shorter."""
    tiles, shape = stored.decomposition.tiles, stored.tensor.shape
    keys = {position: exp.column(f"key_{i}") for i, position in enumerate(stored.decomposition.promoted)}
    extents: list[Extent] = [
        extent(tile, bound, keys.get(position)) for position, (tile, bound) in enumerate(zip(tiles, shape, strict=True))
    ]
    indices: list[exp.Expr] = []
    for position, tile in enumerate(tiles):
        if tile == 1:
            indices.append(keys[position])
            continue
        offset = _divided(place, product(extents[position + 1 :])) % as_sql(extents[position])
        indices.append(offset if tile == DEMOTED else keys[position] * tile + exp.Paren(this=offset))
    return indices


def _divided(number: exp.Expr, divisor: Extent) -> exp.Expr:
    """A SQL expression for `number / divisor`, rounded down."""
    if divisor == 1:
        return number.copy()
    operand = exp.Literal.number(divisor) if isinstance(divisor, int) else exp.Paren(this=divisor)
    return exp.Paren(this=exp.IntDiv(this=number.copy(), expression=operand))

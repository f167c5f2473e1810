"""Statistics: the SQL templates of stats/, and the values of their placeholders."""

from collections.abc import Mapping, Sequence
from functools import cache

import sqlglot
from sqlglot import exp

from sparseeinsum.environment import assets
from sparseeinsum.language.tensors import StoredTensor, count_keys
from sparseeinsum.statistics.columns import coordinate, value_of
from sparseeinsum.statistics.extents import as_sql, extents_of, product
from sparseeinsum.statistics.number_literals import number

# Dialects of engines that extend others, and understand their statements.
_FOLDERS = {"citus": "postgresql"}
_SHARED_DIALECT = "duckdb"


@cache
def template(name: str, dialect: str) -> exp.Expr:
    """The query in `stats/<name>.sql`, in DuckDB's dialect, or in `stats/<dialect>/<name>.sql`; do not change it.

    What has a query of its own for every engine uses functions that sqlglot does not translate.
    """
    shared = f"stats/{name}.sql"
    if assets.path(shared).exists():
        return sqlglot.parse_one(assets.read(shared), dialect=_SHARED_DIALECT)
    return sqlglot.parse_one(assets.read(f"stats/{_FOLDERS.get(dialect, dialect)}/{name}.sql"), dialect=dialect)


def fill_placeholders(query: exp.Expr, values: Mapping[str, exp.Expr]) -> exp.Expr:
    """A query with the columns and relations of these names replaced; quoted names are the user's and stay."""

    def replace(node: exp.Expr) -> exp.Expr:
        is_name = isinstance(node, exp.Column | exp.Table) and node.name in values
        is_quoted = is_name and bool(node.this.args.get("quoted"))
        return values[node.name].copy() if is_name and not is_quoted else node

    return query.transform(replace)


def union_all(selects: Sequence[exp.Query]) -> exp.Query:
    """One query, by UNION ALL of one or more."""
    return exp.union(*selects, distinct=False) if len(selects) > 1 else selects[0]


def placeholders(stored: StoredTensor) -> dict[str, exp.Expr]:
    """The values of the placeholders that do not depend on an axis."""
    keys = [exp.column(key, quoted=True) for key in stored.keys]
    extents = extents_of(stored, keys)
    return {
        "value": value_of(stored),
        "fill": number(stored.tensor.fill, stored.tensor.dtype),
        "size": as_sql(product(extents)),
        "extents": exp.array(*map(as_sql, extents)),
        "coordinate": coordinate(
            keys,
            [
                count_keys(stored.decomposition.tiles[position], stored.tensor.shape[position])
                for position in stored.decomposition.promoted
            ],
        ),
    }

"""Statistics: one statement with several aggregates of a relation, also for engines that distribute relations.

On a cluster, an aggregate of distinct values next to other aggregates would send all rows to one machine, and
subqueries in a SELECT list are not supported. As subqueries of their own, they are computed on all machines, which send
only their counts.
"""

from collections.abc import Sequence

from sqlglot import exp

# Dialects of engines that distribute relations over machines.
DISTRIBUTED_DIALECTS = frozenset({"citus"})


def aggregate_query(
    relation: exp.Expr, projections: Sequence[exp.Expr], keys: Sequence[exp.Expr], dialect: str
) -> exp.Select:
    """A query of one row, with aggregates of a relation.

    Args:
        relation: The relation, for a FROM clause.
        projections: The aggregates, each under an alias.
        keys: Columns that identify a row, if the data are sound.
        dialect: The dialect of the engine.
    """
    if dialect not in DISTRIBUTED_DIALECTS:
        return exp.select(*projections).from_(relation)
    plain = [projection for projection in projections if not _needs_subquery(projection)]
    separate = {
        projection.alias: _subquery(projection, relation, keys)
        for projection in projections
        if _needs_subquery(projection)
    }
    tables = [exp.select(*plain).from_(relation.copy()).subquery("whole")]
    tables += [query.subquery(f"part_{number}") for number, query in enumerate(separate.values())]
    names = {alias: f"part_{number}" for number, alias in enumerate(separate)}
    columns = [exp.column(projection.alias, table=names.get(projection.alias, "whole")) for projection in projections]
    select = exp.select(*columns).from_(tables[0])
    for table in tables[1:]:
        select = select.join(table, join_type="CROSS")
    return select


def _needs_subquery(projection: exp.Expr) -> bool:
    """Whether a projection counts distinct values, or is a subquery already."""
    return projection.find(exp.Distinct, exp.Subquery) is not None


def _subquery(projection: exp.Expr, relation: exp.Expr, keys: Sequence[exp.Expr]) -> exp.Select:
    """A query that computes one projection alone."""
    distinct = projection.find(exp.Distinct)
    if distinct is None:
        query: exp.Select = projection.unalias().this.copy()
        (aggregate,) = query.expressions
        query.set("expressions", [aggregate.copy().as_("item")])
        last = exp.Max(this=exp.column("item"))  # returns one row even if the query returns none
        return exp.select(last.as_(projection.alias)).from_(query.subquery("one"))
    (value,) = distinct.expressions
    is_of_keys = {column.name for column in value.find_all(exp.Column)} == {key.name for key in keys}
    grouped = keys if is_of_keys and len(keys) > 1 else [value]
    rows = exp.select(value.copy().as_("item")).from_(relation.copy()).group_by(*(column.copy() for column in grouped))
    condition = projection.find(exp.Filter)
    if condition is not None:
        rows = rows.where(condition.expression.this.copy())
    counted = exp.Count(this=exp.column("item"))
    return exp.select(counted.as_(projection.alias)).from_(rows.subquery("distinct_values"))

"""Statistics: several aggregates of a relation in one statement, on engines that spread relations over machines, too.

There an aggregate of distinct values beside others would bring all rows to one machine, and a query of its own in a
SELECT list is none that is known; apart, each counts on all machines what they have, and brings together no more.
"""

from collections.abc import Sequence

from sqlglot import exp

# Of engines that spread relations over machines.
DISTRIBUTED_DIALECTS = frozenset({"citus"})


def aggregate_query(
    relation: exp.Expr, projections: Sequence[exp.Expr], keys: Sequence[exp.Expr], dialect: str
) -> exp.Select:
    """The query of one row with aggregates of a relation.

    Args:
        relation: For a FROM clause.
        projections: What is asked, each under an alias.
        keys: Columns that together tell every row from all others, but for rows that nobody should have twice.
        dialect: Of the engine.
    """
    if dialect not in DISTRIBUTED_DIALECTS:
        return exp.select(*projections).from_(relation)
    single = [each for each in projections if not _is_apart(each)]
    parts = {each.alias: _apart(each, relation, keys) for each in projections if _is_apart(each)}
    tables = [exp.select(*single).from_(relation.copy()).subquery("whole")]
    tables += [query.subquery(f"part_{number}") for number, query in enumerate(parts.values())]
    names = {alias: f"part_{number}" for number, alias in enumerate(parts)}
    columns = [exp.column(each.alias, table=names.get(each.alias, "whole")) for each in projections]
    select = exp.select(*columns).from_(tables[0])
    for table in tables[1:]:
        select = select.join(table, join_type="CROSS")
    return select


def _is_apart(projection: exp.Expr) -> bool:
    return projection.find(exp.Distinct, exp.Subquery) is not None


def _apart(projection: exp.Expr, relation: exp.Expr, keys: Sequence[exp.Expr]) -> exp.Select:
    """The query of one aggregate of distinct values, or of what has one already."""
    distinct = projection.find(exp.Distinct)
    if distinct is None:
        query: exp.Select = projection.unalias().this.copy()
        (found,) = query.expressions
        query.set("expressions", [found.copy().as_("found")])
        last = exp.Max(this=exp.column("found"))  # one row, also of a relation without any
        return exp.select(last.as_(projection.alias)).from_(query.subquery("one"))
    (value,) = distinct.expressions
    is_of_keys = {column.name for column in value.find_all(exp.Column)} == {key.name for key in keys}
    grouped = keys if is_of_keys and len(keys) > 1 else [value]
    rows = exp.select(value.copy().as_("found")).from_(relation.copy()).group_by(*(each.copy() for each in grouped))
    condition = projection.find(exp.Filter)
    if condition is not None:
        rows = rows.where(condition.expression.this.copy())
    counted = exp.Count(this=exp.column("found"))
    return exp.select(counted.as_(projection.alias)).from_(rows.subquery("distinct_values"))

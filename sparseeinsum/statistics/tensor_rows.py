"""Statistics: the relation with the rows of a stored tensor, for a FROM clause."""

from sqlglot import exp

from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.statistics.columns import table_by_name, written_table
from sparseeinsum.statistics.dictionary_queries import rows_with_indices
from sparseeinsum.statistics.list_columns import entries_query


def table_of_rows(stored: StoredTensor, dialect: str) -> exp.Table | exp.Subquery:
    """The table or subquery with the rows of a tensor; key columns may hold natural keys.

    Entries in lists are read out of their table: somebody may have replaced the view of them.
    """
    if stored.is_query:
        query: exp.Select = exp.maybe_parse(stored.relation)
        return query.subquery(stored.tensor.name)
    if stored.lists is None:
        return table_by_name(stored, dialect)
    table = written_table(stored, dialect)
    return entries_query(stored.tensor, stored.lists.layout, table, dialect).subquery(stored.tensor.name)


def relation_of(stored: StoredTensor, dialect: str) -> exp.Table | exp.Subquery:
    """The relation with the rows of a tensor; its key columns hold indices."""
    table = table_of_rows(stored, dialect)
    if not stored.column_dictionaries:
        return table
    return rows_with_indices(stored, exp.alias_(table, "t", table=True)).subquery("looked_up")

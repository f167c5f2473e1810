"""Statistics: dictionaries of natural keys in SQL: where they lie, and rows with indices in place of the keys."""

from collections.abc import Sequence

from sqlglot import exp

from sparseeinsum.language.tensors import Dictionary, StoredTensor

SCHEMA = "sparseeinsum"  # of all that is recorded in a database
INDEX_COLUMN, KEY_COLUMN = "index", "key"


def dictionary_table(dictionary: Dictionary) -> exp.Table:
    """The table of a dictionary: its indices and keys."""
    return exp.to_table(dictionary.relation)


def compared(key: exp.Expr, dictionary: Dictionary) -> exp.Expr:
    """A column of keys as it is compared with those of a dictionary: texts byte by byte, whatever their collation."""
    if dictionary.key_type != "TEXT":
        return key
    return exp.Collate(this=exp.cast(key, "text"), expression=exp.to_identifier("C", quoted=True))


def rows_with_indices(stored: StoredTensor, rows: exp.Expr, others: Sequence[str] = ()) -> exp.Select:
    """Rows of a tensor that hold natural keys, with their indices in the same columns; NULL for a key that is unknown.

    Args:
        stored: The tensor.
        rows: What to read, for a FROM clause, under the alias t.
        others: Columns to keep beside the key columns and the value.
    """
    found = stored.column_dictionaries
    aliases = {key: f"d_{number}" for number, key in enumerate(found, 1)}
    columns: list[exp.Expr] = [exp.column(each, table="t") for each in others]
    for key in dict.fromkeys(stored.keys):
        index = exp.column(INDEX_COLUMN, table=aliases[key]).as_(key) if key in found else exp.column(key, table="t")
        columns.append(index)
    if stored.value is not None and stored.value not in stored.keys:
        columns.append(exp.column(stored.value, table="t"))
    select = exp.select(*columns).from_(rows)
    for key, dictionary in found.items():
        same = exp.EQ(
            this=exp.column(KEY_COLUMN, table=aliases[key]),
            expression=compared(exp.column(key, table="t"), dictionary),
        )
        table = exp.alias_(dictionary_table(dictionary), aliases[key], table=True)
        select = select.join(table, on=same, join_type="LEFT")
    return select


def with_keys(rows: exp.Expr, keys: Sequence[tuple[str, Dictionary | None]], others: Sequence[str]) -> exp.Select:
    """Rows with natural keys in place of their indices.

    Args:
        rows: What to read, for a FROM clause, under the alias t.
        keys: Key columns, and the dictionaries of those that have one.
        others: Columns to keep after them.
    """
    aliases = {key: f"d_{number}" for number, (key, found) in enumerate(keys, 1) if found is not None}
    columns = [
        exp.column(KEY_COLUMN, table=aliases[key]).as_(key) if key in aliases else exp.column(key, table="t")
        for key, _ in keys
    ]
    select = exp.select(*columns, *(exp.column(each, table="t") for each in others)).from_(rows)
    for key, dictionary in keys:
        if dictionary is not None:
            same = exp.EQ(this=exp.column(INDEX_COLUMN, table=aliases[key]), expression=exp.column(key, table="t"))
            table = exp.alias_(dictionary_table(dictionary), aliases[key], table=True)
            select = select.join(table, on=same, join_type="LEFT")
    return select

"""Statistics: SQL that reads dictionaries, and replaces natural keys by indices and indices by natural keys."""

from collections.abc import Sequence

from sqlglot import exp

from sparseeinsum.language.tensors import Dictionary, StoredTensor

SCHEMA = "sparseeinsum"  # the schema of everything that the package records in a database
INDEX_COLUMN, KEY_COLUMN = "index", "key"


def dictionary_table(dictionary: Dictionary) -> exp.Table:
    """The table of a dictionary, with the columns INDEX_COLUMN and KEY_COLUMN."""
    return exp.to_table(dictionary.relation)


def comparable_key(key: exp.Expr, dictionary: Dictionary) -> exp.Expr:
    """The expression `key`, prepared for a comparison with keys of a dictionary: texts are compared byte by byte."""
    if dictionary.key_type != "TEXT":
        return key
    return exp.Collate(this=exp.cast(key, "text"), expression=exp.to_identifier("C", quoted=True))


def rows_with_indices(stored: StoredTensor, rows: exp.Expr, others: Sequence[str] = ()) -> exp.Select:
    """A query of a tensor's rows in which indices replace natural keys; NULL replaces a key that is unknown.

    Args:
        stored: The tensor.
        rows: The rows, for a FROM clause, under the alias t.
        others: Columns to keep in addition to the key columns and the value.
    """
    dictionaries = stored.column_dictionaries
    aliases = {key: f"d_{number}" for number, key in enumerate(dictionaries, 1)}
    columns: list[exp.Expr] = [exp.column(other, table="t") for other in others]
    for key in dict.fromkeys(stored.keys):
        is_natural = key in dictionaries
        columns.append(
            exp.column(INDEX_COLUMN, table=aliases[key]).as_(key) if is_natural else exp.column(key, table="t")
        )
    if stored.value is not None and stored.value not in stored.keys:
        columns.append(exp.column(stored.value, table="t"))
    select = exp.select(*columns).from_(rows)
    for key, dictionary in dictionaries.items():
        same = exp.EQ(
            this=exp.column(KEY_COLUMN, table=aliases[key]),
            expression=comparable_key(exp.column(key, table="t"), dictionary),
        )
        table = exp.alias_(dictionary_table(dictionary), aliases[key], table=True)
        select = select.join(table, on=same, join_type="LEFT")
    return select


def rows_with_keys(rows: exp.Expr, keys: Sequence[tuple[str, Dictionary | None]], others: Sequence[str]) -> exp.Select:
    """A query of rows in which natural keys replace indices.

    Args:
        rows: The rows, for a FROM clause, under the alias t.
        keys: The key columns, each with its dictionary or None.
        others: Columns to keep after the key columns.
    """
    aliases = {key: f"d_{number}" for number, (key, dictionary) in enumerate(keys, 1) if dictionary is not None}
    columns = [
        exp.column(KEY_COLUMN, table=aliases[key]).as_(key) if key in aliases else exp.column(key, table="t")
        for key, _ in keys
    ]
    select = exp.select(*columns, *(exp.column(other, table="t") for other in others)).from_(rows)
    for key, dictionary in keys:
        if dictionary is not None:
            same = exp.EQ(this=exp.column(INDEX_COLUMN, table=aliases[key]), expression=exp.column(key, table="t"))
            table = exp.alias_(dictionary_table(dictionary), aliases[key], table=True)
            select = select.join(table, on=same, join_type="LEFT")
    return select

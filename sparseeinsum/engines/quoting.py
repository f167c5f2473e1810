"""Engines: names and texts of users as SQL, the same in DuckDB and PostgreSQL."""


def quoted(*parts: str) -> str:
    """Return a quoted name; its parts are, for example, a schema and a table.

    >>> quoted("main", 'a"b')
    '"main"."a""b"'
    """
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def literal(text: str) -> str:
    """Return a text as a literal.

    >>> literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"

"""HTML for notebooks: tables and texts."""

from collections.abc import Iterable, Sequence
from html import escape


def cell_text(value: object) -> str:
    """Return a value of a table as text: six digits of a number, NULL for None."""
    if value is None:
        return "NULL"
    return f"{value:.6g}" if isinstance(value, float | complex) else str(value)


def html_table(title: str, columns: Sequence[str], rows: Iterable[Iterable[object]], note: str = "") -> str:
    """Return a title, a table and a note below it as HTML.

    Args:
        title: The text above the table.
        columns: The heads of the columns.
        rows: The cells of every row.
        note: The text below; empty for none.
    """
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell_text(value))}</td>' for value in row)}</tr>" for row in rows)
    below = f"<p>{escape(note)}</p>" if note else ""
    return (
        f"<div><p><code>{escape(title)}</code></p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}</div>"
    )


def html_text(text: str) -> str:
    """Return text, such as that of a program, as HTML that keeps its lines."""
    return f"<pre>{escape(text)}</pre>"

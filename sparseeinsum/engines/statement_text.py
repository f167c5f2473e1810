"""Engines: what no database takes as text of a statement."""

import re

from sparseeinsum.errors import EngineError

_REFUSED = re.compile("[\0\ud800-\udfff]")  # halves of surrogate pairs have no UTF-8


def check_text(text: str) -> None:
    """Refuse a statement with a NUL or with half of a surrogate pair, as names and texts of users may have them.

    Raises:
        EngineError: It has one.
    """
    refused = refused_character(text)
    if refused is not None:
        raise EngineError(
            f"a name or text has the character {refused!a}, which databases do not store; choose another",
            ascii(text),
        )


def has_line_break(name: str) -> bool:
    """Whether a name is of several lines, which writing SQL in lines would change."""
    return "\n" in name or "\r" in name


def refused_character(text: str) -> str | None:
    """The first character of a text that no database stores; None where there is none."""
    refused = _REFUSED.search(text)
    return None if refused is None else refused[0]

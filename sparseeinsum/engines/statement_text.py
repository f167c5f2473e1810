"""Engines: what no database takes as text of a statement."""

import re

from sparseeinsum.errors import EngineError

_REFUSED = re.compile("[\0\ud800-\udfff]")  # halves of surrogate pairs have no UTF-8


def check_text(text: str) -> None:
    """Refuse a statement with a NUL or with half of a surrogate pair, as names and texts of users may have them.

    Raises:
        EngineError: It has one.
    """
    if refused := _REFUSED.search(text):
        raise EngineError(
            f"a name or text has the character {refused[0]!a}, which databases do not store; choose another",
            ascii(text),
        )

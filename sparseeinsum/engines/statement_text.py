"""Engines: characters that no database accepts in statements."""

import re

from sparseeinsum.errors import EngineError

_UNSUPPORTED = re.compile("[\0\ud800-\udfff]")  # NUL; and halves of surrogate pairs, which UTF-8 cannot encode


def check_text(text: str) -> None:
    """Refuse a statement with a character that no database stores, which a user's names and texts may contain.

    Raises:
        EngineError: The statement has a NUL or half of a surrogate pair.
    """
    character = unsupported_character(text)
    if character is not None:
        raise EngineError(
            f"a name or text has the character {character!a}, which databases do not store; choose another",
            ascii(text),
        )


def has_line_break(name: str) -> bool:
    """Return whether a name has a line break; formatting SQL in several lines would change such a name."""
    return "\n" in name or "\r" in name


def unsupported_character(text: str) -> str | None:
    """Return the first character of `text` that no database stores, or None."""
    match = _UNSUPPORTED.search(text)
    return None if match is None else match[0]

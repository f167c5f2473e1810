"""Spelling: the hint in a message about a name that does not exist."""

import difflib
from collections.abc import Iterable

_MOST_LISTED = 40  # names in a message


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the one of `names` that is most like a name, in any case; None if none is like it."""
    spelled = {candidate.lower(): candidate for candidate in names}
    close = difflib.get_close_matches(name.lower(), spelled, n=1)
    return spelled[close[0]] if close else None


def did_you_mean(name: str, names: Iterable[str], otherwise: str = "known are", none: str = "there are none") -> str:
    """Return what a message says after a name that does not exist.

    Args:
        name: The name.
        names: The names that exist, in the order in which to list them.
        otherwise: Comes before a list of `names` if none of them is like the name.
        none: What the message says if there are no names.

    >>> did_you_mean("sume", ["sum", "max"]), did_you_mean("x", ["sum", "max"])
    ('did you mean sum?', 'known are sum, max')
    """
    candidates = list(dict.fromkeys(names))
    near = nearest(name, candidates)
    if near is not None:
        return f"did you mean {near}?"
    if not candidates:
        return none
    more = len(candidates) - _MOST_LISTED
    return f"{otherwise} {', '.join(candidates[:_MOST_LISTED])}{f' and {more:,} more' if more > 0 else ''}"

"""Language: names that are not in use."""

from collections.abc import Callable


def unused_name(base: str, is_used: Callable[[str], bool], separator: str = "") -> str:
    """A name that is not in use: `base` itself, or `base`, the separator and the least number from 2 on.

    >>> unused_name("T", {"T", "T2"}.__contains__)
    'T3'
    """
    name, number = base, 1
    while is_used(name):
        number += 1
        name = f"{base}{separator}{number}"
    return name

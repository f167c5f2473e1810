"""Rewriting: new names for intermediate results and for labels, which no program names."""

from collections.abc import Collection, Iterable

from sparseeinsum.language.unused_names import unused_name


class UniqueNames:
    """Invents names that differ from all names in use; case does not distinguish names."""

    def __init__(self, used: Iterable[str]) -> None:
        self._used = {name.lower() for name in used}
        self._last: dict[str, int] = {}

    def invent(self, base: str) -> str:
        """A new name for a result that serves to compute `base`: `base_1`, `base_2` and so on."""
        number = self._last.get(base, 0) + 1
        while f"{base}_{number}".lower() in self._used:
            number += 1
        self._last[base] = number
        self._used.add(f"{base}_{number}".lower())
        return f"{base}_{number}"

    def reserve(self, names: Iterable[str]) -> None:
        """Mark `names` as used, so that none of them is invented again."""
        self._used |= {name.lower() for name in names}

    def copy(self) -> "UniqueNames":
        """A copy, to try names out that may not be used in the end."""
        return UniqueNames(self._used)


def unused_label(label: str, used: Collection[str]) -> str:
    """The label itself, or the label with the least number from 2 on, so that it is none of `used`."""
    return unused_name(label, lambda name: name in used)

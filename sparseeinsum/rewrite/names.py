"""Rewriting: names for tensors that no program names."""

from collections.abc import Iterable


class Names:
    """Names that are taken; case does not tell names apart."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = {name.lower() for name in taken}
        self._last: dict[str, int] = {}

    def invent(self, base: str) -> str:
        """A name of its own for something that serves to compute `base`."""
        number = self._last.get(base, 0) + 1
        while f"{base}_{number}".lower() in self._taken:
            number += 1
        self._last[base] = number
        self._taken.add(f"{base}_{number}".lower())
        return f"{base}_{number}"

    def take(self, names: Iterable[str]) -> None:
        """Names that are given to something now."""
        self._taken |= {name.lower() for name in names}

    def copy(self) -> "Names":
        """The same, to invent names that are given to nothing yet."""
        return Names(self._taken)

"""Render: what nested SELECTs compute, each from what those within it have."""

from collections.abc import Hashable, Iterable, Mapping


def nested_levels(reads: Mapping[str, Iterable[Hashable]]) -> list[list[str]]:
    """The results in levels, each after the level of all that it reads.

    Args:
        reads: What every result reads, names of results among it, in topological order.
    """
    level_of: dict[Hashable, int] = {}
    levels: list[list[str]] = []
    for name, read in reads.items():
        level = max((level_of[other] + 1 for other in read if other in level_of), default=0)
        level_of[name] = level
        levels += [[]] if level == len(levels) else []
        levels[level].append(name)
    return levels

"""Language: layouts of stored tensors as text: A[I, j] has rows in arrays, A[I, ~j] in lists, A[I, J] has entries."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparseeinsum.errors import ShapeError
from sparseeinsum.language.tensors import DEMOTED, ListLayout

_LAYOUT = re.compile(r"\s*(\w+)\s*\[(.*)\]\s*", re.DOTALL)
_PART = re.compile(r"\s*(~?)\s*([^\W\d]\w*)\s*(?::\s*(\d+))?\s*")
_EXAMPLES = "write it as A[I, j], A[I, ~j] or A[I:1024, ~i, ~j]"
MOST_POSITIONS = 1 << 31  # of an axis in a list, whose positions have the SQL type INTEGER


@dataclass(frozen=True, slots=True)
class LayoutNotation:
    """A layout as a user writes it.

    Attributes:
        text: The text.
        tiles: By label, the tile of its key column, in order of the first mention; DEMOTED where it has none.
        compressed: The labels that have lists, in order.
    """

    text: str
    tiles: Mapping[str, int]
    compressed: tuple[str, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in the order in which they are mentioned first."""
        return tuple(self.tiles)

    @property
    def promoted(self) -> dict[str, int]:
        """The labels with key columns, and their tiles."""
        return {label: tile for label, tile in self.tiles.items() if tile != DEMOTED}

    def lists(self, names: Sequence[str], bounds: Sequence[int]) -> ListLayout | None:
        """The layout of a tensor with lists; None if the notation has none.

        Args:
            names: The names of the axes, in lower case.
            bounds: Their bounds.

        Raises:
            ShapeError: The labels are not the names of the axes, or a list would have positions beyond INTEGER.
        """
        if not self.compressed:
            return None
        if sorted(names) != sorted(self.tiles):
            raise ShapeError(
                f"the layout {self.text} has labels {', '.join(self.tiles)}; the axes are {', '.join(names)}"
            )
        layout = ListLayout(
            tuple([self.tiles[name] for name in names]), tuple([names.index(label) for label in self.compressed])
        )
        for axis in layout.compressed:
            if min(bounds[axis], layout.tiles[axis] or bounds[axis]) > MOST_POSITIONS:
                name = names[axis]
                raise ShapeError(
                    f"the layout {self.text} has positions of {name} up to {bounds[axis]:,} in lists, which take fewer "
                    f"than {MOST_POSITIONS:,}; cut it into tiles, as in {name.upper()}:65536, ~{name}"
                )
        return layout


def parse_layout(name: str, text: str) -> LayoutNotation:
    """Read a layout of the tensor `name`.

    Raises:
        ShapeError: The text is none.
    """
    match = _LAYOUT.fullmatch(text)
    if match is None or match[1] != name:
        raise ShapeError(f"{text!r} is no layout of tensor {name}; {_EXAMPLES}, with the name {name}")
    tiles: dict[str, int] = {}
    compressed: list[str] = []
    dense: list[str] = []
    for part in match[2].split(",") if match[2].strip() else ():
        _add_part(text, part, tiles, compressed, dense)
    if compressed and dense:
        raise ShapeError(
            f"the layout {text} has lists of arrays: {', '.join(dense)} would be dense beside ~{compressed[0]}; write "
            f"~{dense[0]} or {dense[0].upper()}"
        )
    for label in compressed:
        if tiles[label] == 1:
            raise ShapeError(
                f"the layout {text} has the index {label} as a key and in a list, too; leave one out, or give the key "
                f"a tile, as in {label.upper()}:1024"
            )
    return LayoutNotation(text, tiles, tuple(compressed))


def _add_part(text: str, part: str, tiles: dict[str, int], compressed: list[str], dense: list[str]) -> None:
    """Read one part of a layout, such as I:1024 or ~j."""
    match = _PART.fullmatch(part)
    if match is None:
        raise ShapeError(f"the layout {text} has {part.strip()!r}, which is no label; {_EXAMPLES}")
    is_list, written, tile = bool(match[1]), match[2], match[3]
    label = written.lower()
    if not is_list and written == written.upper():
        if tiles.get(label, DEMOTED) != DEMOTED or label in dense or (tile is not None and int(tile) < 1):
            raise ShapeError(f"the layout {text} has {part.strip()} twice, or with a tile below 1; {_EXAMPLES}")
        tiles[label] = 1 if tile is None else int(tile)
        return
    if written != label or tile is not None or label in (*compressed, *dense) or (not is_list and label in tiles):
        raise ShapeError(
            f"the layout {text} has {part.strip()}: a key is in upper case, as in I or I:1024; other labels are in "
            "lower case, once, and without a tile"
        )
    (compressed if is_list else dense).append(label)
    tiles.setdefault(label, DEMOTED)

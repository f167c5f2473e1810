"""Kernels: describes the constant data of libraries: texts, and words that are numbers or addresses."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class StaticText:
    """A text in a library, which ends with a zero byte there."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class StaticWords:
    """Words of 64 bits. A name stands for the address of the function or data of that name, 0 if there is none."""

    name: str
    words: tuple[int | str, ...]
    is_constant: bool = True


StaticData: TypeAlias = Sequence[StaticText | StaticWords]

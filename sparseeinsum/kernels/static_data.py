"""Kernels: data that compiled code reads: texts, and words that are numbers or addresses."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Text:
    """A text, which ends with a zero byte."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Words:
    """Words of 64 bits; one that is a name is the address of what is called so, 0 where there is nothing."""

    name: str
    words: tuple[int | str, ...]
    is_constant: bool = True


StaticData: TypeAlias = Sequence[Text | Words]

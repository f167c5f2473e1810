"""Kernels: data that compiled code reads: texts, and words that are numbers or addresses, in memory or in LLVM IR."""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Text:
    """A text, which ends with a zero byte."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Words:
    """Words of 64 bits; one that is given as a name is the address of what is called so, 0 where there is nothing."""

    name: str
    words: tuple[int | str, ...]
    is_constant: bool = True


StaticData: TypeAlias = Sequence[Text | Words]
Block: TypeAlias = "ctypes.Array[ctypes.c_char] | ctypes.Array[ctypes.c_int64]"


def in_llvm(data: StaticData) -> Iterator[str]:
    """Definitions in LLVM IR; what words name beside them may be in another object file, or nowhere."""
    known: set[str] = set()
    named: set[str] = set()
    for each in data:
        known.add(each.name)
        if isinstance(each, Text):
            held = each.text.encode() + bytes(1)
            yield f"@{each.name} = private constant [{len(held)} x i8] {bytes_in_llvm(held)}"
        else:
            named.update(word for word in each.words if isinstance(word, str))
            kind = "constant" if each.is_constant else "global"
            yield f"@{each.name} = private {kind} [{len(each.words)} x i64] [{_words_in_llvm(each.words)}]"
    yield from (f"@{name} = extern_weak hidden global i8" for name in sorted(named - known))


def bytes_in_llvm(held: bytes) -> str:
    """An array of bytes as a constant of LLVM IR."""
    return 'c"' + "".join(f"\\{byte:02X}" for byte in held) + '"'


def _words_in_llvm(words: Sequence[int | str]) -> str:
    return ", ".join(f"i64 {word if isinstance(word, int) else f'ptrtoint (ptr @{word} to i64)'}" for word in words)


def in_memory(data: StaticData, address_of: Callable[[str], int]) -> dict[str, Block]:
    """Blocks of memory by their names, to keep as long as they are read. `address_of` knows what else words name."""
    blocks: dict[str, Block] = {each.name: _block(each) for each in data}
    addresses = {name: ctypes.addressof(block) for name, block in blocks.items()}
    for each in data:
        if isinstance(each, Words):
            held = [addresses.get(word) or address_of(word) if isinstance(word, str) else word for word in each.words]
            blocks[each.name][:] = held
    return blocks


def _block(data: Text | Words) -> Block:
    if isinstance(data, Text):
        return ctypes.create_string_buffer(data.text.encode())
    return (ctypes.c_int64 * len(data.words))()

"""Kernels: writes texts and words as LLVM IR."""

from collections.abc import Callable, Iterable, Iterator

from sparseeinsum.kernels.static_data import StaticText, StaticWords


def texts_code(texts: Iterable[StaticText]) -> Iterator[str]:
    """Yield the LLVM IR that defines some texts."""
    for text in texts:
        content = text.text.encode() + bytes(1)
        yield f"@{text.name} = private constant [{len(content)} x i8] {bytes_code(content)}"


def words_code(words: Iterable[StaticWords], symbol_of: Callable[[str], str | None]) -> Iterator[str]:
    """Yield the LLVM IR that defines some words.

    Args:
        words: The words to define. They may name one another.
        symbol_of: Returns the symbol for a name, also for names of `words`; None makes the word 0.
    """
    for block in words:
        kind = "constant" if block.is_constant else "global"
        elements = ", ".join(f"i64 {_word(word, symbol_of)}" for word in block.words)
        yield f"@{symbol_of(block.name)} = private {kind} [{len(block.words)} x i64] [{elements}]"


def bytes_code(content: bytes) -> str:
    """Return an LLVM IR constant: an array of bytes."""
    return 'c"' + "".join(f"\\{byte:02X}" for byte in content) + '"'


def _word(word: int | str, symbol_of: Callable[[str], str | None]) -> str:
    symbol = symbol_of(word) if isinstance(word, str) else None
    return (str(word) if isinstance(word, int) else "0") if symbol is None else f"ptrtoint (ptr @{symbol} to i64)"

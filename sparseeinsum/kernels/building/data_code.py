"""Kernels: texts and words in, LLVM IR of them out."""

from collections.abc import Callable, Iterable, Iterator

from sparseeinsum.kernels.static_data import Text, Words


def texts_code(texts: Iterable[Text]) -> Iterator[str]:
    """Definitions of texts."""
    for text in texts:
        held = text.text.encode() + bytes(1)
        yield f"@{text.name} = private constant [{len(held)} x i8] {bytes_code(held)}"


def words_code(words: Iterable[Words], symbol_of: Callable[[str], str | None]) -> Iterator[str]:
    """Definitions of words.

    Args:
        words: Those to define, of which one may name another.
        symbol_of: What is called by a name, those of `words` included; None where there is nothing, which is 0.
    """
    for block in words:
        kind = "constant" if block.is_constant else "global"
        held = ", ".join(f"i64 {_word(word, symbol_of)}" for word in block.words)
        yield f"@{symbol_of(block.name)} = private {kind} [{len(block.words)} x i64] [{held}]"


def bytes_code(held: bytes) -> str:
    """An array of bytes as a constant."""
    return 'c"' + "".join(f"\\{byte:02X}" for byte in held) + '"'


def _word(word: int | str, symbol_of: Callable[[str], str | None]) -> str:
    symbol = symbol_of(word) if isinstance(word, str) else None
    return (str(word) if isinstance(word, int) else "0") if symbol is None else f"ptrtoint (ptr @{symbol} to i64)"

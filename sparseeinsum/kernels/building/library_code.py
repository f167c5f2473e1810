"""Kernels: writes the LLVM IR that all libraries share: tables, and the choice of the code for a processor."""

from collections.abc import Callable, Collection, Iterator, Sequence

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.building.data_code import texts_code, words_code
from sparseeinsum.kernels.building.processors import check_code
from sparseeinsum.kernels.building.targets import Target
from sparseeinsum.kernels.platforms import VARIABLE
from sparseeinsum.kernels.static_data import StaticData, StaticText, StaticWords
from sparseeinsum.kernels.symbols import BLAS, BLAS_WORDS, USER_FUNCTIONS, processor_symbol

UNFIT = (  # the error of a library that has no code for the processor that runs it
    f"the library of sparseeinsum was built for another processor and cannot run on this one, or {VARIABLE} names a "
    "processor that the library or this machine does not support; build it on this machine, or unset the variable"
)

_TABLE_WORDS = 1 + d.MAX_USER_FUNCTIONS * d.USER_FUNCTION_WORDS
_TABLES = f"""
@{USER_FUNCTIONS} = hidden global [{_TABLE_WORDS} x i64] zeroinitializer
@{BLAS} = hidden global [{BLAS_WORDS} x ptr] zeroinitializer
"""
_CHOICE = """
declare i64 @choose_processor(i64, i64, i64)
define internal i64 @choose() {{
  %words = call i64 @choose_processor(i64 ptrtoint (ptr @processors to i64), i64 {count},
                                      i64 ptrtoint (ptr @variable to i64))
  ret i64 %words
}}
"""


def tables_code() -> str:
    """Return the LLVM IR of the tables that compiled code refers to."""
    return _TABLES


def choice_code(targets: Sequence[Target], code_of: Callable[[str], str]) -> Iterator[str]:
    """Yield the LLVM IR of `choose`, which returns the address of the words of the best processor that fits, or 0.

    Args:
        targets: The processors that the library has code for, the lowest first.
        code_of: Returns the symbol of a processor's code, which is one of its words.
    """
    processors = [_processor(target) for target in reversed(targets)]
    texts = [StaticText("variable", VARIABLE), StaticText("unfit", UNFIT)]
    texts += [StaticText(_text_of(processor), processor) for processor in processors]
    words = [word for name in processors for word in (_text_of(name), processor_symbol("fits", name), code_of(name))]
    yield from texts_code(texts)
    yield from words_code([StaticWords("processors", tuple(words))], lambda name: name)
    yield from (check_code(processor_symbol("fits", _processor(target)), target) for target in targets)
    yield _CHOICE.format(count=len(processors))


def data_code(data: StaticData, processors: Sequence[str], exported: Collection[str]) -> Iterator[str]:
    """Yield the LLVM IR of data: texts once, words for each processor with the addresses of its exported functions."""
    texts = [block for block in data if isinstance(block, StaticText)]
    words = [block for block in data if isinstance(block, StaticWords)]
    yield from texts_code(texts)
    shared, own = {text.name for text in texts}, {block.name for block in words} | set(exported)
    for processor in processors:

        def symbol_of(name: str, processor: str = processor) -> str | None:
            return name if name in shared else processor_symbol(name, processor) if name in own else None

        yield from words_code(words, symbol_of)


def declarations(functions: Collection[str], processors: Sequence[str]) -> Iterator[str]:
    """Yield declarations of the functions of groups for each processor; only their addresses are used."""
    for processor in processors:
        yield from (f"declare hidden void @{processor_symbol(name, processor)}()" for name in sorted(functions))


def _processor(target: Target) -> str:
    assert target.processor is not None
    return target.processor


def _text_of(processor: str) -> str:
    return processor_symbol("name_of_processor", processor)

"""Kernels: writes the LLVM IR of the library for a major version of PostgreSQL, except kernels and callbacks."""

from collections.abc import Collection, Iterator, Sequence
from functools import cache

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.array_functions import HANDLES
from sparseeinsum.kernels.building.data_code import bytes_code
from sparseeinsum.kernels.building.library_code import choice_code, data_code, declarations, tables_code
from sparseeinsum.kernels.building.page_code import page_code
from sparseeinsum.kernels.building.postgresql_functions import GLUE
from sparseeinsum.kernels.building.postgresql_kept_arrays import kept_arrays_code
from sparseeinsum.kernels.building.postgresql_memory import memory_code
from sparseeinsum.kernels.building.postgresql_rows import rows_code
from sparseeinsum.kernels.building.postgresql_threads import statement_threads_code
from sparseeinsum.kernels.building.postgresql_type import type_code
from sparseeinsum.kernels.building.targets import Target
from sparseeinsum.kernels.building.thread_code import thread_code
from sparseeinsum.kernels.kernel_descriptions import descriptor_words, texts_of
from sparseeinsum.kernels.postgresql import descriptors as pd
from sparseeinsum.kernels.postgresql.declared_functions import NUMBERS, CFunction, c_functions, supported_functions
from sparseeinsum.kernels.postgresql.linking_names import KEPT_SYMBOLS, TYPE_SYMBOLS, WITH_COLUMNS, link_symbol
from sparseeinsum.kernels.postgresql.sqlstates import sqlstate_word, sqlstate_words
from sparseeinsum.kernels.static_data import StaticText, StaticWords
from sparseeinsum.kernels.symbols import processor_symbol

# Pg_magic_struct of fmgr.h: its bytes; the version times 100, the most arguments of a function and columns of an
# index, bytes of a name, whether float8 is passed by value; the ABI of the server; since 18 also a name and a version.
_MAGIC = "[ i32 {bytes}, i32 {version}00, i32 100, i32 32, i32 64, i32 1 ]"
_ABI = "PostgreSQL"
_ABI_BYTES = 32

_FEATURE_NOT_SUPPORTED = "0A000"
_CODE = "code"  # the words of each processor: addresses of the callback and the descriptor of every function

# PostgreSQL calls _PG_init when it has loaded the library, which then refuses a processor that it has no code for.
_LOADING = f"""
@chosen = internal global ptr null

define void @_PG_init() {{
  %number = call i64 @choose()
  %processor = inttoptr i64 %number to ptr
  %none = icmp eq ptr %processor, null
  br i1 %none, label %refuse, label %keep
refuse:
  call void @sparseeinsum_raise(i64 {sqlstate_word(_FEATURE_NOT_SUPPORTED)}, i64 ptrtoint (ptr @unfit to i64))
  br label %done
keep:
  %place = getelementptr [3 x ptr], ptr %processor, i64 0, i64 2
  %code = load ptr, ptr %place
  store ptr %code, ptr @chosen
  call void @retain_freed_memory()
  call void @count_processors()
  br label %done
done:
  ret void
}}
"""


def postgresql_code(targets: Sequence[Target], exported: Collection[str], major: int, version: str) -> Iterator[str]:
    """Yield the LLVM IR of the library for PostgreSQL, without that of the groups.

    Args:
        targets: The processors that the library has code for, the lowest first.
        exported: The names of the functions that the groups export.
        major: The version of PostgreSQL, one of MAJORS.
        version: The version of the extension.
    """
    processors = [target.processor for target in targets if target.processor is not None]
    callbacks = {function.callback for function in c_functions()}
    referenced = {
        word for block in _data() if isinstance(block, StaticWords) for word in block.words if isinstance(word, str)
    }
    code = tuple(word for function in c_functions() for word in (function.callback, _descriptor_symbol(function)))
    yield from _magic(major)
    yield "@finfo = private constant i32 1"
    yield tables_code()
    yield from _version_function(version)
    yield from declarations({*callbacks, *referenced}.intersection(exported), processors)
    yield from data_code((*_data(), StaticWords(_CODE, code)), processors, exported)
    yield from choice_code(targets, lambda processor: processor_symbol(_CODE, processor))
    yield _LOADING
    yield memory_code()
    yield thread_code(targets[0].platform)
    yield page_code(targets[0].platform)
    yield statement_threads_code(targets[0].platform)
    yield GLUE
    yield rows_code(WITH_COLUMNS)
    read, receive, cast = (link_symbol(symbol, version) for symbol in TYPE_SYMBOLS)
    yield type_code((read, receive, cast))
    keep, kept, size, release = (link_symbol(symbol, version) for symbol in KEPT_SYMBOLS)
    yield kept_arrays_code((keep, kept, size, release))
    for index, function in enumerate(c_functions()):
        yield _entry_point(link_symbol(function.symbol, version), index)


def exported_to_postgresql(version: str) -> tuple[str, ...]:
    """List the symbols that PostgreSQL uses in the library of a version of the extension."""
    symbols = ("version", *TYPE_SYMBOLS, *KEPT_SYMBOLS, *(function.symbol for function in c_functions()))
    names = [WITH_COLUMNS, *(link_symbol(symbol, version) for symbol in symbols)]
    return ("Pg_magic_func", "_PG_init", *names, *(f"pg_finfo_{name}" for name in names))


@cache
def _data() -> tuple[StaticText | StaticWords, ...]:
    """Return the texts, SQLSTATEs and descriptors that callbacks read."""
    texts = texts_of(supported_functions())
    return (*texts, StaticWords("sqlstates", sqlstate_words()), *map(_descriptor, c_functions()))


def _magic(major: int) -> Iterator[str]:
    new_types = ", ptr, ptr" if major >= 18 else ""
    new_values = ", ptr null, ptr null" if major >= 18 else ""
    size = 6 * 4 + _ABI_BYTES + (16 if new_types else 0)
    numbers = _MAGIC.format(bytes=size, version=major)
    yield f"""@magic = private constant {{ [6 x i32], [{_ABI_BYTES} x i8]{new_types} }} {{
  [6 x i32] {numbers}, [{_ABI_BYTES} x i8] {bytes_code(_ABI.encode().ljust(_ABI_BYTES, bytes(1)))}{new_values} }}
define ptr @Pg_magic_func() {{ ret ptr @magic }}"""


def _version_function(version: str) -> Iterator[str]:
    """Define the function that returns the extension's version: a text, whose header is four times its bytes."""
    symbol, text = link_symbol("version", version), version.encode()
    yield f"""@version = private constant {{ i32, [{len(text)} x i8] }} {{
  i32 {4 * (4 + len(text))}, [{len(text)} x i8] {bytes_code(text)} }}
define i64 @{symbol}(i64 %call_info) {{ ret i64 ptrtoint (ptr @version to i64) }}
define ptr @pg_finfo_{symbol}() {{ ret ptr @finfo }}"""


def _descriptor_symbol(function: CFunction) -> str:
    return f"descriptor_{function.symbol}"


def _descriptor(function: CFunction) -> StaticWords:
    """Return the descriptor that an entry point passes to its callback."""
    words = descriptor_words(function.function, function.dtype, pd.DESCRIPTOR_WORDS)
    words[d.LIMIT_BYTES] = pd.LARGEST_RESULT
    words[pd.RESULT_TYPE], words[pd.SQLSTATES] = function.result_type, "sqlstates"
    for index, argument in enumerate(function.function.arguments):
        if argument.type in HANDLES:  # what they stand for elsewhere
            words[d.HEADER + 2 * index] = d.LIST
    words[d.ELEMENT_TYPE] = NUMBERS[function.dtype]
    words[pd.DECLARED_TYPES : pd.DECLARED_TYPES + len(function.declared_types)] = function.declared_types
    words[pd.KERNEL_TYPES : pd.KERNEL_TYPES + len(function.kernel_types)] = function.kernel_types
    return StaticWords(_descriptor_symbol(function), tuple(words))


def _entry_point(symbol: str, index: int) -> str:
    """Define the function that PostgreSQL calls for number `index` of `c_functions`."""
    return f"""define i64 @{symbol}(i64 %call_info) {{
  %code = load ptr, ptr @chosen
  %place = getelementptr [2 x i64], ptr %code, i64 {index}
  %callback = load ptr, ptr %place
  %second = getelementptr i64, ptr %place, i64 1
  %descriptor = load i64, ptr %second
  %result = call i64 %callback(i64 %call_info, i64 %descriptor)
  ret i64 %result
}}
define ptr @pg_finfo_{symbol}() {{ ret ptr @finfo }}"""

"""Kernels: machine code of all kernels in, a shared library that one major version of PostgreSQL loads out.

Names of functions in the library hold the extension's version, so that a script of another version finds none of its
functions there.
"""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from sparseeinsum.errors import ExtensionError
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.catalogue import functions_of_postgresql
from sparseeinsum.kernels.kernel_descriptions import descriptor_words, texts_of
from sparseeinsum.kernels.linking import NO_USERS_FUNCTIONS, link_library, write_whole
from sparseeinsum.kernels.postgresql import descriptors as pd
from sparseeinsum.kernels.postgresql.functions import CFunction, c_functions, vocabulary
from sparseeinsum.kernels.postgresql.symbols import GLUE
from sparseeinsum.kernels.processors import NATIVE, UNFIT, check_code, features
from sparseeinsum.kernels.static_data import Text, Words, bytes_in_llvm, in_llvm

VERSIONS = (15, 16, 17, 18)  # majors of PostgreSQL

# Pg_magic_struct of fmgr.h: its own bytes; the version times 100, most arguments of a function and columns of an index,
# bytes of a name, whether float8 is passed by value; who builds servers like this; since 18 a name and a version, too.
_MAGIC = "[ i32 {bytes}, i32 {version}00, i32 100, i32 32, i32 64, i32 1 ]"
_ABI = "PostgreSQL"
_ABI_BYTES = 32

_FEATURE_NOT_SUPPORTED = "0A000"


def link_symbol(symbol: str, version: str) -> str:
    """Name of a function in the library of a version of the extension.

    >>> link_symbol("version", "0.1.0")
    'sparseeinsum_0_1_0_version'
    """
    return f"sparseeinsum_{re.sub(r'[^0-9A-Za-z]', '_', version)}_{symbol}"


def build_library(path: Path, server: int, version: str, processor: str = NATIVE) -> None:
    """Write the library for a major version of PostgreSQL.

    Args:
        path: Of the file, which is replaced whole or not at all.
        server: One of VERSIONS.
        version: Of the extension.
        processor: One of `processors.PROCESSORS`; on others that lack something, the library refuses to be loaded.

    Raises:
        ExtensionError: The version or processor is not supported, there is no linker, or it failed.
    """
    if server not in VERSIONS:
        raise ExtensionError(f"PostgreSQL {server} is not supported; versions are {', '.join(map(str, VERSIONS))}")
    code = (*_host_code(server, version), *_first_check(processor), GLUE)
    write_whole(path, link_library("postgresql", processor, code, _exported(version)), 0o755)


def _exported(version: str) -> list[str]:
    names = [link_symbol("version", version), *(link_symbol(each.symbol, version) for each in c_functions())]
    return ["Pg_magic_func", "_PG_init", *names, *(f"pg_finfo_{name}" for name in names)]


def _host_code(server: int, version: str) -> Iterator[str]:
    """LLVM IR of what is PostgreSQL's alone: its entry points, and tables that tell callbacks what to do."""
    yield from _magic(server)
    yield "@finfo = private constant i32 1"
    yield NO_USERS_FUNCTIONS
    yield from _version_function(version)
    functions = c_functions()
    sqlstates = Words("sqlstates", pd.sqlstate_words())
    texts = texts_of((*vocabulary(), *functions_of_postgresql()))
    yield from in_llvm((*texts, sqlstates, *(_descriptor(each, version) for each in functions)))
    yield from (f"declare i64 @{name}(i64, i64)" for name in sorted({each.callback for each in functions}))
    yield from map(partial(_entry_point, version=version), functions)


def _magic(server: int) -> Iterator[str]:
    more = ", ptr, ptr" if server >= 18 else ""
    nothing = ", ptr null, ptr null" if server >= 18 else ""
    size = 6 * 4 + _ABI_BYTES + (16 if more else 0)
    numbers = _MAGIC.format(bytes=size, version=server)
    yield f"""@magic = private constant {{ [6 x i32], [{_ABI_BYTES} x i8]{more} }} {{
  [6 x i32] {numbers}, [{_ABI_BYTES} x i8] {bytes_in_llvm(_ABI.encode().ljust(_ABI_BYTES, bytes(1)))}{nothing} }}
define ptr @Pg_magic_func() {{ ret ptr @magic }}"""


def _first_check(processor: str) -> Iterator[str]:
    """What PostgreSQL calls when it has loaded the library: an error in time is better than a crash later."""
    yield check_code(features(processor))
    yield from in_llvm((Text("unfit", UNFIT),))
    yield f"""define void @_PG_init() {{
  %fits = call i1 @sparseeinsum_processor_fits()
  br i1 %fits, label %done, label %refuse
refuse:
  call void @sparseeinsum_raise(i64 {pd.sqlstate_word(_FEATURE_NOT_SUPPORTED)}, i64 ptrtoint (ptr @unfit to i64))
  br label %done
done:
  ret void
}}"""


def _version_function(version: str) -> Iterator[str]:
    """A function that returns the extension's version: a text, whose header is its length in bytes times four."""
    symbol, text = link_symbol("version", version), version.encode()
    yield f"""@version = private constant {{ i32, [{len(text)} x i8] }} {{
  i32 {4 * (4 + len(text))}, [{len(text)} x i8] {bytes_in_llvm(text)} }}
define i64 @{symbol}(i64 %call_info) {{ ret i64 ptrtoint (ptr @version to i64) }}
define ptr @pg_finfo_{symbol}() {{ ret ptr @finfo }}"""


def _descriptor(function: CFunction, version: str) -> Words:
    """What an entry point hands to a callback beside the call's arguments."""
    words = descriptor_words(function.function, function.dtype, pd.DESCRIPTOR_WORDS)
    words[d.LIMIT_BYTES] = pd.LARGEST_RESULT
    words[pd.RESULT_TYPE], words[pd.SQLSTATES] = function.result, "sqlstates"
    for index, (declared, wanted) in enumerate(zip(function.declared, function.wanted, strict=True)):
        words[pd.DECLARED + index], words[pd.WANTED + index] = declared, wanted
    return Words(f"descriptor_{link_symbol(function.symbol, version)}", tuple(words))


def _entry_point(function: CFunction, version: str) -> str:
    """What PostgreSQL calls."""
    symbol = link_symbol(function.symbol, version)
    return f"""define i64 @{symbol}(i64 %call_info) {{
  %result = call i64 @{function.callback}(i64 %call_info, i64 ptrtoint (ptr @descriptor_{symbol} to i64))
  ret i64 %result
}}
define ptr @pg_finfo_{symbol}() {{ ret ptr @finfo }}"""

"""Kernels: writes the LLVM IR of the library for DuckDB, except kernels and callbacks.

The library calls DuckDB only through the function table of its C API. The same file is an extension that any DuckDB
from 1.5.6 on loads, and the library that this package opens in a Python process.
"""

from collections.abc import Collection, Iterator, Sequence

from sparseeinsum.kernels.building.library_code import choice_code, data_code, declarations, tables_code
from sparseeinsum.kernels.building.page_code import page_code
from sparseeinsum.kernels.building.system_code import system_code
from sparseeinsum.kernels.building.targets import Target
from sparseeinsum.kernels.building.thread_code import thread_code
from sparseeinsum.kernels.duckdb.api_table import C_API_VERSION, COPIED_SLOTS, SLOTS
from sparseeinsum.kernels.duckdb.registry import REGISTRY, registry
from sparseeinsum.kernels.static_data import StaticText, StaticWords
from sparseeinsum.kernels.symbols import (
    BLAS,
    BLAS_WORDS,
    CHOSEN_PROCESSOR,
    CONFIGURE,
    ENTRY_POINT,
    RELEASE,
    RESIDENTS,
    STOP_WORD,
    TABLE_OF_RESIDENTS,
    TABLE_OF_USER_FUNCTIONS,
    USER_FUNCTIONS,
    processor_symbol,
)

# The footer: https://github.com/duckdb/duckdb/blob/v1.5.5/scripts/append_metadata.cmake. It begins with the head of a
# WebAssembly section, which other platforms ignore.
_FOOTER_HEAD = b"\x00\x93\x04\x10duckdb_signature\x80\x04"
_FIELD_BYTES = 32
_FORMAT = "4"
_UNSIGNED = bytes(256)

_FUNCTIONS = "sparseeinsum_c_api"  # the symbol of the function table
_MOST_ARGUMENTS = 6  # of any function in it; all are integers or pointers, which are passed in registers
_LOAD = "load_extension"
_RELEASE = "release_kept"
_CODE = "code"  # the words of each processor: addresses of its `load_extension`, of its registry, and of `release_kept`

_ENTRY = f"""
@{_FUNCTIONS} = internal global [{COPIED_SLOTS} x i64] zeroinitializer

define zeroext i1 @{ENTRY_POINT}(ptr %info, ptr %access) {{
  %number = call i64 @choose()
  %processor = inttoptr i64 %number to ptr
  %none = icmp eq ptr %processor, null
  br i1 %none, label %refuse, label %load
refuse:
  %set_error = load ptr, ptr %access
  call void %set_error(ptr %info, ptr @unfit)
  ret i1 0
load:
  call void @sparseeinsum_draw_secret()
  %place = getelementptr [3 x ptr], ptr %processor, i64 0, i64 2
  %code = load ptr, ptr %place
  %load_extension = load ptr, ptr %code
  %second = getelementptr [2 x i64], ptr %code, i64 0, i64 1
  %registry = load i64, ptr %second
  %i = ptrtoint ptr %info to i64
  %a = ptrtoint ptr %access to i64
  %done = call i64 %load_extension(i64 %i, i64 %a, i64 %registry, i64 ptrtoint (ptr @{_FUNCTIONS} to i64),
                                   i64 ptrtoint (ptr @c_api_version to i64))
  %loaded = icmp ne i64 %done, 0
  ret i1 %loaded
}}

define ptr @{CHOSEN_PROCESSOR}() {{
  %number = call i64 @choose()
  %processor = inttoptr i64 %number to ptr
  %none = icmp eq ptr %processor, null
  br i1 %none, label %unfit, label %fit
unfit:
  ret ptr null
fit:
  %name = load ptr, ptr %processor
  ret ptr %name
}}

define void @{CONFIGURE}(ptr %blas) {{
  call void @llvm.memcpy.p0.p0.i64(ptr @{BLAS}, ptr %blas, i64 {8 * BLAS_WORDS}, i1 false)
  ret void
}}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define ptr @{TABLE_OF_RESIDENTS}() {{
  ret ptr @{RESIDENTS}
}}

define i64 @{RELEASE}(i64 %handle) {{
  %number = call i64 @choose()
  %processor = inttoptr i64 %number to ptr
  %place = getelementptr [3 x ptr], ptr %processor, i64 0, i64 2
  %code = load ptr, ptr %place
  %third = getelementptr [3 x ptr], ptr %code, i64 0, i64 2
  %release = load ptr, ptr %third
  %released = call i64 %release(i64 %handle)
  ret i64 %released
}}

define ptr @{STOP_WORD}() {{
  ret ptr @stop
}}

define ptr @{TABLE_OF_USER_FUNCTIONS}() {{
  ret ptr @{USER_FUNCTIONS}
}}
"""
_HOST = """
define hidden i64 @sparseeinsum_take_panels(i64 %bytes) {
  %address = call i64 @take_panels(i64 %bytes)
  ret i64 %address
}

define hidden void @sparseeinsum_give_panels(i64 %address) {
  call void @give_panels(i64 %address)
  ret void
}

@stop = internal global i64 0

define hidden i64 @sparseeinsum_pause() {
  %stops = load volatile i64, ptr @stop
  ret i64 %stops
}
"""


def duckdb_code(targets: Sequence[Target], exported: Collection[str]) -> Iterator[str]:
    """Yield the LLVM IR of the library for DuckDB, without that of the groups.

    Args:
        targets: The processors that the library has code for, the lowest first.
        exported: The names of the functions that the groups export.
    """
    processors = [target.processor for target in targets if target.processor is not None]
    code = StaticWords(_CODE, (_LOAD, REGISTRY, _RELEASE))
    referenced = {
        word for block in registry() if isinstance(block, StaticWords) for word in block.words if isinstance(word, str)
    }
    yield system_code(targets[0].platform)
    yield page_code(targets[0].platform)
    yield thread_code(targets[0].platform)
    yield tables_code()
    yield from declarations({_LOAD, _RELEASE, *referenced}.intersection(exported), processors)
    yield from data_code((*registry(), StaticText("c_api_version", C_API_VERSION), code), processors, exported)
    yield from choice_code(targets, lambda processor: processor_symbol(_CODE, processor))
    yield _ENTRY
    yield _HOST
    yield from (_call_through_table(name, slot) for name, slot in SLOTS.items())


def footer(platform: str, version: str) -> bytes:
    """Return the end of an extension file, which says for which DuckDB and platform it is, and that it is unsigned."""
    fields = ("", "", "", "C_STRUCT", version, C_API_VERSION, platform, _FORMAT)
    return _FOOTER_HEAD + b"".join(field.encode().ljust(_FIELD_BYTES, bytes(1)) for field in fields) + _UNSIGNED


def _call_through_table(name: str, slot: int) -> str:
    """Define the C API function `name` as a call through the table.

    It passes six arguments on. A function that takes fewer ignores the registers of the others.
    """
    arguments = ", ".join(f"i64 %a{index}" for index in range(_MOST_ARGUMENTS))
    return f"""define hidden i64 @{name}({arguments}) {{
  %address = getelementptr i64, ptr @{_FUNCTIONS}, i64 {slot}
  %function = load ptr, ptr %address
  %result = tail call i64 %function({arguments})
  ret i64 %result
}}"""

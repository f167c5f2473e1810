"""Kernels: machine code of all kernels in, an extension file out that any DuckDB from 1.5.6 on loads, without Python.

The file is a shared library that calls DuckDB through the table of its C API's functions, followed by a footer in
which DuckDB reads for what the file was made.
"""

from collections.abc import Iterator
from pathlib import Path

import duckdb

from sparseeinsum.errors import ExtensionError
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.duckdb.capi import C_API_VERSION, COPIED_SLOTS, SLOTS
from sparseeinsum.kernels.duckdb.registry import REGISTRY, registry
from sparseeinsum.kernels.linking import NO_USERS_FUNCTIONS, link_library, write_whole
from sparseeinsum.kernels.processors import NATIVE, UNFIT, check_code, features
from sparseeinsum.kernels.residents import MUTEX, SECRET, TABLE_WORDS
from sparseeinsum.kernels.static_data import Text, in_llvm

FILE_NAME = "sparseeinsum.duckdb_extension"  # DuckDB derives the name of the entry point from it
_ENTRY_POINT = "sparseeinsum_init_c_api"

# The footer: https://github.com/duckdb/duckdb/blob/v1.5.5/scripts/append_metadata.cmake; what comes first is the head
# of a section of WebAssembly, which other platforms ignore.
_FOOTER_HEAD = b"\x00\x93\x04\x10duckdb_signature\x80\x04"
_FIELD_BYTES = 32
_FORMAT = "4"
_UNSIGNED = bytes(256)

_FUNCTIONS = "sparseeinsum_c_api"  # the table through which DuckDB's functions are called
_MOST_ARGUMENTS = 6  # of any of them, all integers or pointers, which a processor takes in registers

_LOADING = f"""
@{_FUNCTIONS} = internal global [{COPIED_SLOTS} x i64] zeroinitializer
declare i64 @load_extension(i64, i64, i64, i64, i64)

define zeroext i1 @{_ENTRY_POINT}(ptr %info, ptr %access) {{
  %fits = call i1 @sparseeinsum_processor_fits()
  br i1 %fits, label %load, label %refuse
refuse:
  %set_error = load ptr, ptr %access
  call void %set_error(ptr %info, ptr @unfit)
  ret i1 0
load:
  %i = ptrtoint ptr %info to i64
  %a = ptrtoint ptr %access to i64
  %done = call i64 @load_extension(i64 %i, i64 %a, i64 ptrtoint (ptr @{REGISTRY} to i64),
                                   i64 ptrtoint (ptr @{_FUNCTIONS} to i64), i64 ptrtoint (ptr @c_api_version to i64))
  %loaded = icmp ne i64 %done, 0
  ret i1 %loaded
}}
"""

_OWN_TABLES = f"""
@{d.RESIDENTS} = hidden global [{TABLE_WORDS} x i64] zeroinitializer
@llvm.global_ctors = appending global [1 x {{ i32, ptr, ptr }}]
  [{{ i32, ptr, ptr }} {{ i32 65535, ptr @prepare, ptr null }}]
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @getentropy(ptr, i64)

define internal void @prepare() {{
  %mutex = getelementptr i64, ptr @{d.RESIDENTS}, i64 {MUTEX}
  %secret = getelementptr i64, ptr @{d.RESIDENTS}, i64 {SECRET}
  %initialised = call i32 @pthread_mutex_init(ptr %mutex, ptr null)
  %drawn = call i32 @getentropy(ptr %secret, i64 8)
  ret void
}}

define hidden void @sparseeinsum_pause() {{
  ret void
}}
"""


def build_extension(folder: Path, version: str, processor: str = NATIVE) -> Path:
    """Write the extension file into a folder; returns its path.

    Args:
        folder: Where the file goes, which is replaced whole or not at all.
        version: Of the extension.
        processor: One of `processors.PROCESSORS`; on others that lack something, the file refuses to be loaded.

    Raises:
        ExtensionError: The platform or processor is not supported, there is no linker, or it failed.
    """
    platform = _platform()
    if not platform.startswith("linux_"):
        raise ExtensionError(f"extension files for DuckDB are made on Linux only so far, not on {platform}")
    library = link_library("duckdb_library", processor, _host_code(processor), (_ENTRY_POINT,))
    path = folder / FILE_NAME
    write_whole(path, library + _footer(platform, version), 0o644)
    return path


def _platform() -> str:
    """What DuckDB calls the platform that it is on."""
    with duckdb.connect() as connection:
        ((platform,),) = connection.execute("PRAGMA platform").fetchall()
    return str(platform)


def _footer(platform: str, version: str) -> bytes:
    fields = ("", "", "", "C_STRUCT", version, C_API_VERSION, platform, _FORMAT)
    return _FOOTER_HEAD + b"".join(field.encode().ljust(_FIELD_BYTES, bytes(1)) for field in fields) + _UNSIGNED


def _host_code(processor: str) -> Iterator[str]:
    """LLVM IR of what the file has beside kernels and callbacks."""
    yield check_code(features(processor))
    yield from in_llvm((*registry(), Text("unfit", UNFIT), Text("c_api_version", C_API_VERSION)))
    yield NO_USERS_FUNCTIONS
    yield _LOADING
    yield _OWN_TABLES
    yield from (_call_through_table(name, slot) for name, slot in SLOTS.items())


def _call_through_table(name: str, slot: int) -> str:
    """A function of the C API for code that knows its name; arguments that it does not take are left as they come."""
    taken = ", ".join(f"i64 %a{index}" for index in range(_MOST_ARGUMENTS))
    return f"""define hidden i64 @{name}({taken}) {{
  %address = getelementptr i64, ptr @{_FUNCTIONS}, i64 {slot}
  %function = load ptr, ptr %address
  %result = tail call i64 %function({taken})
  ret i64 %result
}}"""

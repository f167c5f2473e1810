"""Kernels: writes the LLVM IR of the functions of PostgreSQL's type tensor: it has the format of an array of float8.

Input accepts brackets in place of braces, as pgvector writes them. The functions of the server for arrays do the rest.
Their second argument is the type of the elements; for a type that is no array, the server passes that type itself.
"""

from sparseeinsum.kernels.postgresql.descriptors import FLOAT8

# Offsets in FunctionCallInfoBaseData of fmgr.h: the arguments begin at 32, and take 16 bytes each.
_CODE = """
declare ptr @pstrdup(ptr)
declare i64 @array_in(ptr)
declare i64 @array_recv(ptr)
declare ptr @strchr(ptr, i32)

define ptr @pg_finfo_{input}() {{ ret ptr @finfo }}
define i64 @{input}(i64 %call_info) {{
begin:
  %call = inttoptr i64 %call_info to ptr
  %text_place = getelementptr i8, ptr %call, i64 32
  %written = load ptr, ptr %text_place
  %bounds = call ptr @strchr(ptr %written, i32 61)
  %has_no_bounds = icmp eq ptr %bounds, null
  br i1 %has_no_bounds, label %copy, label %parse
copy:
  %text = call ptr @pstrdup(ptr %written)
  store ptr %text, ptr %text_place
  br label %more
more:
  %place = phi ptr [ %text, %copy ], [ %next, %replace ]
  %character = load i8, ptr %place
  %next = getelementptr i8, ptr %place, i64 1
  switch i8 %character, label %keep [ i8 0, label %parse  i8 91, label %open  i8 93, label %close ]
open:
  br label %replace
close:
  br label %replace
keep:
  br label %replace
replace:
  %new = phi i8 [ 123, %open ], [ 125, %close ], [ %character, %keep ]
  store i8 %new, ptr %place
  br label %more
parse:
  %type_place = getelementptr i8, ptr %call, i64 48
  store i64 {float8}, ptr %type_place
  %result = call i64 @array_in(ptr %call)
  ret i64 %result
}}

define ptr @pg_finfo_{receive}() {{ ret ptr @finfo }}
define i64 @{receive}(i64 %call_info) {{
  %call = inttoptr i64 %call_info to ptr
  %type_place = getelementptr i8, ptr %call, i64 48
  store i64 {float8}, ptr %type_place
  %result = call i64 @array_recv(ptr %call)
  ret i64 %result
}}

define ptr @pg_finfo_{cast}() {{ ret ptr @finfo }}
define i64 @{cast}(i64 %call_info) {{
  %call = inttoptr i64 %call_info to ptr
  %place = getelementptr i8, ptr %call, i64 32
  %value = load i64, ptr %place
  ret i64 %value
}}"""


def type_code(symbols: tuple[str, str, str]) -> str:
    """Return the functions that read a tensor from text and from bytes, and that cast it from and to an array."""
    read, receive, cast = symbols
    return _CODE.format(input=read, receive=receive, cast=cast, float8=FLOAT8)

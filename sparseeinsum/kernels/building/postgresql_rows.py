"""Kernels: writes the LLVM IR of a function of PostgreSQL that tells another one which columns its caller wants.

Only a function in C sees the column definition list of a call, as in `FROM einsum('...') AS t(i bigint, val float8)`.
Offsets are those of FunctionCallInfoBaseData and FmgrInfo in fmgr.h and of ReturnSetInfo in execnodes.h; a TupleDesc
begins with the number of its columns. They are the same in versions 15 to 18.
"""

_TARGET = "sparseeinsum.einsum_rows"
_MOST_ARGUMENTS = 16

_CODE = """
@rows_target = private constant [{target_bytes} x i8] c"{target}\\00"
@rows_column = private constant [10 x i8] c"%s%s%s %s\\00"
@rows_comma = private constant [3 x i8] c", \\00"
@rows_empty = private constant [1 x i8] zeroinitializer
declare ptr @SPI_fname(ptr, i32)
declare i32 @SPI_gettypeid(ptr, i32)
declare ptr @quote_identifier(ptr)
declare ptr @format_type_be(i32)
declare ptr @psprintf(ptr, ...)
declare ptr @cstring_to_text(ptr)
declare i64 @regprocin(ptr)
declare void @fmgr_info(i32, ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define ptr @pg_finfo_{symbol}() {{ ret ptr @finfo }}

define i64 @{symbol}(i64 %call_info) {{
begin:
  %call = inttoptr i64 %call_info to ptr
  %info_place = getelementptr i8, ptr %call, i64 16
  %info = load ptr, ptr %info_place
  %no_info = icmp eq ptr %info, null
  br i1 %no_info, label %join, label %describe
describe:
  %description_place = getelementptr i8, ptr %info, i64 16
  %description = load ptr, ptr %description_place
  %no_description = icmp eq ptr %description, null
  br i1 %no_description, label %join, label %count
count:
  %columns = load i32, ptr %description
  br label %more
more:
  %number = phi i32 [ 1, %count ], [ %next, %add ]
  %before = phi ptr [ @rows_empty, %count ], [ %longer, %add ]
  %comma = phi ptr [ @rows_empty, %count ], [ @rows_comma, %add ]
  %is_column = icmp sle i32 %number, %columns
  br i1 %is_column, label %add, label %join
add:
  %name = call ptr @SPI_fname(ptr %description, i32 %number)
  %quoted = call ptr @quote_identifier(ptr %name)
  %type = call i32 @SPI_gettypeid(ptr %description, i32 %number)
  %shown = call ptr @format_type_be(i32 %type)
  %longer = call ptr (ptr, ...) @psprintf(ptr @rows_column, ptr %before, ptr %comma, ptr %quoted, ptr %shown)
  %next = add i32 %number, 1
  br label %more
join:
  %list = phi ptr [ @rows_empty, %begin ], [ @rows_empty, %describe ], [ %before, %more ]
  %text = call ptr @cstring_to_text(ptr %list)
  %text_datum = ptrtoint ptr %text to i64
  %other = alloca [{call_bytes} x i8], align 8
  %target = alloca [48 x i8], align 8
  call void @llvm.memcpy.p0.p0.i64(ptr %other, ptr %call, i64 32, i1 false)
  %count_place = getelementptr i8, ptr %call, i64 30
  %arguments = load i16, ptr %count_place
  %all_arguments = add i16 %arguments, 1
  %other_count_place = getelementptr i8, ptr %other, i64 30
  store i16 %all_arguments, ptr %other_count_place
  store ptr %target, ptr %other
  %first = getelementptr i8, ptr %other, i64 32
  store i64 %text_datum, ptr %first
  %first_is_null = getelementptr i8, ptr %other, i64 40
  store i8 0, ptr %first_is_null
  %others = getelementptr i8, ptr %other, i64 48
  %own = getelementptr i8, ptr %call, i64 32
  %wide = zext i16 %arguments to i64
  %bytes = mul i64 %wide, 16
  call void @llvm.memcpy.p0.p0.i64(ptr %others, ptr %own, i64 %bytes, i1 false)
  %oid = call i64 @DirectFunctionCall1Coll(ptr @regprocin, i32 0, i64 ptrtoint (ptr @rows_target to i64))
  %short_oid = trunc i64 %oid to i32
  call void @fmgr_info(i32 %short_oid, ptr %target)
  %function = load ptr, ptr %target
  %result = call i64 %function(ptr %other)
  %other_is_null = getelementptr i8, ptr %other, i64 28
  %is_null = load i8, ptr %other_is_null
  %own_is_null = getelementptr i8, ptr %call, i64 28
  store i8 %is_null, ptr %own_is_null
  ret i64 %result
}}"""


def rows_code(symbol: str) -> str:
    """Return the function: it calls einsum_rows with the column definition list, as text, before its own arguments."""
    return _CODE.format(
        symbol=symbol,
        target=_TARGET,
        target_bytes=len(_TARGET) + 1,
        call_bytes=32 + 16 * _MOST_ARGUMENTS,
    )

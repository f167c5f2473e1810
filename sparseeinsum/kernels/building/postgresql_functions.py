"""Kernels: lists the functions of PostgreSQL that compiled code calls, and wraps some of them in LLVM IR.

Errors are raised as the macro `ereport` raises them. The functions and the number of ERROR are those of
https://github.com/postgres/postgres/blob/REL_15_STABLE/src/include/utils/elog.h, and are the same up to version 18.
"""

CALLED_BY_KERNELS = (
    "pg_detoast_datum",
    "palloc",
    "palloc_extended",
    "MemoryContextAllocZero",
    "MemoryContextAllocHuge",
    "repalloc_huge",
    "ArrayGetNItems",
    "array_contains_nulls",
    "deconstruct_array",
    "AggCheckCallContext",
    "init_MultiFuncCall",
    "per_MultiFuncCall",
    "end_MultiFuncCall",
    "sparseeinsum_numeric_to_float8",
    "sparseeinsum_raise",
    "sparseeinsum_statement_threads",
)

GLUE = """
@sparseeinsum_file = private constant [13 x i8] c"sparseeinsum\\00"
@sparseeinsum_format = private constant [3 x i8] c"%s\\00"
declare i64 @DirectFunctionCall1Coll(ptr, i32, i64)
declare i64 @numeric_float8(ptr)
declare i1 @errstart(i32, ptr)
declare i32 @errcode(i32)
declare i32 @errmsg_internal(ptr, ...)
declare void @errfinish(ptr, i32, ptr)

define hidden i64 @sparseeinsum_numeric_to_float8(i64 %numeric) {
  %number = call i64 @DirectFunctionCall1Coll(ptr @numeric_float8, i32 0, i64 %numeric)
  ret i64 %number
}

define hidden void @sparseeinsum_raise(i64 %sqlstate, i64 %message) {
  %state = trunc i64 %sqlstate to i32
  %text = inttoptr i64 %message to ptr
  %started = call i1 @errstart(i32 21, ptr null)
  %coded = call i32 @errcode(i32 %state)
  %said = call i32 (ptr, ...) @errmsg_internal(ptr @sparseeinsum_format, ptr %text)
  call void @errfinish(ptr @sparseeinsum_file, i32 0, ptr @sparseeinsum_file)
  ret void
}
"""

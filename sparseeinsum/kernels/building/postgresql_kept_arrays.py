"""Kernels: writes the LLVM IR of the functions of PostgreSQL that keep arrays in the memory of a server process.

An array is copied when it is kept and when it is read, so that nothing refers to memory that is released. Offsets are
those of FunctionCallInfoBaseData of fmgr.h and of ArrayType of array.h, the same in versions 15 to 18.
"""

from sparseeinsum.kernels.building.data_code import bytes_code
from sparseeinsum.kernels.postgresql.sqlstates import sqlstate_word

_PLACES = 256  # arrays of a process
_LARGEST_HANDLE = (1 << 62) - 1
_DATATYPE_MISMATCH, _INVALID_PARAMETER = "42804", "22023"
_NO_ARRAY = "no array is kept under this handle; handles are of the functions of sparseeinsum, and end with the session"
_OTHER_TYPE = "the array that is kept under this handle has elements of another type"

# A place has a handle, 0 if it is free, the address of an array, and its bytes.
_CODE = """
@kept_arrays = internal global [{places} x {{ i64, ptr, i64 }}] zeroinitializer
@kept_no_array = private constant [{no_array_bytes} x i8] {no_array}
@kept_other_type = private constant [{other_type_bytes} x i8] {other_type}
declare i64 @pg_detoast_datum(i64)
declare i64 @palloc(i64)
declare i1 @pg_strong_random(ptr, i64)
declare void @free(ptr)

define internal ptr @kept_place(i64 %handle) {{
begin:
  br label %look
look:
  %number = phi i64 [ 0, %begin ], [ %next, %other ]
  %is_place = icmp ult i64 %number, {places}
  br i1 %is_place, label %compare, label %none
compare:
  %place = getelementptr [{places} x {{ i64, ptr, i64 }}], ptr @kept_arrays, i64 0, i64 %number
  %present = load i64, ptr %place
  %is_it = icmp eq i64 %present, %handle
  br i1 %is_it, label %done, label %other
other:
  %next = add i64 %number, 1
  br label %look
none:
  ret ptr null
done:
  ret ptr %place
}}

define internal ptr @kept_place_of_argument(i64 %call_info) {{
begin:
  %call = inttoptr i64 %call_info to ptr
  %argument = getelementptr i8, ptr %call, i64 32
  %handle = load i64, ptr %argument
  %is_handle = icmp sgt i64 %handle, 0
  br i1 %is_handle, label %look, label %none
look:
  %place = call ptr @kept_place(i64 %handle)
  ret ptr %place
none:
  ret ptr null
}}

define internal i64 @kept_null(i64 %call_info) {{
  %call = inttoptr i64 %call_info to ptr
  %is_null = getelementptr i8, ptr %call, i64 28
  store i8 1, ptr %is_null
  ret i64 0
}}

define ptr @pg_finfo_{keep}() {{ ret ptr @finfo }}
define i64 @{keep}(i64 %call_info) {{
begin:
  %call = inttoptr i64 %call_info to ptr
  %random = alloca i64, align 8
  %argument = getelementptr i8, ptr %call, i64 32
  %datum = load i64, ptr %argument
  %array_datum = call i64 @pg_detoast_datum(i64 %datum)
  %array = inttoptr i64 %array_datum to ptr
  %header = load i32, ptr %array
  %bytes_short = lshr i32 %header, 2
  %bytes = zext i32 %bytes_short to i64
  %place = call ptr @kept_place(i64 0)
  %has_no_place = icmp eq ptr %place, null
  br i1 %has_no_place, label %none, label %draw
draw:
  %drawn = call i1 @pg_strong_random(ptr %random, i64 8)
  %word = load i64, ptr %random
  %handle = and i64 %word, {largest}
  %known = call ptr @kept_place(i64 %handle)
  %is_new = icmp eq ptr %known, null
  %is_usable = and i1 %drawn, %is_new
  br i1 %is_usable, label %copy, label %none
copy:
  %address = call i64 @malloc(i64 %bytes)
  %has_no_memory = icmp eq i64 %address, 0
  br i1 %has_no_memory, label %none, label %keep
keep:
  %memory = inttoptr i64 %address to ptr
  call void @llvm.memcpy.p0.p0.i64(ptr %memory, ptr %array, i64 %bytes, i1 false)
  %memory_place = getelementptr {{ i64, ptr, i64 }}, ptr %place, i64 0, i32 1
  %bytes_place = getelementptr {{ i64, ptr, i64 }}, ptr %place, i64 0, i32 2
  store ptr %memory, ptr %memory_place
  store i64 %bytes, ptr %bytes_place
  store i64 %handle, ptr %place
  ret i64 %handle
none:
  ret i64 0
}}

define ptr @pg_finfo_{kept}() {{ ret ptr @finfo }}
define i64 @{kept}(i64 %call_info) {{
begin:
  %call = inttoptr i64 %call_info to ptr
  %place = call ptr @kept_place_of_argument(i64 %call_info)
  %is_missing = icmp eq ptr %place, null
  br i1 %is_missing, label %missing, label %compare
missing:
  call void @sparseeinsum_raise(i64 {invalid_parameter}, i64 ptrtoint (ptr @kept_no_array to i64))
  ret i64 0
compare:
  %second = getelementptr i8, ptr %call, i64 48
  %datum = load i64, ptr %second
  %like_datum = call i64 @pg_detoast_datum(i64 %datum)
  %like = inttoptr i64 %like_datum to ptr
  %like_type_place = getelementptr i8, ptr %like, i64 12
  %like_type = load i32, ptr %like_type_place
  %memory_place = getelementptr {{ i64, ptr, i64 }}, ptr %place, i64 0, i32 1
  %bytes_place = getelementptr {{ i64, ptr, i64 }}, ptr %place, i64 0, i32 2
  %memory = load ptr, ptr %memory_place
  %bytes = load i64, ptr %bytes_place
  %type_place = getelementptr i8, ptr %memory, i64 12
  %type = load i32, ptr %type_place
  %is_alike = icmp eq i32 %type, %like_type
  br i1 %is_alike, label %copy, label %differs
differs:
  call void @sparseeinsum_raise(i64 {datatype_mismatch}, i64 ptrtoint (ptr @kept_other_type to i64))
  ret i64 0
copy:
  %copied = call i64 @palloc(i64 %bytes)
  %result = inttoptr i64 %copied to ptr
  call void @llvm.memcpy.p0.p0.i64(ptr %result, ptr %memory, i64 %bytes, i1 false)
  ret i64 %copied
}}

define ptr @pg_finfo_{size}() {{ ret ptr @finfo }}
define i64 @{size}(i64 %call_info) {{
begin:
  %place = call ptr @kept_place_of_argument(i64 %call_info)
  %is_missing = icmp eq ptr %place, null
  br i1 %is_missing, label %missing, label %read
missing:
  %nothing = call i64 @kept_null(i64 %call_info)
  ret i64 %nothing
read:
  %bytes_place = getelementptr {{ i64, ptr, i64 }}, ptr %place, i64 0, i32 2
  %bytes = load i64, ptr %bytes_place
  ret i64 %bytes
}}

define ptr @pg_finfo_{release}() {{ ret ptr @finfo }}
define i64 @{release}(i64 %call_info) {{
begin:
  %place = call ptr @kept_place_of_argument(i64 %call_info)
  %is_missing = icmp eq ptr %place, null
  br i1 %is_missing, label %missing, label %release
missing:
  ret i64 0
release:
  %memory_place = getelementptr {{ i64, ptr, i64 }}, ptr %place, i64 0, i32 1
  %memory = load ptr, ptr %memory_place
  store i64 0, ptr %place
  call void @free(ptr %memory)
  ret i64 1
}}"""


def kept_arrays_code(symbols: tuple[str, str, str, str]) -> str:
    """Return the functions that keep, read, measure and release an array, under these symbols."""
    keep, kept, size, release = symbols
    no_array, other_type = (text.encode() + bytes(1) for text in (_NO_ARRAY, _OTHER_TYPE))
    return _CODE.format(
        keep=keep,
        kept=kept,
        size=size,
        release=release,
        places=_PLACES,
        largest=_LARGEST_HANDLE,
        no_array=bytes_code(no_array),
        no_array_bytes=len(no_array),
        other_type=bytes_code(other_type),
        other_type_bytes=len(other_type),
        invalid_parameter=sqlstate_word(_INVALID_PARAMETER),
        datatype_mismatch=sqlstate_word(_DATATYPE_MISMATCH),
    )

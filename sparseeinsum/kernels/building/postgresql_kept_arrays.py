"""Kernels: writes the LLVM IR of the functions of PostgreSQL that keep arrays in the memory of a server process.

An array is copied when it is kept, and read where it is: no function of PostgreSQL changes its arguments. One that is
released stays until the transaction ends, as its statements may still read it; PostgreSQL copies what outlives a
transaction. Offsets are those of FunctionCallInfoBaseData of fmgr.h and of ArrayType of array.h, the same in versions
15 to 18.
"""

from sparseeinsum.kernels.building.data_code import bytes_code
from sparseeinsum.kernels.postgresql.sqlstates import sqlstate_word

_PLACES = 512  # arrays of a process, with those that are released; a power of two
_RANDOM_BITS = (1 << 62) - _PLACES  # of a handle; the others are the number of its place
_DATATYPE_MISMATCH, _INVALID_PARAMETER = "42804", "22023"
_NO_ARRAY = "no array is kept under this handle; handles are of the functions of sparseeinsum, and end with the session"
_OTHER_TYPE = "the array that is kept under this handle has elements of another type"

# A place has a handle, 0 if it is free or its array is released, the address of an array, null if it is free, and its
# bytes.
_CODE = """
@kept_arrays = internal global [{places} x {{ i64, ptr, i64 }}] zeroinitializer
@kept_any_released = internal global i1 false
@kept_no_array = private constant [{no_array_bytes} x i8] {no_array}
@kept_other_type = private constant [{other_type_bytes} x i8] {other_type}
declare i64 @pg_detoast_datum(i64)
declare i1 @pg_strong_random(ptr, i64)

define internal i64 @kept_free_place() {{
begin:
  br label %look
look:
  %number = phi i64 [ 0, %begin ], [ %next, %other ]
  %is_place = icmp ult i64 %number, {places}
  br i1 %is_place, label %compare, label %none
compare:
  %memory_place = getelementptr [{places} x {{ i64, ptr, i64 }}], ptr @kept_arrays, i64 0, i64 %number, i32 1
  %memory = load ptr, ptr %memory_place
  %is_free = icmp eq ptr %memory, null
  br i1 %is_free, label %done, label %other
other:
  %next = add i64 %number, 1
  br label %look
none:
  ret i64 -1
done:
  ret i64 %number
}}

define internal void @free_released_arrays() {{
begin:
  %any = load i1, ptr @kept_any_released
  br i1 %any, label %look, label %done
look:
  %number = phi i64 [ 0, %begin ], [ %next, %more ]
  %place = getelementptr [{places} x {{ i64, ptr, i64 }}], ptr @kept_arrays, i64 0, i64 %number
  %memory_place = getelementptr {{ i64, ptr, i64 }}, ptr %place, i64 0, i32 1
  %handle = load i64, ptr %place
  %is_released = icmp eq i64 %handle, 0
  br i1 %is_released, label %release, label %more
release:
  %memory = load ptr, ptr %memory_place
  store ptr null, ptr %memory_place
  call void @free(ptr %memory)
  br label %more
more:
  %next = add i64 %number, 1
  %is_place = icmp ult i64 %next, {places}
  br i1 %is_place, label %look, label %all
all:
  store i1 false, ptr @kept_any_released
  br label %done
done:
  ret void
}}

define internal ptr @kept_place_of_argument(i64 %call_info) {{
begin:
  %call = inttoptr i64 %call_info to ptr
  %argument = getelementptr i8, ptr %call, i64 32
  %handle = load i64, ptr %argument
  %is_handle = icmp sgt i64 %handle, 0
  br i1 %is_handle, label %look, label %none
look:
  %number = and i64 %handle, {last_place}
  %place = getelementptr [{places} x {{ i64, ptr, i64 }}], ptr @kept_arrays, i64 0, i64 %number
  %present = load i64, ptr %place
  %is_it = icmp eq i64 %present, %handle
  br i1 %is_it, label %done, label %none
done:
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
  %number = call i64 @kept_free_place()
  %has_place = icmp sge i64 %number, 0
  br i1 %has_place, label %draw, label %none
draw:
  %place = getelementptr [{places} x {{ i64, ptr, i64 }}], ptr @kept_arrays, i64 0, i64 %number
  %drawn = call i1 @pg_strong_random(ptr %random, i64 8)
  %word = load i64, ptr %random
  %bits = and i64 %word, {random}
  %handle = or i64 %bits, %number
  %is_positive = icmp ne i64 %handle, 0
  %is_usable = and i1 %drawn, %is_positive
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
  %memory = load ptr, ptr %memory_place
  %type_place = getelementptr i8, ptr %memory, i64 12
  %type = load i32, ptr %type_place
  %is_alike = icmp eq i32 %type, %like_type
  br i1 %is_alike, label %done, label %differs
differs:
  call void @sparseeinsum_raise(i64 {datatype_mismatch}, i64 ptrtoint (ptr @kept_other_type to i64))
  ret i64 0
done:
  %result = ptrtoint ptr %memory to i64
  ret i64 %result
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
  store i64 0, ptr %place
  store i1 true, ptr @kept_any_released
  ret i64 1
}}"""


def kept_arrays_code(symbols: tuple[str, str, str, str]) -> str:
    """Return the functions that keep, read, measure and release an array, under these symbols.

    `free_released_arrays` is to be called when a transaction ends.
    """
    keep, kept, size, release = symbols
    no_array, other_type = (text.encode() + bytes(1) for text in (_NO_ARRAY, _OTHER_TYPE))
    return _CODE.format(
        keep=keep,
        kept=kept,
        size=size,
        release=release,
        places=_PLACES,
        last_place=_PLACES - 1,
        random=_RANDOM_BITS,
        no_array=bytes_code(no_array),
        no_array_bytes=len(no_array),
        other_type=bytes_code(other_type),
        other_type_bytes=len(other_type),
        invalid_parameter=sqlstate_word(_INVALID_PARAMETER),
        datatype_mismatch=sqlstate_word(_DATATYPE_MISMATCH),
    )

"""Kernels: writes the LLVM IR of what a process of PostgreSQL does with memory that it frees.

glibc returns freed memory of more than some MB to the system at once, which clears its pages for the next statement
again; that takes longer than most kernels. A process that has the library keeps so much of it for the next statement,
and returns the rest when a transaction ends. XactEvent is that of xact.h, the same in versions 15 to 18.
"""

_MMAP_MAX, _TRIM_THRESHOLD = -4, -1  # options of mallopt
_KEPT_BYTES = 512 << 20  # of freed memory, between transactions
_FREE_BYTES = 1 << 30  # at the end of the heap, within a transaction
_LAST_END = 4  # XACT_EVENT_PREPARE, after those of COMMIT and ABORT; later events come before a transaction ends

# mallinfo2 has ten numbers, of which the ninth are the free bytes of the heap. Free bytes within it count even after
# malloc_trim has returned them, so that it may look for some in vain.
_CODE = """
@first_heap_end = internal global i64 0
declare extern_weak i32 @mallopt(i32, i32)  ; other systems lack these
declare extern_weak void @mallinfo2(ptr sret({{ [10 x i64] }}))
declare extern_weak i32 @malloc_trim(i64)
declare i64 @sbrk(i64)
declare void @RegisterXactCallback(ptr, ptr)

define internal void @retain_freed_memory() {{
begin:
  %has_options = icmp ne ptr @mallopt, null
  %has_numbers = icmp ne ptr @mallinfo2, null
  %has_trim = icmp ne ptr @malloc_trim, null
  %has_both = and i1 %has_options, %has_numbers
  %has_all = and i1 %has_both, %has_trim
  br i1 %has_all, label %retain, label %done
retain:
  %end = call i64 @sbrk(i64 0)
  store i64 %end, ptr @first_heap_end
  %mapping = call i32 @mallopt(i32 {mmap_max}, i32 0)
  %trimming = call i32 @mallopt(i32 {trim_threshold}, i32 {free})
  br label %done
done:
  call void @RegisterXactCallback(ptr @end_transaction, ptr null)
  ret void
}}

define internal void @end_transaction(i32 %event, ptr %unused) {{
begin:
  %numbers = alloca {{ [10 x i64] }}, align 8
  %is_end = icmp ule i32 %event, {last_end}
  br i1 %is_end, label %release, label %done
release:
  call void @free_released_arrays()
  %first_end = load i64, ptr @first_heap_end
  %is_retained = icmp ne i64 %first_end, 0
  br i1 %is_retained, label %compare, label %done
compare:
  %end = call i64 @sbrk(i64 0)
  %grown = sub i64 %end, %first_end
  %has_grown = icmp sgt i64 %grown, {kept}
  br i1 %has_grown, label %count, label %done
count:
  call void @mallinfo2(ptr sret({{ [10 x i64] }}) %numbers)
  %free_place = getelementptr i64, ptr %numbers, i64 8
  %free_bytes = load i64, ptr %free_place
  %is_much = icmp ugt i64 %free_bytes, {kept}
  br i1 %is_much, label %trim, label %done
trim:
  %trimmed = call i32 @malloc_trim(i64 {kept})
  br label %done
done:
  ret void
}}"""


def memory_code() -> str:
    """Return retain_freed_memory, to be called once when the library is loaded; it calls free_released_arrays."""
    return _CODE.format(
        mmap_max=_MMAP_MAX, trim_threshold=_TRIM_THRESHOLD, free=_FREE_BYTES, kept=_KEPT_BYTES, last_end=_LAST_END
    )

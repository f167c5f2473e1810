"""Kernels: writes the LLVM IR of what a process of PostgreSQL does about the threads that kernels start.

A statement may use as many threads as PostgreSQL lets it use processes, max_parallel_workers_per_gather and one, unless
it has other processes already. Threads call nothing of the server: while there are any, a kernel that the server wants
to interrupt stops, and the server interrupts the process when it computes alone again. The data and functions are those
of miscadmin.h, optimizer/cost.h and xact.h, the same in versions 15 to 18.
"""

from sparseeinsum.kernels.platforms import Platform

_PROCESSORS = {"linux": 84, "darwin": 58}  # the numbers of sysconf's _SC_NPROCESSORS_ONLN
# An interrupt leaves a matrix product by a long jump, and the process keeps the panels of products that it computes
# alone.
_CODE = """
@processor_count = internal global i64 1
@own_panels = internal global i64 0
@max_parallel_workers_per_gather = external global i32
@max_parallel_workers = external global i32
@InterruptPending = external global i32
declare i1 @IsInParallelMode()
declare void @ProcessInterrupts()
declare i64 @sysconf(i32)
declare i32 @llvm.smin.i32(i32, i32)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)

define internal void @count_processors() {{
  %count = call i64 @sysconf(i32 {processors})
  store i64 %count, ptr @processor_count
  ret void
}}

define hidden i64 @sparseeinsum_statement_threads() {{
begin:
  %is_parallel = call i1 @IsInParallelMode()
  br i1 %is_parallel, label %one, label %several
one:
  ret i64 1
several:
  %of_gather = load i32, ptr @max_parallel_workers_per_gather
  %of_server = load i32, ptr @max_parallel_workers
  %workers = call i32 @llvm.smin.i32(i32 %of_gather, i32 %of_server)
  %others = zext i32 %workers to i64
  %allowed = add i64 %others, 1
  %processors = load i64, ptr @processor_count
  %most = call i64 @llvm.smin.i64(i64 %allowed, i64 %processors)
  %threads = call i64 @llvm.smax.i64(i64 %most, i64 1)
  ret i64 %threads
}}

define internal i1 @has_other_threads() {{
  %busy = load atomic i64, ptr @busy_threads seq_cst, align 8
  %has_others = icmp sgt i64 %busy, 1
  ret i1 %has_others
}}

define hidden i64 @sparseeinsum_pause() {{
  %pending = load volatile i32, ptr @InterruptPending
  %any = icmp ne i32 %pending, 0
  br i1 %any, label %look, label %done
look:
  %has_others = call i1 @has_other_threads()
  br i1 %has_others, label %stop, label %process
stop:
  ret i64 1
process:
  call void @ProcessInterrupts()
  br label %done
done:
  ret i64 0
}}

define hidden i64 @sparseeinsum_take_panels(i64 %bytes) {{
  %has_others = call i1 @has_other_threads()
  br i1 %has_others, label %take, label %look
look:
  %kept = load i64, ptr @own_panels
  %none = icmp eq i64 %kept, 0
  br i1 %none, label %keep, label %done
keep:
  %new = call i64 @take_panels(i64 %bytes)
  store i64 %new, ptr @own_panels
  ret i64 %new
take:
  %taken = call i64 @take_panels(i64 %bytes)
  ret i64 %taken
done:
  ret i64 %kept
}}

define hidden void @sparseeinsum_give_panels(i64 %address) {{
  %own = load i64, ptr @own_panels
  %is_own = icmp eq i64 %address, %own
  br i1 %is_own, label %done, label %give
give:
  call void @give_panels(i64 %address)
  br label %done
done:
  ret void
}}
"""


def statement_threads_code(platform: Platform) -> str:
    """Return count_processors, to be called once when the library is loaded, and the functions that kernels call."""
    return _CODE.format(processors=_PROCESSORS[platform.system])

"""Kernels: writes the LLVM IR that starts threads, counts those that compute, and keeps memory for them."""

from sparseeinsum.kernels import thread_tasks as t
from sparseeinsum.kernels.platforms import Platform

# A thread computes a task; see thread_tasks.py.
_TASK = """
define internal void @compute_task(ptr %task) {{
{loads}
  %address = load ptr, ptr %task
  %code = call i64 %address({arguments})
  %result = getelementptr i64, ptr %task, i64 {result}
  store i64 %code, ptr %result
  ret void
}}
"""
# Threads handle no signals, which are for those of the host. Before version 2.34, glibc has threads in a library of its
# own, which not every host has loaded.
_POSIX_THREADS = """
declare extern_weak i32 @pthread_create(ptr, ptr, ptr, ptr)
declare extern_weak i32 @pthread_join(i64, ptr)
declare extern_weak i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)

define internal ptr @run_task(ptr %task) {{
  call void @compute_task(ptr %task)
  ret ptr null
}}

define hidden i64 @sparseeinsum_start_task(i64 %address) {{
begin:
  %signals = alloca [128 x i8], align 8  ; a sigset_t has no more bytes on any system
  %before = alloca [128 x i8], align 8
  %has_threads = icmp ne ptr @pthread_create, null
  br i1 %has_threads, label %start, label %none
start:
  %task = inttoptr i64 %address to ptr
  %thread = getelementptr i64, ptr %task, i64 {thread}
  %filled = call i32 @sigfillset(ptr %signals)
  %blocked = call i32 @pthread_sigmask(i32 {set_mask}, ptr %signals, ptr %before)
  %status = call i32 @pthread_create(ptr %thread, ptr null, ptr @run_task, ptr %task)
  %restored = call i32 @pthread_sigmask(i32 {set_mask}, ptr %before, ptr null)
  %started = icmp eq i32 %status, 0
  %value = zext i1 %started to i64
  ret i64 %value
none:
  ret i64 0
}}

define hidden void @sparseeinsum_join_task(i64 %address) {{
  %task = inttoptr i64 %address to ptr
  %place = getelementptr i64, ptr %task, i64 {thread}
  %thread = load i64, ptr %place
  %status = call i32 @pthread_join(i64 %thread, ptr null)
  ret void
}}
"""
_WINDOWS_THREADS = """
declare ptr @CreateThread(ptr, i64, ptr, ptr, i32, ptr)
declare i32 @WaitForSingleObject(ptr, i32)
declare i32 @CloseHandle(ptr)

define internal i32 @run_task(ptr %task) {{
  call void @compute_task(ptr %task)
  ret i32 0
}}

define hidden i64 @sparseeinsum_start_task(i64 %address) {{
  %task = inttoptr i64 %address to ptr
  %place = getelementptr ptr, ptr %task, i64 {thread}
  %thread = call ptr @CreateThread(ptr null, i64 0, ptr @run_task, ptr %task, i32 0, ptr null)
  store ptr %thread, ptr %place
  %started = icmp ne ptr %thread, null
  %value = zext i1 %started to i64
  ret i64 %value
}}

define hidden void @sparseeinsum_join_task(i64 %address) {{
  %task = inttoptr i64 %address to ptr
  %place = getelementptr ptr, ptr %task, i64 {thread}
  %thread = load ptr, ptr %place
  %waited = call i32 @WaitForSingleObject(ptr %thread, i32 -1)
  %closed = call i32 @CloseHandle(ptr %thread)
  ret void
}}
"""
_SET_MASK = {"linux": 2, "darwin": 3}  # SIG_SETMASK of signal.h
# How many threads compute large arrays now, over all statements: a call takes more threads only if they are idle.
_BUSY_THREADS = """
@busy_threads = internal global i64 0

define hidden i64 @sparseeinsum_add_busy_threads(i64 %threads) {
  %before = atomicrmw add ptr @busy_threads, i64 %threads seq_cst
  ret i64 %before
}
"""
# Panels of matrix products are reused by later calls; concurrent calls do not share them. A panel starts at a multiple
# of 64; the word before it is the address that `malloc` returned.
_PANELS = """
@panels = internal global [64 x ptr] zeroinitializer
declare ptr @malloc(i64)
declare void @free(ptr)

define internal i64 @take_panels(i64 %bytes) {
start:
  br label %look
look:
  %i = phi i64 [ 0, %start ], [ %next, %on ]
  %place = getelementptr [64 x ptr], ptr @panels, i64 0, i64 %i
  %kept = atomicrmw xchg ptr %place, ptr null seq_cst
  %none = icmp eq ptr %kept, null
  br i1 %none, label %on, label %take
on:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 64
  br i1 %more, label %look, label %make
take:
  %taken = ptrtoint ptr %kept to i64
  ret i64 %taken
make:
  %whole = add i64 %bytes, 64
  %new = call ptr @malloc(i64 %whole)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %nothing, label %align
nothing:
  ret i64 0
align:
  %address = ptrtoint ptr %new to i64
  %after = add i64 %address, 64
  %aligned = and i64 %after, -64
  %before = sub i64 %aligned, 8
  %header = inttoptr i64 %before to ptr
  store ptr %new, ptr %header
  ret i64 %aligned
}

define internal void @give_panels(i64 %address) {
start:
  %panel = inttoptr i64 %address to ptr
  br label %look
look:
  %i = phi i64 [ 0, %start ], [ %next, %on ]
  %place = getelementptr [64 x ptr], ptr @panels, i64 0, i64 %i
  %pair = cmpxchg ptr %place, ptr null, ptr %panel seq_cst seq_cst
  %kept = extractvalue { ptr, i1 } %pair, 1
  br i1 %kept, label %done, label %on
on:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 64
  br i1 %more, label %look, label %release
release:
  %before = sub i64 %address, 8
  %header = inttoptr i64 %before to ptr
  %whole = load ptr, ptr %header
  call void @free(ptr %whole)
  br label %done
done:
  ret void
}
"""


def thread_code(platform: Platform) -> str:
    """Return the LLVM IR that starts a thread for a task, and that waits for its end; see thread_tasks.py.

    It also has @busy_threads, @take_panels and @give_panels, which take and return the address of panels, and declares
    malloc and free.
    """
    words = range(t.ARGUMENTS, t.RESULT)
    loads = "\n".join(
        f"  %at_{word} = getelementptr i64, ptr %task, i64 {word}\n  %w{word} = load i64, ptr %at_{word}"
        for word in words
    )
    task = _TASK.format(loads=loads, arguments=", ".join(f"i64 %w{word}" for word in words), result=t.RESULT)
    threads = _WINDOWS_THREADS if platform.system == "win32" else _POSIX_THREADS
    code = task + threads.format(thread=t.THREAD, set_mask=_SET_MASK.get(platform.system))
    return code + _BUSY_THREADS + _PANELS

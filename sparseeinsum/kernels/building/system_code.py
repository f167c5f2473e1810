"""Kernels: writes the LLVM IR that depends on the operating system: locks, random numbers, memory, threads."""

from sparseeinsum.kernels import thread_tasks as t
from sparseeinsum.kernels.platforms import Platform
from sparseeinsum.kernels.residents import LOCK, SECRET, TABLE_WORDS
from sparseeinsum.kernels.symbols import RESIDENTS

_POSIX = """
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @getentropy(ptr, i64)
declare i64 @sysconf(i32)

define hidden void @sparseeinsum_lock(i64 %address) {{
  %lock = inttoptr i64 %address to ptr
  %status = call i32 @pthread_mutex_lock(ptr %lock)
  ret void
}}

define hidden void @sparseeinsum_unlock(i64 %address) {{
  %lock = inttoptr i64 %address to ptr
  %status = call i32 @pthread_mutex_unlock(ptr %lock)
  ret void
}}

define internal void @draw(ptr %number) {{
  %status = call i32 @getentropy(ptr %number, i64 8)
  ret void
}}

define hidden i64 @sparseeinsum_memory_bytes() {{
  %page = call i64 @sysconf(i32 {page_size})
  %pages = call i64 @sysconf(i32 {physical_pages})
  %bytes = mul i64 %page, %pages
  ret i64 %bytes
}}
"""
_LINUX = """
declare i32 @madvise(ptr, i64, i32)

define hidden void @sparseeinsum_use_large_pages(i64 %address, i64 %bytes) {
  %before = add i64 %address, 4095
  %start = and i64 %before, -4096
  %end = add i64 %address, %bytes
  %size = sub i64 %end, %start
  %place = inttoptr i64 %start to ptr
  %status = call i32 @madvise(ptr %place, i64 %size, i32 14)  ; MADV_HUGEPAGE
  ret void
}
"""
_ELSEWHERE = """
define hidden void @sparseeinsum_use_large_pages(i64 %address, i64 %bytes) {
  ret void
}
"""
_WINDOWS = """
declare void @AcquireSRWLockExclusive(ptr)
declare void @ReleaseSRWLockExclusive(ptr)
declare i8 @SystemFunction036(ptr, i32)
declare i32 @GetPhysicallyInstalledSystemMemory(ptr)

define hidden void @sparseeinsum_lock(i64 %address) {
  %lock = inttoptr i64 %address to ptr
  call void @AcquireSRWLockExclusive(ptr %lock)
  ret void
}

define hidden void @sparseeinsum_unlock(i64 %address) {
  %lock = inttoptr i64 %address to ptr
  call void @ReleaseSRWLockExclusive(ptr %lock)
  ret void
}

define internal void @draw(ptr %number) {
  %status = call i8 @SystemFunction036(ptr %number, i32 8)
  ret void
}

define hidden i64 @sparseeinsum_memory_bytes() {
  %place = alloca i64
  store i64 0, ptr %place
  %status = call i32 @GetPhysicallyInstalledSystemMemory(ptr %place)
  %kibibytes = load i64, ptr %place
  %bytes = shl i64 %kibibytes, 10
  ret i64 %bytes
}

@_fltused = global i32 1  ; code with floating-point numbers refers to it

; Touches every page of a large frame, so that the system grows the stack. rax: the bytes; no register changes.
module asm ".globl __chkstk"
module asm "__chkstk:"
module asm "  pushq %rcx"
module asm "  pushq %rax"
module asm "  leaq 24(%rsp), %rcx"
module asm "next_page:"
module asm "  cmpq $0x1000, %rax"
module asm "  jb last_page"
module asm "  subq $0x1000, %rcx"
module asm "  testq %rcx, (%rcx)"
module asm "  subq $0x1000, %rax"
module asm "  jmp next_page"
module asm "last_page:"
module asm "  subq %rax, %rcx"
module asm "  testq %rcx, (%rcx)"
module asm "  popq %rax"
module asm "  popq %rcx"
module asm "  retq"
"""
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
_POSIX_THREADS = """
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)

define internal ptr @run_task(ptr %task) {{
  call void @compute_task(ptr %task)
  ret ptr null
}}

define hidden i64 @sparseeinsum_start_task(i64 %address) {{
  %task = inttoptr i64 %address to ptr
  %thread = getelementptr i64, ptr %task, i64 {thread}
  %status = call i32 @pthread_create(ptr %thread, ptr null, ptr @run_task, ptr %task)
  %started = icmp eq i32 %status, 0
  %value = zext i1 %started to i64
  ret i64 %value
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
# The numbers of sysconf's _SC_PAGESIZE and _SC_PHYS_PAGES.
_SYSCONF = {"linux": {"page_size": 30, "physical_pages": 85}, "darwin": {"page_size": 29, "physical_pages": 200}}
_UNLOCKED = {"darwin": 0x32AAABA7}  # first word of PTHREAD_MUTEX_INITIALIZER; elsewhere locks start as zeros

# Drawn once: if two threads draw at the same time, the number of the first stays.
_SECRET = f"""
define hidden void @sparseeinsum_draw_secret() {{
  %secret = getelementptr i64, ptr @{RESIDENTS}, i64 {SECRET}
  %number = alloca i64
  store i64 1, ptr %number
  call void @draw(ptr %number)
  %drawn = load i64, ptr %number
  %before = cmpxchg ptr %secret, i64 0, i64 %drawn seq_cst seq_cst
  ret void
}}
"""


def system_code(platform: Platform) -> str:
    """Return the LLVM IR of system functions for a platform, and of the table of resident arrays."""
    functions = _POSIX.format(**_SYSCONF[platform.system]) if platform.system in _SYSCONF else _WINDOWS
    functions += _LINUX if platform.system == "linux" else _ELSEWHERE
    words = [0] * TABLE_WORDS
    words[LOCK] = _UNLOCKED.get(platform.system, 0)
    table = "zeroinitializer" if not any(words) else f"[{', '.join(f'i64 {word}' for word in words)}]"
    return f"@{RESIDENTS} = hidden global [{TABLE_WORDS} x i64] {table}\n{_SECRET}{functions}"


def thread_code(platform: Platform) -> str:
    """Return the LLVM IR that starts a thread for a task, and that waits for its end; see thread_tasks.py."""
    words = range(t.ARGUMENTS, t.RESULT)
    loads = "\n".join(
        f"  %at_{word} = getelementptr i64, ptr %task, i64 {word}\n  %w{word} = load i64, ptr %at_{word}"
        for word in words
    )
    task = _TASK.format(loads=loads, arguments=", ".join(f"i64 %w{word}" for word in words), result=t.RESULT)
    threads = _WINDOWS_THREADS if platform.system == "win32" else _POSIX_THREADS
    return task + threads.format(thread=t.THREAD)

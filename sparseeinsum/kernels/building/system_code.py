"""Kernels: writes the LLVM IR that depends on the operating system: locks, random numbers, memory."""

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
    words = [0] * TABLE_WORDS
    words[LOCK] = _UNLOCKED.get(platform.system, 0)
    table = "zeroinitializer" if not any(words) else f"[{', '.join(f'i64 {word}' for word in words)}]"
    return f"@{RESIDENTS} = hidden global [{TABLE_WORDS} x i64] {table}\n{_SECRET}{functions}"

"""Kernels: writes the LLVM IR that asks the system for large pages, which it clears in a fraction of the time."""

from sparseeinsum.kernels.platforms import Platform

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


def page_code(platform: Platform) -> str:
    """Return the LLVM IR of the function that asks for large pages for so many bytes from an address on."""
    return _LINUX if platform.system == "linux" else _ELSEWHERE

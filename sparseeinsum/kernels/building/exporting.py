"""Kernels: C functions for code outside, around functions that numba compiled."""

import llvmlite.binding as llvm


def export(module: llvm.ModuleRef, inner: str, name: str, parameters: int, returned: str = "value") -> None:
    """Add the C function `name` of int64 that returns int64 and calls a function that numba compiled.

    It returns the function's value, or, where `returned` is "status", 0 unless the function raised an exception.
    """
    words = "".join(", i64" for _ in range(parameters))
    values = "".join(f", i64 %a{i}" for i in range(parameters))
    taken = ", ".join(f"i64 %a{i}" for i in range(parameters))
    module.link_in(
        llvm.parse_assembly(
            f"""
            declare i32 @"{inner}"(ptr, ptr{words})
            define i64 @{name}({taken}) {{
              %result = alloca i64
              %exception = alloca ptr
              store i64 0, ptr %result
              %short = call i32 @"{inner}"(ptr %result, ptr %exception{values})
              %status = sext i32 %short to i64
              %value = load i64, ptr %result
              ret i64 %{returned}
            }}"""
        )
    )

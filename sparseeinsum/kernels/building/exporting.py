"""Kernels: adds C functions that call functions compiled by numba."""

import llvmlite.binding as llvm


def export(module: llvm.ModuleRef, inner: str, name: str, parameters: int, returned: str = "value") -> None:
    """Add a C function that calls a function compiled by numba; all parameters and the result are int64.

    Args:
        module: The module that gets the function; the other function is in it, or is linked into it.
        inner: The mangled name of the function that numba compiled.
        name: The name of the C function.
        parameters: The number of parameters.
        returned: "value" to return the function's value; "status" to return 0 unless the function raised an exception.
    """
    types = "".join(", i64" for _ in range(parameters))
    declared = ", ".join(f"i64 %a{i}" for i in range(parameters))
    passed = "".join(f", i64 %a{i}" for i in range(parameters))
    module.link_in(
        llvm.parse_assembly(
            f"""
            declare i32 @"{inner}"(ptr, ptr{types})
            define i64 @{name}({declared}) {{
              %result = alloca i64
              %exception = alloca ptr
              store i64 0, ptr %result
              %short = call i32 @"{inner}"(ptr %result, ptr %exception{passed})
              %status = sext i32 %short to i64
              %value = load i64, ptr %result
              ret i64 %{returned}
            }}"""
        )
    )

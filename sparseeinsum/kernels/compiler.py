"""Kernels: Python functions in, object files of machine code out; the only module that starts numba's compiler.

Every exported function takes and returns int64 and becomes a C function of its own name. Nothing in an object
refers to Python: it can be loaded by a process without numba, or linked into a database's own extension. Run as
`python -m sparseeinsum.kernels.compiler GROUP FILE`, so that the compiler's memory goes when it is done.
"""

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
from numba import njit, types
from numba.core import config
from numba.core.codegen import JITCodeLibrary
from numba.core.cpu import CPUContext, CPUTargetOptions

from sparseeinsum.kernels import duckdb_aggregates, duckdb_capi, duckdb_hint, duckdb_scalars, measures, native
from sparseeinsum.kernels.catalogue import functions
from sparseeinsum.kernels.row_kernels import row_kernels

_Function = Callable[..., int]

_CALLBACKS: tuple[_Function, ...] = (
    duckdb_scalars.scalar_value,
    duckdb_scalars.scalar_list,
    duckdb_scalars.scalar_lists,
    duckdb_aggregates.aggregate_size,
    duckdb_aggregates.aggregate_init,
    duckdb_aggregates.aggregate_update,
    duckdb_aggregates.aggregate_combine,
    duckdb_aggregates.aggregate_finalize,
    duckdb_aggregates.aggregate_destroy,
    duckdb_hint.hint_bind,
    duckdb_hint.hint_init,
    duckdb_hint.hint_scan,
)

_C_LIBRARY = frozenset(
    ("calloc", "malloc", "free", "memset", "memcpy", "memmove", "memcmp", "bcmp", "snprintf", "strtod", "exp", "expf")
).union(("log", "logf", "pow", "powf", "tanh", "tanhf", "sqrt", "sqrtf"))

# Arrays here are views that own nothing, so counting references to them is nothing, too.
_NO_REFERENCE_COUNTS = """
define void @NRT_incref(ptr %meminfo) alwaysinline { ret void }
define void @NRT_decref(ptr %meminfo) alwaysinline { ret void }
"""

# Row-major C += A B through BLAS, which counts in int32 and thinks in columns: C' += B' A'. One thread a call, since
# the database runs on threads of its own; the calling thread's setting is put back afterwards.
_GEMM = """
declare void @{blas}(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)
declare i32 @sparseeinsum_blas_threads(i32)
define void @{name}(i64 %ta, i64 %tb, i64 %m, i64 %n, i64 %k, i64 %a, i64 %lda, i64 %b, i64 %ldb, i64 %c, i64 %ldc) {{
  %pta = alloca i8
  %ptb = alloca i8
  %ints = alloca [6 x i32]
  %one = alloca {type}
  %isa = icmp ne i64 %ta, 0
  %isb = icmp ne i64 %tb, 0
  %ca = select i1 %isa, i8 84, i8 78
  %cb = select i1 %isb, i8 84, i8 78
  store i8 %ca, ptr %pta
  store i8 %cb, ptr %ptb
  store {type} 1.0, ptr %one
{stores}
  %pa = inttoptr i64 %a to ptr
  %pb = inttoptr i64 %b to ptr
  %pc = inttoptr i64 %c to ptr
  %threads = call i32 @sparseeinsum_blas_threads(i32 1)
  call void @{blas}(ptr %ptb, ptr %pta, ptr %p1, ptr %p0, ptr %p2, ptr %one, ptr %pb, ptr %p4, ptr %pa, ptr %p3,
                    ptr %one, ptr %pc, ptr %p5)
  %ignored = call i32 @sparseeinsum_blas_threads(i32 %threads)
  ret void
}}
"""
_GEMM_F64 = ("sparseeinsum_gemm_f64", "sparseeinsum_dgemm", "double")
_GEMM_F32 = ("sparseeinsum_gemm_f32", "sparseeinsum_sgemm", "float")


def compile_group(group: str) -> bytes:
    """Compile one of `native.GROUPS` for this machine's processor; returns a relocatable object file."""
    exported = dict(_exported(group))
    module = llvm.parse_assembly(_NO_REFERENCE_COUNTS)
    for gemm in (_GEMM_F64, _GEMM_F32):
        module.link_in(llvm.parse_assembly(_gemm(*gemm)))
    with _no_machine_code_of_parts():
        for name, function in exported.items():
            module.link_in(_compile(name, function))
    for defined in module.functions:
        if not defined.is_declaration and defined.name not in exported:
            defined.linkage = "internal"
    return _emit(module)


def _exported(group: str) -> Iterator[tuple[str, _Function]]:
    if group == "callbacks":
        yield from ((callback.__name__, callback) for callback in _CALLBACKS)
        for name in sorted({function.measure for function in functions()}):
            yield native.measure_symbol(name), getattr(measures, f"measure_{name}")
        return
    for name, kernel in row_kernels({"f64": types.float64, "f32": types.float32}[group]).items():
        for part in native.PARTS:
            function = getattr(kernel, part)
            if function is not None:
                yield native.kernel_symbol(name, part, group), function


@contextmanager
def _no_machine_code_of_parts() -> Iterator[None]:
    """Keep numba from optimising, finishing and wrapping for Python each function that the exported ones call.

    Numba has no option for it that a called function inherits. Without this, compiling takes twice as long.
    """
    level = config.OPT
    finalize, get_executable = CPUTargetOptions.finalize, CPUContext.get_executable
    finish = JITCodeLibrary._finalize_specific

    def finalize_without_wrappers(self: object, flags: Any, options: object) -> None:
        finalize(self, flags, options)
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True

    def link_only(self: object, library: JITCodeLibrary, *_: object) -> object:
        library._ensure_finalized()
        return [].append  # numba wants a builtin of each function's own; none is ever called

    config.OPT = type(level)(0)
    CPUTargetOptions.finalize = finalize_without_wrappers
    CPUContext.get_executable = link_only
    JITCodeLibrary._finalize_specific = lambda _: None
    try:
        yield
    finally:
        config.OPT = level
        CPUTargetOptions.finalize = finalize
        CPUContext.get_executable = get_executable
        JITCodeLibrary._finalize_specific = finish


def _compile(name: str, function: _Function) -> llvm.ModuleRef:
    """LLVM module of one function, as the C function `name` of int64 that returns int64."""
    python_function = getattr(function, "py_func", function)
    count = len(inspect.signature(python_function).parameters)
    compiled = njit(types.int64(*[types.int64] * count), error_model="numpy")(python_function)
    (result,) = compiled.overloads.values()
    module = llvm.parse_bitcode(result.library._final_module.as_bitcode())
    inner = result.fndesc.mangled_name
    words = "".join(", i64" for _ in range(count))
    values = "".join(f", i64 %a{i}" for i in range(count))
    parameters = ", ".join(f"i64 %a{i}" for i in range(count))
    module.link_in(
        llvm.parse_assembly(
            f"""
            declare i32 @"{inner}"(ptr, ptr{words})
            define i64 @{name}({parameters}) {{
              %result = alloca i64
              %exception = alloca ptr
              store i64 0, ptr %result
              %status = call i32 @"{inner}"(ptr %result, ptr %exception{values})
              %value = load i64, ptr %result
              ret i64 %value
            }}"""
        )
    )
    module.get_function(inner).linkage = "internal"
    return module


def _gemm(name: str, blas: str, type_name: str) -> str:
    stores = []
    for index, argument in enumerate(("m", "n", "k", "lda", "ldb", "ldc")):
        stores.append(f"  %i{index} = trunc i64 %{argument} to i32")
        stores.append(f"  %p{index} = getelementptr [6 x i32], ptr %ints, i64 0, i64 {index}")
        stores.append(f"  store i32 %i{index}, ptr %p{index}")
    return _GEMM.format(name=name, blas=blas, type=type_name, stores="\n".join(stores))


def _emit(module: llvm.ModuleRef) -> bytes:
    module.verify()
    machine = native.target_machine()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    _check_externals(module)
    return bytes(machine.emit_object(module))


def _check_externals(module: llvm.ModuleRef) -> None:
    """Refuse a module that needs more than its hosts supply: a kernel that allocates an array or raises, say."""
    known = {*duckdb_capi.CALLED_BY_KERNELS, *_C_LIBRARY, "sparseeinsum_blas_threads", _GEMM_F64[1], _GEMM_F32[1]}
    needed = {function.name for function in module.functions if function.is_declaration}
    unknown = sorted(name for name in needed - known if not name.startswith("llvm."))
    if unknown:
        raise RuntimeError(f"kernels call functions that no host supplies: {', '.join(unknown)}")


if __name__ == "__main__":
    for external in (*duckdb_capi.CALLED_BY_KERNELS, _GEMM_F64[0], _GEMM_F32[0]):
        llvm.add_symbol(external, 1)  # never called here; LLVM ends the process on a name that it cannot resolve
    Path(sys.argv[2]).write_bytes(compile_group(sys.argv[1]))

"""Kernels: Python functions in, object files of machine code out; the only module that starts numba's compiler.

Every exported function takes and returns int64 and becomes a C function of its own name. Nothing in an object
refers to Python: it can be loaded by a process without numba, or linked into a database's own extension. Run as
`python -m sparseeinsum.kernels.compiler GROUP FILE PROCESSOR`, so that the compiler's memory goes when it is done.
"""

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
from numba import njit, types
from numba.core.codegen import JITCodeLibrary
from numba.core.cpu import CPUContext, CPUTargetOptions
from numba.core.dispatcher import Dispatcher

from sparseeinsum.kernels import (
    duckdb_aggregates,
    duckdb_capi,
    duckdb_hint,
    duckdb_scalars,
    duckdb_views,
    matrix_products,
    measures,
    native,
    postgres_aggregates,
    postgres_scalars,
    postgres_symbols,
)
from sparseeinsum.kernels.arithmetic import numbers_of
from sparseeinsum.kernels.catalogue import functions
from sparseeinsum.kernels.descriptors import RESIDENTS, USERS_FUNCTIONS
from sparseeinsum.kernels.row_kernels import row_kernels

_Function = Callable[..., int]

_DUCKDB_CALLBACKS: tuple[_Function, ...] = (
    duckdb_scalars.scalar_value,
    duckdb_scalars.scalar_list,
    duckdb_scalars.scalar_lists,
    duckdb_scalars.checked_value,
    duckdb_scalars.checked_list,
    duckdb_aggregates.aggregate_size,
    duckdb_aggregates.aggregate_init,
    duckdb_aggregates.aggregate_update,
    duckdb_aggregates.aggregate_combine,
    duckdb_aggregates.aggregate_finalize,
    duckdb_aggregates.aggregate_destroy,
    duckdb_aggregates.resident_finalize,
    duckdb_views.view_rows,
    duckdb_hint.hint_bind,
    duckdb_hint.hint_init,
    duckdb_hint.hint_scan,
)
_POSTGRES_CALLBACKS: tuple[_Function, ...] = (
    postgres_scalars.postgres_value,
    postgres_scalars.postgres_array,
    postgres_scalars.postgres_checked,
    postgres_scalars.postgres_set,
    postgres_aggregates.postgres_transition,
    postgres_aggregates.postgres_combine,
    postgres_aggregates.postgres_transition_beside,
    postgres_aggregates.postgres_combine_beside,
    postgres_aggregates.postgres_result_beside,
)

_C_LIBRARY = frozenset(
    ("calloc", "malloc", "free", "memset", "memcpy", "memmove", "memcmp", "bcmp", "snprintf", "strtod", "exp", "expf")
).union(
    (
        "log",
        "logf",
        "pow",
        "powf",
        "tanh",
        "tanhf",
        "sqrt",
        "sqrtf",
        "log1p",
        "hypot",
        "atan2",
        "sin",
        "cos",
        "tan",
        "sinh",
        "pthread_mutex_lock",
        "pthread_mutex_unlock",
    )
)

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
  %one = alloca {{ {type}, {type} }}
  %imaginary = getelementptr {{ {type}, {type} }}, ptr %one, i32 0, i32 1
  %isa = icmp ne i64 %ta, 0
  %isb = icmp ne i64 %tb, 0
  %ca = select i1 %isa, i8 84, i8 78
  %cb = select i1 %isb, i8 84, i8 78
  store i8 %ca, ptr %pta
  store i8 %cb, ptr %ptb
  store {type} 1.0, ptr %one
  store {type} 0.0, ptr %imaginary
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
_GEMMS = {  # by dtype: the routine of BLAS, and the type of an element or its parts
    "f64": ("sparseeinsum_dgemm", "double"),
    "f32": ("sparseeinsum_sgemm", "float"),
    "c128": ("sparseeinsum_zgemm", "double"),
    "c64": ("sparseeinsum_cgemm", "float"),
}
_GEMM_NAMES = tuple(f"sparseeinsum_gemm_{dtype}" for dtype in _GEMMS)

# What the code of one group may leave to a host, or to another group.
_SUPPLIED = frozenset(
    (
        *duckdb_capi.CALLED_BY_KERNELS,
        *postgres_symbols.CALLED_BY_KERNELS,
        *_C_LIBRARY,
        *_GEMM_NAMES,
        *(name for name, _ in _GEMMS.values()),
        "sparseeinsum_blas_threads",
        USERS_FUNCTIONS,
        RESIDENTS,
    )
)


def compile_group(group: str, processor: str) -> bytes:
    """Compile one of the groups of native.py for a processor; returns a relocatable object file."""
    exported = dict(_exported(group))
    module = llvm.parse_assembly(_NO_REFERENCE_COUNTS)
    for text in _written_by_hand(group):
        module.link_in(llvm.parse_assembly(text))
    inner_names: dict[_Function, str] = {}
    linked: set[JITCodeLibrary] = set()
    with _compiling_each_function_once():
        for name, function in exported.items():
            if function not in inner_names:
                inner_names[function] = _compile(function, module, linked)
            native.export(module, inner_names[function], name, _count_parameters(function))
    native.optimise(module, (*exported, *_GEMM_NAMES), processor)
    _check_externals(module)
    return bytes(native.target_machine(processor).emit_object(module))


def _written_by_hand(group: str) -> Iterator[str]:
    """LLVM IR of what numba cannot be told."""
    if group == "duckdb":
        yield from (_gemm(name, *_GEMMS[dtype]) for name, dtype in zip(_GEMM_NAMES, _GEMMS, strict=True))
    elif group == "matrix_products":
        yield matrix_products.tile_code()


def _exported(group: str) -> Iterator[tuple[str, _Function]]:
    match group:
        case "duckdb":
            yield from ((callback.__name__, callback) for callback in _DUCKDB_CALLBACKS)
        case "postgres":
            yield from ((callback.__name__, callback) for callback in _POSTGRES_CALLBACKS)
        case "matrix_products":
            yield from matrix_products.matrix_products().items()
        case "measures":
            for name in sorted({function.measure for function in functions()} - {""}):
                yield native.measure_symbol(name), getattr(measures, f"measure_{name}")
        case _:
            yield from _exported_kernels(group)


def _exported_kernels(group: str) -> Iterator[tuple[str, _Function]]:
    kernels = row_kernels(numbers_of(group))
    for name in sorted({function.kernel for function in functions() if group in function.dtypes} - {""}):
        for part in native.PARTS:
            function = getattr(kernels[name], part)
            if function is not None:
                yield native.kernel_symbol(name, part, group), function


@contextmanager
def _compiling_each_function_once() -> Iterator[None]:
    """Keep numba from linking, optimising, finishing and wrapping for Python each function that another one calls.

    Nor does it compile a function anew for every constant that it is called with. Numba has no options for this that
    a called function inherits. Without this, compiling takes more than twice as long.
    """
    finalize_options, compile_for = CPUTargetOptions.finalize, Dispatcher.compile

    def finalize_without_wrappers(self: object, flags: Any, options: object) -> None:
        finalize_options(self, flags, options)
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True

    def leave_unlinked(self: JITCodeLibrary) -> None:
        self._finalized = True

    def add_layout(self: JITCodeLibrary, module: llvm.ModuleRef) -> None:
        module.data_layout = self._codegen._data_layout

    def compile_for_types(self: Dispatcher, signature: Any) -> object:
        is_call = isinstance(signature, tuple)
        return compile_for(self, tuple(map(types.unliteral, signature)) if is_call else signature)

    replacements: tuple[tuple[type, str, object], ...] = (
        (CPUTargetOptions, "finalize", finalize_without_wrappers),
        (CPUContext, "get_executable", lambda *_: [].append),  # numba wants a builtin of each one's own; none is called
        (JITCodeLibrary, "finalize", leave_unlinked),
        (JITCodeLibrary, "_optimize_functions", add_layout),
        (Dispatcher, "compile", compile_for_types),
    )
    replaced = [(owner, name, getattr(owner, name)) for owner, name, _ in replacements]
    for owner, name, replacement in replacements:
        setattr(owner, name, replacement)
    try:
        yield
    finally:
        for owner, name, original in replaced:
            setattr(owner, name, original)


def _count_parameters(function: _Function) -> int:
    return len(inspect.signature(getattr(function, "py_func", function)).parameters)


def _compile(function: _Function, module: llvm.ModuleRef, linked: set[JITCodeLibrary]) -> str:
    """Add a function of int64 that returns int64 to a module, and all that it calls; returns its name in there."""
    signature = types.int64(*[types.int64] * _count_parameters(function))
    compiled = njit(signature, error_model="numpy")(getattr(function, "py_func", function))
    (result,) = compiled.overloads.values()
    waiting = [result.library]
    while waiting:
        library = waiting.pop()
        if library not in linked:
            linked.add(library)
            waiting += library._linking_libraries
            _link(library._final_module, module)
    return str(result.fndesc.mangled_name)


def _link(part: llvm.ModuleRef, module: llvm.ModuleRef) -> None:
    """Add a part to a module, which keeps the definitions that it has."""
    for function in part.functions:
        if not function.is_declaration:
            function.linkage = "weak_odr"
    module.link_in(part, preserve=True)


def _gemm(name: str, blas: str, type_name: str) -> str:
    stores = []
    for index, argument in enumerate(("m", "n", "k", "lda", "ldb", "ldc")):
        stores.append(f"  %i{index} = trunc i64 %{argument} to i32")
        stores.append(f"  %p{index} = getelementptr [6 x i32], ptr %ints, i64 0, i64 {index}")
        stores.append(f"  store i32 %i{index}, ptr %p{index}")
    return _GEMM.format(name=name, blas=blas, type=type_name, stores="\n".join(stores))


def _check_externals(module: llvm.ModuleRef) -> None:
    """Refuse a module that needs more than its hosts supply: a kernel that allocates an array or raises, say."""
    symbols = (*module.functions, *module.global_variables)
    needed = {symbol.name for symbol in symbols if symbol.is_declaration}
    unknown = sorted(name for name in needed - _SUPPLIED if not name.startswith("llvm."))
    if unknown:
        raise RuntimeError(f"kernels call functions that no host supplies: {', '.join(unknown)}")


if __name__ == "__main__":
    for external in _SUPPLIED - _C_LIBRARY:
        llvm.add_symbol(external, 1)  # never called here; LLVM ends the process on a name that it cannot resolve
    Path(sys.argv[2]).write_bytes(compile_group(sys.argv[1], sys.argv[3]))

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

from sparseeinsum.kernels import blas_code, native
from sparseeinsum.kernels.catalogue import functions
from sparseeinsum.kernels.compiled import matrix_products, measures
from sparseeinsum.kernels.compiled.arithmetic import numbers_of
from sparseeinsum.kernels.compiled.duckdb import aggregates as duckdb_aggregates
from sparseeinsum.kernels.compiled.duckdb import hint, registration, views
from sparseeinsum.kernels.compiled.duckdb import scalars as duckdb_scalars
from sparseeinsum.kernels.compiled.postgresql import aggregates as postgresql_aggregates
from sparseeinsum.kernels.compiled.postgresql import scalars as postgresql_scalars
from sparseeinsum.kernels.compiled.row_kernels import row_kernels
from sparseeinsum.kernels.descriptors import RESIDENTS, USERS_FUNCTIONS
from sparseeinsum.kernels.duckdb import capi
from sparseeinsum.kernels.postgresql import symbols

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
    views.view_rows,
    hint.hint_bind,
    hint.hint_init,
    hint.hint_scan,
    registration.enter_extension,
    registration.load_extension,
)
_POSTGRESQL_CALLBACKS: tuple[_Function, ...] = (
    postgresql_scalars.postgres_value,
    postgresql_scalars.postgres_array,
    postgresql_scalars.postgres_checked,
    postgresql_scalars.postgres_set,
    postgresql_scalars.postgres_bytes,
    postgresql_scalars.postgres_array_of_bytes,
    postgresql_aggregates.postgres_transition,
    postgresql_aggregates.postgres_combine,
    postgresql_aggregates.postgres_transition_beside,
    postgresql_aggregates.postgres_combine_beside,
    postgresql_aggregates.postgres_result_beside,
)

_C_MEMORY = ("calloc", "malloc", "free", "memset", "memcpy", "memmove", "memcmp", "bcmp", "snprintf", "strtod")
_C_MATHEMATICS = ("log1p", "hypot", "atan2", "sin", "cos", "tan", "sinh", "sqrt", "exp", "log", "pow", "tanh")
_C_MATHEMATICS_OF_FLOATS = ("sqrtf", "expf", "logf", "powf", "tanhf")
_C_SYSTEM = ("sysconf", "pthread_mutex_lock", "pthread_mutex_unlock")
_C_LIBRARY = frozenset((*_C_MEMORY, *_C_MATHEMATICS, *_C_MATHEMATICS_OF_FLOATS, *_C_SYSTEM))

# Arrays here are views that own nothing, so counting references to them is nothing, too.
_NO_REFERENCE_COUNTS = """
define void @NRT_incref(ptr %meminfo) alwaysinline { ret void }
define void @NRT_decref(ptr %meminfo) alwaysinline { ret void }
"""

# What the code of one group may leave to a host, or to another group.
_SUPPLIED = frozenset(
    (
        *capi.CALLED_BY_KERNELS,
        *symbols.CALLED_BY_KERNELS,
        *_C_LIBRARY,
        *blas_code.GEMM_NAMES,
        *blas_code.CALLED_BY_KERNELS,
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
    native.optimise(module, (*exported, *blas_code.GEMM_NAMES), processor)
    _check_externals(module)
    return native.emit_object(module, processor)


def _written_by_hand(group: str) -> Iterator[str]:
    """LLVM IR of what numba cannot be told."""
    if group == "blas":
        yield from map(blas_code.gemm_code, blas_code.DTYPES)
    elif group == "matrix_products":
        yield matrix_products.tile_code()


def _exported(group: str) -> Iterator[tuple[str, _Function]]:
    match group:
        case "blas":
            return
        case "duckdb":
            yield from ((callback.__name__, callback) for callback in _DUCKDB_CALLBACKS)
        case "postgresql":
            yield from ((callback.__name__, callback) for callback in _POSTGRESQL_CALLBACKS)
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

"""Kernels: lists the external functions and data that the code of groups may use."""

import llvmlite.binding as llvm

from sparseeinsum.kernels.building import postgresql_functions
from sparseeinsum.kernels.duckdb import api_table
from sparseeinsum.kernels.symbols import BLAS, MATRIX_PRODUCTS, RESIDENTS, USER_FUNCTIONS

_C_MEMORY = ("calloc", "malloc", "free", "memset", "memcpy", "memmove", "memcmp", "bcmp", "strtod", "strcmp", "getenv")
C_MATHEMATICS = (  # of float64, then of float32
    *(
        "acos",
        "asin",
        "asinh",
        "atan",
        "atan2",
        "ceil",
        "cos",
        "cosh",
        "exp",
        "floor",
        "fmod",
        "hypot",
        "log",
        "log1p",
    ),
    *("pow", "rint", "sin", "sinh", "sqrt", "tan"),
    *("acosf", "asinf", "atanf", "cosf", "coshf", "powf", "sinf", "sinhf", "sqrtf", "tanf"),
)
_LIBRARY = (
    *("sparseeinsum_lock", "sparseeinsum_unlock", "sparseeinsum_memory_bytes", "sparseeinsum_pause"),
    "sparseeinsum_use_large_pages",
    *("sparseeinsum_start_task", "sparseeinsum_join_task", "sparseeinsum_add_busy_threads"),
    *("sparseeinsum_take_panels", "sparseeinsum_give_panels"),
)

SUPPLIED = frozenset(
    (
        *api_table.CALLED_BY_KERNELS,
        *postgresql_functions.CALLED_BY_KERNELS,
        *_C_MEMORY,
        *C_MATHEMATICS,
        *_LIBRARY,
        *MATRIX_PRODUCTS,
        BLAS,
        USER_FUNCTIONS,
        RESIDENTS,
    )
)


def check_externals(module: llvm.ModuleRef) -> None:
    """Raise RuntimeError for a module that needs other symbols, as a kernel does that allocates an array or raises."""
    symbols = (*module.functions, *module.global_variables)
    needed = {symbol.name for symbol in symbols if symbol.is_declaration}
    unknown = sorted(name for name in needed - SUPPLIED if not name.startswith("llvm."))
    if unknown:
        raise RuntimeError(f"kernels call functions that no host supplies: {', '.join(unknown)}")

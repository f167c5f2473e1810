"""Kernels: writes the gemm that udfs/contraction.py calls, in LLVM IR: it calls a BLAS, or our own gemm without one."""

from sparseeinsum.kernels.symbols import BLAS, BLAS_WORDS, GEMM_DTYPES, GEMMS

# Row-major C += A B, as C' += B' A' for BLAS, which is column-major. BLAS may read integers of 32 or of 64 bits: both
# work, because these have 64 bits, lowest byte first, and udfs/contraction.py uses no more than 31 of them. A call runs
# on one thread, because the database has threads of its own; afterwards the setting of the thread is restored.
_GEMM = """
define void @{name}(i64 %ta, i64 %tb, i64 %m, i64 %n, i64 %k, i64 %a, i64 %lda, i64 %b, i64 %ldb, i64 %c, i64 %ldc) {{
  %transposed_a = alloca i8
  %transposed_b = alloca i8
  %one = alloca {{ {type}, {type} }}
{allocations}
  %place = getelementptr [{words} x ptr], ptr @{table}, i64 0, i64 {index}
  %blas = load ptr, ptr %place
  %none = icmp eq ptr %blas, null
  br i1 %none, label %own, label %other
own:
  %done = call i64 @{own}({parameters})
  ret void
other:
  %imaginary = getelementptr {{ {type}, {type} }}, ptr %one, i32 0, i32 1
  %isa = icmp ne i64 %ta, 0
  %isb = icmp ne i64 %tb, 0
  %ca = select i1 %isa, i8 84, i8 78
  %cb = select i1 %isb, i8 84, i8 78
  store i8 %ca, ptr %transposed_a
  store i8 %cb, ptr %transposed_b
  store {type} 1.0, ptr %one
  store {type} 0.0, ptr %imaginary
{stores}
  %pa = inttoptr i64 %a to ptr
  %pb = inttoptr i64 %b to ptr
  %pc = inttoptr i64 %c to ptr
  %threads = call i32 @sparseeinsum_set_blas_threads(i32 1)
  call void %blas(ptr %transposed_b, ptr %transposed_a, ptr %at_n, ptr %at_m, ptr %at_k, ptr %one, ptr %pb, ptr %at_ldb,
                  ptr %pa, ptr %at_lda, ptr %one, ptr %pc, ptr %at_ldc)
  %ignored = call i32 @sparseeinsum_set_blas_threads(i32 %threads)
  ret void
}}
declare i64 @{own}(i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64)
"""
_THREADS = f"""
@{BLAS} = external global [{BLAS_WORDS} x ptr]
define internal i32 @sparseeinsum_set_blas_threads(i32 %threads) {{
  %place = getelementptr [{BLAS_WORDS} x ptr], ptr @{BLAS}, i64 0, i64 {BLAS_WORDS - 1}
  %set = load ptr, ptr %place
  %none = icmp eq ptr %set, null
  br i1 %none, label %keep, label %change
keep:
  ret i32 %threads
change:
  %before = call i32 %set(i32 %threads)
  ret i32 %before
}}
"""
_PARAMETERS = ("ta", "tb", "m", "n", "k", "a", "lda", "b", "ldb", "c", "ldc")
_INTEGERS = ("m", "n", "k", "lda", "ldb", "ldc")
_TYPES = {"f64": "double", "f32": "float", "c128": "double", "c64": "float"}  # of an element or its parts


def gemm_code() -> str:
    """Return the LLVM IR of GEMMS, which call the functions named by `own_gemm` if the process has no BLAS."""
    return _THREADS + "".join(map(_gemm, GEMM_DTYPES, GEMMS))


def own_gemm(dtype: str) -> str:
    """Return the symbol of the function that replaces the gemm of BLAS."""
    return f"sparseeinsum_own_gemm_{dtype}"


def _gemm(dtype: str, name: str) -> str:
    return _GEMM.format(
        name=name,
        own=own_gemm(dtype),
        table=BLAS,
        words=BLAS_WORDS,
        index=GEMM_DTYPES.index(dtype),
        parameters=", ".join(f"i64 %{parameter}" for parameter in _PARAMETERS),
        type=_TYPES[dtype],
        allocations="\n".join(f"  %at_{integer} = alloca i64" for integer in _INTEGERS),
        stores="\n".join(f"  store i64 %{integer}, ptr %at_{integer}" for integer in _INTEGERS),
    )

"""Kernels: writes the gemm that udfs/contraction.py calls, in LLVM IR: it calls a GPU, a BLAS, or our own gemm."""

from sparseeinsum.kernels.symbols import (
    BLAS,
    BLAS_WORDS,
    GEMM_DTYPES,
    GEMMS,
    GPU_PRODUCT,
    GPU_WORD,
    LEAST_PRODUCTS_WORD,
    MOST_THREADS_WORD,
    SETTER_WORD,
    STATEMENT_THREADS_WORD,
)

# Row-major C += A B, as C' += B' A' for BLAS, which is column-major. BLAS may read integers of 32 or of 64 bits: both
# work, because these have 64 bits, lowest byte first, and udfs/contraction.py uses no more than 31 of them.
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
  %mn = mul i64 %m, %n
  %products = mul i64 %mn, %k
  call void @sparseeinsum_enter_blas(i64 %products)
  call void %blas(ptr %transposed_b, ptr %transposed_a, ptr %at_n, ptr %at_m, ptr %at_k, ptr %one, ptr %pb, ptr %at_ldb,
                  ptr %pa, ptr %at_lda, ptr %one, ptr %pc, ptr %at_ldc)
  call void @sparseeinsum_leave_blas()
  ret void
}}
declare i64 @{own}(i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64)
"""
# A large product runs on all threads of the BLAS while no other thread calls it, or computes another large array. Where
# several threads do, the statement is parallel already, and each call runs on one. It has no more threads than the
# database; of two databases with different numbers that run at once, one may get that of the other. OpenBLAS has one
# number of threads for the whole process: the first call keeps the old number, and the last one restores it.
# Threads of OpenBLAS wait for one another: on a busy machine up to a time slice, some 10 ms, which is more than a
# second thread saves of a product of 4 ms. Half a millisecond was the limit before; three such products then took 60 to
# 75 ms of processor time and 95 to 150 of the clock at a load of 5, and 27 to 30 and 30 to 50 in one thread.
_WORTH_THREADS = 1 << 27  # multiply-adds, about 4 ms
_THREADS = f"""
@{BLAS} = external global [{BLAS_WORDS} x ptr]
@blas_lock = internal global i32 0
@blas_calls = internal global i32 0
@blas_threads = internal global i32 0
declare i64 @sparseeinsum_add_busy_threads(i64)
declare i32 @llvm.smin.i32(i32, i32)

define internal ptr @sparseeinsum_lock_blas() {{
start:
  %place = getelementptr [{BLAS_WORDS} x ptr], ptr @{BLAS}, i64 0, i64 {SETTER_WORD}
  %set = load ptr, ptr %place
  %none = icmp eq ptr %set, null
  br i1 %none, label %done, label %wait
wait:
  %held = atomicrmw xchg ptr @blas_lock, i32 1 seq_cst
  %busy = icmp ne i32 %held, 0
  br i1 %busy, label %wait, label %done
done:
  ret ptr %set
}}

define internal void @sparseeinsum_enter_blas(i64 %products) {{
start:
  %set = call ptr @sparseeinsum_lock_blas()
  %none = icmp eq ptr %set, null
  br i1 %none, label %done, label %count
count:
  %others = load i32, ptr @blas_calls
  %calls = add i32 %others, 1
  store i32 %calls, ptr @blas_calls
  %before = call i32 %set(i32 1)
  %alone = icmp eq i32 %others, 0
  br i1 %alone, label %first, label %unlock
first:
  store i32 %before, ptr @blas_threads
  %most_at = getelementptr [{BLAS_WORDS} x ptr], ptr @{BLAS}, i64 0, i64 {MOST_THREADS_WORD}
  %most_word = load i64, ptr %most_at
  %most = trunc i64 %most_word to i32
  %fewer = icmp slt i32 %before, %most
  %allowed = select i1 %fewer, i32 %before, i32 %most
  %statement_at = getelementptr [{BLAS_WORDS} x ptr], ptr @{BLAS}, i64 0, i64 {STATEMENT_THREADS_WORD}
  %statement_word = load i64, ptr %statement_at
  %statement = trunc i64 %statement_word to i32
  %known = icmp sgt i32 %statement, 0
  %least = call i32 @llvm.smin.i32(i32 %allowed, i32 %statement)
  %threads = select i1 %known, i32 %least, i32 %allowed
  %large = icmp sge i64 %products, {_WORTH_THREADS}
  %several = icmp sgt i32 %threads, 1
  %busy = call i64 @sparseeinsum_add_busy_threads(i64 0)
  %idle = icmp sle i64 %busy, 1
  %worth = and i1 %large, %idle
  %shares = and i1 %worth, %several
  br i1 %shares, label %share, label %unlock
share:
  %one = call i32 %set(i32 %threads)
  br label %unlock
unlock:
  store atomic i32 0, ptr @blas_lock seq_cst, align 4
  br label %done
done:
  ret void
}}

define internal void @sparseeinsum_leave_blas() {{
start:
  %set = call ptr @sparseeinsum_lock_blas()
  %none = icmp eq ptr %set, null
  br i1 %none, label %done, label %count
count:
  %calls = load i32, ptr @blas_calls
  %others = sub i32 %calls, 1
  store i32 %others, ptr @blas_calls
  %last = icmp eq i32 %others, 0
  br i1 %last, label %restore, label %unlock
restore:
  %threads = load i32, ptr @blas_threads
  %one = call i32 %set(i32 %threads)
  br label %unlock
unlock:
  store atomic i32 0, ptr @blas_lock seq_cst, align 4
  br label %done
done:
  ret void
}}
"""
# Returns 0 if a GPU has added the product to C, else 1. A GPU is asked if copying all matrices takes less time than the
# processor would need; C counts twice, as it is added up afterwards.
_GPU = f"""
define i64 @{GPU_PRODUCT}(i64 %dtype, i64 %ta, i64 %tb, i64 %m, i64 %n, i64 %k, i64 %a, i64 %lda, i64 %b, i64 %ldb,
                          i64 %c, i64 %ldc) {{
start:
  %place = getelementptr [{BLAS_WORDS} x ptr], ptr @{BLAS}, i64 0, i64 {GPU_WORD}
  %gpu = load ptr, ptr %place
  %none = icmp eq ptr %gpu, null
  br i1 %none, label %no, label %weigh
weigh:
  %least_at = getelementptr [{BLAS_WORDS} x ptr], ptr @{BLAS}, i64 0, i64 {LEAST_PRODUCTS_WORD}
  %least = load i64, ptr %least_at
  %mk = mul i64 %m, %k
  %kn = mul i64 %k, %n
  %mn = mul i64 %m, %n
  %operands = add i64 %mk, %kn
  %results = mul i64 %mn, 2
  %numbers = add i64 %operands, %results
  %products = mul i64 %mn, %k
  %share = udiv i64 %products, %least
  %pays = icmp uge i64 %share, %numbers
  br i1 %pays, label %ask, label %no
ask:
  %done = call i64 %gpu(i64 %dtype, i64 %ta, i64 %tb, i64 %m, i64 %n, i64 %k, i64 %a, i64 %lda, i64 %b, i64 %ldb,
                        i64 %c, i64 %ldc)
  ret i64 %done
no:
  ret i64 1
}}
"""
_PARAMETERS = ("ta", "tb", "m", "n", "k", "a", "lda", "b", "ldb", "c", "ldc")
_INTEGERS = ("m", "n", "k", "lda", "ldb", "ldc")
_TYPES = {"f64": "double", "f32": "float", "c128": "double", "c64": "float"}  # of an element or its parts


def gemm_code() -> str:
    """Return the LLVM IR of GPU_PRODUCT and of GEMMS, which call functions named by `own_gemm` if there is no BLAS."""
    return _THREADS + _GPU + "".join(map(_gemm, GEMM_DTYPES, GEMMS))


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

"""Kernels: the external gemm of udfs/contraction.py through a BLAS that the host brings, as LLVM IR."""

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
_ROUTINES = {  # by dtype: the routine of BLAS, and the type of an element or its parts
    "f64": ("sparseeinsum_dgemm", "double"),
    "f32": ("sparseeinsum_sgemm", "float"),
    "c128": ("sparseeinsum_zgemm", "double"),
    "c64": ("sparseeinsum_cgemm", "float"),
}
DTYPES = tuple(_ROUTINES)
GEMM_NAMES = tuple(f"sparseeinsum_gemm_{dtype}" for dtype in DTYPES)
CALLED_BY_KERNELS = (*(routine for routine, _ in _ROUTINES.values()), "sparseeinsum_blas_threads")


def gemm_code(dtype: str) -> str:
    """The function for a dtype; one of GEMM_NAMES."""
    routine, type_name = _ROUTINES[dtype]
    stores = []
    for index, argument in enumerate(("m", "n", "k", "lda", "ldb", "ldc")):
        stores.append(f"  %i{index} = trunc i64 %{argument} to i32")
        stores.append(f"  %p{index} = getelementptr [6 x i32], ptr %ints, i64 0, i64 {index}")
        stores.append(f"  store i32 %i{index}, ptr %p{index}")
    name = f"sparseeinsum_gemm_{dtype}"
    return _GEMM.format(name=name, blas=routine, type=type_name, stores="\n".join(stores))

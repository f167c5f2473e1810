"""Kernels: computes matrix products without a BLAS; see udfs/matrix_product.py.

The library supplies the memory for panels, and a function that is called regularly, in which a host may interrupt.
"""

from collections.abc import Callable

from numba import njit, types

from sparseeinsum.assets import load_kernels
from sparseeinsum.kernels.compiled.blas_calls import own_gemm
from sparseeinsum.kernels.compiled.raw_memory import array_at

product = load_kernels("matrix_product")

_PANEL_BYTES = 8 * (product.PANEL_OF_A + product.PANEL_OF_B + product.TILE)
_word = types.int64
_take_panels = types.ExternalFunction("sparseeinsum_take_panels", _word(_word))
_give_panels = types.ExternalFunction("sparseeinsum_give_panels", types.void(_word))
_pause = types.ExternalFunction("sparseeinsum_pause", _word())
_REAL = {"f64": types.float64, "f32": types.float32}
_COMPLEX = {"c128": types.complex128, "c64": types.complex64}
_TYPES = {"f64": ("double", 8), "f32": ("float", 16)}  # LLVM's type, and the numbers in one row of a tile


def matrix_products() -> dict[str, Callable[..., int]]:
    """Return the gemm functions by their symbols, for numba to compile."""
    return {own_gemm(suffix): _gemm_by_tiles(suffix, dtype) for suffix, dtype in _REAL.items()} | {
        own_gemm(suffix): _gemm_by_lines(dtype) for suffix, dtype in _COMPLEX.items()
    }


@njit
def _pause_now():
    return _pause()


@njit
def _strides(transposed, leading):
    return (1, leading) if transposed != 0 else (leading, 1)


@njit
def _span(rows, columns, strides):
    """Return the number of elements from the first element of a matrix to its last in memory."""
    return (rows - 1) * strides[0] + (columns - 1) * strides[1] + 1


def _gemm_by_tiles(suffix: str, dtype: types.Float) -> Callable[..., int]:
    tile_of_addresses = types.ExternalFunction(f"sparseeinsum_tile_{suffix}", types.void(*[_word] * 5))

    @njit
    def multiply_tile(k, a, b, c, c_rows):
        tile_of_addresses(k, a.ctypes.data, b.ctypes.data, c.ctypes.data, c_rows)

    def gemm(ta, tb, m, n, k, a, lda, b, ldb, c, ldc):
        a_strides, b_strides = _strides(ta, lda), _strides(tb, ldb)
        u = array_at(a, _span(m, k, a_strides), dtype)
        v = array_at(b, _span(k, n, b_strides), dtype)
        w = array_at(c, _span(m, n, (ldc, 1)), dtype)
        panels = _take_panels(_PANEL_BYTES)
        if panels == 0:  # out of memory
            product.multiply_by_lines((m, n, k), u, a_strides, v, b_strides, w, ldc, _pause_now)
            return 0
        panel_of_a = array_at(panels, product.PANEL_OF_A, dtype)
        panel_of_b = array_at(panels + 8 * product.PANEL_OF_A, product.PANEL_OF_B, dtype)
        tile = array_at(panels + 8 * (product.PANEL_OF_A + product.PANEL_OF_B), product.TILE, dtype)
        product.multiply(
            (m, n, k),
            u,
            a_strides,
            v,
            b_strides,
            w,
            ldc,
            panel_of_a,
            panel_of_b,
            tile,
            multiply_tile,
            _pause_now,
        )
        _give_panels(panels)
        return 0

    return gemm


def _gemm_by_lines(dtype: types.Complex) -> Callable[..., int]:
    def gemm(ta, tb, m, n, k, a, lda, b, ldb, c, ldc):
        a_strides, b_strides = _strides(ta, lda), _strides(tb, ldb)
        product.multiply_by_lines(
            (m, n, k),
            array_at(a, _span(m, k, a_strides), dtype),
            a_strides,
            array_at(b, _span(k, n, b_strides), dtype),
            b_strides,
            array_at(c, _span(m, n, (ldc, 1)), dtype),
            ldc,
            _pause_now,
        )
        return 0

    return gemm


def tile_code() -> str:
    """Return the LLVM IR that multiplies tiles. It keeps sums in registers, which cannot be expressed in numba."""
    return "\n".join(_tile_code(suffix, *parts) for suffix, parts in _TYPES.items())


def _tile_code(suffix: str, kind: str, columns: int) -> str:
    vector, rows = f"<{columns} x {kind}>", range(product.TILE_ROWS)
    name = f"llvm.fmuladd.v{columns}f{64 if kind == 'double' else 32}"
    sums = [f"  %s{i} = phi {vector} [ zeroinitializer, %start ], [ %t{i}, %loop ]" for i in rows]
    step = [
        f"""  %pa{i} = getelementptr {kind}, ptr %a, i64 {i}
  %e{i} = load {kind}, ptr %pa{i}
  %f{i} = insertelement {vector} poison, {kind} %e{i}, i64 0
  %v{i} = shufflevector {vector} %f{i}, {vector} poison, <{columns} x i32> zeroinitializer
  %t{i} = call {vector} @{name}({vector} %v{i}, {vector} %w, {vector} %s{i})"""
        for i in rows
    ]
    ends = [
        f"""  %at{i} = mul i64 %ldc, {i}
  %pc{i} = getelementptr {kind}, ptr %c, i64 %at{i}
  %old{i} = load {vector}, ptr %pc{i}, align {64 // columns}
  %new{i} = fadd {vector} %old{i}, %t{i}
  store {vector} %new{i}, ptr %pc{i}, align {64 // columns}"""
        for i in rows
    ]
    return f"""
declare {vector} @{name}({vector}, {vector}, {vector})
define void @sparseeinsum_tile_{suffix}(i64 %k, i64 %a0, i64 %b0, i64 %c0, i64 %ldc) {{
start:
  %afirst = inttoptr i64 %a0 to ptr
  %bfirst = inttoptr i64 %b0 to ptr
  %c = inttoptr i64 %c0 to ptr
  br label %loop
loop:
  %p = phi i64 [ 0, %start ], [ %next, %loop ]
  %a = phi ptr [ %afirst, %start ], [ %anext, %loop ]
  %b = phi ptr [ %bfirst, %start ], [ %bnext, %loop ]
{chr(10).join(sums)}
  %w = load {vector}, ptr %b, align {64 // columns}
{chr(10).join(step)}
  %anext = getelementptr {kind}, ptr %a, i64 {product.TILE_ROWS}
  %bnext = getelementptr {kind}, ptr %b, i64 {columns}
  %next = add i64 %p, 1
  %more = icmp slt i64 %next, %k
  br i1 %more, label %loop, label %done
done:
{chr(10).join(ends)}
  ret void
}}
"""

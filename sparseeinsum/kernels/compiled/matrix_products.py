"""Kernels: computes matrix products without a BLAS; see udfs/matrix_product.py.

The library supplies the memory for panels, and a function that is called regularly, in which a host may interrupt.
"""

import itertools
from collections.abc import Callable

from numba import njit, types

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels.compiled.blas_calls import own_gemm
from sparseeinsum.kernels.compiled.raw_memory import array_at
from sparseeinsum.kernels.symbols import WIDE_VECTORS

product = load_kernels("matrix_product")

_PANEL_BYTES = 8 * (product.PANEL_OF_A + product.PANEL_OF_B + product.TILE)
_word = types.int64
_take_panels = types.ExternalFunction("sparseeinsum_take_panels", _word(_word))
_give_panels = types.ExternalFunction("sparseeinsum_give_panels", types.void(_word))
_pause = types.ExternalFunction("sparseeinsum_pause", _word())
_REAL = {"f64": types.float64, "f32": types.float32}
_COMPLEX = {"c128": types.complex128, "c64": types.complex64}
_TYPES = {"f64": ("double", 8), "f32": ("float", 16)}  # LLVM's type, and the numbers in a vector of 64 bytes


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
    tile_of_addresses = types.ExternalFunction(f"sparseeinsum_tile_{suffix}", types.void(*[_word] * 6))

    @njit
    def multiply_tile(k, a, b, c, c_rows, vectors):
        tile_of_addresses(k, a.ctypes.data, b.ctypes.data, c.ctypes.data, c_rows, vectors)

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
    """Return the LLVM IR that multiplies tiles. It keeps sums in registers, which cannot be expressed in numba.

    A tile has two vectors in every row. Processors with vectors of 64 bytes sum both at once; others lack the registers
    for that, and sum one after the other.
    """
    tiles = (_tile_code(suffix, *parts) for suffix, parts in _TYPES.items())
    return "\n".join([f"@{WIDE_VECTORS} = external constant i1", *tiles])


def _tile_code(suffix: str, kind: str, lanes: int) -> str:
    vector = f"<{lanes} x {kind}>"
    multiply_add = f"llvm.fmuladd.v{lanes}f{64 if kind == 'double' else 32}"
    first, second, both = (_sums_code(vector, kind, lanes, multiply_add, vectors) for vectors in ((0,), (1,), (0, 1)))
    return f"""
declare {vector} @{multiply_add}({vector}, {vector}, {vector})
define void @sparseeinsum_tile_{suffix}(i64 %k, i64 %a, i64 %b, i64 %to, i64 %ldc, i64 %vectors) {{
start:
  %afirst = inttoptr i64 %a to ptr
  %bfirst = inttoptr i64 %b to ptr
  %c = inttoptr i64 %to to ptr
  %is_wide = load i1, ptr @{WIDE_VECTORS}
  %has_two = icmp eq i64 %vectors, 2
  %at_once = and i1 %is_wide, %has_two
  br i1 %at_once, label %start01, label %start0
{first}
  br i1 %has_two, label %start1, label %done
{second}
  br label %done
{both}
  br label %done
done:
  ret void
}}
"""


def _sums_code(vector: str, kind: str, lanes: int, multiply_add: str, vectors: tuple[int, ...]) -> str:
    """Blocks that add to some vectors of every row of a tile; the last one has no end."""
    block = "".join(map(str, vectors))
    places = list(itertools.product(range(product.TILE_ROWS), vectors))
    sums = [
        f"  %s{i}{j}_{block} = phi {vector} [ zeroinitializer, %start{block} ], [ %t{i}{j}_{block}, %loop{block} ]"
        for i, j in places
    ]
    columns = [
        f"""  %pb{j}_{block} = getelementptr {kind}, ptr %b{block}, i64 {j * lanes}
  %w{j}_{block} = load {vector}, ptr %pb{j}_{block}, align {64 // lanes}"""
        for j in vectors
    ]
    rows = [
        f"""  %pa{i}_{block} = getelementptr {kind}, ptr %a{block}, i64 {i}
  %e{i}_{block} = load {kind}, ptr %pa{i}_{block}
  %f{i}_{block} = insertelement {vector} poison, {kind} %e{i}_{block}, i64 0
  %v{i}_{block} = shufflevector {vector} %f{i}_{block}, {vector} poison, <{lanes} x i32> zeroinitializer"""
        for i in range(product.TILE_ROWS)
    ]
    products = [
        f"  %t{i}{j}_{block} = call {vector} @{multiply_add}("
        f"{vector} %v{i}_{block}, {vector} %w{j}_{block}, {vector} %s{i}{j}_{block})"
        for i, j in places
    ]
    ends = [
        f"""  %row{i}{j}_{block} = mul i64 %ldc, {i}
  %at{i}{j}_{block} = add i64 %row{i}{j}_{block}, {j * lanes}
  %pc{i}{j}_{block} = getelementptr {kind}, ptr %c, i64 %at{i}{j}_{block}
  %old{i}{j}_{block} = load {vector}, ptr %pc{i}{j}_{block}, align {64 // lanes}
  %new{i}{j}_{block} = fadd {vector} %old{i}{j}_{block}, %t{i}{j}_{block}
  store {vector} %new{i}{j}_{block}, ptr %pc{i}{j}_{block}, align {64 // lanes}"""
        for i, j in places
    ]
    lines = "\n".join
    return f"""start{block}:
  br label %loop{block}
loop{block}:
  %p{block} = phi i64 [ 0, %start{block} ], [ %next{block}, %loop{block} ]
  %a{block} = phi ptr [ %afirst, %start{block} ], [ %anext{block}, %loop{block} ]
  %b{block} = phi ptr [ %bfirst, %start{block} ], [ %bnext{block}, %loop{block} ]
{lines(sums)}
{lines(columns)}
{lines(rows)}
{lines(products)}
  %anext{block} = getelementptr {kind}, ptr %a{block}, i64 {product.TILE_ROWS}
  %bnext{block} = getelementptr {kind}, ptr %b{block}, i64 {2 * lanes}
  %next{block} = add i64 %p{block}, 1
  %more{block} = icmp slt i64 %next{block}, %k
  br i1 %more{block}, label %loop{block}, label %end{block}
end{block}:
{lines(ends)}"""

"""Kernels: computes matrix products without a BLAS; see udfs/matrix_product.py.

The library supplies the memory for panels, and a function that is called regularly, in which a host may interrupt.
"""

import itertools
from collections.abc import Callable, Sequence

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
    tile_of_addresses = types.ExternalFunction(f"sparseeinsum_tile_{suffix}", types.void(*[_word] * 7))

    @njit
    def multiply_tile(k, a, b, c, c_rows, vectors, halves):
        tile_of_addresses(k, a.ctypes.data, b.ctypes.data, c.ctypes.data, c_rows, vectors, halves)

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

    A tile has two vectors in every row. Processors with vectors of 64 bytes sum those of all rows at once; others lack
    the registers for that, and sum one vector of half of the rows after the other.
    """
    declared = f"@{WIDE_VECTORS} = external constant i1\ndeclare void @llvm.prefetch.p0(ptr, i32, i32, i32)"
    return "\n".join([declared, *(_tile_code(suffix, *parts) for suffix, parts in _TYPES.items())])


def _tile_code(suffix: str, kind: str, lanes: int) -> str:
    vector = f"<{lanes} x {kind}>"
    multiply_add = f"llvm.fmuladd.v{lanes}f{64 if kind == 'double' else 32}"
    half = product.TILE_ROWS // 2

    def sums(name: str, rows: range, vectors: tuple[int, ...]) -> str:
        return _sums_code(name, (vector, kind, lanes), multiply_add, list(itertools.product(rows, vectors)))

    return f"""
declare {vector} @{multiply_add}({vector}, {vector}, {vector})
define void @sparseeinsum_tile_{suffix}(i64 %k, i64 %a, i64 %b, i64 %to, i64 %ldc, i64 %vectors, i64 %halves) {{
start:
  %afirst = inttoptr i64 %a to ptr
  %bfirst = inttoptr i64 %b to ptr
  %c = inttoptr i64 %to to ptr
  %is_wide = load i1, ptr @{WIDE_VECTORS}
  %has_two = icmp eq i64 %vectors, 2
  %has_all = icmp eq i64 %halves, 2
  %is_whole = and i1 %has_two, %has_all
  %at_once = and i1 %is_wide, %is_whole
  br i1 %at_once, label %start_whole, label %start_00
{sums("whole", range(product.TILE_ROWS), (0, 1))}
  br label %done
{sums("00", range(half), (0,))}
  br i1 %has_two, label %start_01, label %lower
{sums("01", range(half), (1,))}
  br label %lower
lower:
  br i1 %has_all, label %start_10, label %done
{sums("10", range(half, product.TILE_ROWS), (0,))}
  br i1 %has_two, label %start_11, label %done
{sums("11", range(half, product.TILE_ROWS), (1,))}
  br label %done
done:
  ret void
}}
"""


def _sums_code(name: str, types_of: tuple[str, str, int], multiply_add: str, places: Sequence[tuple[int, int]]) -> str:
    """Blocks that add to some vectors of a tile, by row and number; the last one has no end.

    Args:
        name: What their names end in.
        types_of: LLVM's types of a vector and of a number, and the numbers in a vector.
        multiply_add: The intrinsic of vectors.
        places: The rows and numbers of the vectors.
    """
    vector, kind, lanes = types_of
    sums = [
        f"  %s{i}{j}_0_{name} = phi {vector} [ zeroinitializer, %start_{name} ],"
        f" [ %s{i}{j}_{product.STEPS}_{name}, %loop_{name} ]"
        for i, j in places
    ]
    steps = "\n".join(_step_code(name, types_of, multiply_add, places, step) for step in range(product.STEPS))
    addresses = [
        f"""  %row{i}{j}_{name} = mul i64 %ldc, {i}
  %at{i}{j}_{name} = add i64 %row{i}{j}_{name}, {j * lanes}
  %pc{i}{j}_{name} = getelementptr {kind}, ptr %c, i64 %at{i}{j}_{name}
  call void @llvm.prefetch.p0(ptr %pc{i}{j}_{name}, i32 1, i32 3, i32 1)"""
        for i, j in places
    ]
    ends = [
        f"""  %old{i}{j}_{name} = load {vector}, ptr %pc{i}{j}_{name}, align {64 // lanes}
  %new{i}{j}_{name} = fadd {vector} %old{i}{j}_{name}, %s{i}{j}_{product.STEPS}_{name}
  store {vector} %new{i}{j}_{name}, ptr %pc{i}{j}_{name}, align {64 // lanes}"""
        for i, j in places
    ]
    lines = "\n".join
    return f"""start_{name}:
{lines(addresses)}
  br label %loop_{name}
loop_{name}:
  %p_{name} = phi i64 [ 0, %start_{name} ], [ %next_{name}, %loop_{name} ]
  %a_{name} = phi ptr [ %afirst, %start_{name} ], [ %anext_{name}, %loop_{name} ]
  %b_{name} = phi ptr [ %bfirst, %start_{name} ], [ %bnext_{name}, %loop_{name} ]
{lines(sums)}
{steps}
  %anext_{name} = getelementptr {kind}, ptr %a_{name}, i64 {product.TILE_ROWS * product.STEPS}
  %bnext_{name} = getelementptr {kind}, ptr %b_{name}, i64 {2 * lanes * product.STEPS}
  %next_{name} = add i64 %p_{name}, {product.STEPS}
  %more_{name} = icmp slt i64 %next_{name}, %k
  br i1 %more_{name}, label %loop_{name}, label %end_{name}
end_{name}:
{lines(ends)}"""


def _step_code(
    name: str, types_of: tuple[str, str, int], multiply_add: str, places: Sequence[tuple[int, int]], step: int
) -> str:
    """The part of a loop that adds the products of one column of A and one row of B; arguments as `_sums_code`."""
    vector, kind, lanes = types_of
    end = f"{step}_{name}"
    columns = [
        f"""  %pb{j}_{end} = getelementptr {kind}, ptr %b_{name}, i64 {(2 * step + j) * lanes}
  %w{j}_{end} = load {vector}, ptr %pb{j}_{end}, align {64 // lanes}"""
        for j in dict.fromkeys(j for _, j in places)
    ]
    rows = [
        f"""  %pa{i}_{end} = getelementptr {kind}, ptr %a_{name}, i64 {product.TILE_ROWS * step + i}
  %e{i}_{end} = load {kind}, ptr %pa{i}_{end}
  %f{i}_{end} = insertelement {vector} poison, {kind} %e{i}_{end}, i64 0
  %v{i}_{end} = shufflevector {vector} %f{i}_{end}, {vector} poison, <{lanes} x i32> zeroinitializer"""
        for i in dict.fromkeys(i for i, _ in places)
    ]
    products = [
        f"  %s{i}{j}_{step + 1}_{name} = call {vector} @{multiply_add}("
        f"{vector} %v{i}_{end}, {vector} %w{j}_{end}, {vector} %s{i}{j}_{end})"
        for i, j in places
    ]
    return "\n".join([*columns, *rows, *products])

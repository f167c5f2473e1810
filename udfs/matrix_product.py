"""Matrix products in blocks that stay in the processor's caches: gemm for hosts that have no BLAS.

Self-contained: numba only, no allocation. After K. Goto and R. van de Geijn, "Anatomy of high-performance matrix
multiplication", ACM TOMS 34(3), 2008: both matrices are copied into panels, in the order in which `multiply_tile` of
the host reads them, which adds the product of a panel of TILE_ROWS rows and one of a few columns to a tile of C.
"""

from numba import njit

TILE_ROWS = 6
TILE_BYTES = 64  # of a row of a tile: 8 doubles or 16 floats
ROWS = 96  # of A, INNER of both and COLUMNS of B that are in panels at a time
INNER = 256
COLUMNS = 512
PANEL_OF_A = ROWS * INNER  # elements
PANEL_OF_B = INNER * COLUMNS
TILE = TILE_ROWS * TILE_BYTES // 4


@njit
def multiply(shape, a, a_strides, b, b_strides, c, c_rows, panel_of_a, panel_of_b, tile, multiply_tile, pause):
    """C += A B for real numbers.

    shape: (m, n, k); a, b, c: flat arrays; a_strides, b_strides: those of rows and columns, in elements; c_rows: that
    of C's rows, which are contiguous; panel_of_a, panel_of_b, tile: room for PANEL_OF_A, PANEL_OF_B and TILE elements;
    multiply_tile: (k, a, b, c, c_rows) adds to a tile of c; pause: called now and then, returns another
    number than 0 where to stop, or never.
    """
    m, n, k = shape
    tile_columns = TILE_BYTES // c.itemsize
    for first_column in range(0, n, COLUMNS):
        columns = min(COLUMNS, n - first_column)
        for first in range(0, k, INNER):
            inner = min(INNER, k - first)
            at_b = first * b_strides[0] + first_column * b_strides[1]
            _fill_panel(panel_of_b, b, at_b, b_strides[1], b_strides[0], columns, inner, tile_columns)
            for first_row in range(0, m, ROWS):
                rows = min(ROWS, m - first_row)
                at_a = first_row * a_strides[0] + first * a_strides[1]
                _fill_panel(panel_of_a, a, at_a, a_strides[0], a_strides[1], rows, inner, TILE_ROWS)
                if pause() != 0:
                    return
                at_c = first_row * c_rows + first_column
                _multiply_panels(
                    rows, columns, inner, panel_of_a, panel_of_b, c, at_c, c_rows, tile, tile_columns, multiply_tile
                )


@njit
def _fill_panel(panel, source, at, outer_stride, inner_stride, outer, inner, width):
    """Copy a block, `width` of its outer index side by side for every inner one, zeros where it ends before that."""
    for start in range(0, outer, width):
        held = min(width, outer - start)
        for i in range(held):
            place, origin = start * inner + i, at + (start + i) * outer_stride
            for p in range(inner):
                panel[place + p * width] = source[origin + p * inner_stride]
        for i in range(held, width):
            for p in range(inner):
                panel[start * inner + i + p * width] = 0


@njit
def _multiply_panels(rows, columns, inner, panel_of_a, panel_of_b, c, at_c, c_rows, tile, tile_columns, multiply_tile):
    for column in range(0, columns, tile_columns):
        b = panel_of_b[column * inner :]
        for row in range(0, rows, TILE_ROWS):
            a = panel_of_a[row * inner :]
            at = at_c + row * c_rows + column
            if row + TILE_ROWS <= rows and column + tile_columns <= columns:
                multiply_tile(inner, a, b, c[at:], c_rows)
            else:
                tile[:] = 0
                multiply_tile(inner, a, b, tile, tile_columns)
                _add_part(
                    tile, tile_columns, c, at, c_rows, min(TILE_ROWS, rows - row), min(tile_columns, columns - column)
                )


@njit
def _add_part(tile, tile_columns, c, at, c_rows, rows, columns):
    for i in range(rows):
        for j in range(columns):
            c[at + i * c_rows + j] += tile[i * tile_columns + j]


@njit
def multiply_by_lines(shape, a, a_strides, b, b_strides, c, c_rows, pause):
    """As multiply, line by line: for complex numbers, and where there is no room for panels."""
    m, n, k = shape
    for i in range(m):
        if pause() != 0:
            return
        for p in range(k):
            scale = a[i * a_strides[0] + p * a_strides[1]]
            for j in range(n):
                c[i * c_rows + j] += scale * b[p * b_strides[0] + j * b_strides[1]]

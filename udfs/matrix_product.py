"""Matrix products in blocks that stay in the processor's caches: gemm for hosts without a BLAS.

Self-contained: numba only, no allocation. The algorithm is that of K. Goto and R. van de Geijn, "Anatomy of
high-performance matrix multiplication", ACM TOMS 34(3), 2008. Both matrices are copied into panels, in the order in
which `multiply_tile` of the host reads them. It multiplies TILE_ROWS rows of A, or half as many, by a few columns of B,
and adds the product to a tile of C.
"""

from numba import njit

TILE_ROWS = 12
STEPS = 2  # columns of A and rows of B in panels are a multiple of it
TILE_BYTES = 128  # bytes in a row of a tile: two vectors of 8 doubles or 16 floats
ROWS = 96  # rows of A, COLUMNS of B, and INNER columns of A and rows of B are in panels at a time
INNER = 256
COLUMNS = 2048
PANEL_OF_A = ROWS * INNER  # elements
PANEL_OF_B = INNER * COLUMNS
TILE = TILE_ROWS * TILE_BYTES // 4


@njit
def multiply(shape, a, a_strides, b, b_strides, c, c_rows, panel_of_a, panel_of_b, tile, multiply_tile, pause):
    """Add the matrix product A B to C, for real numbers.

    Args:
        shape: (m, n, k); A is (m, k), B is (k, n), C is (m, n).
        a: A as a flat array.
        a_strides: The distances between rows and between columns of A, in elements.
        b: B as a flat array.
        b_strides: As `a_strides`.
        c: C as a flat array, with contiguous rows.
        c_rows: The distance between rows of C.
        panel_of_a: Scratch memory, PANEL_OF_A elements.
        panel_of_b: Scratch memory, PANEL_OF_B elements.
        tile: Scratch memory, TILE elements.
        multiply_tile: (k, a, b, c, c_rows, vectors, halves) adds the product of two panels to one or two vectors of
            each row of a tile of C, or of half of the rows.
        pause: Called regularly; it returns another number than 0 to stop, or does not return.
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
    """Copy a block into a panel.

    A panel has groups of `width` outer indices; in a group, the elements of one inner index are adjacent. The last
    group, and the last step, are filled up with zeros.
    """
    steps = _round_up(inner, STEPS)
    for start in range(0, outer, width):
        count, first = min(width, outer - start), at + start * outer_stride
        group = panel[start * steps : (start + width) * steps]
        if count < width or inner < steps:
            group[:] = 0
        if outer_stride == 1:
            _copy_contiguous(group, source, first, inner_stride, count, inner, width)
        else:
            _copy_strided(group, source, first, outer_stride, inner_stride, count, inner, width)


# These index views from 0, so that the compiler knows that no index is negative.
@njit
def _copy_contiguous(group, source, at, inner_stride, outer, inner, width):
    for p in range(inner):
        target, origin = group[p * width :], source[at + p * inner_stride :]
        for i in range(outer):
            target[i] = origin[i]


@njit
def _copy_strided(group, source, at, outer_stride, inner_stride, outer, inner, width):
    for i in range(outer):
        target, origin = group[i:], source[at + i * outer_stride :]
        for p in range(inner):
            target[p * width] = origin[p * inner_stride]


@njit
def _round_up(number, unit):
    return (number + unit - 1) // unit * unit


@njit
def _multiply_panels(rows, columns, inner, panel_of_a, panel_of_b, c, at_c, c_rows, tile, tile_columns, multiply_tile):
    steps = _round_up(inner, STEPS)
    for column in range(0, columns, tile_columns):
        b = panel_of_b[column * steps :]
        width = min(tile_columns, columns - column)
        vectors = 1 if 2 * width <= tile_columns else 2
        for row in range(0, rows, TILE_ROWS):
            a = panel_of_a[row * steps :]
            at = at_c + row * c_rows + column
            height = min(TILE_ROWS, rows - row)
            halves = 1 if 2 * height <= TILE_ROWS else 2
            if 2 * height == halves * TILE_ROWS and 2 * width == vectors * tile_columns:
                multiply_tile(steps, a, b, c[at:], c_rows, vectors, halves)
            else:
                tile[: TILE_ROWS * tile_columns] = 0
                multiply_tile(steps, a, b, tile, tile_columns, vectors, halves)
                _add_part(tile, tile_columns, c, at, c_rows, height, width)


@njit
def _add_part(tile, tile_columns, c, at, c_rows, rows, columns):
    for i in range(rows):
        for j in range(columns):
            c[at + i * c_rows + j] += tile[i * tile_columns + j]


@njit
def multiply_by_lines(shape, a, a_strides, b, b_strides, c, c_rows, pause):
    """Multiply as `multiply`, row by row: for complex numbers, and if there is no memory for panels."""
    m, n, k = shape
    for i in range(m):
        if pause() != 0:
            return
        for p in range(k):
            scale = a[i * a_strides[0] + p * a_strides[1]]
            for j in range(n):
                c[i * c_rows + j] += scale * b[p * b_strides[0] + j * b_strides[1]]

"""Lines of arrays in order: all elements, or the first of them.

Self-contained: numba only, no allocation, the same source for every host. NaN counts as greater than every number, as
in numpy.
"""

from numba import njit

BAD_COUNT = -39


@njit
def order_lines(u, axis, extents, count, is_descending, out):
    """Write the first `count` elements of every line along an axis, in order.

    Args:
        u: An array in C order.
        axis: The axis.
        extents: The extents of all axes.
        count: At most the extent of the axis.
        is_descending: Whether the greatest element comes first.
        out: As u, with `count` elements along the axis.
    """
    extent, inner = extents[axis], 1
    for other in range(axis + 1, extents.size):
        inner *= extents[other]
    lines = u.size // extent if extent > 0 and count > 0 else 0
    for line in range(lines):
        outer, offset = line // inner, line % inner
        _order_line(
            u, outer * extent * inner + offset, extent, out, outer * count * inner + offset, inner, count, is_descending
        )


@njit
def _order_line(u, start, extent, w, first, stride, count, is_descending):
    """Write the first elements of one line: a heap of those so far, whose root is the last of them, is sorted."""
    for i in range(count):
        w[first + i * stride] = u[start + i * stride]
    for root in range(count // 2 - 1, -1, -1):
        _sift(w, first, stride, root, count, is_descending)
    for i in range(count, extent):
        if _is_before(u[start + i * stride], w[first], is_descending):
            w[first] = u[start + i * stride]
            _sift(w, first, stride, 0, count, is_descending)
    for end in range(count - 1, 0, -1):
        w[first], w[first + end * stride] = w[first + end * stride], w[first]
        _sift(w, first, stride, 0, end, is_descending)


@njit
def _sift(w, first, stride, root, count, is_descending):
    """Move the element at `root` of a heap down until none below comes after it."""
    while 2 * root + 1 < count:
        child = 2 * root + 1
        if child + 1 < count and _is_before(w[first + child * stride], w[first + (child + 1) * stride], is_descending):
            child += 1
        upper, lower = first + root * stride, first + child * stride
        if not _is_before(w[upper], w[lower], is_descending):
            break
        w[upper], w[lower] = w[lower], w[upper]
        root = child


@njit
def _is_before(a, b, is_descending):
    if is_descending:
        a, b = b, a
    return a < b or (b != b and a == a)

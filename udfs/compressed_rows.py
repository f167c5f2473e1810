"""Compressed sparse rows: entries ordered by row, and products of one row with dense and with sparse matrices.

Self-contained: numba and numpy only, no allocation, the same source for every host.
"""

from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

# How many entries ahead memory is fetched: that of a row of the other matrix; earlier, where that row begins. Without,
# products of 500,000 entries in 100,000 rows take twice as long, and so do those with dense rows of 16 numbers.
_NEAR_ENTRIES, _FAR_ENTRIES = 8, 16
_LINE = 8  # elements between the addresses that are fetched of a dense row; processors fetch the rest of long rows

REPEATED_POSITION = -76  # an error code

_BYTE, _FLAG = cgutils.ir.IntType(8), cgutils.ir.IntType(32)
_TO_READ, _TO_ALL_CACHES, _OF_DATA = 0, 3, 1  # arguments of llvm.prefetch


@intrinsic
def prefetch(typing_context, array, index):
    """Let the processor fetch array[index] into its cache while it computes; the index may be beyond the end."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), _BYTE.as_pointer())
        kind = cgutils.ir.FunctionType(cgutils.ir.VoidType(), [address.type, _FLAG, _FLAG, _FLAG])
        function = builder.module.declare_intrinsic("llvm.prefetch", [address.type], kind)
        builder.call(function, [address, _FLAG(_TO_READ), _FLAG(_TO_ALL_CACHES), _FLAG(_OF_DATA)])
        return context.get_dummy_value()

    return types.none(array, types.int64), generate


@njit
def count_rows(rows, starts):
    """Add one to starts[row + 1] for every row of `rows`."""
    for entry in range(rows.size):
        starts[rows[entry] + 1] += 1


@njit
def accumulate(starts):
    """Turn the numbers of entries of rows, from `count_rows`, into where each row begins."""
    for row in range(1, starts.size):
        starts[row] += starts[row - 1]


@njit
def place_rows(rows, positions, numbers, starts, placed_positions, placed_numbers):
    """Move entries to their rows; starts[row] is where the next entry of a row goes."""
    for entry in range(rows.size):
        place = starts[rows[entry]]
        placed_positions[place] = positions[entry]
        placed_numbers[place] = numbers[entry]
        starts[rows[entry]] = place + 1


@njit
def restore_starts(starts):
    """Turn where rows end, which `place_rows` leaves, into where they begin; the last word stays."""
    for row in range(starts.size - 1, 0, -1):
        starts[row] = starts[row - 1]
    starts[0] = 0


@njit
def longest_row(starts):
    """Return the most entries that a row has."""
    longest = 0
    for row in range(starts.size - 1):
        longest = max(longest, starts[row + 1] - starts[row])
    return longest


def make_sum_rows(add_scaled):
    """Make the function sum_rows(w, numbers, positions, u), which returns 0 or a code of `add_scaled`.

    It writes the sum of numbers[entry] * u[positions[entry]] over all entries to w. Shapes: w (n,), u (m, n) as a flat
    array. After those of the entries, `positions` may have others, which are read next.
    """

    @njit
    def sum_rows(w, numbers, positions, u):
        code = 0
        for i in range(w.size):
            w[i] = 0
        for entry in range(numbers.size):
            _prefetch_rows(u, positions, entry, 1, w.size)
            code = min(code, add_scaled(w, numbers[entry], _row(u, positions[entry], w.size)))
        return code

    return sum_rows


@njit
def _row(u, position, size):
    return u[position * size : position * size + size]


@njit
def _prefetch_rows(u, positions, entry, count, size):
    """Fetch the beginnings of rows that are read after so many entries from `entry` on."""
    furthest = positions.size - 1
    for ahead in range(entry + _NEAR_ENTRIES, entry + _NEAR_ENTRIES + count):
        start = positions[min(ahead, furthest)] * size
        prefetch(u, start)
        prefetch(u, start + _LINE)


def make_sum_rows_by_four(add_four_scaled):
    """Make the function of `make_sum_rows` for real numbers, which reads four rows at a time, to save accesses of w.

    Args:
        add_four_scaled: (w, a, s, b, t, c, u, d, v) adds a * s + b * t + c * u + d * v to w.
    """

    @njit
    def sum_rows(w, numbers, positions, u):
        n, first = w.size, numbers.size % 4
        _prefetch_rows(u, positions, 0, first, n)
        if first == 0:
            for i in range(n):
                w[i] = 0
        elif first == 1:
            _scale(w, numbers[0], _row(u, positions[0], n))
        elif first == 2:
            _sum_of_two(w, numbers, _row(u, positions[0], n), _row(u, positions[1], n))
        else:
            _sum_of_three(w, numbers, _row(u, positions[0], n), _row(u, positions[1], n), _row(u, positions[2], n))
        for entry in range(first, numbers.size, 4):
            _prefetch_rows(u, positions, entry, 4, n)
            add_four_scaled(
                w,
                numbers[entry],
                _row(u, positions[entry], n),
                numbers[entry + 1],
                _row(u, positions[entry + 1], n),
                numbers[entry + 2],
                _row(u, positions[entry + 2], n),
                numbers[entry + 3],
                _row(u, positions[entry + 3], n),
            )
        return 0

    return sum_rows


@njit
def _scale(w, number, u):
    for i in range(w.size):
        w[i] = number * u[i]


@njit(fastmath={"contract"})
def _sum_of_two(w, numbers, u, v):
    a, b = numbers[0], numbers[1]
    for i in range(w.size):
        w[i] = a * u[i] + b * v[i]


@njit(fastmath={"contract"})
def _sum_of_three(w, numbers, u, v, s):
    a, b, c = numbers[0], numbers[1], numbers[2]
    for i in range(w.size):
        w[i] = a * u[i] + b * v[i] + c * s[i]


def make_add_product_rows(add_scaled_product):
    """Make the function add_product_rows(w, numbers, positions, u, v), which returns 0 or a code.

    It adds numbers[entry] * u[i] * v[j] to w for every entry, whose position is i * k + j. Shapes: w (n,), u (m, n) and
    v (k, n) as flat arrays. After those of the entries, `positions` may have others, which are read next.

    Args:
        add_scaled_product: (w, number, u, v) adds number * u * v to w, element by element; returns 0 or a code.
    """

    @njit
    def add_product_rows(w, numbers, positions, u, v):
        code, n, furthest = 0, w.size, positions.size - 1
        count = v.size // n
        for entry in range(numbers.size):
            ahead = positions[min(entry + _NEAR_ENTRIES, furthest)]
            prefetch(u, ahead // count * n)
            prefetch(v, ahead % count * n)
            first, second = positions[entry] // count * n, positions[entry] % count * n
            code = min(code, add_scaled_product(w, numbers[entry], u[first : first + n], v[second : second + n]))
        return code

    return add_product_rows


def make_reduce_rows(add, multiply, with_code):
    """Make the function reduce_rows(start, w, numbers, positions, u), which returns 0 or a code.

    It writes add(...add(start, product)..., product) to w, element by element, with a product numbers[entry] *
    u[positions[entry]] for every entry. Shapes and positions are as for `make_sum_rows`; bodies as for
    `make_multiply_row`.
    """

    @njit
    def reduce_rows(start, w, numbers, positions, u):
        code = 0
        for i in range(w.size):
            w[i] = start
        for entry in range(numbers.size):
            _prefetch_rows(u, positions, entry, 1, w.size)
            number, row = numbers[entry], _row(u, positions[entry], w.size)
            for i in range(w.size):
                product, failure = with_code(multiply(number, row[i]))
                w[i], other_failure = with_code(add(w[i], product))
                code |= failure | other_failure
        return code

    return reduce_rows


def make_multiply_row(add, multiply, with_code):
    """Make the function that computes one row of a product of sparse matrices, and returns where its entries end.

    multiply_row(start, numbers, positions, starts, columns, values, slots, factor, shift, first, out_columns,
    out_numbers) reads the entries of the row, and for each of them row positions[entry] of the other matrix. Entries of
    the result are written from `first` on; entry by entry, its number is add(...add(start, product)..., product).
    After those of the row, `positions` has those of later rows, whose memory is fetched early.

    The slots are a hash table of the entries of the result: a slot holds one more than the place of an entry. Entries
    before `first` are of other rows, so that what these left in the slots counts as empty. Slots: a power of two, no
    less than the entries of the row. The last entry of `starts` is the number of `columns`.

    Args:
        add: The body that adds up products, as in evaluation.py.
        multiply: The body that multiplies.
        with_code: The function of evaluation.py that returns the value and the code of what a body returned.
    """

    @njit
    def multiply_row(
        start, numbers, positions, starts, columns, values, slots, factor, shift, first, out_columns, out_numbers
    ):
        code, last, mask, furthest = 0, first, slots.size - 1, positions.size - 1
        for entry in range(numbers.size):
            next_row = starts[positions[min(entry + _NEAR_ENTRIES, furthest)]]
            prefetch(columns, next_row)
            prefetch(values, next_row)
            prefetch(starts, positions[min(entry + _FAR_ENTRIES, furthest)])
            number, row = numbers[entry], positions[entry]
            for index in range(starts[row], starts[row + 1]):
                product, failure = with_code(multiply(number, values[index]))
                code |= failure
                column = columns[index]
                slot = ((column * factor) >> shift) & mask
                place = slots[slot]
                while place > first and out_columns[place - 1] != column:
                    slot = (slot + 1) & mask
                    place = slots[slot]
                if place > first:
                    out_numbers[place - 1], failure = with_code(add(out_numbers[place - 1], product))
                else:
                    out_columns[last] = column
                    out_numbers[last], failure = with_code(add(start, product))
                    last += 1
                    slots[slot] = last
                code |= failure
        return code if code < 0 else last

    return multiply_row


def make_multiply_by_vector(add, multiply, with_code):
    """Make the function that multiplies rows of a sparse matrix by a sparse vector; it returns 0 or a code.

    multiply_by_vector(start, rows, row_starts, positions, numbers, starts, values, out, valid) computes out[k] for row
    rows[k] of the matrix: add(...add(start, product)..., product) over its entries. The values at index i of the vector
    are from starts[i] on, up to starts[i + 1]; if `starts` is empty, the only one is values[i]. Rows without products
    are not computed; bit k of `valid`, 64 in each word, is set to 0 for these. The arguments are those of
    `make_multiply_row`.

    If `starts` and `rows` are empty, out[k] is that of row k, and that of a row without products is `start`.
    """

    @njit
    def multiply_by_full_vector(start, rows, row_starts, positions, numbers, values, out, valid):
        code = 0
        for index in range(rows.size):
            total, first, end = start, row_starts[rows[index]], row_starts[rows[index] + 1]
            for entry in range(first, end):
                product, failure = with_code(multiply(numbers[entry], values[positions[entry]]))
                code |= failure
                total, failure = with_code(add(total, product))
                code |= failure
            out[index] = total
            valid[index >> 6] &= ~((first == end) << (index & 63))
        return min(code, 0)

    @njit
    def multiply_all_rows(start, row_starts, positions, numbers, values, out):
        code = 0
        for row in range(out.size):
            total = start
            for entry in range(row_starts[row], row_starts[row + 1]):
                product, failure = with_code(multiply(numbers[entry], values[positions[entry]]))
                code |= failure
                total, failure = with_code(add(total, product))
                code |= failure
            out[row] = total
        return min(code, 0)

    @njit
    def multiply_by_vector(start, rows, row_starts, positions, numbers, starts, values, out, valid):
        if starts.size == 0 and rows.size == 0:
            return multiply_all_rows(start, row_starts, positions, numbers, values, out)
        if starts.size == 0:
            return multiply_by_full_vector(start, rows, row_starts, positions, numbers, values, out, valid)
        code, furthest = 0, positions.size - 1
        for index in range(rows.size):
            total, is_valid = start, False
            for entry in range(row_starts[rows[index]], row_starts[rows[index] + 1]):
                prefetch(values, starts[positions[min(entry + _NEAR_ENTRIES, furthest)]])
                prefetch(starts, positions[min(entry + _FAR_ENTRIES, furthest)])
                for place in range(starts[positions[entry]], starts[positions[entry] + 1]):
                    product, failure = with_code(multiply(numbers[entry], values[place]))
                    code |= failure
                    total, failure = with_code(add(total, product))
                    code |= failure
                    is_valid = True
            if is_valid:
                out[index] = total
            else:
                valid[index >> 6] &= ~(1 << (index & 63))
        return min(code, 0)

    return multiply_by_vector


def make_multiply_masked_row(add, multiply, with_code):
    """Make the function that computes one row of a product of sparse matrices where a third one, a mask, has entries.

    multiply_masked_row(start, mask_numbers, mask_positions, ...) takes the others of `multiply_row`, and returns the
    same. The number of an entry is add(...add(start, product * mask)..., product * mask); an entry of the mask
    without products gives none. There is room for all entries of the mask. Slots: a power of two, either twice as many,
    or one for each column; all are 0, before and after.
    """

    @njit
    def multiply_masked_row(
        start,
        mask_numbers,
        mask_positions,
        numbers,
        positions,
        starts,
        columns,
        values,
        slots,
        factor,
        shift,
        first,
        out_columns,
        out_numbers,
    ):
        code, bits, furthest = 0, slots.size - 1, positions.size - 1
        for entry in range(mask_numbers.size):
            out_columns[first + entry] = -1 - mask_positions[entry]  # negative until there is a product
            out_numbers[first + entry] = start
            slot = ((mask_positions[entry] * factor) >> shift) & bits
            while slots[slot] != 0:
                if mask_positions[slots[slot] - 1] == mask_positions[entry]:
                    return REPEATED_POSITION
                slot = (slot + 1) & bits
            slots[slot] = entry + 1
        for entry in range(numbers.size):
            next_row = starts[positions[min(entry + _NEAR_ENTRIES, furthest)]]
            prefetch(columns, next_row)
            prefetch(starts, positions[min(entry + _FAR_ENTRIES, furthest)])
            number, row = numbers[entry], positions[entry]
            for index in range(starts[row], starts[row + 1]):
                column = columns[index]
                slot = ((column * factor) >> shift) & bits
                at = slots[slot]
                while at != 0 and mask_positions[at - 1] != column:
                    slot = (slot + 1) & bits
                    at = slots[slot]
                if at != 0:
                    place = first + at - 1
                    out_columns[place] = column
                    product, failure = with_code(multiply(number, values[index]))
                    code |= failure
                    product, failure = with_code(multiply(product, mask_numbers[at - 1]))
                    code |= failure
                    out_numbers[place], failure = with_code(add(out_numbers[place], product))
                    code |= failure
        last = first
        for entry in range(mask_numbers.size):
            slot = ((mask_positions[entry] * factor) >> shift) & bits
            while slots[slot] != 0:
                slots[slot] = 0
                slot = (slot + 1) & bits
            if out_columns[first + entry] >= 0:
                out_columns[last], out_numbers[last] = out_columns[first + entry], out_numbers[first + entry]
                last += 1
        return code if code < 0 else last

    return multiply_masked_row


@njit
def count_products(positions, starts):
    """Return how many products `multiply_row` makes for a row with these positions."""
    count = 0
    for entry in range(positions.size):
        count += starts[positions[entry] + 1] - starts[positions[entry]]
    return count

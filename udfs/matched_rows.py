"""Rows of two sparse matrices, matched by position.

Self-contained: numba and numpy only, no allocation, the same source for every host. Numbers are only copied, so that
they may be read as integers of as many bytes.

Both functions write the pairs of numbers of two rows, in no order, and return where they end, or an error code. Where
only one row has an entry, the number of the other one is its fill; without a fill, there is no pair. Parameters:

    row: The positions and numbers of one row.
    other_row: Those of the other row.
    has_fill: Whether there are pairs where only `other_row` has an entry.
    other_has_fill: Whether there are pairs where only `row` has an entry.
    fills: The fill of `row`, and that of `other_row`.
    slots: A table of the entries of `other_row`: one more than an entry's number, negative once it has a partner. All
        are 0, before and after.
    first: Where pairs begin in `out`.
    out: The positions of pairs, numbers of `row`, and numbers of `other_row`; there is room for one pair more than
        there are entries that may have one.
"""

from numba import njit

REPEATED_ENTRY = -77  # an error code
_HASH_FACTOR, _HASH_SHIFT = -7046029254386353131, 32  # 2^64 divided by the golden ratio, odd


@njit
def match_entries_directly(row, other_row, has_fill, other_has_fill, fills, slots, first, out):
    """Match rows by a slot for every position; nothing depends on what was found, but where the next pair goes."""
    positions, numbers = row
    other_positions, other_numbers = other_row
    out_positions, out_numbers, out_other_numbers = out
    last, is_repeated = first, False
    for entry in range(other_positions.size):
        is_repeated |= slots[other_positions[entry]] != 0
        slots[other_positions[entry]] = entry + 1
    for entry in range(positions.size if other_positions.size > 0 or other_has_fill else 0):
        position = positions[entry]
        place = slots[position]
        is_repeated |= place < 0
        out_positions[last], out_numbers[last] = position, numbers[entry]
        out_other_numbers[last] = fills[1]
        if other_positions.size > 0:
            partner = other_numbers[max(place - 1, 0)]
            out_other_numbers[last] = partner if place > 0 else fills[1]
        slots[position] = -place
        last += other_has_fill or place > 0
    for entry in range(other_positions.size):
        position = other_positions[entry]
        if has_fill:
            out_positions[last], out_numbers[last] = position, fills[0]
            out_other_numbers[last] = other_numbers[entry]
            last += slots[position] > 0
        slots[position] = 0
    return REPEATED_ENTRY if is_repeated else last


@njit
def match_entries(row, other_row, has_fill, other_has_fill, fills, slots, first, out):
    """Match rows by a hash table, whose length is a power of two, and at least twice that of `other_row`."""
    positions, numbers = row
    other_positions, other_numbers = other_row
    out_positions, out_numbers, out_other_numbers = out
    mask, last, is_repeated = slots.size - 1, first, False
    for entry in range(other_positions.size):
        slot = ((other_positions[entry] * _HASH_FACTOR) >> _HASH_SHIFT) & mask
        while slots[slot] != 0:
            is_repeated |= other_positions[slots[slot] - 1] == other_positions[entry]
            slot = (slot + 1) & mask
        slots[slot] = entry + 1
    for entry in range(positions.size):
        position = positions[entry]
        slot = ((position * _HASH_FACTOR) >> _HASH_SHIFT) & mask
        place = slots[slot]
        while place != 0 and other_positions[abs(place) - 1] != position:
            slot = (slot + 1) & mask
            place = slots[slot]
        is_repeated |= place < 0
        if place > 0 or other_has_fill:
            out_positions[last], out_numbers[last] = position, numbers[entry]
            out_other_numbers[last] = other_numbers[place - 1] if place > 0 else fills[1]
            last += 1
        slots[slot] = -abs(place)
    for slot in range(slots.size):
        if slots[slot] > 0 and has_fill:
            entry = slots[slot] - 1
            out_positions[last], out_numbers[last] = other_positions[entry], fills[0]
            out_other_numbers[last] = other_numbers[entry]
            last += 1
        slots[slot] = 0
    return REPEATED_ENTRY if is_repeated else last

"""Kernels: chooses the hash table of a row of a product of sparse matrices, for every host."""

from numba import njit

from sparseeinsum.kernels import compression as c

# Up to so many columns there is a slot for every one; the table stays in the processor's cache.
FEW_COLUMNS = 1 << 16
COLUMNS_OF_MASKS = 1 << 18  # of a mask, most slots are empty, and stay so
_DENSE_SHARE = 4  # also if a row has at least a fourth as many products as there are columns
_HASH_FACTOR, _HASH_SHIFT = -7046029254386353131, 32  # 2^64 divided by the golden ratio, odd


@njit
def hash_of_row(results, columns, few):
    """Return the slots, a power of two, and the factor and shift of the hash function of a row with so many results.

    Up to `few` columns, and for rows with many results, there is a slot for every column.
    """
    is_dense = columns <= max(few, _DENSE_SHARE * results)
    least, slots = columns if is_dense else 2 * results, 1
    while slots < least:
        slots *= 2
    return (slots, 1, 0) if is_dense else (slots, _HASH_FACTOR, _HASH_SHIFT)


@njit
def choose_slots(product, results, columns, few):
    """Write how many slots a row has, and its hash function, to the words of a product; arguments of `hash_of_row`."""
    product[c.SLOT_COUNT], product[c.FACTOR], product[c.SHIFT] = hash_of_row(results, columns, few)

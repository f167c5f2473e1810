"""Counter-based random numbers: Threefry-2x32 with 20 rounds.

Source: Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011, section 4.

Self-contained: numba and numpy only, no allocation, the same source for every host.
"""

import numpy as np
from numba import njit

PARITY = 0x1BD11BDA
LARGEST = 9007199254740992.0  # 2^53: floats are whole numbers up to here


# Loops over elements are vectorised only if the whole body is in them, which is longer than what compilers inline.
@njit(forceinline=True)
def threefry(key, counter):
    """Return the upper 52 bits of the two words that Threefry makes of two int64, whose upper halves come first."""
    first, second = _encrypted(_upper(key), _lower(key), _upper(counter), _lower(counter))
    return (np.int64(first) << 20) | np.int64(second >> np.uint32(12))


@njit(forceinline=True)
def threefry_of_floats(key, counter):
    """Return the same of whole numbers up to 2^53; NaN for other numbers."""
    u, v = np.float64(key), np.float64(counter)
    is_whole = (np.floor(u) == u) & (abs(u) <= LARGEST) & (np.floor(v) == v) & (abs(v) <= LARGEST)
    number = threefry(np.int64(u if is_whole else 0.0), np.int64(v if is_whole else 0.0))
    return np.float64(number) if is_whole else np.nan


@njit
def _upper(number):
    return np.uint32(number >> 32)


@njit
def _lower(number):
    return np.uint32(number)


@njit
def _encrypted(key_0, key_1, a, b):
    """Encrypt the words a and b: after every four rounds, two of three words of the key are added."""
    key_2 = np.uint32(key_0 ^ key_1 ^ np.uint32(PARITY))
    a, b = np.uint32(a + key_0), np.uint32(b + key_1)
    a, b = _four_rounds(a, b, 13, 15, 26, 6)
    a, b = np.uint32(a + key_1), np.uint32(b + key_2 + np.uint32(1))
    a, b = _four_rounds(a, b, 17, 29, 16, 24)
    a, b = np.uint32(a + key_2), np.uint32(b + key_0 + np.uint32(2))
    a, b = _four_rounds(a, b, 13, 15, 26, 6)
    a, b = np.uint32(a + key_0), np.uint32(b + key_1 + np.uint32(3))
    a, b = _four_rounds(a, b, 17, 29, 16, 24)
    a, b = np.uint32(a + key_1), np.uint32(b + key_2 + np.uint32(4))
    a, b = _four_rounds(a, b, 13, 15, 26, 6)
    return np.uint32(a + key_2), np.uint32(b + key_0 + np.uint32(5))


@njit
def _four_rounds(a, b, r0, r1, r2, r3):
    a, b = _round(a, b, r0)
    a, b = _round(a, b, r1)
    a, b = _round(a, b, r2)
    return _round(a, b, r3)


@njit
def _round(a, b, rotation):
    """Add b to a, rotate b to the left and mix it with a.

    Words stay uint32, which numba widens in expressions: loops over wider numbers are not vectorised.
    """
    a = np.uint32(a + b)
    rotated = np.uint32((b << np.uint32(rotation)) | (b >> np.uint32(32 - rotation)))
    return a, np.uint32(rotated ^ a)

"""Kernels: texts of errors, filled in without C's printf, which every operating system calls in another way."""

from numba import njit, types

from sparseeinsum.kernels.compiled.memory import array_at

word = types.int64
byte = types.uint8
_bits = types.uint64

_PERCENT, _TEXT, _POINT, _MINUS, _ZERO = 37, 115, 46, 45, 48  # characters
_MOST_BYTES = 1 << 16  # of a text that ends with a zero byte


@njit
def format_message(buffer, size, template, words):
    """Fill a template into a buffer of `size` bytes, cut off where it is full; it ends with a zero byte.

    `words` is a tuple of int64, which take the places of `%lld` as numbers, of `%s` as addresses of texts, and two at a
    time of `%.*s`: how many bytes, and their address.
    """
    out = array_at(buffer, size, byte)
    text = _bytes_at(template)
    at, written, used = 0, 0, 0
    while text[at] != 0:
        if text[at] != _PERCENT:
            written = _append(out, written, text[at])
            at += 1
        elif text[at + 1] == _TEXT:
            written = _append_text(out, written, _bytes_at(words[used]), _MOST_BYTES)
            at, used = at + 2, used + 1
        elif text[at + 1] == _POINT:
            written = _append_text(out, written, _bytes_at(words[used + 1]), words[used])
            at, used = at + 4, used + 2
        else:
            written = _append_number(out, written, words[used])
            at, used = at + 4, used + 1
    out[min(written, size - 1)] = 0


@njit
def _bytes_at(address):
    return array_at(address, _MOST_BYTES, byte)


@njit
def _append(out, written, character):
    if written < out.size - 1:
        out[written] = character
    return written + 1


@njit
def _append_text(out, written, text, most):
    for at in range(min(most, _MOST_BYTES)):
        if text[at] == 0:
            break
        written = _append(out, written, text[at])
    return written


@njit
def _append_number(out, written, number):
    magnitude, ten = _bits(number), _bits(10)
    if number < 0:
        written = _append(out, written, byte(_MINUS))
        magnitude = _bits(0) - magnitude
    power = _bits(1)
    while magnitude // power >= ten:
        power *= ten
    while power > _bits(0):
        written = _append(out, written, byte(_bits(_ZERO) + magnitude // power % ten))
        power //= ten
    return written

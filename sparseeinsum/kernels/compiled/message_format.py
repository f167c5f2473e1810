"""Kernels: formats error messages without C's printf, whose calling convention depends on the operating system."""

from numba import njit, types

from sparseeinsum.kernels.compiled.raw_memory import array_at

word = types.int64
byte = types.uint8
_bits = types.uint64

_PERCENT, _TEXT, _POINT, _MINUS, _ZERO = 37, 115, 46, 45, 48  # characters
_MOST_BYTES = 1 << 16  # the longest text that ends with a zero byte


@njit
def format_message(buffer, size, template, words):
    """Write a template, with its placeholders filled in, to a buffer; the text is cut off where the buffer is full.

    Args:
        buffer: The address of the buffer; its text ends with a zero byte.
        size: The bytes of the buffer.
        template: The address of the template, which ends with a zero byte.
        words: A tuple of int64: a number for each `%lld`, the address of a text for each `%s`, and for each `%.*s` two
            words, the number of bytes and their address.
    """
    out = array_at(buffer, size, byte)
    text = _bytes_at(template)
    position, written, used = 0, 0, 0
    while text[position] != 0:
        if text[position] != _PERCENT:
            written = _append(out, written, text[position])
            position += 1
        elif text[position + 1] == _TEXT:
            written = _append_text(out, written, _bytes_at(words[used]), _MOST_BYTES)
            position, used = position + 2, used + 1
        elif text[position + 1] == _POINT:
            written = _append_text(out, written, _bytes_at(words[used + 1]), words[used])
            position, used = position + 4, used + 2
        else:
            written = _append_number(out, written, words[used])
            position, used = position + 4, used + 1
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
    for position in range(min(most, _MOST_BYTES)):
        if text[position] == 0:
            break
        written = _append(out, written, text[position])
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

"""Kernels: makes the words of a function's descriptor that are the same for every host."""

from collections.abc import Iterable, Iterator

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.array_functions import HANDLES, ArrayFunction, ValueType
from sparseeinsum.kernels.messages import MESSAGES_BY_CODE
from sparseeinsum.kernels.static_data import StaticText, StaticWords
from sparseeinsum.kernels.symbols import PARTS, kernel_symbol, measure_symbol

_MESSAGES = "messages"

_PART_FIELDS = {
    "compute": d.COMPUTE,
    "compute_slice": d.COMPUTE_SLICE,
    "batch": d.BATCH,
    "initialise": d.INITIALISE,
    "combine": d.COMBINE,
    "finish": d.FINISH,
    "part_size": d.PART_SIZE,
}
_KINDS = {
    ValueType.NUMBER: d.VALUE,
    ValueType.INTEGER: d.VALUE,
    ValueType.RESIDENT: d.VALUE,
    ValueType.RESERVED: d.VALUE,
    ValueType.COMPRESSED: d.VALUE,
    ValueType.TENSOR: d.LIST,
    ValueType.INTEGERS: d.EXTENTS,
    ValueType.POSITIONS: d.LIST,
    ValueType.TEXT: d.TEXT,
    ValueType.BYTES: d.TEXT,
    ValueType.ENTRIES: d.TEXT,
    ValueType.COMPLEX: d.COMPLEX,
    ValueType.COMPLEX_TENSOR: d.COMPLEX_LIST,
}
_MATRIX_PRODUCTS = ("matmul", "einsum")  # kernels
_COMPLEX_TYPES = (ValueType.COMPLEX, ValueType.COMPLEX_TENSOR, ValueType.COMPLEX_TENSORS)
_NUMBER_BYTES = {"f64": 8, "f32": 4, "i64": 8, "c128": 8, "c64": 4}  # of an element of the host's arrays

DEPTHS = {  # 0 for a value, 1 for an array, 2 for an array of arrays
    ValueType.TEXT: 0,
    ValueType.BYTES: 0,
    ValueType.INTEGER: 0,
    ValueType.RESIDENT: 0,
    ValueType.RESERVED: 0,
    ValueType.COMPRESSED: 0,
    ValueType.COLLECTED: 0,
    ValueType.INTEGERS: 1,
    ValueType.POSITIONS: 1,
    ValueType.NUMBER: 0,
    ValueType.TENSOR: 1,
    ValueType.ENTRIES: 1,
    ValueType.MATCHES: 1,
    ValueType.TENSORS: 2,
    ValueType.COMPLEX: 1,
    ValueType.COMPLEX_TENSOR: 1,
    ValueType.COMPLEX_TENSORS: 2,
}


def descriptor_words(function: ArrayFunction, dtype: str, size: int = d.DESCRIPTOR_WORDS) -> list[int | str]:
    """Make the words of a descriptor that all hosts share.

    Args:
        function: The function to describe.
        dtype: The suffix of its dtype.
        size: The words of the whole descriptor; a host fills in the last ones itself.

    Returns:
        Numbers, and names that stand for addresses: of kernels, and of texts of `texts_of`.
    """
    # A handle stands for numbers in memory, and limits count the bytes of those.
    elements = ValueType.NUMBER if function.returns in HANDLES else function.returns
    words: list[int | str] = [0] * size
    words[d.NAME], words[d.MESSAGES] = _name_symbol(function.name), _MESSAGES
    words[d.ARGUMENTS] = len(function.arguments)
    words[d.RESULT_BYTES] = _bytes_of(elements, dtype)
    words[d.RESULT_LANES] = 2 if function.returns in _COMPLEX_TYPES else 1
    for index, argument in enumerate(function.arguments):
        words[d.HEADER + 2 * index] = _KINDS[argument.type]
        words[d.HEADER + 2 * index + 1] = _bytes_of(argument.type, dtype)
    words[d.MEASURE] = measure_symbol(function.measure)
    words[d.MULTIPLIES_MATRICES] = int(function.kernel in _MATRIX_PRODUCTS)
    for part in PARTS:
        words[_PART_FIELDS[part]] = kernel_symbol(function.kernel, part, dtype)
    return words


def texts_of(functions: Iterable[ArrayFunction]) -> Iterator[StaticText | StaticWords]:
    """Yield the texts that the descriptors of `functions` point to: message templates by negated code, and names.

    The first %s of every template is the name of the function.
    """
    codes = range(1 - min(MESSAGES_BY_CODE))
    for code in codes:
        yield StaticText(f"message_{code}", "%s: " + MESSAGES_BY_CODE.get(-code, "internal error"))
    yield StaticWords(_MESSAGES, tuple(f"message_{code}" for code in codes))
    yield from (StaticText(_name_symbol(name), name) for name in sorted({function.name for function in functions}))


def _name_symbol(name: str) -> str:
    return f"name_{name}"


def _bytes_of(value_type: ValueType, dtype: str) -> int:
    """Return the bytes of an element of an argument or a result; a complex number is one element."""
    if value_type in (ValueType.TEXT, ValueType.BYTES):
        return 1
    if value_type in (ValueType.INTEGER, ValueType.INTEGERS) or value_type in HANDLES:
        return 8
    if value_type == ValueType.POSITIONS:
        return 4
    position_bytes = 4 if value_type in (ValueType.ENTRIES, ValueType.MATCHES) else 0
    has_two = value_type in _COMPLEX_TYPES or value_type == ValueType.MATCHES
    return position_bytes + _NUMBER_BYTES[dtype] * (2 if has_two else 1)

"""Kernels: a function of the catalogue in, the words of its descriptor out that are the same for every host."""

from dataclasses import dataclass

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.catalogue import Function, ValueType
from sparseeinsum.kernels.native import PARTS, kernel_symbol, measure_symbol

_PART_FIELDS = {
    "compute": d.COMPUTE,
    "batch": d.BATCH,
    "initialise": d.INITIALISE,
    "combine": d.COMBINE,
    "part_size": d.PART_SIZE,
}
_KINDS = {
    ValueType.NUMBER: d.VALUE,
    ValueType.INTEGER: d.VALUE,
    ValueType.RESIDENT: d.VALUE,
    ValueType.TENSOR: d.LIST,
    ValueType.INTEGERS: d.EXTENTS,
    ValueType.TEXT: d.TEXT,
    ValueType.COMPLEX: d.COMPLEX,
    ValueType.COMPLEX_TENSOR: d.COMPLEX_LIST,
}
_COMPLEX_TYPES = (ValueType.COMPLEX, ValueType.COMPLEX_TENSOR, ValueType.COMPLEX_TENSORS)
_NUMBER_BYTES = {"f64": 8, "f32": 4, "i64": 8, "c128": 8, "c64": 4}  # of an element of the host's arrays

DEPTHS = {  # how many arrays deep the elements are
    ValueType.TEXT: 0,
    ValueType.INTEGER: 0,
    ValueType.RESIDENT: 0,
    ValueType.INTEGERS: 1,
    ValueType.NUMBER: 0,
    ValueType.TENSOR: 1,
    ValueType.TENSORS: 2,
    ValueType.COMPLEX: 1,
    ValueType.COMPLEX_TENSOR: 1,
    ValueType.COMPLEX_TENSORS: 2,
}


@dataclass(frozen=True, slots=True)
class Description:
    """Words of a descriptor: numbers, and symbols of machine code whose addresses they hold, 0 where there is none."""

    numbers: dict[int, int]
    symbols: dict[int, str]


def describe(function: Function, dtype: str) -> Description:
    """What every host says of a function of one dtype; it adds its own words, texts and limits."""
    # What stands behind a handle are numbers.
    elements = ValueType.NUMBER if function.returns == ValueType.RESIDENT else function.returns
    numbers = {
        d.ARGUMENTS: len(function.arguments),
        d.RESULT_BYTES: _bytes_of(elements, dtype),
        d.RESULT_LANES: 2 if function.returns in _COMPLEX_TYPES else 1,
    }
    for index, argument in enumerate(function.arguments):
        numbers[d.HEADER + 2 * index] = _KINDS[argument.type]
        numbers[d.HEADER + 2 * index + 1] = _bytes_of(argument.type, dtype)
    symbols = {_PART_FIELDS[part]: kernel_symbol(function.kernel, part, dtype) for part in PARTS}
    return Description(numbers, {d.MEASURE: measure_symbol(function.measure), **symbols})


def message_texts() -> tuple[str, ...]:
    """Templates of messages by negated code; the first word that fills one is the function's name."""
    return tuple(
        "%s: " + d.MESSAGES_BY_CODE.get(-code, "internal error") for code in range(1 - min(d.MESSAGES_BY_CODE))
    )


def _bytes_of(value_type: ValueType, dtype: str) -> int:
    """Bytes of an element of an argument or a result; a complex number is one element."""
    if value_type == ValueType.TEXT:
        return 1
    if value_type in (ValueType.INTEGER, ValueType.INTEGERS, ValueType.RESIDENT):
        return 8
    return _NUMBER_BYTES[dtype] * (2 if value_type in _COMPLEX_TYPES else 1)

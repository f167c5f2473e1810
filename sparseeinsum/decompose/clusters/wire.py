"""Decompose: how many bytes a tuple takes on the wire between the servers of a Citus cluster.

Source: PostgreSQL's manual, "Message Formats" (DataRow, CopyData) and "COPY", binary format; array_send in its code. In
these Citus 13.2 gathers, broadcasts and shuffles rows; what its worker_partial_agg returns of a group is text. Checked
against what was counted on a cluster: tests/test_wire.py.
"""

from sparseeinsum.language.dtypes import ITEM_BYTES, is_complex
from sparseeinsum.language.tensors import Decomposition, Tensor

_ROW = 7  # type, length, and number of columns of a message
_LENGTH = 4  # before the value of a column, and before every element of an array
_KEY = 8
_ARRAY = 20  # dimensions, flags, type, extent, lower bound
# Digits, point, sign and comma of a number, as sums of others have them.
_CHARACTERS = {"float64": 19, "complex128": 19, "float32": 10, "complex64": 10, "int64": 6, "bool": 2}


def row_bytes(tensor: Tensor, decomposition: Decomposition) -> int:
    """Of a tuple that is gathered, broadcast or shuffled."""
    item = ITEM_BYTES[tensor.dtype] // _parts_of_number(tensor)
    numbers = _numbers(tensor, decomposition)
    value = item if numbers is None else _ARRAY + numbers * (_LENGTH + item)
    return keys_bytes(decomposition) + _LENGTH + value


def keys_bytes(decomposition: Decomposition) -> int:
    """Of the keys of a tuple, without a value."""
    return _ROW + len(decomposition.promoted) * (_LENGTH + _KEY)


def part_bytes(tensor: Tensor, decomposition: Decomposition) -> int:
    """Of what one shard has of a group, on its way to the coordinator."""
    numbers = _numbers(tensor, decomposition)
    if numbers is None:  # aggregates of numbers are PostgreSQL's own, which Citus puts together as they are
        return row_bytes(tensor, decomposition)
    return keys_bytes(decomposition) + _LENGTH + numbers * _CHARACTERS[tensor.dtype]


def _numbers(tensor: Tensor, decomposition: Decomposition) -> int | None:
    """Elements of the array of a tuple; None where it holds a number."""
    if decomposition.is_scalar and not is_complex(tensor.dtype):
        return None
    return decomposition.array_size(tensor.shape) * _parts_of_number(tensor)


def _parts_of_number(tensor: Tensor) -> int:
    return 2 if is_complex(tensor.dtype) else 1

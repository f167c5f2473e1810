"""Decompose: the bytes of a tuple on the wire between the servers of a Citus cluster.

Source: PostgreSQL's manual, "Message Formats" (DataRow, CopyData) and "COPY", binary format. Citus 13.2 gathers,
broadcasts and shuffles rows in these; arrays are bytes in the tables of a run. Partial results of groups
(worker_partial_agg of Citus) are text. tests/decompose/test_transfer_bytes.py compares this with the bytes counted on a
cluster.
"""

from sparseeinsum.language.tensors import Decomposition, Tensor
from sparseeinsum.operators.dtypes import ITEM_BYTES, is_complex

_ROW = 7  # type, length, and number of columns of a message
_LENGTH = 4  # before the value of a column
_KEY = 8
CELL_BYTES = _LENGTH + _KEY  # of the column that has the cell of a grid
# Digits, point, sign and comma of a typical number, such as a sum of others.
_CHARACTERS = {"float64": 19, "complex128": 19, "float32": 10, "complex64": 10, "int64": 6, "bool": 2}


def row_bytes(tensor: Tensor, decomposition: Decomposition) -> int:
    """Bytes of a tuple that is gathered, broadcast or shuffled."""
    return keys_bytes(decomposition) + _LENGTH + decomposition.array_size(tensor.shape) * ITEM_BYTES[tensor.dtype]


def keys_bytes(decomposition: Decomposition) -> int:
    """Bytes of a tuple without its value."""
    return _ROW + len(decomposition.promoted) * (_LENGTH + _KEY)


def part_bytes(tensor: Tensor, decomposition: Decomposition) -> int:
    """Bytes of one shard's partial result of a group, which goes to the coordinator."""
    if decomposition.is_scalar and not is_complex(tensor.dtype):
        return row_bytes(tensor, decomposition)  # Citus combines PostgreSQL's own aggregates without text
    numbers = decomposition.array_size(tensor.shape) * (2 if is_complex(tensor.dtype) else 1)
    return keys_bytes(decomposition) + _LENGTH + numbers * _CHARACTERS[tensor.dtype]

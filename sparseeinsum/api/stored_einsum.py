"""API: numpy's einsum on the tensors of a database, and on arrays beside them."""

from collections.abc import Sequence
from contextlib import ExitStack

from sparseeinsum.api.database import Database
from sparseeinsum.api.einsum_arguments import check_dtypes, read_operand
from sparseeinsum.engines.locking import lock_of
from sparseeinsum.engines.temporary_names import temporary_name
from sparseeinsum.errors import DataError, ShapeError
from sparseeinsum.language.numpy_notation import RESULT_NAME, Subscripts, read_subscripts
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.loading.sources.sparse_arrays import is_scipy
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.results.results import TensorResult
from sparseeinsum.storage.catalogue import find_tensor


def einsum_of_stored(
    database: Database, subscripts: str, operands: Sequence[object], join: str, agg: str, fill: Number, optimizer: str
) -> TensorResult:
    """Evaluate an Einstein summation in a database; see `Database.einsum`."""
    with lock_of(database.connection), ExitStack() as stack:
        stored = [_stored_operand(database, number, operand, fill, stack) for number, operand in enumerate(operands, 1)]
        tensors = [operand.tensor for operand in stored]
        parsed = read_subscripts(subscripts, [len(tensor.axes) for tensor in tensors])
        _check_stretched(parsed, [tensor.shape for tensor in tensors])
        if (join, agg) == ("*", "sum") and all(tensor.dtype == "bool" for tensor in tensors):
            join, agg = "and", "any"
        program = parsed.program([()] * len(tensors), join, agg, [tensor.name for tensor in tensors])
        results = database.run(program, optimizer=optimizer, layout="any", nonfinite="allow")
        return results[RESULT_NAME]


def _stored_operand(database: Database, number: int, operand: object, fill: Number, stack: ExitStack) -> StoredTensor:
    """The tensor of an operand; an array becomes a tensor until the stack is closed."""
    if isinstance(operand, str):
        return find_tensor(database.tensors(), operand)
    if isinstance(operand, list | tuple):
        raise DataError(f"operand {number} is a {type(operand).__name__}; give an array or the name of a tensor")
    array = read_operand(number, operand)
    check_dtypes([array.dtype], number)
    name = temporary_name(f"operand_{number}")
    if is_scipy(array):  # scipy adds up entries that a matrix has twice
        stored = database.tensor(name, array, fill=fill, duplicates="sum")
    else:
        stored = database.tensor(name, array)
    stack.callback(database.drop_tensor, name)
    return stored


def _check_stretched(subscripts: Subscripts, shapes: Sequence[tuple[int, ...]]) -> None:
    """Refuse axes of size 1 that numpy would stretch: stored tensors have no such axis less."""
    for number, axes in enumerate(subscripts.stretched_axes(shapes), 1):
        if axes:
            raise ShapeError(
                f"axis {axes[0]} of operand {number} of {subscripts.text!r} has size 1, and its label is longer "
                "elsewhere; give it a label of its own"
            )

"""API: numpy's einsum on the tensors of a database, and on arrays beside them."""

from collections.abc import Sequence
from contextlib import ExitStack

from sparseeinsum.api.einsum_arguments import check_dtypes, for_booleans
from sparseeinsum.api.einsum_operands import SparseOperand, read_operand
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.temporary_names import temporary_name
from sparseeinsum.errors import DataError, ShapeError
from sparseeinsum.language.numpy_notation import RESULT_NAME, Subscripts, read_subscripts
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.loading.load import load
from sparseeinsum.loading.sources.input_data import DenseArray, EntryArrays, InputData
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.pipeline.plan_cache import PlanCache
from sparseeinsum.pipeline.run_options import RunOptions
from sparseeinsum.pipeline.run_programs import run_program
from sparseeinsum.plans.options import PlanOptions
from sparseeinsum.results.results import Results, TensorResult
from sparseeinsum.storage.catalogue import Catalogue, find_tensor
from sparseeinsum.storage.ownership import drop_tensor
from sparseeinsum.storage.tensor_description import TensorDescription


def einsum_of_stored(
    engine: Engine,
    plans: PlanCache,
    subscripts: str,
    operands: Sequence[object],
    join: str,
    agg: str,
    fill: Number,
    optimizer: str,
) -> TensorResult:
    """Evaluate an Einstein summation in a database; see `Database.einsum`.

    Args:
        engine: The database.
        plans: The plans of earlier runs.
        subscripts: As for `Database.einsum`, like all further arguments.
        operands: The names of tensors, and arrays.
        join: Joins the values of the operands.
        agg: The aggregate over the labels that the result lacks.
        fill: The value of absent entries of sparse arrays that have no fill of their own.
        optimizer: The search for a plan.
    """
    with engine.protected():
        catalogue = Catalogue(engine).all()
    with ExitStack() as stack:
        stored = [
            find_tensor(catalogue, operand) if isinstance(operand, str) else _load(engine, number, operand, fill, stack)
            for number, operand in enumerate(operands, 1)
        ]
        tensors = [operand.tensor for operand in stored]
        parsed = read_subscripts(subscripts, [len(tensor.axes) for tensor in tensors])
        _check_stretched(parsed, [tensor.shape for tensor in tensors])
        join, agg = for_booleans(join, agg, [tensor.dtype for tensor in tensors])
        program = parsed.program([()] * len(tensors), join, agg, [tensor.name for tensor in tensors])
        options = PlanOptions(optimizer, layout="any", nonfinite="allow")
        run = run_program(program, engine, options, {}, RunOptions(), plans)
        return Results(run.results)[RESULT_NAME]


def _load(engine: Engine, number: int, operand: object, fill: Number, stack: ExitStack) -> StoredTensor:
    """Store an array as a tensor until the stack is closed."""
    if isinstance(operand, list | tuple):
        raise DataError(f"operand {number} is a {type(operand).__name__}; give an array or the name of a tensor")
    array = read_operand(number, operand, fill)
    check_dtypes([array.dtype], number)
    name = temporary_name(f"operand_{number}")
    if isinstance(array, SparseOperand):
        description = TensorDescription(name, fill=array.fill)
        data: InputData = EntryArrays(array.coordinates, array.values, array.shape)
    else:
        description, data = TensorDescription(name, fill=0), DenseArray(array)
    stored = load(engine, description, data, None, sum_duplicates=False)
    stack.callback(drop_tensor, engine, name)
    return stored


def _check_stretched(subscripts: Subscripts, shapes: Sequence[tuple[int, ...]]) -> None:
    """Refuse axes of size 1 that numpy would stretch: to leave them out, a stored tensor would have to be copied."""
    for number, axes in enumerate(subscripts.stretched_axes(shapes), 1):
        if axes:
            raise ShapeError(
                f"axis {axes[0]} of operand {number} of {subscripts.text!r} has size 1, and its label is longer "
                "elsewhere; give it a label of its own"
            )

"""Plans: cuts a program among workers without its data."""

import math
from collections.abc import Iterable, Mapping, Sequence

from sparseeinsum.decompose.eindecomp.objectives import FLOATS, OF_PARTITIONS
from sparseeinsum.errors import PlanError, ShapeError
from sparseeinsum.language.binding import bind
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.lowering import lower_text
from sparseeinsum.language.tensors import Axis, Tensor
from sparseeinsum.plans.graph_partition import PartitionSource
from sparseeinsum.plans.partitioned_program import PartitionedProgram
from sparseeinsum.presentation.spelling import did_you_mean
from sparseeinsum.presentation.tracebacks import one_frame
from sparseeinsum.statistics.estimate import Statistics, dense_statistics


@one_frame
def partition(
    program: Program | str,
    workers: int,
    shapes: Mapping[str, Sequence[int]] | None = None,
    entries: Mapping[str, int] | None = None,
    rewrite: bool = True,
    objective: str = FLOATS,
) -> PartitionedProgram:
    """Cut a program among workers so that they transfer the fewest floats.

    Formulas and orders of products are rewritten as `Database.plan` rewrites them, unless that transfers more floats.
    Every label is cut into pieces whose numbers multiply to the number of workers, so that every EinSum has as many
    kernel calls as workers.

    Args:
        program: From `se.program`, or its text.
        workers: The number of workers.
        shapes: The bounds of tensors that the program does not declare.
        entries: The number of entries of sparse tensors; the entries are assumed to be spread evenly.
        rewrite: Whether a cheaper equal formula or another contraction order may compute several statements together,
            if nothing else reads the intermediates.
        objective: `floats`: the fewest floats that workers are found to send each other. `bound`: the fewest floats if
            no worker has what its calls read, as in the EinDecomp paper.

    Raises:
        PlanError: `workers` is no whole number of 1 or more, or there is no such objective.
        ShapeError: A tensor has no shape, or labels and bounds do not fit.

    Source: EinDecomp, sections 6 to 8.

    >>> partition("C[i, k] = sum(A[i, j] * B[j, k])", 8, {"A": (64, 64), "B": (64, 64)}).vectors
    {'C': {'i': 2, 'k': 2, 'j': 2}}
    """
    check_objective(objective)
    written = lower_text(program) if isinstance(program, str) else program
    tensors = _tensors(written, shapes or {})
    bound = bind(written, tensors)
    sparse = _checked(entries or {}, tensors)
    statistics = {name: _statistics(tensor, sparse.get(name)) for name, tensor in bound.inputs.items()}
    return PartitionSource(bound, statistics).partitioned(workers, rewrite, objective)


def check_objective(objective: str) -> str:
    """Return `objective` if it is one.

    Raises:
        PlanError: It is not.
    """
    if objective not in OF_PARTITIONS:
        raise PlanError(f"objective is {objective!r}; choose one of {', '.join(OF_PARTITIONS)}")
    return objective


def _tensors(program: Program, shapes: Mapping[str, Sequence[int]]) -> dict[str, Tensor]:
    """The inputs with their declared or given shapes; axes have the names of the labels at the first use."""
    declared = {declaration.tensor.name: declaration.tensor for declaration in program.declared}
    unknown = sorted(shapes.keys() - set(program.inputs))
    if unknown:
        raise _unknown_tensor(unknown[0], program.inputs)
    labels = {
        operand.tensor: operand.labels for einsum in reversed(program.einsums) for operand in reversed(einsum.operands)
    }
    tensors = {}
    for name in program.inputs:
        if name in shapes:
            tensors[name] = Tensor(name, _axes(shapes[name], labels.get(name, ())))
        elif name in declared:
            tensors[name] = declared[name]
        else:
            raise ShapeError(
                f"{name} has no shape; declare it, as in tensor {name}[i: 100], or give it, as in "
                f'shapes={{"{name}": (100,)}}'
            )
    return tensors


def _axes(shape: Sequence[int], labels: Sequence[str]) -> tuple[Axis, ...]:
    is_named = len(labels) == len(shape) == len(set(labels))
    names = labels if is_named else [f"dim_{axis}" for axis in range(len(shape))]
    return tuple(Axis(name, bound) for name, bound in zip(names, shape, strict=True))


def _checked(entries: Mapping[str, int], tensors: Mapping[str, Tensor]) -> Mapping[str, int]:
    for name, count in entries.items():
        if name not in tensors:
            raise _unknown_tensor(name, tensors)
        if not 0 <= count <= tensors[name].size:
            raise ShapeError(f"{name} cannot have {count:,} entries; it has {tensors[name].size:,} places")
    return entries


def _statistics(tensor: Tensor, entries: int | None) -> Statistics:
    if entries is None or entries == math.prod(tensor.shape):
        return dense_statistics(tensor.shape)
    return Statistics(float(entries), tuple(float(min(bound, entries)) for bound in tensor.shape), tensor.shape)


def _unknown_tensor(name: str, inputs: Iterable[str]) -> ShapeError:
    """The error for a tensor that the program does not read; `inputs` are those that it reads."""
    return ShapeError(f"the program reads no tensor {name}; {did_you_mean(name, inputs, 'it reads', 'it reads none')}")

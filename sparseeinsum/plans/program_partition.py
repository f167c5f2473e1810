"""Plans: cuts a program among workers without its data, by EinDecomp."""

import math
from collections.abc import Mapping, Sequence

from sparseeinsum.decompose.eindecomp.baselines import all_choices
from sparseeinsum.decompose.eindecomp.partitioning import partition_graph
from sparseeinsum.decompose.eindecomp.transfer import TransferModel
from sparseeinsum.decompose.eindecomp.vector_search import TransferTask, search
from sparseeinsum.errors import ShapeError
from sparseeinsum.language.binding import bind
from sparseeinsum.language.eingraph import Program
from sparseeinsum.language.lowering import lower_text
from sparseeinsum.language.tensors import Axis, Tensor
from sparseeinsum.operators.ranges import finite_range
from sparseeinsum.plans.partitioned_program import PartitionedProgram
from sparseeinsum.rewrite.annotated_graphs import GraphAnnotator
from sparseeinsum.rewrite.binarise import binarise
from sparseeinsum.semantics.exactness import ValueFacts, decide_evaluations
from sparseeinsum.statistics.estimate import Statistics, dense_statistics, estimate
from sparseeinsum.tracebacks import one_frame


@one_frame
def partition(
    program: Program | str,
    workers: int,
    shapes: Mapping[str, Sequence[int]] | None = None,
    entries: Mapping[str, int] | None = None,
) -> PartitionedProgram:
    """Cut a program among workers so that they transfer the fewest floats.

    Every label is cut into pieces whose numbers multiply to the number of workers, so that every EinSum has as many
    kernel calls as workers.

    Args:
        program: From `se.program`, or its text.
        workers: The number of workers.
        shapes: The bounds of tensors that the program does not declare.
        entries: The number of entries of sparse tensors; the entries are assumed to be spread evenly.

    Raises:
        PlanError: `workers` is no whole number of 1 or more.
        ShapeError: A tensor has no shape, or labels and bounds do not fit.

    Source: EinDecomp, sections 6 to 8.

    >>> partition("C[i, k] = sum(A[i, j] * B[j, k])", 8, {"A": (64, 64), "B": (64, 64)}).vectors
    {'C': {'i': 2, 'k': 2, 'j': 2}}
    """
    written = lower_text(program) if isinstance(program, str) else program
    tensors = _tensors(written, shapes or {})
    bound = bind(written, tensors)
    computed = {einsum.output.tensor for einsum in bound.einsums}
    sparse = _checked(entries or {}, tensors)
    statistics = {
        name: _statistics(tensor, sparse.get(name)) for name, tensor in bound.tensors.items() if name not in computed
    }
    values = {
        name: ValueFacts(finite_range(bound.tensors[name].dtype), has_fill=not statistics[name].is_dense)
        for name in statistics
    }
    binary = binarise(bound, GraphAnnotator.for_inputs(bound.tensors, statistics, values))
    exact = decide_evaluations(binary.graph, values)
    estimates = estimate(exact.graph, statistics, exact.evaluations)
    task = TransferTask(TransferModel(exact.graph, estimates, exact.evaluations), all_choices(exact.graph, workers))
    return PartitionedProgram(task, partition_graph(task, search(task), workers))


def _tensors(program: Program, shapes: Mapping[str, Sequence[int]]) -> dict[str, Tensor]:
    """The inputs with their declared or given shapes; axes have the names of the labels at the first use."""
    declared = {declaration.tensor.name: declaration.tensor for declaration in program.declared}
    unknown = sorted(shapes.keys() - set(program.inputs))
    if unknown:
        raise ShapeError(f"the program reads no tensor {unknown[0]}; it reads {', '.join(program.inputs) or 'none'}")
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
            raise ShapeError(f"the program reads no tensor {name}; it reads {', '.join(tensors) or 'none'}")
        if not 0 <= count <= tensors[name].size:
            raise ShapeError(f"{name} cannot have {count:,} entries; it has {tensors[name].size:,} places")
    return entries


def _statistics(tensor: Tensor, entries: int | None) -> Statistics:
    if entries is None or entries == math.prod(tensor.shape):
        return dense_statistics(tensor.shape)
    return Statistics(float(entries), tuple(float(min(bound, entries)) for bound in tensor.shape), tensor.shape)

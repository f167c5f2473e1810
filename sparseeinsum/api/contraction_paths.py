"""Contraction paths of products of several tensors: costs on sparse tensors next to those that opt_einsum computes."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np
from opt_einsum.contract import PathInfo
from opt_einsum.helpers import flop_count

from sparseeinsum.api.einsum_operands import SparseOperand, entries_of, read_operand
from sparseeinsum.api.einsum_options import Optimize, PathSearch, read_path_search
from sparseeinsum.errors import DataError
from sparseeinsum.language.label_lists import read_arguments
from sparseeinsum.language.numpy_notation import read_subscripts
from sparseeinsum.presentation.tracebacks import one_frame
from sparseeinsum.rewrite.contraction_network import ContractionEstimates, ContractionNetwork, Tree
from sparseeinsum.rewrite.contraction_order import find_contraction_order, path_of_tree, steps_of_path, tree_of_path
from sparseeinsum.statistics.estimate import Statistics, by_label

Path = list[tuple[int, ...]]

_RULE = "-" * 100
_TITLES = ("scaling", "BLAS", "current", "remaining", "dense FLOP", "sparse", "entries")
_LONGEST = 28  # of subscripts in a row of a table


@dataclass(frozen=True, slots=True)
class ContractionStep:
    """One contraction of a path.

    Attributes:
        scaling: The number of labels that it loops over.
        blas: The BLAS routine that computes it on dense arrays; empty if there is none.
        current: The subscripts of the contraction.
        remaining: The subscripts of the rest of the product.
        dense_flops: The number of operations on dense arrays, as opt_einsum counts them.
        multiplications: The estimated number of multiplications of entries that are not 0.
        entries: The estimated number of entries of the result that are not 0.
    """

    scaling: int
    blas: str
    current: str
    remaining: str
    dense_flops: float
    multiplications: float
    entries: float


@dataclass(frozen=True, slots=True)
class PathCost:
    """The cost of a path: operations on dense arrays, and estimated multiplications of entries that are not 0."""

    dense_flops: float
    multiplications: float


@dataclass(frozen=True, slots=True)
class ContractionPath:
    """A contraction path with its costs; it prints as a table.

    Attributes:
        subscripts: The subscripts of the product.
        path: The path, in opt_einsum's format.
        steps: The contractions of the path.
        naive: The cost of one contraction of all operands.
        dense_optimal: The cost of the path that opt_einsum chooses for dense arrays.
        chosen: The cost of this path.
        largest_intermediate: The most elements of a result of a step, as a dense array.
    """

    subscripts: str
    path: Path
    steps: tuple[ContractionStep, ...]
    naive: PathCost
    dense_optimal: PathCost
    chosen: PathCost
    largest_intermediate: int

    def __str__(self) -> str:
        lines = [
            f"  Complete contraction:  {self.subscripts}",
            f"{'':25}{'dense FLOP':>14}{'sparse multiplications':>26}",
            *(
                f"{title:>23}  {cost.dense_flops:14.3e}{cost.multiplications:26.3e}"
                for title, cost in (
                    ("Naive:", self.naive),
                    ("Best for dense arrays:", self.dense_optimal),
                    ("This path:", self.chosen),
                )
            ),
            _RULE,
            "{:>7} {:>8} {:>24} {:>28} {:>11} {:>8} {:>8}".format(*_TITLES),
            _RULE,
            *map(_row, self.steps),
        ]
        return "\n".join(lines)

    __repr__ = __str__


def _row(step: ContractionStep) -> str:
    remaining = step.remaining if len(step.remaining) <= _LONGEST else step.remaining[: _LONGEST - 3] + "..."
    return (
        f"{step.scaling:7} {step.blas or 'none':>8} {step.current:>24} {remaining:>28} {step.dense_flops:11.2e} "
        f"{step.multiplications:8.1e} {step.entries:8.1e}"
    )


@one_frame
def contract_path(
    *operands: object,
    optimize: Optimize = True,
    memory_limit: int | str | None = None,
    shapes: bool = False,
    use_blas: bool = True,
) -> tuple[Path, ContractionPath]:
    """Find the contraction order of a product that needs the fewest operations on entries that are not 0.

    Args:
        operands: As for `einsum`: subscripts such as 'ij,jk,kl->il', then operands, or every operand followed by its
            labels. Operands are arrays, sparse arrays, or pairs of a shape and the number of entries that are not 0,
            such as ((1000, 1000), 5000).
        optimize: True for the order that is best for these entries; or, as for `einsum`, a search of opt_einsum, which
            looks at shapes alone, or a path, whose costs are computed.
        memory_limit: The most elements of an intermediate result as a dense array, or 'max_input' for those of the
            largest operand. An order that exceeds it is replaced by the one that opt_einsum finds for the limit.
        shapes: Whether operands are shapes, such as (1000, 1000), of arrays without zeros.
        use_blas: Whether the table names routines of BLAS.

    Returns:
        The path in opt_einsum's format, which `einsum`, opt_einsum.contract and numpy.einsum accept, and an object that
        prints as a table of the steps, with the operations on dense arrays and the estimated operations on sparse ones.

    Raises:
        ParseError: The subscripts have a syntax error.
        ShapeError: The subscripts do not match the shapes of the operands.
        DataError: An operand is neither an array nor a shape with a number of entries.
        ArgumentError: There is no such search, or the path does not contract the operands to one.

    >>> path, info = contract_path("ij,jk,kl->il", ((900, 1000), 900_000), ((1000, 1000), 2000), ((1000, 1000), 2000))
    >>> path
    [(1, 2), (0, 1)]
    """
    subscripts, tensors = read_arguments(operands)
    measured = [_statistics(number, tensor, shapes) for number, tensor in enumerate(tensors, 1)]
    bounds = [statistics.shape for statistics in measured]
    parsed = read_subscripts(subscripts, [len(shape) for shape in bounds])
    parsed.stretched_axes(bounds)  # checks the sizes
    largest = max(map(math.prod, (*bounds, parsed.result_shape(bounds))))
    search = read_path_search(optimize, len(bounds)).limited(largest if memory_limit == "max_input" else memory_limit)
    dense = PathSearch("auto", search.memory_limit).contraction(subscripts, bounds, use_blas)
    inputs, output = dense.eq.split("->")
    terms = zip(inputs.split(","), measured, strict=True)
    factors = tuple(by_label(tuple(term), statistics) for term, statistics in terms)
    network = ContractionNetwork(factors, ("float64",) * len(factors), frozenset(output), dense.size_dict)
    estimates = ContractionEstimates(network)
    chosen = _best(estimates, dense, bounds, use_blas) if search.optimize == "auto" else None
    if chosen is None or chosen.largest_intermediate > (search.memory_limit or math.inf):
        chosen = search.contraction(dense.eq, bounds, use_blas)
    path: Path = [tuple(step) for step in chosen.path]
    ours, theirs = tree_of_path(path, len(factors)), tree_of_path(dense.path, len(factors))
    for tree in (ours, theirs):
        estimates.visit(tree)
    info = ContractionPath(
        dense.eq,
        path,
        tuple(_steps(chosen, estimates)),
        PathCost(float(dense.naive_cost), _naive(network)),
        PathCost(float(dense.opt_cost), _multiplications(estimates, theirs)),
        PathCost(float(chosen.opt_cost), _multiplications(estimates, ours)),
        int(chosen.largest_intermediate),
    )
    return path, info


def _best(
    estimates: ContractionEstimates, dense: PathInfo, bounds: Sequence[tuple[int, ...]], use_blas: bool
) -> PathInfo:
    """The path that is best for the entries."""
    count = len(estimates.network.factors)
    path = path_of_tree(find_contraction_order(estimates), count) or [(0,)]
    return PathSearch(tuple(path)).contraction(dense.eq, bounds, use_blas)


def _statistics(number: int, operand: object, shapes: bool) -> Statistics:
    """The entries and the distinct indices of an operand, counted or from its description."""
    if shapes and isinstance(operand, tuple | list) and all(isinstance(bound, Integral) for bound in operand):
        return _described_statistics(number, (tuple(map(int, operand)), math.prod(map(int, operand))))
    if shapes or isinstance(operand, tuple):
        return _described_statistics(number, operand)
    array = read_operand(number, operand)
    if isinstance(array, SparseOperand) and array.fill:
        return _described_statistics(number, (array.shape, math.prod(array.shape)))
    entries = entries_of(array)
    present = entries.coordinates[:, entries.values != 0]
    distinct = tuple(float(len(np.unique(indices))) for indices in present)
    return Statistics(float(present.shape[1]), distinct, array.shape)


def _described_statistics(number: int, operand: object) -> Statistics:
    """The statistics of an operand that is given as a shape and a number of entries."""
    match operand:
        case (tuple() as shape, int() | float() as entries) if all(isinstance(bound, int) for bound in shape):
            most = math.prod(shape)
            if not 0 <= entries <= most:
                raise DataError(
                    f"operand {number} cannot have {entries} entries in the shape {shape}, which has at most {most}"
                )
            distinct = tuple(min(float(bound), float(entries)) for bound in shape)
            return Statistics(float(entries), distinct, shape)
        case _:
            shown = f"the tuple {operand!r}" if isinstance(operand, tuple) else f"of type {type(operand).__name__}"
            raise DataError(
                f"operand {number} is {shown}; write a shape and a number of entries, "
                "as in ((1000, 1000), 5000), or give an array"
            )


def _steps(info: PathInfo, estimates: ContractionEstimates) -> Iterator[ContractionStep]:
    """The steps of a path, from the costs of opt_einsum and the estimates of its joins."""
    count = len(estimates.network.factors)
    rows = zip(info.contraction_list, info.scale_list, steps_of_path(info.path, count), strict=True)
    for (_, removed, current, remaining, blas), scaling, (group, joins) in rows:
        labels = current.split("->")[0].split(",")
        flops = flop_count(set().union(*labels), bool(removed), len(labels), info.size_dict)
        yield ContractionStep(
            scaling,
            blas or "",
            current,
            ",".join(remaining or ()) + f"->{info.output_subscript}",
            float(flops),
            _multiplications(estimates, joins),
            estimates.entries(group),
        )


def _multiplications(estimates: ContractionEstimates, tree: Tree) -> float:
    return math.fsum(estimates.join(*tree[group]) for group in tree)


def _naive(network: ContractionNetwork) -> float:
    """The multiplications if all operands are joined at once: one less than the operands for every matching tuple."""
    joined = ContractionEstimates(
        ContractionNetwork(network.factors, network.dtypes, frozenset(network.bounds), network.bounds)
    )
    group = 1
    for position in range(1, len(network.factors)):
        joined.join(group, 1 << position)
        group |= 1 << position
    return joined.entries(group) * max(len(network.factors) - 1, 1)

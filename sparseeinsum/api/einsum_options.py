"""API: the options of einsum that numpy has, too: the order of contractions, and the dtype and place of the result."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import opt_einsum
from numpy.typing import DTypeLike, NDArray
from opt_einsum.contract import PathInfo
from opt_einsum.paths import PathOptimizer, get_path_fn

from sparseeinsum.api.einsum_operands import EinsumOperand
from sparseeinsum.errors import ArgumentError, ShapeError

_ORDERS = ("C", "F", "A", "K")
_CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")
_PATH_EXAMPLE = "write it as in optimize=[(0, 1), (0, 1)], which contracts three operands"


@dataclass(frozen=True, slots=True)
class PathSearch:
    """How to find an order of contractions.

    Attributes:
        optimize: The name of a search, an object that searches, or a path: for every contraction the positions of what
            it multiplies, as in opt_einsum.
        memory_limit: The most elements of an intermediate result; None if there is no limit.
    """

    optimize: str | PathOptimizer | tuple[tuple[int, ...], ...] = "auto"
    memory_limit: int | None = None

    def limited(self, memory_limit: object) -> "PathSearch":
        """The search with a limit; None or -1 for the one that it has.

        Raises:
            ArgumentError: The limit is no number of elements.
        """
        if memory_limit is None or memory_limit == -1:
            return self
        if isinstance(memory_limit, int | float | Decimal) and memory_limit >= 1:
            return replace(self, memory_limit=int(memory_limit))
        raise ArgumentError(
            f"memory_limit is {memory_limit!r}; it must be the most elements of an intermediate result, or None"
        )

    def contraction(self, subscripts: str, shapes: Sequence[tuple[int, ...]], use_blas: bool = True) -> PathInfo:
        """The path that opt_einsum finds for arrays of these shapes, and its costs.

        Args:
            subscripts: The subscripts of the call.
            shapes: The shape of every operand.
            use_blas: Whether opt_einsum marks steps that BLAS computes.

        Raises:
            ArgumentError: The search finds none.
        """
        try:
            return opt_einsum.contract_path(
                subscripts,
                *shapes,
                shapes=True,
                optimize=self.optimize,
                memory_limit=self.memory_limit,
                use_blas=use_blas,
            )[1]
        except (RuntimeError, ValueError) as error:
            raise ArgumentError(f"optimize: the search finds no order: {error}") from error


AUTOMATIC = PathSearch()

# What numpy and opt_einsum take for an order of contractions: a name, a list of positions, or an object that finds it.
Optimize: TypeAlias = bool | str | Sequence[Any] | PathOptimizer | PathSearch | None


def read_path_search(optimize: Optimize, count: int) -> PathSearch:
    """Read the argument `optimize` of numpy and opt_einsum.

    Args:
        optimize: True or None for an automatic search, False for one contraction of all operands, the name of a search,
            a pair of a name and the most elements of an intermediate result, a path, which may begin with
            'einsum_path', or one of opt_einsum's objects that find one.
        count: The number of operands.

    Raises:
        ArgumentError: There is no such search, or the path does not contract the operands to one.
    """
    match optimize:
        case True | None | "auto":
            return AUTOMATIC
        case False:
            return PathSearch((tuple(range(count)),))
        case str():
            return PathSearch(_search_name(optimize))
        case PathSearch():
            return optimize
        case PathOptimizer():
            return PathSearch(optimize)
        case (str() as name, int() | float() as limit) if name != "einsum_path":
            search = PathSearch(_search_name(name))
            return search.limited(limit) if limit >= 1 else PathSearch((tuple(range(count)),))
        case ("einsum_path", *steps):
            return PathSearch(_checked_path(steps, count))
        case list() | tuple():
            return PathSearch(_checked_path(optimize, count))
        case _:
            raise ArgumentError(f"optimize is {optimize!r}; it must be a bool, the name of a search, or a path")


def _search_name(name: str) -> str:
    try:
        get_path_fn(name)
    except KeyError as error:
        raise ArgumentError(f"optimize: {error.args[0]}") from None
    return name


def _checked_path(steps: Iterable[Any], count: int) -> tuple[tuple[int, ...], ...]:
    """The path, if it contracts so many operands to one."""
    try:
        path = tuple(tuple(int(position) for position in step) for step in steps)
    except (TypeError, ValueError):
        raise ArgumentError(f"optimize is {steps!r}, which is no path; {_PATH_EXAMPLE}") from None
    path = path or ((0,),) * (count == 1)
    left = count
    for step in path:
        if not step or len(set(step)) < len(step) or not all(0 <= position < left for position in step):
            raise ArgumentError(f"step {step} of the path {list(path)} needs distinct positions from 0 to {left - 1}")
        left += 1 - len(step)
    if left != 1:
        raise ArgumentError(f"the path {list(path)} leaves {left} of {count} operands; {_PATH_EXAMPLE}")
    return path


@dataclass(frozen=True, slots=True)
class ResultOptions:
    """What numpy.einsum lets one say of its result.

    Attributes:
        out: The array that gets the result.
        dtype: The dtype in which to compute; None for the common one of the operands and `out`.
        order: The order of the result in memory: C, F, A or K.
        casting: The conversions that are allowed, as for numpy.can_cast.
        sparse: Whether to return a sparse array.
    """

    out: NDArray[Any] | None = None
    dtype: np.dtype[Any] | None = None
    order: str = "K"
    casting: str = "safe"
    sparse: bool = False

    def converted(self, operands: list[EinsumOperand], is_product: bool) -> list[EinsumOperand]:
        """The operands in the dtype in which to compute.

        Args:
            operands: The operands.
            is_product: Whether they are multiplied and added up; then all have one dtype, with that of `out`, as in
                numpy. Other calls compute in the dtypes of the operands if none is given.

        Raises:
            ArgumentError: `casting` does not allow a conversion.
        """
        if self.dtype is None and not is_product:
            return operands
        dtypes = [operand.dtype for operand in operands] + ([] if self.out is None else [self.out.dtype])
        common = np.result_type(*dtypes) if self.dtype is None else self.dtype
        for number, operand in enumerate(operands, 1):
            self._check_cast(f"operand {number} of einsum", operand.dtype, common)
        if self.out is not None:
            self._check_cast("the result", common, self.out.dtype)
        if self.out is None and self.dtype is None:
            return operands
        return [operand.astype(common, copy=False) for operand in operands]

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Refuse `out` if it has another shape than the result.

        Raises:
            ShapeError: It has.
        """
        if self.out is not None and self.out.shape != shape:
            raise ShapeError(f"out has the shape {self.out.shape}, but the result has {shape}")

    def check_result(self, dtype: np.dtype[Any]) -> None:
        """Refuse a result of this dtype if it does not convert to that of `out` or to the one that is asked for.

        Raises:
            ArgumentError: `casting` does not allow the conversion.
        """
        target = self.dtype if self.out is None else self.out.dtype
        if target is not None and target != dtype:
            self._check_cast("the result", dtype, target)

    def delivered(self, result: NDArray[Any], is_fortran: bool) -> Any:  # noqa: ANN401  # an array or a number of numpy
        """The result where and how the caller wants it; without axes it is a number, as in numpy.

        Args:
            result: An array of its own.
            is_fortran: Whether all operands are in Fortran's order.

        Raises:
            ArgumentError: `casting` does not allow the conversion to the dtype of the result.
        """
        self.check_result(result.dtype)
        if self.out is not None:
            self.out[...] = result.astype(self.out.dtype, copy=False)
            return self.out
        order = {"A": "F" if is_fortran else "C"}.get(self.order, self.order)
        return result.astype(self.dtype or result.dtype, order=order, copy=False)[()]  # type: ignore[call-overload]

    def _check_cast(self, what: str, source: np.dtype[Any], target: np.dtype[Any]) -> None:
        if not np.can_cast(source, target, self.casting):  # type: ignore[arg-type]  # one of _CASTINGS
            raise ArgumentError(
                f"{what} has dtype {source}, which does not convert to {target} with casting={self.casting!r}; "
                "allow it with casting='same_kind' or 'unsafe'"
            )


PLAIN = ResultOptions()


def read_result_options(
    out: object, dtype: DTypeLike | None, order: str | None, casting: str, sparse: bool
) -> ResultOptions:
    """Read the arguments of numpy.einsum that concern the result.

    Args:
        out: The array that takes the result; None for a new one.
        dtype: The dtype of the result; None for that of the operands.
        order: The memory layout: C, F, A or K, in either case; None is K.
        casting: Which conversions are allowed, by the name of a rule of numpy.
        sparse: Whether the result is sparse.

    Raises:
        ArgumentError: One of them is not what numpy takes.
    """
    if out is None and dtype is None and (order, casting, sparse) == ("K", "safe", False):
        return PLAIN
    try:
        target = None if dtype is None else np.dtype(dtype)
    except TypeError as error:
        raise ArgumentError(f"dtype is {dtype!r}: {error}") from None
    layout = "K" if order is None else order.upper() if isinstance(order, str) else ""
    for name, value, choices in (("order", layout, _ORDERS), ("casting", casting, _CASTINGS)):
        if value not in choices:
            raise ArgumentError(f"{name} is {value!r}; it must be one of {', '.join(choices)}")
    return ResultOptions(_checked_out(out, sparse), target, layout, casting, sparse)


def _checked_out(out: object, sparse: bool) -> NDArray[Any] | None:
    if out is None:
        return None
    if sparse:
        raise ArgumentError("out is given with sparse=True; a sparse result is a new array, so leave one of them out")
    if not isinstance(out, np.ndarray):
        raise ArgumentError(f"out is of type {type(out).__name__}; it must be an array of numpy")
    if not out.flags.writeable:
        raise ArgumentError("out is read-only; give an array that can be written")
    return out

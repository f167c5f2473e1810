"""API: opt_einsum's `contract`, and products that are called many times with arrays of the same shapes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from opt_einsum.contract import format_const_einsum_str
from opt_einsum.paths import linear_to_ssa, ssa_to_linear

from sparseeinsum.api.arrays import einsum
from sparseeinsum.api.einsum_operands import read_operand
from sparseeinsum.api.einsum_options import Optimize, read_path_search
from sparseeinsum.errors import ArgumentError
from sparseeinsum.language.label_lists import read_arguments
from sparseeinsum.language.numpy_notation import read_subscripts
from sparseeinsum.presentation.tracebacks import one_frame


@one_frame
def contract(*operands: object, optimize: Optimize = True, memory_limit: float | None = None, **options: Any) -> Any:  # noqa: ANN401  # as einsum
    """Evaluate an Einstein summation, as `einsum` does, under the name that it has in opt_einsum.

    Args:
        operands: As for `einsum`.
        optimize: As for `einsum`.
        memory_limit: The most elements of an intermediate result; None if there is no limit.
        options: Further options of `einsum`.

    Raises:
        SparseEinsumError: As for `einsum`.

    >>> contract("i,i->", [1, 2], [3, 4])
    np.int64(11)
    """
    count = len(read_arguments(operands)[1])
    return einsum(*operands, optimize=read_path_search(optimize, count).limited(memory_limit), **options)


@dataclass(frozen=True, slots=True)
class _Remainder:
    """What is left of a product when its constants are contracted as far as the path allows.

    Attributes:
        subscripts: The subscripts of the operands that are left.
        path: Their contraction order.
        operands: Every operand: an array, or the position of a variable in the whole product.
    """

    subscripts: str
    path: tuple[tuple[int, ...], ...]
    operands: tuple[NDArray[Any] | int, ...]


@dataclass(frozen=True, slots=True, repr=False)
class ContractionExpression:
    """A product of arrays whose contraction order is chosen; calling it with the arrays computes it.

    Attributes:
        subscripts: The subscripts as written.
        equation: The subscripts with a letter for every axis and with the labels of the result.
        path: The contraction order, in opt_einsum's format.
        constants: The operands that are known, by their positions.
        options: Options of `einsum`.
    """

    subscripts: str
    equation: str
    path: tuple[tuple[int, ...], ...]
    constants: Mapping[int, object]
    options: Mapping[str, Any]
    _remainders: dict[np.dtype[Any], _Remainder] = field(default_factory=dict)

    def __repr__(self) -> str:
        written = format_const_einsum_str(self.subscripts, self.constants)
        constants = f", constants={sorted(self.constants)}" if self.constants else ""
        return f"<ContractionExpression({written!r}{constants})>"

    def __str__(self) -> str:
        return f"{self!r}\n  path: {list(self.path)}"

    @one_frame
    def __call__(self, *arrays: object, out: object = None) -> Any:  # noqa: ANN401  # as einsum
        """Compute the product of these arrays and the constants.

        Args:
            arrays: The operands that are not constants, with as many axes as the shapes that the expression is for.
            out: As for `einsum`.

        Raises:
            ArgumentError: There are more or fewer arrays.
            SparseEinsumError: As for `einsum`.
        """
        count = self.equation.count(",") + 1
        if len(arrays) != count - len(self.constants):
            raise ArgumentError(f"{self!r} takes exactly {count - len(self.constants)} arrays; it gets {len(arrays)}")
        variables = iter(arrays)
        operands = [self.constants[place] if place in self.constants else next(variables) for place in range(count)]
        if not self._has_remainder():
            return einsum(self.equation, *operands, optimize=self.path, out=out, **self.options)
        remainder = self._remainder(operands, out)
        left = [operands[operand] if isinstance(operand, int) else operand for operand in remainder.operands]
        return einsum(remainder.subscripts, *left, optimize=remainder.path, out=out, **self.options)

    def _has_remainder(self) -> bool:
        """Whether constants can be contracted ahead: several arrays of numpy, which are multiplied and added up."""
        are_dense = all(isinstance(constant, np.ndarray) for constant in self.constants.values())
        return len(self.constants) > 1 and are_dense and _OTHER_OPERATIONS.isdisjoint(self.options)

    def _remainder(self, operands: Sequence[object], out: object) -> _Remainder:
        """The remainder in the dtype in which numpy computes the whole product."""
        dtypes = [read_operand(number, operand).dtype for number, operand in enumerate(operands, 1)]
        dtypes += [out.dtype] if isinstance(out, np.ndarray) else []
        dtype = np.dtype(self.options.get("dtype") or np.result_type(*dtypes))
        if dtype not in self._remainders:
            self._remainders[dtype] = _contract_constants(self, dtype)
        return self._remainders[dtype]


# Options with which a product is no longer one that numpy computes in any order.
_OTHER_OPERATIONS = frozenset(("join", "agg", "optimizer"))


def _contract_constants(expression: ContractionExpression, dtype: np.dtype[Any]) -> _Remainder:
    """Compute the steps of the path whose operands are all constants."""
    inputs, output = expression.equation.split("->")
    terms = dict(enumerate(inputs.split(",")))  # of operands and of results, which follow them, as in opt_einsum's SSA
    count, waiting = len(terms), dict(terms)
    values: dict[int, Any] = dict(expression.constants)
    steps: dict[int, tuple[int, ...]] = {}
    for result, step in enumerate(linear_to_ssa(expression.path), count):
        parts = [waiting.pop(operand) for operand in step]
        needed = set(output).union(*waiting.values())
        terms[result] = waiting[result] = "".join(label for label in dict.fromkeys("".join(parts)) if label in needed)
        if all(operand in values for operand in step):
            constants = [values[operand] for operand in step]
            equation = f"{','.join(parts)}->{terms[result]}"
            values[result] = np.asarray(einsum(equation, *constants, dtype=dtype, casting="unsafe"))
        else:
            steps[result] = step
    left = [operand for step in steps.values() for operand in step if operand not in steps] or list(waiting)
    numbers = {operand: number for number, operand in enumerate((*left, *steps))}
    path = ssa_to_linear([tuple(numbers[operand] for operand in step) for step in steps.values()])
    return _Remainder(
        f"{','.join(terms[operand] for operand in left)}->{output}",
        tuple(map(tuple, path)),
        tuple(values.get(operand, operand) for operand in left),
    )


@one_frame
def contract_expression(
    *operands: object,
    constants: Collection[int] | None = None,
    optimize: Optimize = True,
    memory_limit: float | None = None,
    **options: Any,  # noqa: ANN401  # those of einsum
) -> ContractionExpression:
    """Choose the contraction order of a product of arrays with given shapes.

    Args:
        operands: As for `einsum`, with a shape, such as (3, 4), in place of every operand that is not a constant.
        constants: The positions of operands that are arrays rather than shapes. What depends on them alone is computed
            in the first call.
        optimize: As for `einsum`.
        memory_limit: The most elements of an intermediate result; None if there is no limit.
        options: Further options of `einsum`, besides `out`, which a call takes.

    Returns:
        A function of the operands that are not constants, which may have any sizes.

    Raises:
        ParseError: The subscripts have a syntax error.
        ShapeError: The subscripts do not match the shapes.
        ArgumentError: An option is wrong, an operand is no shape, or a constant does not exist.

    >>> expression = contract_expression("ij,jk->ik", (2, 3), (3, 2))
    >>> expression
    <ContractionExpression('ij,jk->ik')>
    >>> expression([[1, 2, 3], [4, 5, 6]], [[1, 0], [0, 1], [0, 0]])
    array([[1, 2],
           [4, 5]])
    """
    text, listed = read_arguments(operands)
    if "out" in options:
        raise ArgumentError("out is given for an expression; give it when you call the expression")
    constant_operands = {place: listed[place] for place in constants or () if _is_position(place, len(listed))}
    shapes = [
        read_operand(number, operand).shape if number - 1 in constant_operands else _shape(number, operand)
        for number, operand in enumerate(listed, 1)
    ]
    read_subscripts(text, [len(shape) for shape in shapes]).stretched_axes(shapes)  # checks the sizes
    search = read_path_search(optimize, len(shapes)).limited(memory_limit)
    info = search.contraction(text, shapes)
    return ContractionExpression(text, info.eq, tuple(map(tuple, info.path)), constant_operands, options)


def _is_position(place: int, count: int) -> bool:
    if not 0 <= place < count:
        raise ArgumentError(f"constants has {place}; the positions of operands are from 0 to {count - 1}")
    return True


def _shape(number: int, operand: object) -> tuple[int, ...]:
    if isinstance(operand, tuple | list) and all(isinstance(bound, Integral) for bound in operand):
        return tuple(map(int, operand))
    raise ArgumentError(f"operand {number} is no shape, such as (3, 4); an array needs constants=[{number - 1}]")

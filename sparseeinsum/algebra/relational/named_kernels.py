"""Algebra, relational: kernels that users name."""

from sparseeinsum.algebra.relational.array_kernels import ARRAY_KERNELS, array_kernel
from sparseeinsum.algebra.relational.kernels import Kernel, elementwise
from sparseeinsum.errors import AlgebraError


def as_kernel(value: Kernel | str, operands: int) -> Kernel:
    """The kernel, or that of a function's name.

    Args:
        value: A kernel, or the name of a function of whole arrays such as `inverse`, or of numbers such as `relu`.
        operands: How many arrays the kernel must take.

    Raises:
        AlgebraError: The function does not exist, or the kernel takes another number of arrays.
    """
    if not isinstance(value, Kernel | str):
        raise AlgebraError(
            f"the kernel is {value!r}; write an EinSum, as in 'w[i] = 2 * u[i]', or the name of a function, as 'relu'"
        )
    kernel = value if isinstance(value, Kernel) else _named(value, operands)
    if kernel.operands != operands:
        raise AlgebraError(f"the kernel {kernel} takes {kernel.operands} arrays, where {operands} are given")
    return kernel


def _named(text: str, operands: int) -> Kernel:
    whole = array_kernel(text)
    return elementwise(text, operands, ARRAY_KERNELS if operands == 1 else ()) if whole is None else whole

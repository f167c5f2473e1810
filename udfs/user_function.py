"""A user's scalar function, over blocks: what an expression calls when it names one.

Needs numba and numpy only. The function computes in float64; float32 operands are widened and the result is rounded.
"""

import numpy as np
from numba import njit, types
from numba.core import errors
from numba.extending import intrinsic

PARAMETERS = 6  # addresses of three operands and of the result, elements, and bytes of an element


def compile_over_blocks(function, operands):
    """Compile a function of one to three numbers for blocks of them.

    Returns:
        LLVM bitcode, and in it the name of the function that takes PARAMETERS.

    Raises:
        ValueError: numba cannot compile it; the message says why.
    """
    scalar = njit(error_model="numpy", boundscheck=True)(function)
    try:
        scalar.compile((types.float64,) * operands)
    except (errors.NumbaError, errors.UnsupportedBytecodeError, NotImplementedError) as error:
        raise ValueError(_reason(str(error))) from error
    (returned,) = [overload.signature.return_type for overload in scalar.overloads.values()]
    if not isinstance(returned, types.Float | types.Integer | types.Boolean):
        raise ValueError(f"it returns {returned}, but must return a real number in every case")
    over_float64, over_float32 = (_over_blocks(scalar, operands, dtype) for dtype in (types.float64, types.float32))

    def run(a, b, c, out, n, item_bytes):
        if item_bytes == 8:
            over_float64(a, b, c, out, n)
        else:
            over_float32(a, b, c, out, n)
        return 0

    compiled = njit(types.int64(*[types.int64] * PARAMETERS), error_model="numpy")(run)
    (result,) = compiled.overloads.values()
    return result.library._final_module.as_bitcode(), result.fndesc.mangled_name


def _reason(message):
    """The line of numba's message that says what is wrong."""
    lines = [line.strip() for line in message.splitlines()]
    return next((line for line in lines if line and not line.startswith("Failed in")), message)


def _over_blocks(scalar, operands, dtype):
    def of_one(a, b, c, out, n):
        for i in range(n):
            _pointer(out, dtype)[i] = np.float64(scalar(np.float64(_pointer(a, dtype)[i])))

    def of_two(a, b, c, out, n):
        for i in range(n):
            first, second = np.float64(_pointer(a, dtype)[i]), np.float64(_pointer(b, dtype)[i])
            _pointer(out, dtype)[i] = np.float64(scalar(first, second))

    def of_three(a, b, c, out, n):
        for i in range(n):
            first, second = np.float64(_pointer(a, dtype)[i]), np.float64(_pointer(b, dtype)[i])
            _pointer(out, dtype)[i] = np.float64(scalar(first, second, np.float64(_pointer(c, dtype)[i])))

    return njit(error_model="numpy")((of_one, of_two, of_three)[operands - 1])


@intrinsic
def _pointer(typing_context, address, dtype):
    """A pointer to elements of a numba dtype."""
    pointer_type = types.CPointer(dtype.dtype)

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(pointer_type))

    return pointer_type(address, dtype), generate

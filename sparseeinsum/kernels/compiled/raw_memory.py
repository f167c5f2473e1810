"""Kernels: accesses raw memory and calls functions by address, in compiled code; addresses are int64."""

from collections.abc import Callable
from typing import Any

from numba import njit, types
from numba.core import cgutils
from numba.core.extending import intrinsic
from numba.np.arrayobj import populate_array


def _array_at(typing_context, address, size, dtype):
    """View `size` elements of a numba dtype at `address` as a flat array, which does not own the memory."""
    array_type = types.Array(dtype.dtype, 1, "C")

    def generate(context, builder, signature, arguments):
        array = context.make_array(array_type)(context, builder)
        item_bytes = context.get_abi_sizeof(context.get_data_type(dtype.dtype))
        itemsize = context.get_constant(types.intp, item_bytes)
        populate_array(
            array,
            data=builder.inttoptr(arguments[0], array.data.type),
            shape=[arguments[1]],
            strides=[itemsize],
            itemsize=itemsize,
            meminfo=None,
        )
        return array._getvalue()

    return array_type(address, size, dtype), generate


def _call(typing_context, address, arguments):
    """Call the C function at `address` with a tuple of int64; it returns int64."""
    count = len(arguments)

    def generate(context, builder, signature, values):
        word = context.get_value_type(types.int64)
        function_type = cgutils.ir.FunctionType(word, [word] * count)
        function = builder.inttoptr(values[0], function_type.as_pointer())
        return builder.call(function, cgutils.unpack_tuple(builder, values[1], count))

    return types.int64(address, arguments), generate


# In numba's annotations, an intrinsic has the parameters of its generator; in calls it has one less.
array_at: Callable[..., Any] = intrinsic(_array_at)
call: Callable[..., Any] = intrinsic(_call)

malloc = types.ExternalFunction("malloc", types.int64(types.int64))
free = types.ExternalFunction("free", types.void(types.int64))
use_large_pages = types.ExternalFunction("sparseeinsum_use_large_pages", types.void(types.int64, types.int64))

LARGE_PAGE = 1 << 21  # bytes; the system clears one in a fraction of the time of many small ones


def address_of(symbol: str) -> Callable[[], int]:
    """Make a compiled function that returns the address of the external data `symbol`."""

    def _address(typing_context):
        def generate(context, builder, signature, arguments):
            word = context.get_value_type(types.int64)
            variable = builder.module.globals.get(symbol) or cgutils.ir.GlobalVariable(builder.module, word, symbol)
            return builder.ptrtoint(variable, word)

        return types.int64(), generate

    compiled: Callable[[], int] = intrinsic(_address)
    return compiled


@njit
def copy_elements(target, source):
    """Copy `source` to `target`, an array of equal length and dtype."""
    for i in range(target.size):
        target[i] = source[i]

"""Evaluating scalar expressions: runs the programs that expression.py reads, block by block over arrays.

Each operation runs over up to BLOCK elements at a time. Comparisons and logic return 0 or 1; every value but 0 is true,
also NaN. A *body* computes a function for one element; it returns a value, or a value and a code that is 0 or negative.
The codes of many elements are combined by a bitwise or, which is fast: for the codes of one body, this must give one of
them. Self-contained: numba and numpy only, no allocation.
"""

from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, overload

BLOCK = 256

FIRST_ADDRESS = 1 << 16  # codes from here on are addresses of users' functions; no code is at lower addresses
UNKNOWN_FUNCTION = -16

_FIRST_CONSTANT = 2


@njit
def evaluate_block(program, constants, u, v, n, stack, block, constant, apply):
    """Run a program over one block; returns 0 or a code. The result is stack[0:n].

    What depends on constants and operands of one element alone is computed once, not for every element.

    Args:
        program: The program, as in expression.py.
        constants: Its constants, as in expression.py.
        u: The first operand: (n,), or one element for all.
        v: The second operand, of the same dtype: (n,), or one element for all.
        n: The number of elements, at most `block`.
        stack: (MAX_DEPTH * block,), of the same dtype.
        block: The elements of one level of the stack.
        constant: constant(constants, index) returns the value of a literal.
        apply: apply(code, a, b, c) computes a function and writes it to a; returns 0 or a code.
    """
    depth = 0
    single = 0  # a bit for every level whose first element stands for all
    for position in range(1, program[0] + 1):
        operands, code = program[position] & 3, program[position] >> 2
        depth -= operands
        read = ((1 << operands) - 1) << depth  # the bits of the levels of operands
        size = n
        if operands > 0:
            if single & read == read:
                size = 1
            else:
                _spread(stack, block, n, depth, single & read)
            single &= ~read
        first = stack[depth * block : depth * block + size]
        second = stack[(depth + 1) * block : (depth + 1) * block + size] if operands > 1 else first
        third = stack[(depth + 2) * block : (depth + 2) * block + size] if operands > 2 else first
        if operands > 0:
            failure = apply(code, first, second, third)
            if failure < 0:
                return failure
        elif code < _FIRST_CONSTANT:
            operand = u if code == 0 else v
            _copy(operand, first)
            size = operand.size
        else:
            first[0] = constant(constants, code - _FIRST_CONSTANT)
            size = 1
        single |= (1 if size == 1 else 0) << depth
        depth += 1
    _spread(stack, block, n, 0, single)
    return 0


@njit
def _spread(stack, block, n, depth, single):
    """Let the levels of the stack from `depth` on whose bits are set hold n elements, all equal to the first."""
    while single >> depth != 0:
        if single >> depth & 1:
            level = stack[depth * block : depth * block + n]
            _fill(level[0], level)
        depth += 1


@njit
def _copy(source, out):
    for i in range(source.size):
        out[i] = source[i]


@njit
def _fill(value, out):
    for i in range(out.size):
        out[i] = value


@njit
def constant(constants, index):
    """Return the value of a literal, as a float64."""
    return constants[1 + index]


def make_apply(bodies, calls_users):
    """Make the function apply(code, a, b, c), which writes the function of a code to a, element by element.

    Args:
        bodies: (operands, body) by code; the body is None if the numbers have no such function.
        calls_users: Whether codes may be addresses of users' functions.

    Returns:
        The function, which returns 0 or a code; UNKNOWN_FUNCTION for an unknown code.
    """
    count = len(bodies)
    run = make_switch([_refuse if body is None else _make_step(operands, body) for operands, body in bodies])

    @njit
    def apply(code, a, b, c):
        if 0 <= code < count:
            return run(code, a, b, c)
        if calls_users and code >= FIRST_ADDRESS:
            addresses = (a.ctypes.data, b.ctypes.data, c.ctypes.data, a.ctypes.data)
            call_function(code, (*addresses, a.size, a.itemsize))
            return 0
        return UNKNOWN_FUNCTION

    return apply


def make_switch(functions, first=0):
    """Make a function that calls functions[code - first], by binary search; the code is its first argument."""
    if len(functions) == 1:
        return functions[0]
    half = len(functions) // 2
    middle, lower, upper = (
        first + half,
        make_switch(functions[:half], first),
        make_switch(functions[half:], first + half),
    )

    @njit
    def run(code, *arguments):
        return lower(code, *arguments) if code < middle else upper(code, *arguments)

    return run


@njit
def _refuse(function, a, b, c):
    return UNKNOWN_FUNCTION


def _make_step(operands, body):
    """Make a function (code, a, b, c) that writes body(a, ...) to a, element by element; returns 0 or a code."""

    @njit
    def unary(function, a, b, c):
        code = 0
        for i in range(a.size):
            a[i], failure = with_code(body(a[i]))
            code |= failure
        return code

    @njit
    def binary(function, a, b, c):
        code = 0
        for i in range(a.size):
            a[i], failure = with_code(body(a[i], b[i]))
            code |= failure
        return code

    @njit
    def ternary(function, a, b, c):
        code = 0
        for i in range(a.size):
            a[i], failure = with_code(body(a[i], b[i], c[i]))
            code |= failure
        return code

    return (unary, binary, ternary)[operands - 1]


def make_elementwise(body, steps_of_u, steps_of_v):
    """Make a function (u, v, out) that writes body(u, v) to out, element by element; it returns 0 or a code.

    Args:
        body: The function of two numbers.
        steps_of_u: 1 to go from element to element of u; 0 to take its first one, a number, for all of them.
        steps_of_v: The same for v.
    """

    @njit
    def compute(u, v, out):
        code = 0
        for i in range(out.size):
            out[i], failure = with_code(body(u[i * steps_of_u], v[i * steps_of_v]))
            code |= failure
        return code

    return compute


def with_code(result):
    """Return the value and the code of what a body returned; numba compiles `_with_code` instead."""


@overload(with_code)
def _with_code(result):
    if isinstance(result, types.BaseTuple):
        return lambda result: result
    return lambda result: (result, 0)


@intrinsic
def call_function(typing_context, address, arguments):
    """Call a user's machine code at an address with six words; see user_function.py."""

    def generate(context, builder, signature, values):
        word = context.get_value_type(types.int64)
        function_type = cgutils.ir.FunctionType(word, [word] * 6)
        function = builder.inttoptr(values[0], function_type.as_pointer())
        return builder.call(function, cgutils.unpack_tuple(builder, values[1], 6))

    return types.int64(types.int64, types.UniTuple(types.int64, 6)), generate
